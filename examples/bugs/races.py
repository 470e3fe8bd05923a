"""A data race: a thread reads what another warp writes, with no barrier between the accesses.

The block reverses 64 values through shared memory. Whether the last warp's values arrive in time is luck.
"""

from __future__ import annotations

import numpy as np

from examples.parts.bug import Bug
from pyptx import TensorSpec, Tile, kernel, ptx, smem
from pyptx.types import f32


@kernel(in_specs=[Tile(64, f32)], out_specs=[Tile(64, f32)], grid=(1,), block=(64, 1, 1))
def reverse(x: TensorSpec, y: TensorSpec, *, fixed: bool = False) -> None:
    """Reverse 64 values."""
    px, py = ptx.global_ptrs(x, y)
    cells = smem.alloc(f32, 64, name="cells")
    thread = ptx.special.tid.x()
    cells[thread] = ptx.ld(f32, ptx.addr(px, thread * 4))
    if fixed:
        ptx.bar.sync(0)
    ptx.st(f32, ptx.addr(py, thread * 4), smem.load(f32, cells[63 - thread]))


BUG = Bug(reverse, "PTX0901", (np.arange(64, dtype=np.float32),))

if __name__ == "__main__":
    BUG.show()
