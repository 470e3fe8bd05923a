"""Histogram: counts[v] += the number of bytes v in the input.

The idea: use atomics where they are cheap. Each CTA counts in shared memory and adds its bins to the result once at the
end: 256 global atomics per CTA instead of one per byte. Each lane has bins of its own: bin v of lane l is in bank l, so
the 32 atomics of a warp never meet in a bank. Threads read 16 bytes at a time, and two vectors before they count the
first. The caller zeroes the counters.

The protocol: `bar.sync 0`, all threads, twice: after the bins are zeroed, and after all bytes are counted.
"""

from __future__ import annotations

import numpy as np

from examples.parts.example import Array, Example, Run
from examples.parts.vectors import ONCE
from pyptx import Kernel, TensorSpec, Tile, kernel, ptx, reg, smem
from pyptx.types import u8, u32

THREADS, BINS, LANES = 512, 256, 32
CTAS = 528
"""Four CTAs for each of 132 SMs: 128 KiB of bins, and 64 KiB of loads in flight per SM."""
WIDTH, AHEAD = 16, 2
"""Bytes of a vector, and vectors that a thread loads before it counts the first."""


def grid(n: int) -> tuple[int, int, int]:
    """Return the grid: no more CTAs than there is data for, and no more than fit on the device at once."""
    return (min(CTAS, -(-n // (THREADS * WIDTH))), 1, 1)


def make(arch: str = "sm_80") -> Kernel:
    """Return the kernel for a target. The number of bytes is a multiple of 4."""

    @kernel(arch=arch, in_specs=(Tile("n", u8),), out_specs=(Tile(BINS, u32),), grid=grid, block=(THREADS, 1, 1))
    def histogram(data: TensorSpec, counts: TensorSpec) -> None:
        n = data.shape[0]
        source, target = ptx.global_ptrs(data, counts)
        bins = smem.alloc(u32, (BINS, LANES), name="bins")
        thread, lane = ptx.special.tid.x(), ptx.special.laneid()

        # Phase 1: zero the bins; the barrier makes the zeros visible to all.
        for first in range(0, BINS, THREADS // LANES):
            bins[(thread >> 5) + first, lane] = 0
        ptx.bar.sync(0)

        # Phase 2: count. `red` returns no value, so no thread waits for it.
        def load(address: reg.Reg) -> list[reg.Reg]:
            return ptx.ld(u32, ptx.addr(source, address), vec=WIDTH // 4, cache=ONCE)

        own = bins.address() + lane * 4

        def count(words: list[reg.Reg]) -> None:
            byte = reg.scalar(u32)
            for word in words:
                for shift in range(0, 32, 8):
                    ptx.inst.bfe.u32(byte, word, shift, 8)
                    ptx.red.add(u32, ptx.addr(ptx.mad(byte, LANES * 4, own)), 1, space="shared")

        step, vectors = grid(n)[0] * THREADS * WIDTH, n // WIDTH * WIDTH
        whole = n // (step * AHEAD) * step * AHEAD
        first = ptx.special.ctaid.x() * THREADS + thread
        for i in ptx.range_(first * WIDTH, whole, step * AHEAD):
            words = [load(i + part * step) for part in range(AHEAD)]
            for vector in words:
                count(vector)
        for i in ptx.range_(first * WIDTH + whole, vectors, step):
            count(load(i))
        # The last words are no whole vector.
        with ptx.if_(first < (n - vectors) // 4):
            count([ptx.ld(u32, ptx.addr(source, first * 4 + vectors))])

        # Phase 3: after all threads have counted, add the lanes' bins, each thread from another bank.
        ptx.bar.sync(0)
        with ptx.if_(thread < BINS):
            total = reg.scalar(u32, 0, name="total")
            for i in range(LANES):
                ptx.add(u32, total, total, bins[thread, (lane + i) & (LANES - 1)])
            ptx.red.add(u32, ptx.addr(target, thread * 4), total)

    return histogram


def reference(data: Array) -> Array:
    """Return the expected result."""
    return np.bincount(data, minlength=BINS).astype(np.uint32)


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_80", "sm_90a", "sm_100a", "sm_120a"),
    runs=(Run({"n": 4}), Run({"n": 5000}), Run({"n": 2 * 528 * 512 * 16 + 20})),
    large={"n": 1 << 28},
    sass=("ATOMS", "RED"),
    outputs=lambda shape: [np.zeros(BINS, np.uint32)],
    traffic=lambda shape: shape["n"],
    peer="bincount",
)

if __name__ == "__main__":
    EXAMPLE.show()
