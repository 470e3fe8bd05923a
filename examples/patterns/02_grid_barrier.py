"""Normalize a vector by its sum in one launch: y = x / sum(x), with a barrier of the whole grid.

The idea: the second phase needs the results of all CTAs, which normally takes a second launch. A cooperative launch
guarantees that all CTAs are resident, so they may wait for each other: the data stays in registers across the barrier.

The protocol: `arrived` counts CTAs. Thread 0 of each stores the CTA's partial sum and adds 1 with release at gpu scope,
which publishes that store. It then reads the counter with acquire until it equals the size of the grid, and
`bar.sync 0` hands what it has observed to the other threads. `cta_reduce` (`examples/parts/reduction.py`) has a
`bar.sync 0` of its own. The counter is used once: the caller zeroes it. Every CTA adds the partial sums in the same
order, so all of them divide by the same number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from examples.parts.example import Array, Example, Run, Shape
from examples.parts.reduction import cta_reduce
from pyptx import Kernel, TensorSpec, Tile, kernel, ptx, reg
from pyptx.types import f32, u32

THREADS, WIDTH = 256, 4
CHUNK = THREADS * WIDTH


def grid(n: int, g: int) -> tuple[int, int, int]:
    """Return the grid: one CTA per chunk, all resident at once."""
    if n != g * CHUNK:
        raise ValueError(f"the length must be {CHUNK} times the number of CTAs, found {n} and {g}")
    return (g, 1, 1)


def make(arch: str = "sm_80") -> Kernel:
    """Return the kernel for a target. On a GPU it needs a cooperative launch."""

    @kernel(
        arch=arch, in_specs=(Tile("n", f32),), out_specs=(Tile("n", f32), Tile("g", f32), Tile(1, u32)), grid=grid,
        block=(THREADS, 1, 1),
    )  # fmt: skip
    def grid_barrier(x: TensorSpec, y: TensorSpec, parts: TensorSpec, arrived: TensorSpec) -> None:
        ctas = parts.shape[0]
        px, py, pparts, counter = ptx.global_ptrs(x, y, parts, arrived)
        thread, cta = ptx.special.tid.x(), ptx.special.ctaid.x()
        offset = (cta * THREADS + thread) * (WIDTH * 4)

        # Phase 1: the CTA's partial sum.
        values = reg.array(f32, WIDTH)
        ptx.ld(f32, values, ptx.addr(px, offset))
        total = cta_reduce("sum", (values[0] + values[1]) + (values[2] + values[3]), thread, THREADS)

        # Phase 2: publish it, and wait for all CTAs. One thread does both, so the release covers its own store.
        with ptx.if_(thread == 0):
            ptx.st(f32, ptx.addr(pparts, cta * 4), total)
            ptx.inst.red.release.gpu.global_.add.u32(ptx.addr(counter), 1)
            count = reg.scalar(u32, 0, name="count")
            with ptx.while_(lambda: count < ctas):
                ptx.inst.ld.acquire.gpu.global_.u32(count, ptx.addr(counter))
        ptx.bar.sync(0)

        # Phase 3: add the partial sums, and divide.
        whole = reg.scalar(f32, 0, name="whole")
        for i in ptx.range_(0, ctas):
            ptx.add(f32, whole, whole, ptx.ld(f32, ptx.addr(pparts, i * 4)))
        for value in values:
            ptx.inst.div.rn.f32(value, value, whole)
        ptx.st(f32, ptx.addr(py, offset), values)

    return grid_barrier


def reference(x: Array) -> tuple[Array | None, ...]:
    """Return the expected result in f64; the partial sums and the counter are a workspace."""
    return x / x.astype(np.float64).sum(), None, None


def draw(run: Run, random: np.random.Generator) -> tuple[Array, ...]:
    """Return positive numbers: their sum is far from zero."""
    return (np.asarray(1 + random.random(run.shape["n"]), np.float32),)


def make_outputs(shape: Shape) -> list[np.ndarray[Any, Any]]:
    """Return the result, the partial sums, and the counter at zero."""
    return [np.zeros(shape["n"], np.float32), np.zeros(shape["g"], np.float32), np.zeros(1, np.uint32)]


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_80", "sm_90a", "sm_100a", "sm_120a"),
    runs=(Run({"n": CHUNK, "g": 1}, 1e-6), Run({"n": 5 * CHUNK, "g": 5}, 1e-6)),
    large={"n": 128 * CHUNK, "g": 128},
    sass=("RED.E.ADD|REDG.E.ADD", "LDG.E.128"),
    draw=draw,
    outputs=make_outputs,
    traffic=lambda shape: 8 * shape["n"],
    peer="divide_by_sum",
)

if __name__ == "__main__":
    EXAMPLE.show()
