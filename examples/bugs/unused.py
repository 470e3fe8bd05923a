"""A copy brings twice as many bytes as anybody reads.

The kernel is right and wastes half of its bandwidth; `check="all,unused"` shows such copies.
"""

from __future__ import annotations

import numpy as np

from examples.parts.bug import Bug
from pyptx import TensorSpec, Tile, kernel, ptx, smem
from pyptx.types import f32


@kernel(arch="sm_90a", in_specs=[Tile(64, f32)], out_specs=[Tile(32, f32)], grid=(1,), block=(32, 1, 1))
def take_half(x: TensorSpec, y: TensorSpec, *, fixed: bool = False) -> None:
    """Copy the first 32 values through shared memory."""
    px, py = ptx.global_ptrs(x, y)
    cells, full = smem.alloc(f32, 64, name="cells", align=128), smem.mbarrier(1, name="full")
    thread, size = ptx.special.tid.x(), 128 if fixed else 256
    with ptx.if_(thread == 0):
        ptx.mbarrier.init(full[0], 1)
        ptx.mbarrier.arrive_expect_tx(full[0], size)
        ptx.cp.async_.bulk.global_to_shared(cells, px, size, full[0])
    ptx.bar.sync(0)
    ptx.mbarrier.wait(full[0], 0)
    ptx.st(f32, ptx.addr(py, thread * 4), smem.load(f32, cells[thread]))


BUG = Bug(take_half, "PTX0976", (np.arange(64, dtype=np.float32),), check="all,unused")

if __name__ == "__main__":
    BUG.show()
