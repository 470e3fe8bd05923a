"""Tensor memory is freed in part: the kernel allocates 64 columns and frees 32.

The other columns stay allocated after the CTA has exited, and the next allocation on this SM waits for them forever.
"""

from __future__ import annotations

from examples.parts.bug import Bug
from pyptx import TensorSpec, Tile, kernel, ptx, reg, smem
from pyptx.types import f32, u32


@kernel(arch="sm_100a", out_specs=[Tile(32, f32)], grid=(1,), block=(32, 1, 1))
def round_trip(out: TensorSpec, *, fixed: bool = False) -> None:
    """Write a column of tensor memory, and read it back."""
    (target,) = ptx.global_ptrs(out)
    slot = smem.alloc(u32, 1, name="slot")
    ptx.tcgen05.alloc(slot, 64)
    ptx.tcgen05.relinquish_alloc_permit()
    ptx.warp.sync()
    columns = smem.load(u32, slot)
    before, after = reg.array(f32, 1), reg.array(f32, 1)
    ptx.mov(f32, before[0], 1.5)
    ptx.tcgen05.st(columns, before, shape="32x32b", count=1)
    ptx.tcgen05.wait_st()
    ptx.tcgen05.ld(after, columns, shape="32x32b", count=1)
    ptx.tcgen05.wait_ld()
    ptx.st(f32, ptx.addr(target, ptx.special.tid.x() * 4), after[0])
    ptx.tcgen05.dealloc(columns, 64 if fixed else 32)


BUG = Bug(round_trip, "PTX0947")

if __name__ == "__main__":
    BUG.show()
