"""The last thread reads its right neighbor's cell, which belongs to the next array in shared memory.

Both arrays are in the CTA's shared memory, so nothing faults: the sum is wrong.
"""

from __future__ import annotations

import numpy as np

from examples.parts.bug import Bug
from pyptx import TensorSpec, Tile, kernel, ptx, smem
from pyptx.types import f32


@kernel(in_specs=[Tile(32, f32)], out_specs=[Tile(32, f32)], grid=(1,), block=(32, 1, 1))
def add_neighbor(x: TensorSpec, y: TensorSpec, *, fixed: bool = False) -> None:
    """y[i] = x[i] + x[i + 1]"""
    px, py = ptx.global_ptrs(x, y)
    cells, other = smem.alloc(f32, 32, name="cells"), smem.alloc(f32, 32, name="other")
    thread = ptx.special.tid.x()
    value = ptx.ld(f32, ptx.addr(px, thread * 4))
    cells[thread] = value
    other[thread] = 0.0
    ptx.bar.sync(0)
    right = (thread + 1).min(31) if fixed else thread + 1
    ptx.st(f32, ptx.addr(py, thread * 4), value + smem.load(f32, cells[right]))


BUG = Bug(add_neighbor, "PTX0917", (np.ones(32, np.float32),))

if __name__ == "__main__":
    BUG.show()
