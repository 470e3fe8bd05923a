"""FP8 GEMM for Ada and later: c = a @ b.T in bf16 from e4m3 operands, `a` (M, K), `b` (N, K), any M, even N.

The idea: half the bytes and twice the rate of bf16. A product of 16 x 8 x 32 elements of 8 bits has the bytes and the
layout of one of 16 x 8 x 16 elements of 16 bits, so ring, swizzle and fragments serve unchanged. But the tensor cores
of Ada keep only 13 fraction bits when they add fp8 products, and long sums lose small terms. So a chain of products
spans one stage, 128 elements of K, and f32 additions add it to the totals. Sums and totals share the registers, which
is why warps have tiles of 64 x 32.

The protocol: `examples/parts/cp_async_ring.py` has the ring, here of three stages: one group of copies per stage and
thread, one `bar.sync` of all 256 threads per stage.

K is a multiple of 16: rows are copied in chunks of 16 bytes.
"""

from __future__ import annotations

import numpy as np

from examples.parts.cp_async_ring import count_row_bytes, make_ring, multiply_tiles
from examples.parts.example import HALF, Array, Example, Run, count_gemm_flops
from examples.parts.tile_order import TileOrder, find_grouped_tile
from examples.parts.warp_tile import WarpTile, count_tiles, refuse_shape
from pyptx import Kernel, TensorSpec, Tile, kernel, ptx
from pyptx.types import bf16, e4m3

BLOCK, THREADS = 128, 256
PITCH, STAGES = 128, 3
"""Rows of 128 bytes: three stages of both operands are 96 KiB of 99."""
TILE = WarpTile(e4m3, 64, 32, PITCH)
BAND = 8
"""Rows of tiles in a band: 128 SMs then work on 8 x 16 tiles."""


def grid(m: int, n: int, k: int) -> tuple[int, int, int]:
    """Return the grid for this shape: one CTA per tile."""
    refuse_shape(n, k, e4m3)
    rows, columns = count_tiles(m, n, BLOCK, BLOCK)
    return (rows * columns, 1, 1)


def make(arch: str = "sm_89") -> Kernel:
    """Return the kernel for a target."""

    @kernel(
        arch=arch, in_specs=(Tile("m", "k", e4m3), Tile("n", "k", e4m3)), out_specs=(Tile("m", "n", bf16),),
        grid=grid, block=(THREADS, 1, 1),
    )  # fmt: skip
    def fp8_gemm(a: TensorSpec, b: TensorSpec, c: TensorSpec) -> None:
        m, n = c.shape
        pa, pb, pc = ptx.global_ptrs(a, b, c)
        thread = ptx.special.tid.x()
        warp, lane = thread >> 5, thread & 31
        down, right = (warp & 1) * TILE.rows, (warp >> 1) * TILE.columns
        row, column = find_grouped_tile(ptx.special.ctaid.x(), *count_tiles(m, n, BLOCK, BLOCK), BAND)
        top, left = row * BLOCK, column * BLOCK

        a_bytes, b_bytes = count_row_bytes(a.shape[:], e4m3), count_row_bytes(b.shape[:], e4m3)
        ring = make_ring(TILE, STAGES, THREADS, (pa, a_bytes, BLOCK), (pb, b_bytes, BLOCK), (thread, down, right))
        sums, totals = TILE.make_sums(), TILE.make_sums()
        multiply_tiles(ring, sums, (top, left), 0, a_bytes[1], totals=totals)
        is_inside = m % BLOCK == 0 and n % BLOCK == 0
        TILE.store(totals, pc, (m, n), lane, top + down, left + right, is_inside=is_inside)

    return fp8_gemm


def reference(a: Array, b: Array) -> Array:
    """Return the expected result before rounding to bf16."""
    return a.astype(np.float32) @ b.astype(np.float32).T


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_89", "sm_120a"),
    runs=(
        Run({"m": 128, "n": 128, "k": 128}, HALF, 1e-2),
        Run({"m": 150, "n": 202, "k": 80}, HALF, 1e-2, special=True),
        Run({"m": 128, "n": 128, "k": 1040}, HALF, 3e-2),
    ),
    large={"m": 4096, "n": 4096, "k": 4096},
    sass=("LDGSTS.E.BYPASS", "LDSM.16.M88.4", "QMMA.16832.F32.E4M3.E4M3"),
    flops=count_gemm_flops,
    order=TileOrder(BLOCK, BLOCK, BAND, bytes=1),
    peer="fp8_matmul",
)

if __name__ == "__main__":
    EXAMPLE.show()
