"""TMA-fed GEMM for Blackwell RTX: c = a @ b.T in bf16 with f32 sums, `a` (M, K), `b` (N, K), any M, even N.

The idea: sm_120 has the TMA and the mbarriers of Hopper, but neither wgmma nor tcgen05, so warps multiply by
`mma.sync`. One warp only issues copies: a thread of it keeps three stages in flight by TMA, which swizzles, fills edges
with zeros and costs the four consumer warps no instructions. Their loop is `ldmatrix` and products, with fragments
loaded one step ahead: products of one warp per scheduler, all independent, keep the tensor cores busy.

The protocol: `examples/parts/tma_ring.py` has the ring. Each of three stages has `full`, with one arrival and 32 KiB,
and `empty`, with four arrivals, one per consumer warp.

K is a multiple of 8, because rows of a tensor map are a multiple of 16 bytes.
"""

from __future__ import annotations

import numpy as np

from examples.parts.example import HALF, Array, Example, Run, count_gemm_flops
from examples.parts.tile_order import TileOrder, find_grouped_tile
from examples.parts.tma_ring import AHEAD, Copy, TmaRing, count_stages, make_loader
from examples.parts.warp_tile import WarpTile, count_tiles, refuse_shape
from examples.parts.warps import elect
from pyptx import Kernel, Layout, TensorSpec, Tile, kernel, ptx, smem
from pyptx.types import bf16

BLOCK, PITCH, STAGES = 128, 128, 3
"""Rows and columns of a tile, bytes of K in a stage. Four warps hold 64 x 64 sums each, 128 registers per thread. A
stage loads 32 KiB for 4,104 clk of products, 8 B/clk; three stages are 96 KiB of 99."""
DEPTH = 64
"""Elements of K in a stage: 128 bytes. Three stages of both operands are 96 KiB of 99."""
CONSUMERS = 4
THREADS = 32 * (CONSUMERS + 1)
TILE = WarpTile(bf16, 64, 64, PITCH)
BAND = 8
"""Rows of tiles in a band: 170 SMs then work on about 8 x 21 tiles."""


def grid(m: int, n: int, k: int) -> tuple[int, int, int]:
    """Return the grid for this shape: one CTA per tile."""
    refuse_shape(n, k, bf16)
    rows, columns = count_tiles(m, n, BLOCK, BLOCK)
    return (rows * columns, 1, 1)


def make(arch: str = "sm_120a") -> Kernel:
    """Return the kernel for a target."""

    operands = [Tile(rows, "k", bf16, Layout.TMA_128B, tma_box=(BLOCK, DEPTH)) for rows in "mn"]

    @kernel(
        arch=arch, in_specs=operands, out_specs=(Tile("m", "n", bf16),), grid=grid, block=(THREADS, 1, 1),

    )  # fmt: skip
    def bf16_gemm(a: TensorSpec, b: TensorSpec, c: TensorSpec) -> None:
        m, n = c.shape
        tiles, steps = count_stages(a.shape[1], 16, PITCH)
        thread = ptx.special.tid.x()
        warp, lane = thread >> 5, thread & 31
        row, column = find_grouped_tile(ptx.special.ctaid.x(), *count_tiles(m, n, BLOCK, BLOCK), BAND)
        top, left = row * BLOCK, column * BLOCK
        sa, sb = (smem.alloc(bf16, (STAGES, BLOCK, DEPTH), swizzle="128B", align=1024, name=s) for s in ("sa", "sb"))
        ring = TmaRing(
            (Copy(sa, a, lambda tile: (tile * DEPTH, top)), Copy(sb, b, lambda tile: (tile * DEPTH, left))),
            smem.mbarrier(STAGES, name="full"), smem.mbarrier(STAGES, name="empty"),
        )  # fmt: skip
        ring.initialize(thread, CONSUMERS)

        with ptx.if_(warp == CONSUMERS), ptx.if_(elect()):
            ring.produce(tiles)
        with ptx.else_():
            down, right = (warp & 1) * TILE.rows, (warp >> 1) * TILE.columns
            loader, sums = make_loader(TILE, sa, sb, lane, down, right), TILE.make_sums()
            ring.consume(tiles, steps, loader.load, lambda step: TILE.multiply(sums, *loader.fragments[step % 2]))
            (pc,) = ptx.global_ptrs(c)
            is_inside = m % BLOCK == 0 and n % BLOCK == 0
            TILE.store(sums, pc, (m, n), lane, top + down, left + right, is_inside=is_inside)

    return bf16_gemm


def reference(a: Array, b: Array) -> Array:
    """Return the expected result before rounding to bf16."""
    return a.astype(np.float32) @ b.astype(np.float32).T


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_120a",),
    runs=(
        Run({"m": 128, "n": 128, "k": 64}, HALF, 1e-3, findings=AHEAD),
        Run({"m": 128, "n": 128, "k": 200}, HALF, 1e-3, findings=AHEAD),
        Run({"m": 150, "n": 202, "k": 72}, HALF, 1e-3, special=True, findings=AHEAD),
    ),
    large={"m": 8192, "n": 8192, "k": 8192},
    sass=("UTMALDG.2D", "LDSM.16.M88.4", "HMMA.16816.F32.BF16", "SYNCS"),
    flops=count_gemm_flops,
    order=TileOrder(BLOCK, BLOCK, BAND),
    peer="matmul triton_matmul",
)

if __name__ == "__main__":
    EXAMPLE.show()
