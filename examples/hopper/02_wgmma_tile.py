"""One wgmma tile: c = a @ b with 64 x 64 bf16 `a` and `b` and f32 `c`, a minimal Hopper product.

The idea: the four warps of a warpgroup multiply together, directly from shared memory, and accumulate in registers. TMA
loads both operands in the swizzled layout that wgmma reads; `smem.wgmma_tile` allocates that layout, and `mma_async`
takes the allocation as its operand. `a` is contiguous along K, `b` along N, as NumPy stores them.

The protocol: the mbarrier `full` takes one arrival, from thread 0, and the 16 KiB of both tiles. All 128 threads wait
for phase 0, after one `bar.sync 0`, which follows the initialization.
"""

from __future__ import annotations

import numpy as np

from examples.parts.example import Array, Example, Run
from pyptx import Kernel, TensorSpec, Tile, kernel, ptx, reg, smem
from pyptx.types import bf16, f32

M = N = K = 64
STEP = 16
"""K of one wgmma of 16-bit types."""


def grid() -> tuple[int, int, int]:
    """Return the grid: one CTA."""
    return (1, 1, 1)


def make(arch: str = "sm_90a") -> Kernel:
    """Return the kernel for sm_90a, the only target with wgmma."""

    @kernel(
        arch=arch, in_specs=(Tile.wgmma_a(M, K, bf16), Tile.wgmma_b(K, N, bf16)), out_specs=(Tile(M, N, f32),),
        grid=grid(), block=(128, 1, 1),
    )  # fmt: skip
    def wgmma_tile(a: TensorSpec, b: TensorSpec, c: TensorSpec) -> None:
        (pc,) = ptx.global_ptrs(c)
        sa, sb = smem.wgmma_tile(bf16, (M, K), "K", name="sa"), smem.wgmma_tile(bf16, (K, N), "MN", name="sb")
        full = smem.mbarrier(1, name="full")
        thread = ptx.special.tid.x()

        # Phase 1: thread 0 initializes the mbarrier, then loads both tiles.
        with ptx.if_(thread == 0):
            ptx.mbarrier.init(full[0], 1)
            ptx.mbarrier.arrive_expect_tx(full[0], sa.size + sb.size)
            ptx.cp.async_.bulk.tensor_2d(dst=sa, src=a, coord=(0, 0), mbar=full[0])
            ptx.cp.async_.bulk.tensor_2d(dst=sb, src=b, coord=(0, 0), mbar=full[0])
        # The other threads must not wait on the mbarrier before it is initialized.
        ptx.bar.sync(0)
        # Waiting for the phase makes the bytes visible; wgmma also reads through the async proxy, so no fence.
        ptx.mbarrier.wait(full[0], 0)

        # Phase 2: accumulate four products of K = 16; the first one overwrites the registers. `wgmma.fence` orders
        # earlier register accesses before wgmma's.
        sums = reg.wgmma_frag(m=M, n=N, dtype=f32, name="sum")
        ptx.wgmma.fence()
        for k in range(0, K, STEP):
            ptx.wgmma.mma_async(
                shape=(M, N, STEP), dtype_d=f32, dtype_a=bf16, dtype_b=bf16, d=sums, a=sa, b=sb, scale_d=k > 0,
                a_k_offset=sa.k_offset(k), b_k_offset=sb.k_offset(k),
            )  # fmt: skip
        ptx.wgmma.commit_group()
        ptx.wgmma.wait_group(0)

        # Phase 3: write the result. Warp w has rows 16 w to 16 w + 15; register 4 j + 2 h + e of a lane is row
        # lane / 4 + 8 h, column 8 j + 2 (lane mod 4) + e.
        lane = thread & 31
        row, column = (thread >> 5) * 16 + (lane >> 2), (lane & 3) * 2
        corner = ptx.mad(row * N + column, 4, pc, mode="wide")
        for j in range(N // 8):
            for half in range(2):
                pair = sums[4 * j + 2 * half : 4 * j + 2 * half + 2]
                ptx.st(f32, ptx.addr(corner, (8 * half * N + 8 * j) * 4), pair)

    return wgmma_tile


def reference(a: Array, b: Array) -> Array:
    """Return the expected result."""
    return a.astype(np.float32) @ b.astype(np.float32)


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_90a",),
    runs=(Run({}, atol=1e-4),),
    large={},
    sass=("UTMALDG.2D", "HGMMA.64x64x16.F32.BF16"),
    flops=lambda _: 2 * M * N * K,
)

if __name__ == "__main__":
    EXAMPLE.show()
