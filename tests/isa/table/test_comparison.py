"""Facts of the comparison, logic, video, stack and miscellaneous rows that are easy to get wrong."""

from __future__ import annotations

import pytest

from pyptx.isa.model import Kind
from tests.isa.spelling import legal, matches, operands


@pytest.mark.parametrize(
    ("spelling", "target", "ptx", "expected"),
    [
        ("setp.lo.s32", None, None, False),
        ("setp.lt.b32", None, None, False),
        ("setp.ltu.s32", None, None, False),
        ("setp.hi.and.u64", "sm_20", "3.0", True),
        ("setp.not.and.u32", None, None, False),
        ("setp.lt.ftz.f64", None, None, False),
        ("setp.lt.ftz.bf16", None, None, False),
        ("setp.lt.bf16x2", "sm_89", None, False),
        ("set.lt.f16.f16", "sm_53", "4.2", True),
        ("set.lt.u16.f16", "sm_53", "6.4", False),
        ("set.lt.bf16.u32", "sm_90", "7.8", True),
        ("set.lt.f16x2.f32", None, None, False),
        ("set.lt.ftz.u32.s32", None, None, False),
        ("selp.pred", None, None, False),
        ("slct.ftz.u32.s32", None, None, False),
        ("slct.ftz.u64.f32", None, None, True),
        ("and.u32", None, None, False),
        ("cnot.pred", None, None, False),
        ("lop3.or.b32", "sm_70", "8.1", False),
        ("lop3.xor.b32", None, None, False),
        ("shf.l.b32", None, None, False),
        ("shf.r.wrap.b32", "sm_30", None, False),
        ("shl.u32", None, None, False),
        ("shr.s64", None, None, True),
        ("vadd.u32.s32.u32.sat.add", "sm_20", "3.0", True),
        ("vadd2.u32.u32.u32.sat.add", None, None, False),
        ("vadd4.u32.u32.u32", "sm_20", None, False),
        ("vset.u32.u32.lo", None, None, False),
        ("vshl.u32.u32.s32.wrap", None, None, False),
        ("vmad.s32.s32.s32.po.shr7", None, None, True),
        ("alloca.u64", "sm_50", None, False),
        ("nanosleep.u32", "sm_70", "6.1", False),
        ("setmaxnreg.inc.sync.aligned.u32", "sm_90", None, False),
        ("setmaxnreg.inc.sync.aligned.u32", "sm_90a", "8.0", True),
        ("setmaxnreg.dec.sync.aligned.u32", "sm_103f", "8.8", True),
        ("setmaxnreg.dec.sync.aligned.u32", "sm_100f", "8.8", True),
        ("setmaxnreg.dec.sync.aligned.u32", "sm_110a", "9.0", True),
        ("setmaxnreg.dec.sync.aligned.u32", "sm_120", None, False),
        ("setmaxnreg.inc.aligned.u32", None, None, False),
    ],
)
def test_where_a_spelling_is_legal(spelling: str, target: str | None, ptx: str | None, expected: bool) -> None:
    assert legal(spelling, target, ptx) is expected


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        ("setp.eq.s32", ["p:.pred|q:.pred, a:.s32, b:.s32"]),
        ("setp.eq.or.s32", ["p:.pred|q:.pred, a:.s32, b:.s32, c:.pred"]),
        ("setp.eq.f16", ["p:.pred, a:.f16, b:.f16"]),
        ("set.lt.f32.u64", ["d:.f32, a:.u64, b:.u64"]),
        ("slct.b64.f32", ["d:.b64, a:.b64, b:.b64, c:.f32"]),
        ("lop3.b32", ["d:.b32, a:.b32, b:.b32, c:.b32, immLut"]),
        ("lop3.and.b32", ["d:.b32|p:.pred, a:.b32, b:.b32, c:.b32, immLut, q:.pred"]),
        ("shl.b64", ["d:.b64, a:.b64, b:.u32"]),
        ("vadd.s32.u32.u32", ["d:.s32, a:.u32, b:.u32", "d:.s32, a:.u32, b:.u32, c:.s32"]),
        ("vadd.s32.u32.u32.min", ["d:.s32, a:.u32, b:.u32, c:.s32"]),
        ("alloca.u64", ["ptr:.u64, size:.u64, immAlign", "ptr:.u64, size:.u64"]),
        ("trap", [""]),
    ],
)
def test_operands(spelling: str, expected: list[str]) -> None:
    assert operands(spelling) == expected


def test_predicates_may_be_negated_and_results_of_setp_discarded() -> None:
    (match,) = matches("setp.eq.and.u32")
    pair, a, _, c = match.signatures[0]
    assert pair.optional_parts == 1
    assert [part.discardable for part in pair.parts] == [True, True]
    assert (a.negatable, c.negatable) == (False, True)


def test_only_a_merge_selects_a_part_of_the_destination() -> None:
    alone, merge = (match.signatures[0] for match in matches("vsub.u32.u32.u32"))
    assert (alone[0].selectable, merge[0].selectable) == ((), ("b0", "b1", "b2", "b3", "h0", "h1"))
    assert alone[1].selectable == merge[1].selectable == merge[0].selectable


def test_simd_masks_and_selectors() -> None:
    halves, bytes_ = matches("vadd2.u32.u32.u32")[0].signatures[0], matches("vset4.u32.u32.lt")[0].signatures[0]
    assert halves[0].selectable == ("h0", "h1", "h10")
    assert "h32" in halves[1].selectable
    assert "b7654" in bytes_[2].selectable
    assert "b8000" not in bytes_[2].selectable
    assert halves[1].kind is Kind.REGISTER


def test_immediates_have_the_ranges_ptxas_checks() -> None:
    assert matches("pmevent")[0].signatures[0][0].bounds == (0, 15, 1)
    assert matches("pmevent.mask")[0].signatures[0][0].bounds == (0, 65535, 1)
    assert matches("setmaxnreg.inc.sync.aligned.u32")[0].signatures[0][0].bounds == (24, 256, 8)
