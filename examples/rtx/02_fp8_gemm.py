"""TMA-fed FP8 GEMM for Blackwell RTX: c = scale * a @ b.T in bf16 from e4m3 operands, `a` (M, K), `b` (N, K).

The idea: 128 elements of 8 bits have the bytes of 64 of 16 bits, so stages, swizzle and fragments are those of the bf16
kernel, and half as many stages cover K. Values of e4m3 end at 448, so tensors are stored divided by a factor each. The
product of both factors, a tensor of one f32, multiplies the sums when they are written.

The protocol: `examples/parts/tma_ring.py` has the ring. Each of three stages has `full`, with one arrival and 32 KiB,
and `empty`, with four arrivals, one per consumer warp.

M may be any number, N is even, K a multiple of 16, because rows of a tensor map are a multiple of 16 bytes.
"""

from __future__ import annotations

import numpy as np

from examples.parts.example import HALF, Array, Example, Run, count_gemm_flops
from examples.parts.tile_order import TileOrder, find_grouped_tile
from examples.parts.tma_ring import AHEAD, Copy, TmaRing, count_stages, make_loader
from examples.parts.warp_tile import WarpTile, count_tiles, refuse_shape
from examples.parts.warps import elect
from pyptx import Kernel, Layout, TensorSpec, Tile, kernel, ptx, smem
from pyptx.types import bf16, e4m3, f32

BLOCK, PITCH, STAGES = 128, 128, 3
DEPTH = 128
"""Elements of K in a stage: 128 bytes. Three stages of both operands are 96 KiB of 99."""
CONSUMERS = 4
THREADS = 32 * (CONSUMERS + 1)
TILE = WarpTile(e4m3, 64, 64, PITCH)
BAND = 8


def grid(m: int, n: int, k: int) -> tuple[int, int, int]:
    """Return the grid for this shape: one CTA per tile."""
    refuse_shape(n, k, e4m3)
    rows, columns = count_tiles(m, n, BLOCK, BLOCK)
    return (rows * columns, 1, 1)


def make(arch: str = "sm_120a") -> Kernel:
    """Return the kernel for a target."""
    operands = [Tile(rows, "k", e4m3, Layout.TMA_128B, tma_box=(BLOCK, DEPTH)) for rows in "mn"]

    @kernel(
        arch=arch, in_specs=(*operands, Tile(1, f32)), out_specs=(Tile("m", "n", bf16),), grid=grid,
        block=(THREADS, 1, 1),
    )  # fmt: skip
    def fp8_gemm(a: TensorSpec, b: TensorSpec, scale: TensorSpec, c: TensorSpec) -> None:
        m, n = c.shape
        tiles, steps = count_stages(a.shape[1], 8, PITCH)
        thread = ptx.special.tid.x()
        warp, lane = thread >> 5, thread & 31
        row, column = find_grouped_tile(ptx.special.ctaid.x(), *count_tiles(m, n, BLOCK, BLOCK), BAND)
        top, left = row * BLOCK, column * BLOCK
        sa, sb = (smem.alloc(e4m3, (STAGES, BLOCK, DEPTH), swizzle="128B", align=1024, name=s) for s in ("sa", "sb"))
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
            pscale, pc = ptx.global_ptrs(scale, c)
            factor = ptx.ld(f32, ptx.addr(pscale))
            for register in sums:
                ptx.mul(f32, register, register, factor)
            is_inside = m % BLOCK == 0 and n % BLOCK == 0
            TILE.store(sums, pc, (m, n), lane, top + down, left + right, is_inside=is_inside)

    return fp8_gemm


def reference(a: Array, b: Array, scale: Array) -> Array:
    """Return the expected result before rounding to bf16."""
    return a.astype(np.float32) @ b.astype(np.float32).T * scale


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_120a",),
    runs=(
        Run({"m": 128, "n": 128, "k": 128}, HALF, 1e-3, findings=AHEAD),
        Run({"m": 128, "n": 128, "k": 400}, HALF, 1e-3, findings=AHEAD),
        Run({"m": 150, "n": 202, "k": 80}, HALF, 1e-3, special=True, findings=AHEAD),
    ),
    large={"m": 8192, "n": 8192, "k": 8192},
    sass=("UTMALDG.2D", "LDSM.16.M88.4", "QMMA.16832.F32.E4M3.E4M3", "SYNCS"),
    flops=count_gemm_flops,
    order=TileOrder(BLOCK, BLOCK, BAND, bytes=1),
    peer="fp8_matmul fp8_matmul_fast",
)

if __name__ == "__main__":
    EXAMPLE.show()
