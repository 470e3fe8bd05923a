"""Histogram: counts[v] += the number of bytes v in the input.

The idea: use atomics where they are cheap. Each CTA counts in its own 256 bins in shared memory and adds them to the
result once at the end: 256 global atomics per CTA instead of one per byte. Threads read four bytes at a time in a
grid-stride loop, so any grid size works. The caller zeroes the counters.
"""

from __future__ import annotations

import numpy as np

from examples.parts.example import Array, Example, Run
from pyptx import Kernel, TensorSpec, Tile, kernel, ptx, reg, smem
from pyptx.types import u8, u32

THREADS, BINS, CTAS = 256, 256, 132


def grid(n: int) -> tuple[int, int, int]:
    """Return the grid: no more CTAs than there is data for, and no more than fit on the device at once."""
    return (min(CTAS, -(-n // (THREADS * 4))), 1, 1)


def make(arch: str = "sm_80") -> Kernel:
    """Return the kernel for a target. The number of bytes is a multiple of 4."""

    @kernel(arch=arch, in_specs=(Tile("n", u8),), out_specs=(Tile(BINS, u32),), grid=grid, block=(THREADS, 1, 1))
    def histogram(data: TensorSpec, counts: TensorSpec) -> None:
        n = data.shape[0]
        source, target = ptx.global_ptrs(data, counts)
        bins = smem.alloc(u32, BINS, name="bins")
        thread = ptx.special.tid.x()

        # Phase 1: each thread zeroes one bin; the barrier makes the zeros visible to all.
        bins[thread] = 0
        ptx.bar.sync(0)

        # Phase 2: count. `red` returns no value, so no thread waits for it.
        first = ptx.special.ctaid.x() * THREADS + thread
        word, byte = reg.scalar(u32), reg.scalar(u32)
        for i in ptx.range_(first * 4, n, ptx.special.nctaid.x() * (THREADS * 4)):
            ptx.ld(u32, word, ptx.addr(source, i))
            for shift in range(0, 32, 8):
                ptx.inst.bfe.u32(byte, word, shift, 8)
                ptx.red.add(u32, bins[byte], 1, space="shared")

        # Phase 3: after all threads have counted, each thread adds one bin to the result.
        ptx.bar.sync(0)
        ptx.red.add(u32, ptx.addr(target, thread * 4), smem.load(u32, bins[thread]))

    return histogram


def reference(data: Array) -> Array:
    """Return the expected result."""
    return np.bincount(data, minlength=BINS).astype(np.uint32)


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_80", "sm_90a", "sm_100a", "sm_120a"),
    runs=(Run({"n": 4}), Run({"n": 5000})),
    large={"n": 1 << 28},
    sass=("ATOMS", "RED"),
    conflicts="threads whose bytes are in the same bank",
    outputs=lambda shape: [np.zeros(BINS, np.uint32)],
    traffic=lambda shape: shape["n"],
)

if __name__ == "__main__":
    EXAMPLE.show()
