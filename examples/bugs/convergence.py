"""Half of a warp shuffles, with a mask of all lanes.

The other lanes never execute this `shfl`, and the value that it reads from them is undefined.
"""

from __future__ import annotations

import numpy as np

from examples.parts.bug import Bug
from pyptx import TensorSpec, Tile, kernel, ptx
from pyptx.types import u32


@kernel(in_specs=[Tile(32, u32)], out_specs=[Tile(32, u32)], grid=(1,), block=(32, 1, 1))
def swap_neighbors(x: TensorSpec, y: TensorSpec, *, fixed: bool = False) -> None:
    """Give each of the first 16 lanes the value of lane + 16."""
    px, py = ptx.global_ptrs(x, y)
    lane = ptx.special.tid.x()
    value = ptx.ld(u32, ptx.addr(px, lane * 4))
    if fixed:
        value = ptx.warp.shfl_down(value, 16)
    with ptx.if_(lane < 16):
        if not fixed:
            value = ptx.warp.shfl_down(value, 16, mask=0xFFFF)
        ptx.st(u32, ptx.addr(py, lane * 4), value)
    with ptx.else_():
        ptx.st(u32, ptx.addr(py, lane * 4), 0)


BUG = Bug(swap_neighbors, "PTX0962", (np.arange(32, dtype=np.uint32),))

if __name__ == "__main__":
    BUG.show()
