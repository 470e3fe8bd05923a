"""A box that is larger than what is left of the CTA's shared memory is an error at the copy, in both directions."""

from __future__ import annotations

import numpy as np
import pytest

from pyptx import Kernel, Layout, TensorSpec, Tile, kernel, ptx, smem
from pyptx.diagnostics import PtxError
from pyptx.types import f32

BOX = Tile(64, 32, f32, Layout.TMA_128B, tma_box=(64, 32))


def make(rows: int, is_load: bool) -> Kernel:
    """Return a kernel that copies a box of 64 rows to or from a buffer of so many."""

    @kernel(arch="sm_90a", in_specs=[BOX], out_specs=[BOX], grid=(1,), block=(32, 1, 1))
    def copy_box(x: TensorSpec, y: TensorSpec) -> None:
        buffer = smem.alloc(f32, (rows, 32), swizzle="128B", align=1024, name="buffer")
        full = smem.mbarrier(1, name="full")
        with ptx.if_(ptx.special.tid.x() == 0):
            ptx.mbarrier.init(full[0], 1)
            if is_load:
                ptx.mbarrier.arrive_expect_tx(full[0], 64 * 32 * 4)
                ptx.cp.async_.bulk.tensor_2d(dst=buffer.address(), src=x, coord=(0, 0), mbar=full[0])
                ptx.mbarrier.wait(full[0], 0)
            else:
                ptx.cp.async_.bulk.tensor_2d.store(dst=y, src=buffer.address(), coord=(0, 0))
                ptx.cp.async_.bulk.commit_group()
                ptx.cp.async_.bulk.wait_group(0)

    return copy_box


@pytest.mark.parametrize("is_load", [True, False])
def test_a_box_that_ends_after_the_shared_memory(is_load: bool) -> None:
    ones = np.ones((64, 32), np.float32)
    make(64, is_load).simulate(ones, check="none")
    with pytest.raises(PtxError, match=r"ends \d+ bytes after the CTA's shared memory") as caught:
        make(8, is_load).simulate(ones, check="none")
    (finding,) = caught.value.diagnostics
    assert finding.code == "PTX1110"
    assert str(finding.origin).partition(":")[0] == __file__
