"""Two warps release a slot, and each arrives as often as both together.

The mbarrier counts three arrivals: the producer's and one of each warp. The first warp completes the phase alone, and
the arrivals of the second belong to the next phase.
"""

from __future__ import annotations

from examples.parts.bug import Bug
from pyptx import TensorSpec, Tile, kernel, ptx, smem
from pyptx.types import f32


@kernel(arch="sm_90a", out_specs=[Tile(64, f32)], grid=(1,), block=(64, 1, 1))
def release(out: TensorSpec, *, fixed: bool = False) -> None:
    """Exchange values behind an mbarrier."""
    (target,) = ptx.global_ptrs(out)
    cells, empty = smem.alloc(f32, 64, name="cells"), smem.mbarrier(1, name="empty")
    thread = ptx.special.tid.x()
    ptx.mbarrier.init(empty[0], 3, pred=thread == 0)
    cells[thread] = 1.0
    ptx.bar.sync(0)
    ptx.mbarrier.arrive(empty[0], count=1, pred=thread == 0)
    ptx.mbarrier.arrive(empty[0], count=1 if fixed else 2, pred=thread & 31 == 0)
    ptx.mbarrier.wait(empty[0], 0)
    ptx.st(f32, ptx.addr(target, thread * 4), smem.load(f32, cells[63 - thread]))


BUG = Bug(release, "PTX0957")

if __name__ == "__main__":
    BUG.show()
