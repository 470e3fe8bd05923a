"""Aligned instructions that part of a warp bypasses: reported with both places; lanes that are only late are not.

In a wrong body `//@` marks the line of the finding, `//&` its other place.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyptx import sim
from pyptx.diagnostics import Diagnostic, PtxError, Span
from pyptx.parser import parse
from tests.sim.kernels import kernel

MEMORY = ".shared .align 128 .b8 box[4096];\n.shared .align 8 .b64 full;\n"
START = """setp.lt.u32 %p1, %t, 16; and.b32 %r10, %t, 31; setp.eq.u32 %p2, %r10, 0;
shr.u32 %r9, %t, 5; shl.b32 %r9, %r9, 4;
mov.u32 %r1, box; add.u32 %r9, %r9, %r1;
setp.lt.u32 %p3, %t, 32; mov.u32 %r8, 0; mov.u32 %r7, box;
shr.u32 %r7, %r7, 4; cvt.u64.u32 %rd1, %r7; or.b64 %rd1, %rd1, 68720001024;
mov.u32 %r1, 0; mov.u32 %r2, 0; mov.u32 %r3, 0; mov.u32 %r4, 0; mov.u32 %r5, 0;
mov.f32 %f1, 0f00000000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1;
st.shared.v4.u32 [%r9], {%r1, %r1, %r1, %r1};
setp.eq.u32 %p4, %t, 0; @%p4 mbarrier.init.shared.b64 [full], 1; bar.sync 0; @%p4 mbarrier.arrive.shared.b64 _, [full];
"""
WGMMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd1, %rd1, 1, 1, 1, 0, 0;"
MMA = "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r1, %r2}, {%r3, %r4}, {%r5}, {%r1, %r2};"
AROUND = "@%p1 bra past;\n{} //@\npast: st.global.u32 [%o], %t; //&"
ARMS = "@%p1 bra other;\n{} //@\nbra join;\nother: {} //&\njoin: st.global.u32 [%o], %t;"
ALIGNED = {
    "bar.sync": "bar.sync 0;", "bar.red": "bar.red.popc.u32 %r1, 0, %p1;", "bar.arrive": "bar.arrive 1, 64;",
    "barrier.sync": "barrier.sync.aligned 0;", "named": "bar.sync 3, 64;",
    "cluster arrive": "barrier.cluster.arrive.aligned;", "setmaxnreg": "setmaxnreg.dec.sync.aligned.u32 40;",
    "wgmma.fence": "wgmma.fence.sync.aligned;", "wgmma.commit_group": "wgmma.commit_group.sync.aligned;",
    "wgmma.wait_group": "wgmma.wait_group.sync.aligned 0;", "wgmma": WGMMA, "mma": MMA,
    "ldmatrix": "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r5}, [%r9];",
    "stmatrix": "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r9], {%r5};",
    "movmatrix": "movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2;",
    "tcgen05.alloc": "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r9], 32;",
    "tcgen05.ld": "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r3}, [%r8];",
    "tcgen05.st": "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r8], {%r3};",
    "tcgen05.wait": "tcgen05.wait::ld.sync.aligned;",
    "tcgen05.relinquish": "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;",
}  # fmt: skip
POLL = "@!%p2 bra late;\nwait: mbarrier.{}.parity.shared::cta.b64 %p5, [full], 0;\n@!%p5 bra wait;\nlate: {}"
ZERO = """shl.b32 %r6, %t, 4; mov.u32 %r7, box; add.u32 %r6, %r6, %r7; st.shared.v4.u32 [%r6], {%r2, %r2, %r2, %r2};
st.shared.v4.u32 [%r6+2048], {%r2, %r2, %r2, %r2}; fence.proxy.async.shared::cta; bar.sync 0;
"""
FUNCTION = ".func meet(.reg .u32 x) { bar.sync 0; ret; }\n.func work(.reg .u32 x) { add.u32 x, x, 1; ret; }\n"
LOOP = "add.u32 %r8, %r8, 1; setp.lt.u32 %p5, %r8, 4; @%p5 bra loop;"
WRONG = {
    **{f"around {name}": ("PTX0960", AROUND.format(text)) for name, text in ALIGNED.items()},
    **{f"arms of {name}": ("PTX0960", ARMS.format(text, text)) for name, text in ALIGNED.items() if name != "wgmma"},
    "one arm is aligned": ("PTX0960", ARMS.format("barrier.sync.aligned 0;", "barrier.sync 0;")),
    "kept off by its guard": ("PTX0960", "@!%p1 bar.sync 0; //@\nst.global.u32 [%o], %t;"),
    "to a later barrier": ("PTX0960", "@%p1 bra past;\nbar.sync 0; //@\npast: bar.sync 0; //&"),
    "a barrier in a branch": ("PTX0960", "@%p1 bra past;\nbar.sync 1, 64; //@\npast: bar.sync 0; //&"),
    "in some rounds": (
        "PTX0960", f"loop: and.b32 %r7, %r8, 1; setp.ne.u32 %p6, %r7, 0; xor.pred %p6, %p6, %p1; @%p6 bra past;\n"
        f"bar.sync 0; //@\npast: {LOOP} //&"),
    "fewer rounds than others": (
        "PTX0960", "add.u32 %r7, %t, 2;\nloop: bar.sync 0; //@\nadd.u32 %r8, %r8, 1; setp.lt.u32 %p5, %r8, %r7;\n"
        "@%p5 bra loop;\nst.global.u32 [%o], %t; //&"),
    "in a function": (
        "PTX0960", "@%p1 bra past;\ncall meet, (%t);\npast: st.global.u32 [%o], %t; //&"),
    "cluster wait": ("PTX0960", "barrier.cluster.arrive;\n" + ARMS.format(*["barrier.cluster.wait.aligned;"] * 2)),
    "ended before mma": ("PTX0960", f"@%p1 ret; //&\n{MMA} //@"),
    "a warp goes around wgmma": ("PTX0964", AROUND.format(WGMMA).replace("%p1", "%p3").replace("//&", "")),
    "a warp ended before wgmma": ("PTX0964", f"@%p3 ret; //&\n{WGMMA} //@"),
    "numbers of lanes": ("PTX0970", "and.b32 %r7, %t, 1;\nbar.sync %r7; //@"),
    "counts of lanes": ("PTX0970", ARMS.format("barrier.sync 1, 64;", "barrier.sync 1, 32;").replace(
        "//@", "//+").replace("//&", "//@").replace("//+", "//&")),
}  # fmt: skip
RIGHT = {
    "ended": "@%p1 ret;\nbar.sync 0;\nst.global.u32 [%o], %t;",
    "on the way to the end": "@%p1 bra past;\nbar.sync 0;\nst.global.u32 [%o], %t;\npast:",
    "per thread": ARMS.format("barrier.sync 0;", "barrier.sync 0;"),
    "per thread, around": AROUND.format("barrier.sync 0;"),
    "per thread, of the cluster": ARMS.format(*["barrier.cluster.arrive;"] * 2) + "\nbarrier.cluster.wait;",
    "of all rounds": f"loop: bar.sync 0;\n@%p1 bra past;\nadd.u32 %r7, %t, 1;\npast: {LOOP}",
    **{f"late by {test} at {name}": POLL.format(test, text) + "\nadd.u32 %r7, %t, 1;\nbar.sync 0;"
       for name, text in ALIGNED.items()
       for test in ("try_wait", "test_wait") if name != "wgmma" and not name.startswith("tcgen05")},
    "late at wgmma": ZERO + POLL.format("try_wait", "wgmma.fence.sync.aligned;\n") + WGMMA
    + "\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;",
    "in a function": "@%p1 bra past;\nadd.u32 %r7, %t, 1;\npast: call meet, (%t);",
    "a cold block": "@%p1 bra cold;\nback: bar.sync 0;\nst.global.u32 [%o], %t;\nret;\n"
    "cold: add.u32 %r7, %t, 1;\nbra back;",
    "a loop with a cold block": f"loop: @%p1 bra cold;\nback: bar.sync 0;\n{LOOP}\nret;\n"
    "cold: add.u32 %r7, %t, 1;\nbra back;",
    "overtaken by a jump to a lower block": "bra loop;\nlatch: add.u32 %r8, %r8, 1; setp.ge.u32 %p5, %r8, 4;\n"
    "@%p5 bra done;\nloop: bar.sync 0;\n@!%p1 bra latch;\nadd.u32 %r7, %t, 1;\nbra latch;\ndone:",
    "a cold block with a call": "@%p1 bra cold;\nback: bar.sync 0;\nst.global.u32 [%o], %t;\nret;\n"
    "cold: call work, (%t);\nbra back;",
    "an inner loop": "loop: mov.u32 %r7, %r10;\n"
    f"inner: add.u32 %r7, %r7, 1; setp.lt.u32 %p6, %r7, 40; @%p6 bra inner;\nbar.sync 0;\n{LOOP}",
}  # fmt: skip


def run_kernel(body: str, schedule: str, seed: int = 0, **options: Any) -> tuple[list[str], list[Diagnostic]]:
    """Return the lines of a kernel and the findings of its run."""
    threads = 128 if "wgmma" in body or "setmaxnreg" in body else 32 if "x1.b32" in body else 64
    target = "sm_100a" if "tcgen05" in body else "sm_90a"
    text = kernel(START + body, module=MEMORY + FUNCTION).replace("sm_90a", target)
    arguments: dict[str, Any] = {"block": threads, "args": [np.zeros(threads, np.uint32)], **options}
    try:
        result = sim.run(parse(text), "k", **arguments, schedule=schedule, seed=seed, on_hazard="report")
        findings = [finding.diagnostic() for finding in result.hazards]
    except PtxError as error:
        findings = list(error.diagnostics)
    return text.splitlines(), findings


@pytest.mark.parametrize(("schedule", "seed"), [("eager", 0), ("random", 1), ("adversarial", 0), ("adversarial", 1)])
@pytest.mark.parametrize(("code", "body"), WRONG.values(), ids=WRONG)
def test_lanes_that_go_around_are_reported(code: str, body: str, schedule: str, seed: int) -> None:
    lines, findings = run_kernel(body, schedule, seed)
    matches = [finding for finding in findings if finding.code == code]
    assert matches, findings
    places = [
        (finding.origin.line if isinstance(finding.origin, Span) else 0, " ".join(finding.notes)) for finding in matches
    ]
    first_line = next((index for index, line in enumerate(lines, 1) if "//@" in line), None)
    second_line = next((index for index, line in enumerate(lines, 1) if "//&" in line), None)
    ways = [(first_line, second_line), (second_line, first_line)] if second_line else [(first_line, second_line)]
    assert any(
        a in (None, index) and (b is None or f"<ptx>:{b}:" in notes) for index, notes in places for a, b in ways
    ), (
        first_line,
        second_line,
        places,
    )


@pytest.mark.parametrize(("schedule", "seed"), [("eager", 0), ("random", 1), ("adversarial", 0), ("adversarial", 1)])
@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_who_is_late_or_has_ended_is_not(body: str, schedule: str, seed: int) -> None:
    assert run_kernel(body, schedule, seed)[1] == []


@pytest.mark.parametrize("body", [WRONG["around mma"][1], WRONG["ended before mma"][1]])
def test_products_of_a_part_of_a_warp_are_no_products_in_unchecked_runs(body: str) -> None:
    assert [finding.code for finding in run_kernel(body, "eager", check="none")[1]] == ["PTX0960"]


def test_matrices_want_full_warps() -> None:
    (finding,) = run_kernel(MMA, "eager", block=16)[1]
    assert finding.code == "PTX0960"
    assert "the CTA has 16 threads" in finding.message


def test_one_thread_that_a_warpgroup_misses_is_singular() -> None:
    body = f"setp.eq.u32 %p5, %t, 5; @%p5 ret; @%p3 ret;\n{WGMMA}"
    (finding,) = run_kernel(body, "eager")[1]
    assert finding.code == "PTX0964"
    assert "1 thread of the warpgroup has ended" in finding.message


@pytest.mark.parametrize(("schedule", "seed"), [("eager", 0), ("random", 1), ("adversarial", 0)])
def test_only_the_warp_of_the_others_has_overtaken_them(schedule: str, seed: int) -> None:
    """Half of warp 0 and all of warp 1 skip the product in the first iteration. Warp 1 may still come, in the next."""
    body = (
        "shr.u32 %r7, %t, 5; setp.eq.u32 %p7, %r7, 1; or.pred %p7, %p7, %p1;\n"
        f"loop: setp.eq.u32 %p6, %r8, 0; and.pred %p6, %p6, %p7; @%p6 bra past;\n{WGMMA}\npast: {LOOP}"
    )
    (finding,) = run_kernel(body, schedule, seed)[1]
    assert finding.message == (
        "aligned instruction in a divergent warp: lanes 0x0000ffff do not execute this instruction"
    )
