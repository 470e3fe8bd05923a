"""Two warps use one named barrier with different counts.

The barrier completes when the count of one of them is reached; which, and when, depends on who arrives first.
"""

from __future__ import annotations

from examples.parts.bug import Bug
from pyptx import TensorSpec, Tile, kernel, ptx, smem
from pyptx.types import f32


@kernel(out_specs=[Tile(64, f32)], grid=(1,), block=(64, 1, 1))
def hand_over(out: TensorSpec, *, fixed: bool = False) -> None:
    """The first warp writes, the second reads."""
    (target,) = ptx.global_ptrs(out)
    cells = smem.alloc(f32, 32, name="cells")
    thread = ptx.special.tid.x()
    with ptx.if_(thread < 32):
        cells[thread] = 2.0
        ptx.bar.arrive(1, 64 if fixed else 96)
        ptx.st(f32, ptx.addr(target, thread * 4), 0.0)
    with ptx.else_():
        ptx.bar.sync(1, 64)
        ptx.st(f32, ptx.addr(target, thread * 4), smem.load(f32, cells[thread & 31]))


BUG = Bug(hand_over, "PTX0970")

if __name__ == "__main__":
    BUG.show()
