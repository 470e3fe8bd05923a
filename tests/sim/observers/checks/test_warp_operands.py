"""Warp-wide and warpgroup-wide operations: operands that must be uniform, addresses of another quarter of tensor
memory, repeated setmaxnreg."""

from __future__ import annotations

import numpy as np
import pytest

from pyptx import sim
from pyptx.diagnostics import Severity
from pyptx.parser import parse
from tests.sim.kernels import SCHEDULES, assert_reported, by_schedule, codes, kernel

TENSOR = """setp.lt.u32 %p1, %t, 32; and.b32 %r5, %t, 1;
@!%p1 bra there;
{alloc}
there: bar.sync 0;
ld.shared.u32 %r1, [where];
shr.u32 %r2, %t, 5; shl.b32 %r2, %r2, 21; add.u32 %r2, %r2, %r1;
{body}
tcgen05.wait::st.sync.aligned; tcgen05.wait::ld.sync.aligned;
st.global.u32 [%o], %r6;
bar.sync 0;
@!%p1 bra end;
{free}
end:"""
ALLOC = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [where], {};"
FREE = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 {}, 64;"
PUT = "tcgen05.st.sync.aligned.32x32b.x2.b32 [{}], {{%t, %t}}; tcgen05.wait::st.sync.aligned;\n"
GET = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r6}}, [{}];"


def tensor(body: str, alloc: str = ALLOC.format(64), free: str = FREE.format("%r1")) -> str:
    text = kernel(TENSOR.format(alloc=alloc, body=body, free=free), module=".shared .b32 where;")
    return text.replace("sm_90a", "sm_100a")


@pytest.mark.parametrize(
    "text",
    [
        tensor(PUT.format("%r2") + "add.u32 %r3, %r2, %r5; " + GET.format("%r3")),
        tensor(PUT.format("%r2") + "shl.b32 %r3, %r5, 21; xor.b32 %r3, %r3, %r2; " + GET.format("%r3")),
        tensor("add.u32 %r3, %r2, %r5; " + PUT.format("%r3") + GET.format("%r2")),
        tensor("", alloc="shl.b32 %r3, %r5, 5; sub.u32 %r3, 64, %r3; " + ALLOC.format("%r3")),
        tensor("", free="shl.b32 %r3, %r5, 5; add.u32 %r3, %r3, %r1; " + FREE.format("%r3")),
        kernel("shl.b32 %r1, %t, 5; mov.u32 %r2, tile; and.b32 %r1, %r1, 32; add.u32 %r2, %r2, %r1;\n"
               "wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [%r2],\n"
               "{%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, 16;",
               module=".shared .align 32 .b8 tile[2048];"),
    ],
)  # fmt: skip
def test_an_operand_that_differs_between_lanes_is_reported(text: str) -> None:
    block = 128 if "tcgen05" in text else 32
    assert all("PTX0968" in codes_of_run for codes_of_run in codes(by_schedule(text, words=128, block=block)))


def test_operands_that_differ_between_warps_are_fine() -> None:
    by_order = by_schedule(tensor(PUT.format("%r2") + GET.format("%r2")), words=128, block=128)
    assert {code for findings in codes(by_order) for code in findings} <= {"PTX0937"}


@pytest.mark.parametrize(("quarter", "mask"), [("%r1", 0x400000), ("%r3", 0x400000), ("%r3", 0x800000)])
def test_a_warp_reaches_its_own_quarter_whichever_the_address_names(quarter: str, mask: int) -> None:
    module = parse(tensor(f"xor.b32 %r3, %r2, {mask};\n" + PUT.format(quarter) + GET.format("%r2")))
    for schedule, seed in SCHEDULES:
        out = np.zeros(128, np.uint32)
        findings = sim.run(module, block=128, args=[out], schedule=schedule, seed=seed).hazards
        assert out.tolist() == [*range(128)]
        assert [finding.severity for finding in findings if finding.rule.code == "PTX0948"] == [Severity.WARNING]


WGMMA = """mov.u32 %r1, tile; shr.u32 %r1, %r1, 4; cvt.u64.u32 %rd1, %r1; or.b64 %rd1, %rd1, 0x1000080000;
mov.u32 %r4, 0; {0}
shl.b32 %r3, %t, 2; mov.u32 %r2, tile; add.u32 %r2, %r2, %r3; st.shared.u32 [%r2], 0; st.shared.u32 [%r2+512], 0;
st.shared.u32 [%r2+1024], 0; st.shared.u32 [%r2+1536], 0; st.shared.u32 [%r2+2048], 0;
fence.proxy.async.shared::cta; bar.sync 0;
cvt.u64.u32 %rd3, %r4; add.u64 %rd2, %rd1, 128; add.u64 %rd2, %rd2, %rd3;
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {{%f0, %f1, %f2, %f3}}, %rd1, %rd2, 0, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"""


@pytest.mark.parametrize(
    ("shift", "expected"),
    [("", ()), ("shr.u32 %r4, %t, 6;", ("PTX0968",)), ("and.b32 %r4, %t, 1;", ("PTX0968",))],
    ids=["alike", "by warps", "by lanes"],
)
def test_a_descriptor_is_one_for_the_warpgroup(shift: str, expected: tuple[str, ...]) -> None:
    text = kernel(WGMMA.format(shift), module=".shared .align 128 .b8 tile[4608];")
    assert codes(by_schedule(text, words=128, block=128)) == {expected}


def test_columns_freed_twice_are_a_finding_that_the_run_goes_on_from() -> None:
    twice_freed = FREE.format("%r1") + "\n" + FREE.format("%r1")
    assert codes(by_schedule(tensor("mov.u32 %r6, 0;", free=twice_freed), words=128, block=128)) == {("PTX0947",)}


DEC = "setmaxnreg.dec.sync.aligned.u32 {};\n"


@pytest.mark.parametrize(
    ("between", "expected"),
    [
        ("", ("PTX0969",)),
        ("bar.warp.sync -1;\n", ("PTX0969",)),
        ("bar.sync 0;\n", ()),
        ("shr.u32 %r1, %t, 7; add.u32 %r1, %r1, 1; bar.sync %r1, 128;\n", ()),
    ],
)
def test_a_second_setmaxnreg_needs_a_barrier_of_the_warpgroup(between: str, expected: tuple[str, ...]) -> None:
    text = kernel(DEC.format(80) + between + DEC.format(40)).replace("u64 out)", "u64 out) .maxnreg 128")
    assert codes(by_schedule(text, words=256, block=256)) == {expected}


def test_a_second_setmaxnreg_that_changes_nothing_is_a_warning() -> None:
    text = kernel(DEC.format(80) + DEC.format(80)).replace("u64 out)", "u64 out) .maxnreg 128")
    by_order = by_schedule(text, words=256, block=256)
    assert codes(by_order) == {("PTX0974",)}
    assert {finding.severity for findings in by_order.values() for finding in findings} == {Severity.WARNING}


@pytest.mark.parametrize(
    ("body", "words"),
    [("@%p1 " + DEC.format(80), "have a false guard"),
     ("@!%p1 bra after;\n" + DEC.format(80) + "after:", "do not execute this instruction")],
)  # fmt: skip
def test_setmaxnreg_in_part_of_a_warp_is_reported(body: str, words: str) -> None:
    text = kernel(f"setp.ne.u32 %p1, %t, 40;\n{body}\nbar.sync 0;").replace("u64 out)", "u64 out) .maxnreg 128")
    assert_reported(text, "PTX0960", f"lanes 0x00000100 {words}", block=128, args=[np.zeros(128, np.uint32)])
