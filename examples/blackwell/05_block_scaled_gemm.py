"""Block-scaled Blackwell GEMM: c = alpha * (a * scales of a) @ (b * scales of b).T in mxfp8, where every 32 elements
along K share a factor.

The idea: scale factors multiply inside the tensor core, for free: e4m3 has twice the rate of bf16, 32 elements of K in
the 128 cycles of 16, with the range of the factors, ue8m0 powers of two. They must be in tensor memory. TMA loads them
with the operands, and `tcgen05.cp` copies them from shared memory; a block of 128 rows by 4 factors is 512 bytes, 32
lanes of 16 bytes, and `warpx4` repeats it in all quarters of the lanes. Byte 16 (row mod 32) + 4 (row div 32) + j is
factor j of a row, so a block is 4 columns, and the products along a stage of K = 128 read bytes 0 to 3 of the same
columns, which their instruction descriptors select.

The rest is `04_persistent_gemm`, with one change: sums of 2 x 256 columns would leave no room for factors. With 192
columns per tile the sums take 384 columns, and six stages of factors take 12 each. A stage is 384 cycles of products
and 29.5 KB, 79 bytes per cycle: just below the 81 that an SM takes in.

The protocol is that of `04_persistent_gemm`, also with six stages, but `full` counts the bytes of the factors, too: 59
KiB in all. In mxfp8 every stage has its own columns of factors, so the commit that frees a stage in shared memory frees
them as well; within a thread, products are ordered after copies. `08_nvfp4_gemm` is this kernel in nvfp4, and says what
it adds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from examples.parts import tensor_memory
from examples.parts.example import HALF, Array, Example, Run, count_gemm_flops, draw_array, widen
from examples.parts.scales import BLOCK_COLUMNS, NAN_CODE, PER_WORD, decode_scales
from examples.parts.tensor_memory import LANES, ROW_BYTES, SLICE, STEP_BYTES, OutputWarp
from examples.parts.tile_order import TileOrder, find_grouped_tile
from examples.parts.tile_queue import TileQueue
from examples.parts.warps import elect
from pyptx import Kernel, Layout, TensorSpec, Tile, intrinsic, kernel, ptx, reg, smem
from pyptx.types import PtxType, bf16, e4m3, f32, u32

ROWS, COLUMNS = 128, 192
"""Rows per CTA, columns per pair. K per stage is a row of 128 bytes."""
CTAS, BAND = 2, 8
BLOCK = 128
"""Rows of a block of factors, with a word of four factors each."""
A_BLOCKS, B_BLOCKS = 1, 2
"""Blocks with the factors of a tile: 192 rows of `b` are in two blocks, from row 0 or 64 of the first one."""
COLUMNS_PER_WORD = BLOCK_COLUMNS * (A_BLOCKS + B_BLOCKS)
BOTH = (1 << CTAS) - 1
OUTPUT_WARPS, PRODUCER, ISSUER, SCHEDULER, WARPS = 4, 4, 5, 6, 7


@dataclass(frozen=True)
class Format:
    """A block-scaled format, and how `tcgen05.mma` spells it."""

    dtype: PtxType
    """The type of the operands' tensors."""
    kind: str
    scale_vec: str
    group: int
    """Bytes of a row that share a factor."""
    describe: Callable[[int], tuple[int, int]]
    """Returns the word of factors that a step along K reads, and the instruction descriptor."""
    stages: int
    slots: int
    """Places for the factors of a stage in tensor memory."""

    @property
    def words(self) -> int:
        """Words of factors for a row of a stage."""
        return ROW_BYTES // self.group // PER_WORD

    @property
    def stage_bytes(self) -> int:
        """Bytes that TMA loads into a stage of one CTA."""
        return (ROWS + COLUMNS // CTAS) * ROW_BYTES + self.words * (A_BLOCKS + B_BLOCKS) * BLOCK * PER_WORD


def _describe_mxfp8(step: int) -> tuple[int, int]:
    return 0, ptx.tcgen05.make_instr_desc_mxf8f6f4(m=ROWS * CTAS, n=COLUMNS, a_scale_id=step, b_scale_id=step)


MXFP8 = Format(e4m3, "mxf8f6f4", "block32", 32, _describe_mxfp8, stages=6, slots=6)


def make_shape(m: int, n: int, k: int, form: Format = MXFP8) -> Mapping[str, int]:
    """Return the sizes of all dimensions, of K in bytes: factors are in blocks of 512 bytes, consecutive along K."""
    blocks, words = [-(-size // BLOCK) for size in (m, n)], -(-k // (form.group * PER_WORD)) * BLOCK
    return {"m": m, "n": n, "k": k, "a_blocks": blocks[0], "b_blocks": blocks[1], "words": words}


def count_tiles(m: int, n: int) -> tuple[int, int]:
    """Return the number of tiles along M and N."""
    return -(-m // (ROWS * CTAS)), -(-n // COLUMNS)


@intrinsic
def multiply_scaled_stage(
    form: Format, sums: reg.Reg, a: smem.SharedSlice, b: smem.SharedSlice, factors: tuple[reg.Reg, reg.Reg],
    accumulates: reg.Reg,
) -> None:  # fmt: skip
    """Issue the products of a stage for a pair of CTAs; `factors` are the columns of the first words of `a` and `b`."""
    starts = a.address(), b.address()
    for step, offset in enumerate(range(0, ROW_BYTES, STEP_BYTES)):
        word, shape = form.describe(step)
        da, db = (ptx.tcgen05.descriptor(start, byte_offset=offset, stride_bytes=8 * ROW_BYTES) for start in starts)
        scale_a, scale_b = (
            first + word * BLOCK_COLUMNS * blocks if word else first
            for first, blocks in zip(factors, (A_BLOCKS, B_BLOCKS), strict=True)
        )
        ptx.tcgen05.mma(
            sums, da, db, shape, cta_group=CTAS, kind=form.kind, scale_vec=form.scale_vec, scale_a=scale_a,
            scale_b=scale_b, enable_input_d=True if offset else accumulates,
        )  # fmt: skip


def make(arch: str = "sm_100a", form: Format = MXFP8) -> Kernel:
    """Return the kernel for a target with tensor memory and a format.

    Long: the phases of a kernel share its registers and barriers.
    """
    operands = (
        Tile.wgmma_a("m", "k", form.dtype, tile_m=ROWS, tile_k=ROW_BYTES),
        Tile.wgmma_a("n", "k", form.dtype, tile_m=COLUMNS // CTAS, tile_k=ROW_BYTES),
        Tile("a_blocks", "words", u32, tma_box=(A_BLOCKS, BLOCK)),
        Tile("b_blocks", "words", u32, tma_box=(B_BLOCKS, BLOCK)),
        Tile(1, f32),
    )
    result = Tile("m", "n", bf16, Layout.TMA_128B, tma_box=(LANES, SLICE))

    def grid(m: int, n: int, k: int, **blocks: int) -> tuple[int, int, int]:
        """Return the grid for this shape: one cluster per tile."""
        if k % form.group or blocks["words"] != make_shape(m, n, k, form)["words"]:
            raise ValueError(
                f"rows must be a multiple of {form.group} bytes, with 512 bytes of factors per {PER_WORD * form.group};"
                f" found {k} bytes, {blocks}"
            )
        rows, columns = count_tiles(m, n)
        return (rows * columns * CTAS, 1, 1)

    @kernel(
        arch=arch, in_specs=operands, out_specs=(result,), grid=grid, block=(32 * WARPS, 1, 1), cluster=(CTAS, 1, 1),
    )  # fmt: skip
    def block_scaled_gemm(
        a: TensorSpec, b: TensorSpec, a_scales: TensorSpec, b_scales: TensorSpec, alpha: TensorSpec, c: TensorSpec
    ) -> None:
        # Long: the phases share registers and barriers.
        depth, (tile_rows, tile_columns) = a.shape[1], count_tiles(a.shape[0], b.shape[0])
        sa = smem.wgmma_tile(form.dtype, (form.stages, ROWS, ROW_BYTES), name="sa")
        sb = smem.wgmma_tile(form.dtype, (form.stages, COLUMNS // CTAS, ROW_BYTES), name="sb")
        sc = tensor_memory.allocate_buffers(OUTPUT_WARPS)
        factors_a = smem.alloc(u32, (form.stages * form.words, A_BLOCKS, BLOCK), name="factors_a")
        factors_b = smem.alloc(u32, (form.stages * form.words, B_BLOCKS, BLOCK), name="factors_b")
        full, empty = smem.mbarrier(form.stages, name="full"), smem.mbarrier(form.stages, name="empty")
        free = smem.mbarrier(form.slots, name="free") if form.slots < form.stages else None
        sums_full, sums_empty = smem.mbarrier(2, name="sums_full"), smem.mbarrier(2, name="sums_empty")
        queue = TileQueue(CTAS, readers=CTAS * (1 + OUTPUT_WARPS) + 2)
        warp, rank = ptx.special.tid.x() >> 5, ptx.special.cluster_ctarank()
        first_warp, is_leader = warp == 0, rank == 0

        # Phase 1: initialize the mbarriers of both CTAs and allocate all of tensor memory.
        with ptx.if_(first_warp), ptx.if_(elect()):
            for barriers in (full, empty, *([free] if free else [])):
                for barrier in barriers:
                    ptx.mbarrier.init(barrier, 1)
            for half in range(2):
                ptx.mbarrier.init(sums_full[half], 1)
                ptx.mbarrier.init(sums_empty[half], CTAS * OUTPUT_WARPS)
            queue.initialize()
        sums = tensor_memory.allocate(512, first_warp, cta_group=2)

        # Phase 2, the producer of each CTA: load its rows of `a` and half of `b`, the factors of its rows of `a`, and
        # the factors of all of `b`, since each tensor core scales all columns.
        with ptx.if_(warp == PRODUCER), ptx.if_(elect()):
            ring = ptx.pipeline(form.stages)
            for tile in queue.each():
                row, column = find_grouped_tile(tile, tile_rows, tile_columns, BAND)
                top, left = row * (ROWS * CTAS) + rank * ROWS, column * COLUMNS
                half, a_block, b_block = left + rank * (COLUMNS // CTAS), row * CTAS + rank, left // BLOCK
                for k in ptx.range_(0, depth, ROW_BYTES):
                    ptx.mbarrier.wait(empty[ring.stage], ring.phase ^ 1)
                    ptx.mbarrier.arrive_expect_tx(full[ring.stage], CTAS * form.stage_bytes, pred=is_leader)
                    mbar = ptx.cluster.map_shared_u32(full[ring.stage].address(), 0)
                    copies = [(sa[ring.stage], a, k, top), (sb[ring.stage], b, k, half)]
                    for word in range(form.words):
                        at, first = ring.stage * form.words + word, k * form.words + word * BLOCK
                        copies += (factors_a[at], a_scales, first, a_block), (factors_b[at], b_scales, first, b_block)
                    for target, source, first, corner in copies:
                        ptx.cp.async_.bulk.tensor_2d(
                            dst=target, src=source, coord=(first, corner), mbar=mbar, cta_group=2
                        )
                    ring.advance()

        # Phase 2, the MMA issuer of the leader CTA: copy the factors and multiply, for both CTAs.
        with ptx.if_((warp == ISSUER) & is_leader), ptx.if_(elect()):
            ring, slots, halves = ptx.pipeline(form.stages), ptx.pipeline(form.slots), ptx.pipeline(2)
            for tile in queue.each():
                column = find_grouped_tile(tile, tile_rows, tile_columns, BAND)[1]
                ptx.mbarrier.wait(sums_empty[halves.stage], halves.phase ^ 1)
                ptx.tcgen05.fence_after_thread_sync()
                tile_sums = sums + halves.stage * COLUMNS
                for k in ptx.range_(0, depth, ROW_BYTES):
                    ptx.mbarrier.wait(full[ring.stage], ring.phase)
                    if free:
                        ptx.mbarrier.wait(free[slots.stage], slots.phase ^ 1)
                    ptx.tcgen05.fence_after_thread_sync()
                    scale_a = sums + (2 * COLUMNS + slots.stage * (form.words * COLUMNS_PER_WORD))
                    scale_b = scale_a + form.words * A_BLOCKS * BLOCK_COLUMNS
                    for first, factors, blocks in ((scale_a, factors_a, A_BLOCKS), (scale_b, factors_b, B_BLOCKS)):
                        start = factors[ring.stage * form.words].address()
                        for block in range(form.words * blocks):
                            ptx.tcgen05.cp(
                                first + BLOCK_COLUMNS * block, start + BLOCK * PER_WORD * block, cta_group=2,
                                size="32x128b.warpx4",
                            )  # fmt: skip
                    # A tile in an odd column begins at row 64 of its first block, in the third column.
                    shifted = scale_b + (column & 1) * (BLOCK_COLUMNS // 2)
                    multiply_scaled_stage(form, tile_sums, sa[ring.stage], sb[ring.stage], (scale_a, shifted), k != 0)
                    ptx.tcgen05.commit(empty[ring.stage], cta_group=2, multicast_mask=BOTH)
                    if free:
                        ptx.tcgen05.commit(free[slots.stage], cta_group=2)
                    ring.advance()
                    slots.advance()
                ptx.tcgen05.commit(sums_full[halves.stage], cta_group=2, multicast_mask=BOTH)
                halves.advance()

        # Phase 2, the scheduler of the leader CTA.
        with ptx.if_((warp == SCHEDULER) & is_leader), ptx.if_(elect()):
            queue.schedule()

        # Phase 2, the output warps of each CTA.
        with ptx.if_(warp < OUTPUT_WARPS):
            output, halves = OutputWarp(sc, warp, elect()), ptx.pipeline(2)
            factor = ptx.ld(f32, ptx.global_ptrs(alpha)[0], space="global")
            for tile in queue.each(output.elected):
                row, column = find_grouped_tile(tile, tile_rows, tile_columns, BAND)
                ptx.mbarrier.wait(sums_full[halves.stage], halves.phase)
                ptx.tcgen05.fence_after_thread_sync()
                top = row * (ROWS * CTAS) + rank * ROWS
                output.write(sums + halves.stage * COLUMNS, COLUMNS, c, top, column * COLUMNS, factor)
                ptx.cluster.arrive_remote(sums_empty[halves.stage], 0, pred=output.elected)
                halves.advance()
            output.finish()

        # Phase 3: free tensor memory. Until both CTAs get here, neither exits while its peer signals its mbarriers.
        tensor_memory.free(sums, 512, first_warp, cta_group=2)

    return block_scaled_gemm


def draw(run: Run, random: np.random.Generator) -> tuple[Array, ...]:
    """Return operands, factors from 1/8 to 8, and alpha. With `special`, a factor of row 33 is NaN."""
    shape = run.shape
    operands = [draw_array(Tile(rows, "k", e4m3), run, random) for rows in "mn"]
    sizes = [(shape[f"{name}_blocks"], shape["words"], 4) for name in "ab"]
    factors = [random.integers(124, 131, size, np.uint8).view(np.uint32)[..., 0] for size in sizes]
    if run.special:
        factors[0][0, 5] |= NAN_CODE["ue8m0"]
    return (*operands, *factors, np.full(1, 0.5, np.float32))


def scale(values: Array, words: Array) -> Array:
    """Return values times their factors in f64."""
    rows, depth = values.shape
    factors = decode_scales("ue8m0", words.view(np.uint8))
    return widen(values) * np.repeat(factors, MXFP8.group, axis=1)[:rows, :depth]


def reference(a: Array, b: Array, a_scales: Array, b_scales: Array, alpha: Array) -> Array:
    """Return the expected result before rounding to bf16."""
    return alpha * (scale(a, a_scales) @ scale(b, b_scales).T)


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_100a", "sm_103a"),
    runs=(
        Run(make_shape(256, 192, 128), HALF, 1e-2),
        Run(make_shape(136, 200, 800), HALF, 1e-2, special=True, findings=tensor_memory.OUTSIDE),
    ),
    large=make_shape(8192, 8192, 8192),
    sass=("UTMALDG.2D.2CTA", "UTCCP", "UTCQMMA.2CTA", "UTCBAR.2CTA.MULTICAST", "LDTM.x64", "UTMASTG.2D"),
    draw=draw,
    flops=count_gemm_flops,
    order=TileOrder(ROWS * CTAS, COLUMNS, BAND, bytes=1, ctas=CTAS),
    peer="mxfp8_matmul",
)

if __name__ == "__main__":
    EXAMPLE.show()
