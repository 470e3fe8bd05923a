"""Reduction: y[r] = sum(x[r, :]), with `parts` CTAs per row, so that one long row fills the device, too.

The idea: sum on four levels. A thread adds up its values in four independent chains, a warp adds its threads' sums by
shuffles, a CTA its warps' through shared memory, and the last CTA of the row to finish those of all CTAs. Every level
adds in a fixed order: the result has the same bits each time, unlike with atomic adds of floats.

The protocol: thread 0 of each CTA stores the CTA's sum, then counts the CTA by `atom.inc.acq_rel`. The release half
publishes the sum; whoever counts last acquires the sums of all others, and `bar.sync` hands them to its CTA. `inc` with
the bound `parts` - 1 wraps to 0, so the counters, which the caller zeroes once, are ready for the next launch. Each
reduction over a CTA, and the last CTA of a row has two, has its own `bar.sync` (`examples/parts/reduction.py`).
"""

from __future__ import annotations

import numpy as np

from examples.parts.example import Array, Example, Run, Shape
from examples.parts.reduction import cta_reduce
from examples.parts.vectors import ONCE, choose_width, load_vector
from pyptx import Kernel, TensorSpec, Tile, kernel, ptx, reg, smem
from pyptx.types import f32, u32

THREADS, CHAINS = 256, 4
"""Four vectors of 16 bytes in flight per thread: 128 KiB per SM with 2,048 threads."""


def grid(m: int, n: int, parts: int) -> tuple[int, int, int]:
    """Return the grid for this shape."""
    del n
    return (parts, m, 1)


def make(arch: str = "sm_80") -> Kernel:
    """Return the kernel for a target."""

    @kernel(
        arch=arch, in_specs=(Tile("m", "n", f32),),
        out_specs=(Tile("m", f32), Tile("m", "parts", f32), Tile("m", u32)), grid=grid, block=(THREADS, 1, 1),
    )  # fmt: skip
    def reduction(x: TensorSpec, y: TensorSpec, sums: TensorSpec, counters: TensorSpec) -> None:
        (n, parts), width = (x.shape[1], sums.shape[1]), choose_width(f32, x.shape[1])
        px, py, psums, pcounters = ptx.global_ptrs(x, y, sums, counters)
        thread, part, row = ptx.special.tid.x(), ptx.special.ctaid.x(), ptx.special.ctaid.y()
        source, partials = ptx.mad(row, n * 4, px, mode="wide"), ptx.mad(row, parts * 4, psums, mode="wide")
        chains = reg.array(f32, CHAINS, name="chain")
        for chain in chains:
            ptx.mov(f32, chain, 0)

        # Phase 1: the thread's sum. The loop has four vectors in flight; what is left takes one at a time.
        step = parts * THREADS * width
        start = (part * THREADS + thread) * width
        whole = n // (step * CHAINS) * step * CHAINS
        for i in ptx.range_(start, whole, step * CHAINS):
            address = ptx.mad(i, 4, source, mode="wide")
            vectors = [
                load_vector(f32, ptx.addr(address, chain * step * 4), width, cache=ONCE) for chain in range(CHAINS)
            ]
            for chain, values in zip(chains, vectors, strict=True):
                for value in values:
                    ptx.add(f32, chain, chain, value)
        for i in ptx.range_(start + whole, n, step):
            for value in load_vector(f32, ptx.mad(i, 4, source, mode="wide"), width, cache=ONCE):
                ptx.add(f32, chains[0], chains[0], value)

        # Phase 2: the CTA's sum. The last CTA of the row learns that it is the last.
        total = cta_reduce("sum", (chains[0] + chains[1]) + (chains[2] + chains[3]), thread, THREADS)
        ticket = smem.alloc(u32, 1, name="ticket")
        with ptx.if_(thread == 0):
            ptx.st(f32, ptx.addr(partials, part * 4), total)
            counter = ptx.mad(row, 4, pcounters, mode="wide")
            ticket[0] = ptx.atom.inc(u32, u32, ptx.addr(counter), parts - 1, sem="acq_rel", scope="gpu")
        ptx.bar.sync(0)

        # Phase 3: the row's sum.
        with ptx.if_(smem.load(u32, ticket[0]) == parts - 1):
            rest = reg.scalar(f32, 0, name="rest")
            for i in ptx.range_(thread, parts, THREADS):
                ptx.add(f32, rest, rest, ptx.ld(f32, ptx.addr(partials, i * 4)))
            result = cta_reduce("sum", rest, thread, THREADS)
            with ptx.if_(thread == 0):
                ptx.st(f32, ptx.mad(row, 4, py, mode="wide"), result)

    return reduction


def reference(x: Array) -> tuple[Array | None, ...]:
    """Return the expected result, in f64, and zeroed counters; the workspace may hold anything."""
    with np.errstate(invalid="ignore"):
        return x.sum(axis=1, dtype=np.float64), None, np.zeros(len(x), np.uint32)


def make_outputs(shape: Shape) -> list[Array]:
    """Return arrays for the result, the sums of the CTAs, and the counters."""
    m, parts = shape["m"], shape["parts"]
    return [np.zeros(m, np.float32), np.zeros((m, parts), np.float32), np.zeros(m, np.uint32)]


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_80", "sm_90a", "sm_100a", "sm_120a"),
    runs=(
        Run({"m": 2, "n": 1, "parts": 1}),
        Run({"m": 2, "n": 10003, "parts": 2}, 1e-5, 1e-3),
        Run({"m": 1, "n": 50000, "parts": 3}, 1e-5, 1e-3),
        Run({"m": 4, "n": 4096, "parts": 2}, 1e-5, 1e-3, special=True),
    ),
    large={"m": 1, "n": 1 << 28, "parts": 1056},
    sass=("LDG.E.NA.128", "SHFL.BFLY", "ATOMG"),
    outputs=make_outputs,
    traffic=lambda shape: 4 * shape["m"] * shape["n"],
    peer="sum triton_sum",
)

if __name__ == "__main__":
    EXAMPLE.show()
