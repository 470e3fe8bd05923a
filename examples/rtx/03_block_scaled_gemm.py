"""Block-scaled GEMM for Blackwell RTX: c = a @ b.T in bf16 from MXFP8 or NVFP4 operands, `a` (M, K), `b` (N, K).

The idea: in these formats each block of 32 or 16 elements along K has its own scale, and the tensor cores apply it. A
product takes the scales of its rows and columns from one register each: `a` from two lanes of every four, `b` from one.
Which lanes, and for MXFP8 which byte, are immediates. So one word per lane holds the scales of 32 rows: a warp loads
four words for 64 x 64 sums, and uses each in many products.

Scales come in words of four blocks along K, (K / 128, M) for MXFP8 and (K / 64, M) for NVFP4: the words of a tile are
then contiguous, and TMA loads them into the stage of the elements they belong to.

The protocol: `examples/parts/tma_ring.py` has the ring. Each of two stages has `full`, with one arrival and 33 KiB for
MXFP8 or 36 for NVFP4, scales included, and `empty`, with four arrivals, one per consumer warp.

M and N are multiples of 4, rows of the operands of 32 bytes. Scales of blocks past the end of K must not be NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from examples.parts.example import HALF, Array, Example, Run, count_gemm_flops, draw_array, widen
from examples.parts.scales import NAN_CODE, decode_fp4
from examples.parts.tile_order import TileOrder, find_grouped_tile
from examples.parts.tma_ring import AHEAD, Copy, TmaRing, make_loader
from examples.parts.warp_tile import STEP, WarpTile, count_tiles
from examples.parts.warps import elect
from pyptx import Kernel, Layout, TensorSpec, Tile, intrinsic, kernel, ptx, reg, smem
from pyptx.types import PtxType, b32, bf16, e2m1, e4m3, f32, u8, u32, ue4m3, ue8m0

BLOCK, PITCH, STAGES = 128, 128, 2
"""Two stages of both operands and their scales, 66 or 72 KiB. A third does not fit in 99 KiB."""
STEPS = PITCH // STEP
CONSUMERS = 4
THREADS = 32 * (CONSUMERS + 1)
BAND = 8
SIZE = 64
"""Rows and columns of a warp's tile."""


@dataclass(frozen=True)
class Format:
    """A block-scaled format, and how `mma.sync` spells it."""

    dtype: PtxType
    storage: PtxType
    """The type of the operands' tensors; two elements of 4 bits are one byte, the first in the lower half."""
    scale_dtype: PtxType
    kind: str
    scale_vec: int
    """Scales along K of one product."""

    @property
    def words(self) -> int:
        """Words of scales for a row of a stage."""
        return STEPS * self.scale_vec // 4


MXFP8 = Format(e4m3, e4m3, ue8m0, "mxf8f6f4", 1)
NVFP4 = Format(e2m1, u8, ue4m3, "mxf4nvf4", 4)
Scales = tuple[list[reg.Reg], list[reg.Reg]]
"""A step's words of scales for both operands: one for each 32 rows."""


def locate_scales(lane: reg.Reg) -> tuple[reg.Reg, reg.Reg]:
    """Return which row of 32 the lane's word belongs to. With lane = 4 g + p, `a` pairs rows g and g + 8 of a product
    in lanes p and p + 1, and `b` has row g of product p."""
    g, p = lane >> 2, lane & 3
    return g + (p & 1) * 8 + (p >> 1) * 16, g + p * 8


