"""Data is used before the copy that brings it has been waited for.

`cp.async` returns at once. The commit starts nothing and waits for nothing; only `cp.async.wait_group` waits.
"""

from __future__ import annotations

import numpy as np

from examples.parts.bug import Bug
from pyptx import TensorSpec, Tile, kernel, ptx, reg, smem
from pyptx.types import f32


@kernel(in_specs=[Tile(128, f32)], out_specs=[Tile(128, f32)], grid=(1,), block=(32, 1, 1))
def stage(x: TensorSpec, y: TensorSpec, *, fixed: bool = False) -> None:
    """Copy 128 values through shared memory."""
    px, py = ptx.global_ptrs(x, y)
    cells = smem.alloc(f32, 128, name="cells", align=16)
    offset = ptx.special.tid.x() * 16
    ptx.cp.async_.cg(cells.address() + offset, ptx.addr(px, offset), 16)
    ptx.cp.async_.commit_group()
    if fixed:
        ptx.cp.async_.wait_group(0)
    values = reg.array(f32, 4)
    ptx.ld(f32, values, ptx.addr(cells.address() + offset), space="shared")
    ptx.st(f32, ptx.addr(py, offset), values)


BUG = Bug(stage, "PTX0931", (np.arange(128, dtype=np.float32),))

if __name__ == "__main__":
    BUG.show()
