"""Shared memory is read before it was written: nobody zeroes the counters.

Shared memory holds what the last CTA on the SM left there, so the first run after a reboot may look right.
"""

from __future__ import annotations

import numpy as np

from examples.parts.bug import Bug
from pyptx import TensorSpec, Tile, kernel, ptx, smem
from pyptx.types import u32


@kernel(in_specs=[Tile(32, u32)], out_specs=[Tile(32, u32)], grid=(1,), block=(32, 1, 1))
def count(values: TensorSpec, counts: TensorSpec, *, fixed: bool = False) -> None:
    """Count each value."""
    source, target = ptx.global_ptrs(values, counts)
    bins = smem.alloc(u32, 32, name="bins")
    thread = ptx.special.tid.x()
    if fixed:
        bins[thread] = 0
        ptx.bar.sync(0)
    ptx.red.add(u32, bins[ptx.ld(u32, ptx.addr(source, thread * 4))], 1, space="shared")
    ptx.bar.sync(0)
    ptx.st(u32, ptx.addr(target, thread * 4), smem.load(u32, bins[thread]))


BUG = Bug(count, "PTX0910", (np.arange(32, dtype=np.uint32) % 4,))

if __name__ == "__main__":
    BUG.show()
