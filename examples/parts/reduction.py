"""Reductions over a CTA: butterfly shuffles within each warp, then one value per warp through shared memory.

The protocol: one `bar.sync 0` of all threads, between writing and reading those values.
"""

from __future__ import annotations

from pyptx import intrinsic, ptx, reg, smem
from pyptx.types import f32


@intrinsic
def cta_reduce(op: str, value: reg.Reg, thread: reg.Reg, threads: int) -> reg.Reg:
    """Return the sum ("sum") or maximum ("max") of all threads' f32 values, in every thread of the CTA.

    `threads` is the size of the CTA: a power of two from 64 to 1024. Each call allocates its own shared memory, so
    consecutive calls need no barrier between them.
    """
    warps = threads // 32
    parts = smem.alloc(f32, warps)
    ptx.warp.reduce(op, value)
    with ptx.if_(thread & 31 == 0):
        parts[thread >> 5] = value
    # Write all parts before reading any.
    ptx.bar.sync(0)
    part = smem.load(f32, parts[thread & (warps - 1)])
    return ptx.warp.reduce(op, part, width=warps)
