"""Facts of the arithmetic rows (integer, extended, floating point, half, mixed, FP8) that are easy to get wrong."""

from __future__ import annotations

import pytest

from pyptx.isa.model import Kind
from tests.isa.spelling import legal, matches, operands


@pytest.mark.parametrize(
    ("spelling", "target", "ptx", "expected"),
    [
        ("add.sat.s32", "sm_20", "3.0", True),
        ("add.sat.u32", "sm_90", None, False),
        ("add.sat.u32", "sm_120a", "9.2", True),
        ("add.u16x2", "sm_89", None, False),
        ("add.u16x2", "sm_90", "8.0", True),
        ("add.s8x4", "sm_107f", "9.4", True),
        ("add.s8x4", "sm_107", "9.5", False),
        ("add.s8x4", "sm_100a", None, False),
        ("sub.u16x2", "sm_120a", None, False),
        ("neg.s8x4", "sm_121a", "9.2", True),
        ("min.relu.s32", "sm_80", None, False),
        ("min.relu.u32", None, None, False),
        ("mul.s32", None, None, False),
        ("mul.wide.u64", None, None, False),
        ("mad.lo.sat.s32", None, None, False),
        ("mad.hi.sat.s32", None, None, True),
        ("clmad.lo.u64", "sm_80", "9.2", False),
        ("clmad.lo.u64", "sm_80", "9.3", True),
        ("fns.b32", "sm_30", "5.0", False),
        ("szext.wrap.s32", "sm_70", "7.6", True),
        ("dp4a.u32.s32", "sm_60", None, False),
        ("add.cc.u16", None, None, False),
        ("addc.u16", None, None, True),
        ("madc.hi.cc.u64", "sm_52", "4.2", False),
        ("add.f32x2", "sm_90a", None, False),
        ("add.f32x2", "sm_120", "8.7", True),
        ("add.sat.f32x2", None, None, False),
        ("add.sat.f64", None, None, False),
        ("fma.f32", None, None, False),
        ("div.rn.ftz.f64", None, None, False),
        ("div.f32", "sm_13", "1.3", True),
        ("div.f32", "sm_13", "1.4", False),
        ("mad.f32", "sm_35", "3.1", True),
        ("mad.f32", "sm_35", "3.2", False),
        ("sqrt.approx.f64", None, None, False),
        ("rsqrt.approx.ftz.f64", "sm_20", "3.2", False),
        ("tanh.approx.f32", "sm_72", None, False),
        ("tanh.approx.bf16x2", "sm_89", None, False),
        ("ex2.approx.ftz.f16", None, None, False),
        ("ex2.approx.bf16", None, None, False),
        ("min.xorsign.abs.f32", "sm_80", None, False),
        ("min.abs.f32", "sm_100", "8.8", True),
        ("fma.rn.relu.f16", "sm_75", None, False),
        ("fma.rn.sat.relu.f16", None, None, False),
        ("fma.rz.bf16", "sm_80", None, True),
        ("fma.rz.f16", None, None, False),
        ("fma.rn.oob.f16", "sm_90", "8.0", False),
        ("add.bf16", "sm_89", None, False),
        ("add.ftz.bf16", None, None, False),
        ("add.rm.sat.f32.bf16", "sm_100", "8.6", True),
        ("mul.f32.f16", None, None, False),
        ("fma.rn.satfinite.e4m3x4.ue8m0x4.e2m1p4x4", "sm_103a", "9.4", True),
        ("fma.rn.satfinite.e4m3x4.ue8m0x4.e2m1p4x4", "sm_107a", None, False),
        ("add.e2m1x4.e4m3x4", None, None, False),
    ],
)
def test_where_a_spelling_is_legal(spelling: str, target: str | None, ptx: str | None, expected: bool) -> None:
    assert legal(spelling, target, ptx) is expected


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        ("mul.wide.s16", ["d:.s32, a:.s16, b:.s16"]),
        ("mad.wide.u32", ["d:.u64, a:.u32, b:.u32, c:.u64"]),
        ("popc.b64", ["d:.u32, a:.b64"]),
        ("bfe.s64", ["d:.s64, a:.s64, b:.u32, c:.u32"]),
        ("bfi.b64", ["f:.b64, a:.b64, b:.b64, c:.u32, d:.u32"]),
        ("dp4a.u32.u32", ["d:.u32, a:.u32, b:.u32, c:.u32"]),
        ("dp2a.lo.u32.s32", ["d:.s32, a:.u32, b:.u32, c:.s32"]),
        ("testp.finite.f64", ["p:.pred, a:.f64"]),
        ("min.f32", ["d:.f32, a:.f32, b:.f32", "d:.f32, a:.f32, b:.f32, c:.f32"]),
        ("min.f64", ["d:.f64, a:.f64, b:.f64"]),
        ("fma.rn.f32.f16", ["d:.f32, a:.f16, b:.f16, c:.f32"]),
        ("sub.e5m2x4.e2m1x4", ["d:.e5m2x4, a:.e2m1x4, c:.e5m2x4"]),
        ("mul.e5m2x4.e2m1x4.e3m2x4", ["d:.e5m2x4, a:.e2m1x4, c:.e3m2x4"]),
    ],
)
def test_operands(spelling: str, expected: list[str]) -> None:
    assert operands(spelling) == expected


def test_bfi_reads_its_operand_named_d() -> None:
    (match,) = matches("bfi.b32")
    assert [o.access for o in match.signatures[0]] == ["w", "r", "r", "r", "r"]


@pytest.mark.parametrize(
    ("spelling", "kind"),
    [("add.f32", Kind.VALUE), ("add.f32x2", Kind.REGISTER), ("add.f16", Kind.REGISTER), ("add.u16x2", Kind.REGISTER)],
)
def test_packed_and_half_operands_are_registers(spelling: str, kind: Kind) -> None:
    assert {o.kind for match in matches(spelling) for o in match.signatures[0][1:]} == {kind}
