"""The grid is rounded down, so the tail of the output is never written.

Its elements keep what the memory held before, which is often zero while one tests.
"""

from __future__ import annotations

import numpy as np

from examples.parts.bug import Bug
from pyptx import TensorSpec, Tile, kernel, ptx
from pyptx.types import f32


@kernel(in_specs=[Tile("n", f32)], out_specs=[Tile("n", f32)], grid=(1,), block=(32, 1, 1))
def negate(x: TensorSpec, y: TensorSpec, *, fixed: bool = False) -> None:
    """y = -x"""
    px, py = ptx.global_ptrs(x, y)
    n = x.shape[0]
    for i in ptx.range_(ptx.special.tid.x(), n if fixed else n // 32 * 32, 32):
        ptx.st(f32, ptx.addr(py, i * 4), -ptx.ld(f32, ptx.addr(px, i * 4)))


BUG = Bug(negate, "PTX0998", (np.ones(40, np.float32),), check="all,outputs")

if __name__ == "__main__":
    BUG.show()
