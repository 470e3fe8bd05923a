"""A lane that waits in a branch between the instructions of a product: its warp reconverges before the next of them, so
that a group is committed once, waited for once, and no accumulator is read too early."""

from __future__ import annotations

import numpy as np
import pytest

from pyptx import sim
from pyptx.diagnostics import PtxError
from pyptx.parser import parse
from tests.sim.kernels import kernel

MEMORY = ".shared .align 128 .b8 box[4096];\n.shared .align 8 .b64 go;\n"
BODY = """
mov.u32 %r1, box; shl.b32 %r2, %t, 4; add.u32 %r2, %r2, %r1; mov.u32 %r3, 0x3C003C00;
setp.eq.u32 %p1, %t, 0; @%p1 mbarrier.init.shared.b64 [go], 1; bar.sync 0;
setp.ge.u32 %p2, %t, 128; @%p2 bra other;
st.shared.v4.u32 [%r2], {%r3, %r3, %r3, %r3}; st.shared.v4.u32 [%r2+2048], {%r3, %r3, %r3, %r3};
fence.proxy.async.shared::cta; bar.sync 1, 128;
shr.u32 %r1, %r1, 4; cvt.u64.u32 %rd1, %r1; or.b64 %rd1, %rd1, 68720001024;
and.b32 %r4, %t, 31; setp.eq.u32 %p3, %r4, LEADER;
mov.f32 %f1, 0f00000000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1;
//fence
wgmma.fence.sync.aligned;
//product
PRODUCT
//commit
wgmma.commit_group.sync.aligned;
PRODUCT
//again
wgmma.commit_group.sync.aligned;
//wait
wgmma.wait_group.sync.aligned 1;
//rest
wgmma.wait_group.sync.aligned 0;
add.f32 %f1, %f1, %f4; cvt.rzi.u32.f32 %r5, %f1; st.global.u32 [%o], %r5;
ret;
other: mov.u32 %r6, 0;
round: add.u32 %r6, %r6, 1; setp.lt.u32 %p5, %r6, 60; @%p5 bra round;
setp.eq.u32 %p6, %t, 128; @%p6 mbarrier.arrive.shared.b64 _, [go];
"""
PRODUCT = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd1, %rd1, 1, 1, 1, 0, 0;"
LATE = "@!%p3 bra past; poll: mbarrier.{}.parity.shared::cta.b64 %p4, [go], 0; @!%p4 bra poll; past:"
PLACES = ("fence", "product", "commit", "again", "wait", "rest")
ORDERS = [("eager", 0), ("lazy", 0), *(("random", seed) for seed in range(4)),
          *(("adversarial", seed) for seed in range(5))]  # fmt: skip


def run(body: str, leader: int, schedule: str, seed: int, check: str = "all") -> tuple[list[int], set[str]]:
    """Return the sums of two accumulators, and the codes of the findings."""
    out = np.zeros(160, np.uint32)
    text = kernel(body.replace("PRODUCT", PRODUCT).replace("LEADER", str(leader)), module=MEMORY)
    try:
        result = sim.run(parse(text), "k", block=160, args=[out], schedule=schedule, seed=seed, check=check,
                       on_hazard="report")  # fmt: skip
    except PtxError as error:
        return [], {finding.code for finding in error.diagnostics}
    return out[:128].tolist(), {finding.rule.code for finding in result.hazards}


def late(place: str, test: str = "try_wait", body: str = BODY) -> str:
    return body.replace(f"//{place}\n", f"{LATE.format(test)}\n")


@pytest.mark.parametrize(("schedule", "seed"), ORDERS)
@pytest.mark.parametrize("place", PLACES)
def test_a_late_lane_changes_nothing(place: str, schedule: str, seed: int) -> None:
    for leader, test, check in ((0, "try_wait", "all"), (9, "test_wait", "all"), (0, "try_wait", "none")):
        assert run(late(place, test), leader, schedule, seed, check) == ([64] * 128, set())


@pytest.mark.parametrize(("schedule", "seed"), ORDERS)
@pytest.mark.parametrize("place", PLACES)
def test_what_is_missing_is_found_all_the_same(place: str, schedule: str, seed: int) -> None:
    body = late(place)
    for removal, code in (("wgmma.wait_group.sync.aligned 0;", "PTX0933"), ("wgmma.fence.sync.aligned;", "PTX0934")):
        assert code in run(body.replace(removal, ""), 0, schedule, seed)[1], removal
    single = body.replace("wgmma.commit_group.sync.aligned;\n//", "//", 1) if place != "wait" else body
    assert ("PTX0933" in run(single.replace("aligned 0;", "aligned 1;"), 0, schedule, seed)[1]) is True


@pytest.mark.parametrize(("schedule", "seed"), ORDERS)
def test_registers_touched_behind_the_fence_by_all_but_the_late_lane(schedule: str, seed: int) -> None:
    body = late("fence").replace("//product\n", "@!%p3 mov.f32 %f1, 0f00000000;\n")
    assert "PTX0934" in run(body, 0, schedule, seed)[1]


@pytest.mark.parametrize("mask", ["-1", "0xffff"])
def test_two_warps_go_on_at_different_places_when_their_other_lanes_have_exited(mask: str) -> None:
    body = f"""and.b32 %r1, %t, 31; setp.lt.u32 %p1, %r1, 16; setp.lt.u32 %p2, %t, 32; mov.u32 %r7, 0;
@!%p1 bra leave;
@%p2 bra first;
redux.sync.add.u32 %r5, %t, {mask};
bra.uni done;
first: redux.sync.max.u32 %r5, %t, {mask};
done: st.global.u32 [%o], %r5; ret;
leave: add.u32 %r7, %r7, 1; setp.lt.u32 %p3, %r7, 20; @%p3 bra leave;"""
    for schedule, seed in ORDERS:
        out = np.zeros(64, np.uint32)
        assert sim.run(parse(kernel(body)), block=64, args=[out], schedule=schedule, seed=seed).hazards == []
        assert out.tolist() == [15] * 16 + [0] * 16 + [sum(range(32, 48))] * 16 + [0] * 16


@pytest.mark.parametrize("kind", ["fence", "commit_group", "wait_group"])
def test_half_a_warp_after_a_fence_of_the_whole_warp_is_divergent(kind: str) -> None:
    number = "0" if kind == "wait_group" else ""
    body = f"""and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 0;
wgmma.fence.sync.aligned; @%p1 wgmma.{kind}.sync.aligned {number};"""
    result = sim.run(parse(kernel(body)), block=128, args=[np.zeros(128, np.uint32)], on_hazard="report")
    assert {finding.rule.code for finding in result.hazards} == {"PTX0960"}