@intrinsic
def multiply(tile: WarpTile, form: Format, sums: reg.RegArray, parts: tuple[reg.RegArray, ...], scales: Scales,
             step: int) -> None:  # fmt: skip
    """Add the products of a step to the sums."""
    (a, b), (a_scales, b_scales) = parts, scales
    # A word has the scales of one product, or of four of which the step selects one.
    byte = 0 if form.scale_vec == 4 else step % 4
    for i in range(tile.rows // 16):
        for j in range(tile.columns // 8):
            cell = 4 * (i * (tile.columns // 8) + j)
            d = sums[cell : cell + 4]
            ptx.mma.sync(
                shape=(16, 8, STEP * 8 // form.dtype.bits), dtype_d=f32, dtype_a=form.dtype, dtype_b=form.dtype,
                dtype_c=f32, d=d, a=a[4 * i : 4 * i + 4], b=b[2 * j : 2 * j + 2], c=d, kind=form.kind,
                scale_vec=form.scale_vec, scale_dtype=form.scale_dtype, scale_a=a_scales[i // 2],
                scale_a_id=(byte, i % 2), scale_b=b_scales[j // 4], scale_b_id=(byte, j % 4),
            )  # fmt: skip


def make(arch: str = "sm_120a", form: Format = MXFP8) -> Kernel:
    """Return the kernel for a target and a format.

    Long: the phases of a kernel share its registers and barriers.
    """
    tile = WarpTile(form.dtype, SIZE, SIZE, PITCH)
    operands = [Tile(rows, "k", form.storage, Layout.TMA_128B, tma_box=(BLOCK, PITCH)) for rows in "mn"]
    factors = [Tile("words", rows, u32, tma_box=(form.words, BLOCK)) for rows in "mn"]

    def grid(m: int, n: int, k: int, words: int) -> tuple[int, int, int]:
        """Return the grid for this shape: one CTA per tile; `k` counts bytes."""
        if m % 4 or n % 4 or k % 32:
            raise ValueError(f"M and N must be multiples of 4, rows of 32 bytes; found {m}, {n}, {k} bytes")
        needed = -(-k // PITCH) * form.words
        if words != needed:
            raise ValueError(f"rows of {k} bytes need {needed} words of scales; found {words}")
        rows, columns = count_tiles(m, n, BLOCK, BLOCK)
        return (rows * columns, 1, 1)

    @kernel(
        arch=arch, in_specs=(*operands, *factors), out_specs=(Tile("m", "n", bf16),), grid=grid, block=(THREADS, 1, 1)
    )  # fmt: skip
    def block_scaled_gemm(
        a: TensorSpec, b: TensorSpec, a_scales: TensorSpec, b_scales: TensorSpec, c: TensorSpec
    ) -> None:
        m, n = c.shape
        thread = ptx.special.tid.x()
        warp, lane = thread >> 5, thread & 31
        row, column = find_grouped_tile(ptx.special.ctaid.x(), *count_tiles(m, n, BLOCK, BLOCK), BAND)
        top, left = row * BLOCK, column * BLOCK
        sa, sb = (smem.alloc(u8, (STAGES, BLOCK, PITCH), swizzle="128B", align=1024, name=s) for s in ("sa", "sb"))
        fa, fb = (smem.alloc(u32, (STAGES, form.words, BLOCK), name=s) for s in ("fa", "fb"))
        ring = TmaRing(
            (
                Copy(sa, a, lambda index: (index * PITCH, top)), Copy(sb, b, lambda index: (index * PITCH, left)),
                Copy(fa, a_scales, lambda index: (top, index * form.words)),
                Copy(fb, b_scales, lambda index: (left, index * form.words)),
            ),
            smem.mbarrier(STAGES, name="full"), smem.mbarrier(STAGES, name="empty"),
        )  # fmt: skip
        ring.initialize(thread, CONSUMERS)
        tiles = -(-a.shape[1] // PITCH)

        with ptx.if_(warp == CONSUMERS), ptx.if_(elect()):
            ring.produce(tiles)
        with ptx.else_():
            down, right = (warp & 1) * SIZE, (warp >> 1) * SIZE
            loader, sums = make_loader(tile, sa, sb, lane, down, right), tile.make_sums()
            a_row, b_row = locate_scales(lane)
            scales = [([reg.alloc(b32) for _ in range(2)], [reg.alloc(b32) for _ in range(2)]) for _ in range(2)]

            def load(stage: reg.Reg, step: int) -> None:
                loader.load(stage, step)
                word = step * form.scale_vec // 4
                for words, factor, first in zip(scales[step % 2], (fa, fb), (down + a_row, right + b_row), strict=True):
                    start = factor[stage, word].address() + first * 4
                    for part, register in enumerate(words):
                        ptx.ld(b32, register, ptx.addr(start, part * 128), space="shared")

            def multiply_step(step: int) -> None:
                multiply(tile, form, sums, loader.fragments[step % 2], scales[step % 2], step)

            ring.consume(tiles, STEPS, load, multiply_step)
            (pc,) = ptx.global_ptrs(c)
            is_inside = m % BLOCK == 0 and n % BLOCK == 0
            tile.store(sums, pc, (m, n), lane, top + down, left + right, is_inside=is_inside)

    return block_scaled_gemm


def decode(operand: Array, words: Array) -> Array:
    """Return the values of an operand: its elements times the scales of their blocks."""
    scales = np.ascontiguousarray(words.T).view(np.uint8)
    if operand.dtype == np.uint8:
        elements, block, dtype = decode_fp4(operand), 16, ml_dtypes.float8_e4m3fn
    else:
        elements, block, dtype = widen(operand), 32, ml_dtypes.float8_e8m0fnu
    return elements * np.repeat(widen(scales.view(dtype)), block, axis=1)[:, : elements.shape[1]]


def reference(a: Array, b: Array, a_scales: Array, b_scales: Array) -> Array:
    """Return the expected result before rounding to bf16."""
    return decode(a, a_scales) @ decode(b, b_scales).T


def draw(run: Run, random: np.random.Generator, form: Format = MXFP8) -> Sequence[Array]:
    """Return random operands, and scales between 1 / 4 and 4, with zeros past the end of K. With `special`, a
    scale of row 5 is NaN, and elements where the format has NaN."""
    m, n, k, words = (int(run.shape[name]) for name in ("m", "n", "k", "words"))
    arrays = list[Array]()
    for rows in (m, n):
        if form.storage == u8:
            arrays.append(random.integers(0, 256, (rows, k)).astype(np.uint8))
        else:
            arrays.append(draw_array(Tile(rows, k, e4m3), run, random))
    kind = ml_dtypes.float8_e8m0fnu if form.scale_dtype == ue8m0 else ml_dtypes.float8_e4m3fn
    for rows in (m, n):
        factors = (2.0 ** random.integers(-2, 3, (words, rows, 4))).astype(kind).view(np.uint8)
        blocks: Array = np.arange(words * 4).reshape(words, 1, 4)
        inside = blocks < k // (STEP // form.scale_vec)
        arrays.append((factors * inside.astype(np.uint8)).view(np.uint32)[..., 0])
    if run.special:
        arrays[2][0, 5] |= NAN_CODE[form.scale_dtype.name]
    return arrays


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_120a",),
    runs=(
        Run({"m": 128, "n": 128, "k": 128, "words": 1}, HALF, 1e-3, findings=AHEAD),
        Run({"m": 128, "n": 128, "k": 288, "words": 3}, HALF, 1e-3, findings=AHEAD),
        Run({"m": 148, "n": 196, "k": 96, "words": 1}, HALF, 1e-3, special=True, findings=AHEAD),
    ),
    large={"m": 8192, "n": 8192, "k": 8192, "words": 64},
    sass=("UTMALDG.2D", "LDSM.16.M88.4", "QMMA.SF.16832.F32.E4M3.E4M3.E8", "SYNCS"),
    draw=draw,
    flops=count_gemm_flops,
    order=TileOrder(BLOCK, BLOCK, BAND, bytes=1),
    peer="mxfp8_matmul",
)

if __name__ == "__main__":
    EXAMPLE.show()
