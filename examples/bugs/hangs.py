"""A wait for bytes that no copy brings: the barrier expects 16 bytes more than the copy has.

On a GPU the kernel never ends, and nothing says why.
"""

from __future__ import annotations

import numpy as np

from examples.parts.bug import Bug
from pyptx import TensorSpec, Tile, kernel, ptx, smem
from pyptx.types import f32


@kernel(arch="sm_90a", in_specs=[Tile(32, f32)], out_specs=[Tile(32, f32)], grid=(1,), block=(32, 1, 1))
def load(x: TensorSpec, y: TensorSpec, *, fixed: bool = False) -> None:
    """Copy 32 values through shared memory."""
    px, py = ptx.global_ptrs(x, y)
    cells, full = smem.alloc(f32, 32, name="cells", align=128), smem.mbarrier(1, name="full")
    thread = ptx.special.tid.x()
    with ptx.if_(thread == 0):
        ptx.mbarrier.init(full[0], 1)
        ptx.mbarrier.arrive_expect_tx(full[0], 128 if fixed else 144)
        ptx.cp.async_.bulk.global_to_shared(cells, px, 128, full[0])
    ptx.bar.sync(0)
    ptx.mbarrier.wait(full[0], 0)
    ptx.st(f32, ptx.addr(py, thread * 4), smem.load(f32, cells[thread]))


BUG = Bug(load, "PTX0990", (np.arange(32, dtype=np.float32),))

if __name__ == "__main__":
    BUG.show()
