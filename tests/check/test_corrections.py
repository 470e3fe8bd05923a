"""Remedies that the checker proposes. Each is what an engineer would write."""

from __future__ import annotations

import pytest

from pyptx.check import check
from pyptx.check.corrections import suggest_corrections
from pyptx.isa.targets import find_target
from pyptx.parser import parse
from tests.check.report import HEADER


def remedy(body: str, target: str = "sm_90a") -> str | None:
    """Return the help of the first finding in a kernel."""
    text = HEADER.format(target=target, version="8.6") + body + "\n    ret;\n}\n"
    return check(parse(text))[0].help


@pytest.mark.parametrize(
    ("line", "proposal"),
    [
        ("mul.wied.u32 %rd0, %r1, 4;", "mul.wide.u32"),
        ("mul.F32 %f0, %f1, %f2;", "mul.f32"),
        ("cvt.f16.f32 %h0, %f1;", "cvt.rn.f16.f32"),
        ("cvt.s32.f32 %r0, %f1;", "cvt.rni.s32.f32"),
        ("setp.u32 %p0, %r1, %r2;", "setp.eq.u32"),
        ("add.rn.s32 %r0, %r1, %r2;", "add.s32"),
        ("and.u32 %r0, %r1, %r2;", "and.b32"),
        ("ld.global.v3.f32 {%f0, %f1, %f2}, [%rd0];", "ld.global.v2.f32"),
        ("atom.global.add.f16 %h0, [%rd0], %h1;", "atom.global.add.noftz.f16"),
        ("cp.async.cg.shared.global.foo [%r0], [%rd0], 16;", "cp.async.cg.shared.global"),
        ("mbarrier.init.shared::cta.b46 [%r0], 1;", "mbarrier.init.shared::cta.b64"),
        ("cp.async.bulk.commit_grp;", "cp.async.bulk.commit_group"),
    ],
)
def test_a_misspelled_instruction_gets_the_legal_one(line: str, proposal: str) -> None:
    remedy_text = remedy(line)
    assert remedy_text is not None
    assert remedy_text.startswith(f"did you mean `{proposal}`")


def test_a_proposal_takes_the_operands_that_are_there() -> None:
    words = tuple("sync.aligned.m16n8k32.row.col.f32.f16.f16.f32".split("."))
    dense = suggest_corrections("mma", words, 4, find_target("sm_90a"), (8, 6))
    assert {proposal[2] for proposal in dense} == {"m16n8k8", "m16n8k16"}
    sparse = suggest_corrections("mma", words, 6, find_target("sm_90a"), (8, 6))
    assert {proposal[0] for proposal in sparse} == {"sp", "sp::ordered_metadata"}


def test_a_proposal_exists_on_the_target() -> None:
    assert suggest_corrections("ld", ("global", "v3", "f32"), 2, find_target("sm_90"), (8, 6)) == [
        ("global", "v2", "f32"), ("global", "v4", "f32"),
    ]  # fmt: skip
    assert suggest_corrections("elect", ("snyc",), 2, find_target("sm_90"), (8, 6)) == [("sync",)]
    assert suggest_corrections("elect", ("snyc",), 2, find_target("sm_80"), (8, 6)) == []


@pytest.mark.parametrize(
    ("line", "help"),
    [
        ("mov.b32 %r0, %r32;", "`%r<32>` declares `%r0` to `%r31`"),
        ("mov.b32 %r0, r5;", "did you mean `%r5`?"),
        ("mov.b32 %r0, %R5;", "did you mean `%r5`?"),
        ("ld.shared.b32 %r0, [tiel];", "did you mean `tile`?"),
        ("ld.shared.b32 %r0, [TILE];", "did you mean `tile`?"),
        ("mov.u32 %r0, %tidx;", "did you mean `%tid.x`?"),
        ("mov.u32 %r0, threadIdx.y;", "in PTX this is `%tid.y`"),
        ("bra $doen;\n$done:", "did you mean `$done`?"),
        ("@%p7 mov.b32 %r0, 1;", "`%p<4>` declares `%p0` to `%p3`"),
        ("{ mov.b32 %r0, %f32; }", "`%f<32>` declares `%f0` to `%f31`"),
        ("MOV.b32 %r0, %r1;", "did you mean `mov`?"),
        ("shfl.bfly.b32 %r0, %r1, 1, 31;", "use `shfl.sync.bfly.b32` with a mask of lanes instead"),
    ],
)
def test_a_name_that_nothing_declares(line: str, help: str) -> None:
    assert remedy(line) == help


def test_names_without_a_likeness_get_no_remedy() -> None:
    assert remedy("mov.b32 %r0, a;") is None
    assert remedy("mov.b32 %r0, %unheard_of;") is None


def test_a_name_declared_after_the_first_search_is_found_too() -> None:
    text = HEADER.format(target="sm_90a", version="8.6")
    text += "mov.b32 %r0, countr;\n.reg .b32 counter;\nmov.b32 %r0, countr;\nret;\n}\n"
    assert [d.help for d in check(parse(text)) if d.code == "PTX0401"] == [None, "did you mean `counter`?"]


def test_a_target_is_named_where_its_suffix_is_all_that_is_missing() -> None:
    assert remedy("wgmma.fence.sync.aligned;", "sm_90") == "write `.target sm_90a`"
    assert remedy("wgmma.fence.sync.aligned;", "sm_80") is None


@pytest.mark.parametrize(("line", "place"), [("add.u32 %r0, %r1, g;", "[g]"), ("mov.f32 %f0, g+4;", "[g+4]")])
def test_a_variable_where_a_number_is_wanted_is_to_be_loaded(line: str, place: str) -> None:
    assert f"first load its value into a register: ld.global from {place}" in str(remedy(line))
