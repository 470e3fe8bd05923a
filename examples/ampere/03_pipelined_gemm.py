"""Tensor-core GEMM for Ampere and later: c = a @ b.T in bf16 with f32 sums, `a` (M, K), `b` (N, K), any M, even N.

The idea: keep loads in flight on two levels. `cp.async` fills a ring of four stages while earlier ones are used, and
`ldmatrix` loads the fragments of the next step while the current ones multiply, also from one stage to the next. A
swizzle spreads rows over the banks. Tiles of 128 x 256 need the fewest bytes per product that registers allow: eight
warps with 64 x 64 sums each. CTAs take the tiles in bands, so that those in flight share rows and columns in L2.

The protocol: `examples/parts/cp_async_ring.py` has the ring: one group of copies per stage and thread, one `bar.sync`
of all 256 threads per stage.

K is a multiple of 8: rows are copied in chunks of 16 bytes.
"""

from __future__ import annotations

import numpy as np

from examples.parts.cp_async_ring import count_row_bytes, make_ring, multiply_tiles
from examples.parts.example import HALF, Array, Example, Run, count_gemm_flops
from examples.parts.tile_order import TileOrder, find_grouped_tile
from examples.parts.warp_tile import WarpTile, count_tiles, refuse_shape
from pyptx import Kernel, TensorSpec, Tile, kernel, ptx
from pyptx.types import bf16

BM, BN = 128, 256
THREADS = 256
PITCH, STAGES = 64, 4
"""32 elements of K per stage: four stages are 96 KiB, which fits in the 99 KiB of sm_89 and sm_120, too."""
TILE = WarpTile(bf16, 64, 64, PITCH)
BAND = 8
"""Rows of tiles in a band: 108 SMs then work on about 8 x 14 tiles."""


def grid(m: int, n: int, k: int) -> tuple[int, int, int]:
    """Return the grid for this shape: one CTA per tile."""
    refuse_shape(n, k, bf16)
    rows, columns = count_tiles(m, n, BM, BN)
    return (rows * columns, 1, 1)


def make(arch: str = "sm_80") -> Kernel:
    """Return the kernel for a target."""

    @kernel(
        arch=arch, in_specs=(Tile("m", "k", bf16), Tile("n", "k", bf16)), out_specs=(Tile("m", "n", bf16),),
        grid=grid, block=(THREADS, 1, 1),
    )  # fmt: skip
    def pipelined_gemm(a: TensorSpec, b: TensorSpec, c: TensorSpec) -> None:
        m, n = c.shape
        pa, pb, pc = ptx.global_ptrs(a, b, c)
        thread = ptx.special.tid.x()
        warp, lane = thread >> 5, thread & 31
        down, right = (warp & 1) * TILE.rows, (warp >> 1) * TILE.columns
        row, column = find_grouped_tile(ptx.special.ctaid.x(), *count_tiles(m, n, BM, BN), BAND)
        top, left = row * BM, column * BN

        a_bytes, b_bytes = count_row_bytes(a.shape[:], bf16), count_row_bytes(b.shape[:], bf16)
        ring = make_ring(TILE, STAGES, THREADS, (pa, a_bytes, BM), (pb, b_bytes, BN), (thread, down, right))
        sums = TILE.make_sums()
        multiply_tiles(ring, sums, (top, left), 0, a_bytes[1])
        is_inside = m % BM == 0 and n % BN == 0
        TILE.store(sums, pc, (m, n), lane, top + down, left + right, is_inside=is_inside)

    return pipelined_gemm


def reference(a: Array, b: Array) -> Array:
    """Return the expected result before rounding to bf16."""
    return a.astype(np.float32) @ b.astype(np.float32).T


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_80", "sm_89", "sm_120a"),
    runs=(
        Run({"m": 128, "n": 256, "k": 32}, HALF, 1e-3),
        Run({"m": 128, "n": 256, "k": 200}, HALF, 1e-3),
        Run({"m": 150, "n": 302, "k": 72}, HALF, 1e-3, special=True),
    ),
    large={"m": 4096, "n": 4096, "k": 4096},
    sass=("LDGSTS.E.BYPASS", "LDSM.16.M88.4", "HMMA.16816.F32.BF16"),
    flops=count_gemm_flops,
    order=TileOrder(BM, BN, BAND),
    peer="matmul triton_matmul",
)

if __name__ == "__main__":
    EXAMPLE.show()
