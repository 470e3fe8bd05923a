"""A softmax without the maximum: exp(100) is infinite, and infinity / infinity is NaN.

`check="all,numerics"` names the first instruction that makes a NaN or an infinity of finite values.
"""

from __future__ import annotations

import numpy as np

from examples.parts.bug import Bug
from pyptx import TensorSpec, Tile, kernel, ptx, reg
from pyptx.types import f32


@kernel(in_specs=[Tile(32, f32)], out_specs=[Tile(32, f32)], grid=(1,), block=(32, 1, 1))
def softmax(x: TensorSpec, y: TensorSpec, *, fixed: bool = False) -> None:
    """Normalize the powers of two of 32 values."""
    px, py = ptx.global_ptrs(x, y)
    lane = ptx.special.tid.x()
    value, power = ptx.ld(f32, ptx.addr(px, lane * 4)), reg.scalar(f32)
    if fixed:
        largest = reg.from_(value, f32)
        ptx.warp.reduce("max", largest)
        value = value - largest
    ptx.inst.ex2.approx.ftz.f32(power, value)
    total = reg.from_(power, f32)
    ptx.warp.reduce("sum", total)
    ptx.st(f32, ptx.addr(py, lane * 4), power / total)


BUG = Bug(softmax, "PTX0993", (np.arange(200, 232, dtype=np.float32),), check="all,numerics")

if __name__ == "__main__":
    BUG.show()
