"""Histogram: counts[v] += how often the byte v stands in the input.

The idea: atomics where they are cheap. Each CTA counts into its own 256 counters in shared memory and adds them to the
result once, at its end; global memory sees 256 atomics of a CTA instead of one for each byte. Threads read four bytes
at a time and go on by the size of the grid, so any grid will do. The caller zeroes the counters.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pyptx import Kernel, TensorSpec, Tile, kernel, ptx, reg, smem
from pyptx.types import u8, u32

THREADS, BINS, CTAS = 256, 256, 132
Array = np.ndarray[Any, Any]


def grid(n: int) -> tuple[int, int, int]:
    """Return how many CTAs count: no more than there are words for, no more than fit on the device at once."""
    return (min(CTAS, -(-n // (THREADS * 4))), 1, 1)


def make(arch: str = "sm_80") -> Kernel:
    """Return the kernel for a target. The number of bytes is a multiple of 4."""

    @kernel(arch=arch, in_specs=(Tile("n", u8),), out_specs=(Tile(BINS, u32),), grid=grid, block=(THREADS, 1, 1))
    def histogram(data: TensorSpec, counts: TensorSpec) -> None:
        n = data.shape[0]
        source, target = ptx.global_ptrs(data, counts)
        bins = smem.alloc(u32, BINS, name="bins")
        thread = ptx.special.tid.x()

        # Phase 1: one thread for each counter sets it to 0, and the barrier shows it to all.
        bins[thread] = 0
        ptx.bar.sync(0)

        # Phase 2: count. `red` returns nothing, so nobody waits for it.
        first = ptx.special.ctaid.x() * THREADS + thread
        word, byte = reg.scalar(u32), reg.scalar(u32)
        for i in ptx.range_(first * 4, n, ptx.special.nctaid.x() * (THREADS * 4)):
            ptx.ld(u32, word, ptx.addr(source, i))
            for shift in range(0, 32, 8):
                ptx.inst.bfe.u32(byte, word, shift, 8)
                ptx.red.add(u32, bins[byte], 1, space="shared")

        # Phase 3: all have counted; each thread hands one counter over.
        ptx.bar.sync(0)
        ptx.red.add(u32, ptx.addr(target, thread * 4), smem.load(u32, bins[thread]))

    return histogram


def reference(data: Array) -> Array:
    """Return what the kernel computes."""
    return np.bincount(data, minlength=BINS).astype(np.uint32)
