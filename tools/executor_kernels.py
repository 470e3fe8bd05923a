"""The kernels that tools/audit_executors.py runs in several processes, which import them from here."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyptx import Tile, kernel, ptx, reg, smem
from pyptx.sim import Result
from pyptx.types import u32

THREADS = 64
Array = NDArray[Any]


def list_blocks(n: int) -> tuple[int]:
    """Return a CTA for each 64 elements."""
    return (n // THREADS,)


def exchange(x: Any, y: Any, rounds: int, barrier: bool) -> None:
    """Add the elements of the other warp's threads, in rounds."""
    px, py = ptx.global_ptrs(x, y)
    thread = ptx.special.tid.x()
    offset = (ptx.special.ctaid.x() * THREADS + thread) * 4
    cells = smem.alloc(u32, THREADS)
    value = reg.scalar(u32)
    ptx.ld(u32, value, ptx.addr(px, offset))
    for _ in ptx.range_(0, rounds):
        cells[thread] = value
        if barrier:
            ptx.bar.sync(0)
        value += smem.load(u32, cells[thread ^ 32])
        ptx.bar.sync(0)
    ptx.st(u32, ptx.addr(py, offset), value)


@kernel(in_specs=[Tile("n", u32)], out_specs=[Tile("n", u32)], grid=list_blocks, block=(THREADS, 1, 1))
def right(x: Any, y: Any, *, rounds: int = 1) -> None:
    """Wait before reading what the other warp wrote."""
    exchange(x, y, rounds, barrier=True)


@kernel(in_specs=[Tile("n", u32)], out_specs=[Tile("n", u32)], grid=list_blocks, block=(THREADS, 1, 1))
def racing(x: Any, y: Any, *, rounds: int = 1) -> None:
    """Read without waiting."""
    exchange(x, y, rounds, barrier=False)


@kernel(in_specs=[Tile("n", u32)], out_specs=[Tile("n", u32)], grid=list_blocks, block=(THREADS, 1, 1))
def hanging(x: Any, y: Any) -> None:
    """Wait for threads that do not arrive."""
    ready = smem.mbarrier(1, name="ready")[0]
    with ptx.if_(ptx.special.tid.x() == 0):
        ready.init(THREADS)
    ptx.bar.sync(0)
    with ptx.if_(ptx.special.tid.x() != 7):
        ready.arrive()
        ready.wait(0)


def add_partners(rounds: int, x: Array) -> Array:
    """Return what `right` computes."""
    value = x.reshape(-1, 2, THREADS // 2).astype(np.uint64)
    for _ in range(rounds):
        value = value + value[:, ::-1]
    return value.reshape(-1).astype(np.uint32)


def sweep_right(n: int, rounds: int, **order: Any) -> Result:
    """Run a kernel that is right in an order."""
    x = np.arange(n, dtype=np.uint32)
    result = right.simulate(x, rounds=rounds, **order)
    assert np.array_equal(result.outputs["y"], add_partners(rounds, x))
    return result


def sweep_race(n: int, **order: Any) -> Result:
    """Report the race of a kernel in an order, and raise if it shows."""
    x = np.arange(n, dtype=np.uint32)
    result = racing.simulate(x, on_hazard="report", **order)
    assert np.array_equal(result.outputs["y"], add_partners(1, x)), "the race shows"
    return result


def sweep_hang(n: int, **order: Any) -> Result:
    """Run a kernel that hangs in every order."""
    return hanging.simulate(np.arange(n, dtype=np.uint32), **order)
