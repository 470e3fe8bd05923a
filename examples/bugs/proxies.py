"""Threads write shared memory and TMA reads it, with no proxy fence between.

`bar.sync` orders the threads' accesses with each other. The copy reads by the async proxy, which may not see them yet.
"""

from __future__ import annotations

from examples.parts.bug import Bug
from pyptx import TensorSpec, Tile, kernel, ptx, smem
from pyptx.types import f32


@kernel(arch="sm_90a", out_specs=[Tile(32, f32)], grid=(1,), block=(32, 1, 1))
def store_tile(out: TensorSpec, *, fixed: bool = False) -> None:
    """Write 32 values to shared memory, and copy them from there."""
    (target,) = ptx.global_ptrs(out)
    tile = smem.alloc(f32, 32, name="tile", align=128)
    thread = ptx.special.tid.x()
    tile[thread] = 1.0
    if fixed:
        ptx.fence.proxy_async_shared_cta()
    ptx.bar.sync(0)
    with ptx.if_(thread == 0):
        ptx.cp.async_.bulk.shared_to_global(target, tile, 128)
        ptx.cp.async_.bulk.commit_group()
        ptx.cp.async_.bulk.wait_group(0)


BUG = Bug(store_tile, "PTX0920")

if __name__ == "__main__":
    BUG.show()
