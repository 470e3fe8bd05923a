"""A ring of tensor copies in a cluster: one warp loads, four consume, and the last slot is stored to global memory."""

from __future__ import annotations

import sys
from types import FrameType

from pyptx import Kernel, TensorSpec, Tile, kernel, ptx, reg, smem
from pyptx.types import b32, bf16, pred
from tests.dsl.tracing import assert_accepted

STAGES, SIDE = 4, 64
TILE = Tile("M", "K", bf16, tma_box=(SIDE, SIDE))


@kernel(in_specs=(TILE,), out_specs=(TILE,), block=(160, 1, 1), cluster=(2, 1, 1))
def ring_copy(a: TensorSpec, b: TensorSpec) -> None:
    tiles = smem.alloc(bf16, (STAGES, SIDE, SIDE), align=1024)
    full, empty = smem.mbarrier(STAGES), smem.mbarrier(STAGES)
    thread = ptx.special.tid.x()
    with ptx.if_(thread == 0):
        for i in range(STAGES):
            ptx.mbarrier.init(full[i], 1)
            ptx.mbarrier.init(empty[i], 2 * 4)
        ptx.fence.mbarrier_init()
    ptx.cluster.sync(aligned=True)
    leader, ring = reg.alloc(pred), ptx.pipeline(STAGES)
    ptx.elect_sync(reg.alloc(b32), leader, 0xFFFFFFFF)
    with ptx.if_(thread >> 5 == 4):
        for step in ptx.range_(a.shape[1] // SIDE):
            ptx.mbarrier.wait(empty[ring.stage], ring.phase ^ 1, scope="cluster", pred=leader)
            ptx.mbarrier.arrive_expect_tx(full[ring.stage], SIDE * SIDE * 2, pred=leader)
            ptx.cp.async_.bulk.tensor_2d(
                dst=tiles[ring.stage], src=a.tma_desc(), coord=(step * SIDE, 0), mbar=full[ring.stage], pred=leader
            )
            ring.advance()
    with ptx.else_():
        for _ in ptx.range_(a.shape[1] // SIDE):
            ptx.mbarrier.wait(full[ring.stage], ring.phase)
            ptx.warp.sync()
            ptx.cluster.arrive_multicast(empty[ring.stage], 0b11, pred=leader)
            ring.advance()
        ptx.bar.sync(1, 128)
        with ptx.if_(thread == 0):
            ptx.cp.async_.bulk.tensor_2d.store(dst=b.tma_desc(), src=tiles[0], coord=(0, 0))
            ptx.cp.async_.bulk.commit_group()
            ptx.cp.async_.bulk.wait_group(0)
    ptx.cluster.sync(aligned=True)


def test_it_assembles_without_spills_and_nothing_is_found() -> None:
    assert_accepted(ring_copy.ptx(M=64, K=1024))
    assert ring_copy.check(M=64, K=1024) == []
    resources = ring_copy.resources(M=64, K=1024)
    assert (resources.spill_stores, resources.spill_loads, resources.cluster) == (0, 0, (2, 1, 1))


def test_its_text_does_not_grow_with_the_problem() -> None:
    short, long = (ring_copy.ptx(M=64, K=columns) for columns in (128, 1 << 14))
    assert len(short.splitlines()) == len(long.splitlines())


def test_many_waits_and_remote_arrivals_take_time_in_proportion() -> None:
    def body(count: int) -> Kernel:
        @kernel
        def wait_often() -> None:
            bars = smem.mbarrier(1)
            for _ in range(count):
                ptx.mbarrier.wait(bars[0], 0)
                ptx.cluster.arrive_remote(bars[0], 1)

        return wait_often

    def lines(count: int) -> int:
        """Return how many lines ran in the functions that choose unused names."""
        ran: list[str] = []

        def inside(frame: FrameType, event: str, _: object) -> object:
            ran.append(event)
            return inside

        def choose(frame: FrameType, event: str, _: object) -> object:
            return inside if frame.f_code.co_name in ("choose_name", "_choose_label") else None

        before = sys.gettrace()
        sys.settrace(choose)  # pyright: ignore[reportArgumentType]
        try:
            body(count).ptx()
        finally:
            sys.settrace(before)
        return len(ran)

    assert 0 < lines(80) < 5 * lines(20)
