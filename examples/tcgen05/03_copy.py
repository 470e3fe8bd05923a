"""Copy from shared to tensor memory: left = a, (128, 8), and right = `b`, (32, 4), repeated in all four quarters.

The idea: `tcgen05.cp` fills tensor memory without registers, issued by one thread.

- `128x256b`: 128 rows of 32 bytes, one in each lane. The matrix descriptor says how the rows lie in shared memory: here
  with the 32-byte swizzle that TMA wrote, eight rows every 256 bytes.
- `32x128b.warpx4`: 32 rows of 16 bytes, written to lanes 0 to 31, 32 to 63, and so on: scale factors are copied so,
  since each quarter of the tensor core reads its own lanes. Contiguous rows of 16 bytes need no layout, so the
  instruction gets the tile itself.

The protocol is that of `run_in_one_thread` in `examples/parts/tensor_steps.py`. A copy is asynchronous: the thread's
`tcgen05.commit` arrives at `done` when both are complete, and all threads wait for it. A product by the same thread
would not have to wait: products follow earlier copies.
"""

from __future__ import annotations

import numpy as np

from examples.parts.example import Array, Example, Run
from examples.parts.tensor_memory import free
from examples.parts.tensor_steps import run_in_one_thread, store_lanes
from pyptx import Kernel, TensorSpec, Tile, kernel, ptx, reg, smem
from pyptx.types import u32

LANES, LEFT, RIGHT, ALLOCATED = 128, 8, 4, 32
"""Lanes, words in a row of each matrix, and the fewest columns that can be allocated."""
QUARTER = 32


def make(arch: str = "sm_100a") -> Kernel:
    """Return the kernel for a target with tensor memory."""

    @kernel(
        arch=arch, in_specs=(Tile.wgmma_a(LANES, LEFT, u32), Tile.wgmma_a(QUARTER, RIGHT, u32)),
        out_specs=(Tile(LANES, LEFT, u32), Tile(LANES, RIGHT, u32)), grid=(1, 1, 1), block=(LANES, 1, 1),
    )  # fmt: skip
    def copy(a: TensorSpec, b: TensorSpec, left: TensorSpec, right: TensorSpec) -> None:
        pl, pr = ptx.global_ptrs(left, right)
        sa, sb = smem.wgmma_tile(u32, (LANES, LEFT), name="sa"), smem.wgmma_tile(u32, (QUARTER, RIGHT), name="sb")
        thread = ptx.special.tid.x()

        def issue(address: reg.Reg) -> None:
            rows = ptx.tcgen05.descriptor(sa, stride_bytes=256, swizzle="32B")
            ptx.tcgen05.cp(address, rows, size="128x256b")
            ptx.tcgen05.cp(address + LEFT, sb, size="32x128b.warpx4")

        address = run_in_one_thread(thread, ALLOCATED, ((sa, a), (sb, b)), issue)
        store_lanes(address, thread, LEFT, pl, u32)
        store_lanes(address + LEFT, thread, RIGHT, pr, u32)
        free(address, ALLOCATED, thread < 32)

    return copy


def reference(a: Array, b: Array) -> tuple[Array, Array]:
    """Return the expected result."""
    return a.copy(), np.tile(b, (LANES // QUARTER, 1))


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_100a", "sm_103a"),
    runs=(Run({}),),
    large={},
    sass=("UTCCP.T.S.4x32dp128bit", "UTCBAR"),
)

if __name__ == "__main__":
    EXAMPLE.show()
