"""Shift rows of tensor memory: out[r] = a[r + 1] in each quarter of 32 rows, whose last row remains; `a` is (128, 8).

The idea: `tcgen05.shift.down` moves every lane's 32 bytes to the lane before it, with no trip through registers, which
cannot exchange lanes without `shfl`. A convolution can use it to multiply the same rows with its next tap.
One instruction shifts 8 columns of a quarter of the lanes; its address names the quarter's first lane.

The protocol: the copy that fills the columns must be complete before the shift reads them, for copies are ordered
before products, but not before shifts.

- `filled`: one arrival, by the first commit, when the copy is complete. The thread that issues waits for phase 0.
- `done`: one arrival, by the second commit, when all four shifts are complete. All threads wait for phase 0.
- `full` and `bar.sync 0`: see `run_in_one_thread` in `examples/parts/tensor_steps.py`.
"""

from __future__ import annotations

import numpy as np

from examples.parts.example import Array, Example, Run
from examples.parts.tensor_memory import free
from examples.parts.tensor_steps import run_in_one_thread, store_lanes
from pyptx import Kernel, TensorSpec, Tile, kernel, ptx, reg, smem
from pyptx.types import u32

LANES, WIDTH, QUARTER, ALLOCATED = 128, 8, 32, 32


def make(arch: str = "sm_100a") -> Kernel:
    """Return the kernel for a target with tensor memory and shifts."""

    @kernel(
        arch=arch, in_specs=(Tile.wgmma_a(LANES, WIDTH, u32),), out_specs=(Tile(LANES, WIDTH, u32),), grid=(1, 1, 1),
        block=(LANES, 1, 1),
    )  # fmt: skip
    def shift(a: TensorSpec, out: TensorSpec) -> None:
        (po,) = ptx.global_ptrs(out)
        sa = smem.wgmma_tile(u32, (LANES, WIDTH), name="sa")
        filled = smem.mbarrier(1, name="filled")
        thread = ptx.special.tid.x()

        def issue(address: reg.Reg) -> None:
            # Phase 1: fill the columns and wait until that is complete.
            ptx.mbarrier.init(filled[0], 1)
            ptx.tcgen05.cp(address, ptx.tcgen05.descriptor(sa, stride_bytes=256, swizzle="32B"), size="128x256b")
            ptx.tcgen05.commit(filled[0])
            ptx.mbarrier.wait(filled[0], 0)
            ptx.tcgen05.fence_after_thread_sync()

            # Phase 2: shift each quarter.
            for first in range(0, LANES, QUARTER):
                ptx.tcgen05.shift(address + (first << 16) if first else address)

        address = run_in_one_thread(thread, ALLOCATED, ((sa, a),), issue)
        store_lanes(address, thread, WIDTH, po, u32)
        free(address, ALLOCATED, thread < 32)

    return shift


def reference(a: Array) -> Array:
    """Return the expected result."""
    quarters = a.reshape(-1, QUARTER, WIDTH)
    return np.concatenate([quarters[:, 1:], quarters[:, -1:]], axis=1).reshape(a.shape)


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_100a", "sm_103a"),
    runs=(Run({}),),
    large={},
    sass=("UTCSHIFT",),
)

if __name__ == "__main__":
    EXAMPLE.show()
