"""Lanes of one warp ordered only by lockstep: races in the schedules that vary it, and fence.sc in all."""

from __future__ import annotations

import numpy as np
import pytest

from pyptx import sim
from pyptx.parser import parse
from tests.sim.kernels import SCHEDULES, by_schedule, codes, kernel

HEAD = """mov.u32 %r2, 0; setp.eq.u32 %p0, %t, 0; setp.eq.u32 %p1, %t, 1;
@%p0 st.shared.u32 [flag], 0; @%p1 st.shared.u32 [word], 0;
bar.warp.sync -1;
"""
STORE, LOAD = "@%p0 st.shared.u32 [word], 7;\n", "@%p1 ld.shared.u32 %r1, [word];\n"
SPACE = ".shared .b32 word; .shared .b32 flag; .shared .b32 each[32];"


@pytest.mark.parametrize("fence", ["fence.sc.cta;", "fence.sc.gpu;", "membar.cta;", "membar.gl;"])
def test_the_order_of_two_fences_in_one_warp_orders_nothing(fence: str) -> None:
    text = kernel(f"{HEAD}{STORE}@%p0 {fence}\n@%p1 {fence}\n{LOAD}", module=SPACE)
    assert codes(by_schedule(text, block=32)) == {("PTX0902",)}


def test_fences_between_warps_keep_their_order() -> None:
    text = kernel(
        """setp.eq.u32 %p0, %t, 0; setp.eq.u32 %p1, %t, 32;
@%p0 st.shared.u32 [flag], 0; bar.sync 0;
@%p0 st.shared.u32 [word], 7; @%p0 fence.sc.cta; @%p0 st.relaxed.cta.shared.u32 [flag], 1;
@!%p1 bra end;
look: ld.relaxed.cta.shared.u32 %r1, [flag]; setp.ne.u32 %p2, %r1, 1; @%p2 bra look;
fence.sc.cta; ld.shared.u32 %r1, [word];
end:""",
        module=SPACE,
    )
    assert codes(by_schedule(text, block=64)) == {()}


@pytest.mark.parametrize(
    "body",
    [
        STORE + "@%p0 st.release.cta.shared.u32 [flag], 1;\n@%p1 ld.acquire.cta.shared.u32 %r2, [flag];\n" + LOAD,
        STORE + "atom.release.cta.shared.add.u32 %r2, [flag], 1;\n@%p1 ld.acquire.cta.shared.u32 %r2, [flag];\n" + LOAD,
        STORE + "@%p0 fence.acq_rel.cta; @%p0 st.relaxed.cta.shared.u32 [flag], 1;\n"
        "@%p1 ld.relaxed.cta.shared.u32 %r2, [flag]; @%p1 fence.acq_rel.cta;\n" + LOAD,
    ],
)
def test_an_acquire_that_need_not_see_the_release_is_a_race_in_some_order(body: str) -> None:
    by_order = by_schedule(kernel(HEAD + body, module=SPACE), block=32)
    assert sum(any(finding.rule.code == "PTX0902" for finding in findings) for findings in by_order.values()) >= 2


def test_lanes_of_a_warp_that_do_not_run_in_lockstep_go_their_own_ways() -> None:
    """Each lane draws tickets in a block until it has one from 40 on: 40 draws go on, one of each lane is its last."""
    body = """mov.u32 %r5, 0; st.shared.u32 [flag], 0; st.shared.u32 [word], 0; bar.warp.sync -1;
again: add.u32 %r5, %r5, 1;
atom.acq_rel.cta.shared.add.u32 %r1, [flag], 1; atom.acq_rel.cta.shared.add.u32 %r2, [word], 1;
setp.lt.u32 %p1, %r2, 40; @%p1 bra again;
st.global.u32 [%o], %r5;"""
    module = parse(kernel(body, module=SPACE))
    drawn: set[tuple[int, ...]] = set()
    for schedule, seed in SCHEDULES:
        out = np.zeros(32, np.uint32)
        sim.run(module, block=32, args=[out], schedule=schedule, seed=seed, max_steps=100_000, check="none")
        drawn.add(tuple(out.tolist()))
    assert len(drawn) > 1
    assert {sum(rounds) for rounds in drawn} == {40 + 32}


@pytest.mark.parametrize(
    "body",
    [
        # The thread that counts last comes after all others.
        "mov.u32 %r3, each; mad.lo.u32 %r3, %t, 4, %r3; st.shared.u32 [%r3], %t;\n"
        "atom.acq_rel.cta.shared.add.u32 %r2, [flag], 1; setp.eq.u32 %p2, %r2, 31;\n"
        "@%p2 ld.shared.u32 %r1, [each+64];",
        # The value is checked.
        STORE + "@%p0 st.release.cta.shared.u32 [flag], 1;\n@%p1 ld.acquire.cta.shared.u32 %r2, [flag];\n"
        "setp.eq.and.u32 %p2, %r2, 1, %p1; @%p2 ld.shared.u32 %r1, [word];",
        # The value is awaited.
        STORE + "@%p0 st.release.cta.shared.u32 [flag], 1;\n@!%p1 bra end;\n"
        "look: ld.acquire.cta.shared.u32 %r2, [flag]; setp.ne.u32 %p2, %r2, 1; @%p2 bra look;\n" + LOAD + "end:",
        STORE + "membar.cta; bar.warp.sync -1; membar.cta;\n" + LOAD,
    ],
)
def test_what_a_value_or_a_barrier_of_the_warp_shows_is_no_race(body: str) -> None:
    assert codes(by_schedule(kernel(HEAD + body, module=SPACE), block=32)) == {()}
