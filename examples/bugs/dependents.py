"""A kernel reads its predecessor's results before `griddepcontrol.wait`.

In a programmatic launch it may start while the predecessor still runs. `check="all,dependents"` assumes that it does.
"""

from __future__ import annotations

import numpy as np

from examples.parts.bug import Bug
from pyptx import TensorSpec, Tile, kernel, ptx
from pyptx.types import f32


@kernel(arch="sm_90a", in_specs=[Tile(32, f32)], out_specs=[Tile(32, f32)], grid=(1,), block=(32, 1, 1))
def scale(x: TensorSpec, y: TensorSpec, *, fixed: bool = False) -> None:
    """y = 2 x"""
    px, py = ptx.global_ptrs(x, y)
    offset = ptx.special.tid.x() * 4
    if fixed:
        ptx.griddepcontrol.wait()
    value = ptx.ld(f32, ptx.addr(px, offset))
    if not fixed:
        ptx.griddepcontrol.wait()
    ptx.st(f32, ptx.addr(py, offset), value * 2.0)


BUG = Bug(scale, "PTX0929", (np.ones(32, np.float32),), check="all,dependents")

if __name__ == "__main__":
    BUG.show()
