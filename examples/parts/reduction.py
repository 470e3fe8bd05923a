"""Reductions over a CTA: butterflies inside the warps, then one value of each warp through shared memory."""

from __future__ import annotations

from pyptx import intrinsic, ptx, reg, smem
from pyptx.types import f32


@intrinsic
def cta_reduce(op: str, value: reg.Reg, thread: reg.Reg, threads: int) -> reg.Reg:
    """Return the sum ("sum") or the largest ("max") of every thread's f32, in all threads of the CTA.

    `threads` is the size of the CTA: 64 to 1024, a power of two. Each call has shared memory of its own, so that a
    second call needs no barrier against the first.
    """
    warps = threads // 32
    parts = smem.alloc(f32, warps)
    ptx.warp.reduce(op, value)
    with ptx.if_(thread & 31 == 0):
        parts[thread >> 5] = value
    # All parts are written before any is read.
    ptx.bar.sync(0)
    mine = smem.load(f32, parts[thread & (warps - 1)])
    return ptx.warp.reduce(op, mine, width=warps)
