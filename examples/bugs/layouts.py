"""The coordinates of a TMA load in the order of the array's shape, not fastest dimension first.

The box is read at another place, and parts outside the tensor are zeros, so nothing fails.
"""

from __future__ import annotations

import numpy as np

from examples.parts.bug import Bug
from pyptx import Layout, TensorSpec, Tile, kernel, ptx, smem
from pyptx.types import f32


@kernel(
    arch="sm_90a", in_specs=[Tile(64, 32, f32, Layout.TMA_128B, tma_box=(8, 32))],
    out_specs=[Tile(64, 32, f32, Layout.TMA_128B, tma_box=(8, 32))], grid=(8,), block=(32, 1, 1),
)  # fmt: skip
def copy_boxes(x: TensorSpec, y: TensorSpec, *, fixed: bool = False) -> None:
    """Copy eight rows in each CTA."""
    tile, full = smem.alloc(f32, (8, 32), swizzle="128B", align=1024, name="tile"), smem.mbarrier(1, name="full")
    top = ptx.special.ctaid.x() * 8
    with ptx.if_(ptx.special.tid.x() == 0):
        ptx.mbarrier.init(full[0], 1)
        ptx.mbarrier.arrive_expect_tx(full[0], tile.size)
        ptx.cp.async_.bulk.tensor_2d(dst=tile, src=x, coord=(0, top) if fixed else (top, 0), mbar=full[0])
        ptx.mbarrier.wait(full[0], 0)
        ptx.cp.async_.bulk.tensor_2d.store(dst=y, src=tile, coord=(0, top))
        ptx.cp.async_.bulk.commit_group()
        ptx.cp.async_.bulk.wait_group(0)


BUG = Bug(copy_boxes, "PTX0986", (np.arange(2048, dtype=np.float32).reshape(64, 32),))

if __name__ == "__main__":
    BUG.show()
