"""Block-scaled Blackwell GEMM: c = (a * scales of a) @ (b * scales of b).T in mxfp8, where every 32 elements along K
share a factor.

The idea: scale factors multiply inside the tensor core, for free: e4m3 has twice the rate of bf16, 32 elements of K in
the 128 cycles of 16, with the range of the factors, ue8m0 powers of two. They must be in tensor memory. TMA loads them
with the operands, and `tcgen05.cp` copies them from shared memory; a block of 128 rows by 4 factors is 512 bytes, 32
lanes of 16 bytes, and `warpx4` repeats it in all quarters of the lanes. Byte 16 (row mod 32) + 4 (row div 32) + j is
factor j of a row, so a block is 4 columns, and the products along a stage of K = 128 read bytes 0 to 3 of the same
columns, which their instruction descriptors select.

The rest is `04_persistent_gemm`, with one change: sums of 2 x 256 columns would leave no room for factors. With 192
columns per tile the sums take 384 columns, and six stages of factors take 12 each. A stage is 384 cycles of products
and 29.5 KB, 79 bytes per cycle: just below the 81 that an SM takes in.

The protocol is that of `04_persistent_gemm`, except that `full` also counts the bytes of the factors. Every stage has
its own columns of factors, so the commit that frees a stage in shared memory frees them as well; within a thread,
products are ordered after copies.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from examples.parts import tensor_memory
from examples.parts.example import HALF, Array, Example, Run, count_gemm_flops, widen
from examples.parts.scales import order_scales
from examples.parts.tensor_memory import LANES, ROW_BYTES, SLICE, STEP_BYTES, OutputWarp
from examples.parts.tile_order import find_grouped_tile
from examples.parts.tile_queue import TileQueue
from examples.parts.warps import elect
from pyptx import Kernel, Layout, TensorSpec, Tile, intrinsic, kernel, ptx, reg, smem
from pyptx.types import bf16, e4m3, u32

ROWS, COLUMNS, BK = 128, 192, 128
"""Rows per CTA, columns per pair, K per stage."""
CTAS, STAGES, BAND = 2, 6, 8
BLOCK, FACTORS, GROUP = 128, 4, 32
"""Rows and factors per row of a block, and elements per factor."""
WORDS = BLOCK * FACTORS // 4
A_COLUMNS, B_COLUMNS = 4, 8
"""Columns of factors: one block for `a`; 192 rows of `b` are in two blocks, from row 0 or 64 of the first one."""
STAGE_BYTES = (ROWS + COLUMNS // CTAS) * BK + 3 * 4 * WORDS
BOTH = (1 << CTAS) - 1
OUTPUT_WARPS, PRODUCER, ISSUER, SCHEDULER, WARPS = 4, 4, 5, 6, 7


def make_shape(m: int, n: int, k: int) -> Mapping[str, int]:
    """Return the sizes of all dimensions: factors are in blocks of 512 bytes, consecutive along K."""
    blocks, words = [-(-size // BLOCK) for size in (m, n)], -(-k // (GROUP * FACTORS)) * WORDS
    return {"m": m, "n": n, "k": k, "a_blocks": blocks[0], "b_blocks": blocks[1], "words": words}


def count_tiles(m: int, n: int) -> tuple[int, int]:
    """Return the number of tiles along M and N."""
    return -(-m // (ROWS * CTAS)), -(-n // COLUMNS)


def grid(m: int, n: int, k: int, **blocks: int) -> tuple[int, int, int]:
    """Return the grid for this shape: one cluster per tile."""
    if k % GROUP or blocks["words"] != make_shape(m, n, k)["words"]:
        raise ValueError(f"K must be a multiple of {GROUP}, with 512 bytes of factors per 128; found K = {k}, {blocks}")
    rows, columns = count_tiles(m, n)
    return (rows * columns * CTAS, 1, 1)


@intrinsic
def multiply_scaled_stage(
    sums: reg.Reg, a: smem.SharedSlice, b: smem.SharedSlice, scale_a: reg.Reg, scale_b: reg.Reg, accumulates: reg.Reg
) -> None:
    """Issue the products of a stage for a pair of CTAs; step i along K has byte i of the factors."""
    starts = a.address(), b.address()
    for i, offset in enumerate(range(0, ROW_BYTES, STEP_BYTES)):
        da, db = (ptx.tcgen05.descriptor(start, byte_offset=offset, stride_bytes=8 * ROW_BYTES) for start in starts)
        shape = ptx.tcgen05.make_instr_desc_mxf8f6f4(m=ROWS * CTAS, n=COLUMNS, a_scale_id=i, b_scale_id=i)
        ptx.tcgen05.mma(
            sums, da, db, shape, cta_group=CTAS, kind="mxf8f6f4", scale_vec="block32", scale_a=scale_a, scale_b=scale_b,
            enable_input_d=True if offset else accumulates,
        )  # fmt: skip


def make(arch: str = "sm_100a") -> Kernel:
    """Return the kernel for a target with tensor memory.

    Long: the phases of a kernel share its registers and barriers.
    """
    operands = (
        Tile.wgmma_a("m", "k", e4m3, tile_m=ROWS, tile_k=BK),
        Tile.wgmma_a("n", "k", e4m3, tile_m=COLUMNS // CTAS, tile_k=BK),
        Tile("a_blocks", "words", u32, tma_box=(1, WORDS)),
        Tile("b_blocks", "words", u32, tma_box=(2, WORDS)),
    )
    result = Tile("m", "n", bf16, Layout.TMA_128B, tma_box=(LANES, SLICE))

    @kernel(
        arch=arch, in_specs=operands, out_specs=(result,), grid=grid, block=(32 * WARPS, 1, 1), cluster=(CTAS, 1, 1)
    )
    def block_scaled_gemm(
        a: TensorSpec, b: TensorSpec, a_scales: TensorSpec, b_scales: TensorSpec, c: TensorSpec
    ) -> None:
        # Long: the phases share registers and barriers.
        depth, (tile_rows, tile_columns) = a.shape[1], count_tiles(a.shape[0], b.shape[0])
        sa = smem.wgmma_tile(e4m3, (STAGES, ROWS, BK), name="sa")
        sb = smem.wgmma_tile(e4m3, (STAGES, COLUMNS // CTAS, BK), name="sb")
        sc = tensor_memory.allocate_buffers(OUTPUT_WARPS)
        factors_a = smem.alloc(u32, (STAGES, WORDS), name="factors_a")
        factors_b = smem.alloc(u32, (STAGES, 2, WORDS), name="factors_b")
        full, empty = smem.mbarrier(STAGES, name="full"), smem.mbarrier(STAGES, name="empty")
        sums_full, sums_empty = smem.mbarrier(2, name="sums_full"), smem.mbarrier(2, name="sums_empty")
        queue = TileQueue(CTAS, readers=CTAS * (1 + OUTPUT_WARPS) + 2)
        warp, rank = ptx.special.tid.x() >> 5, ptx.special.cluster_ctarank()
        first_warp, is_leader = warp == 0, rank == 0

        # Phase 1: initialize the mbarriers of both CTAs and allocate all of tensor memory.
        with ptx.if_(first_warp), ptx.if_(elect()):
            for stage in range(STAGES):
                ptx.mbarrier.init(full[stage], 1)
                ptx.mbarrier.init(empty[stage], 1)
            for half in range(2):
                ptx.mbarrier.init(sums_full[half], 1)
                ptx.mbarrier.init(sums_empty[half], CTAS * OUTPUT_WARPS)
            queue.initialize()
        sums = tensor_memory.allocate(512, first_warp, cta_group=2)

        # Phase 2, the producer of each CTA: load its rows of `a` and half of `b`, the factors of its rows of `a`, and
        # the factors of all of `b`, since each tensor core scales all columns.
        with ptx.if_(warp == PRODUCER), ptx.if_(elect()):
            ring = ptx.pipeline(STAGES)
            for tile in queue.each():
                row, column = find_grouped_tile(tile, tile_rows, tile_columns, BAND)
                top, left = row * (ROWS * CTAS) + rank * ROWS, column * COLUMNS
                half, a_block, b_block = left + rank * (COLUMNS // CTAS), row * CTAS + rank, left // BLOCK
                for k in ptx.range_(0, depth, BK):
                    ptx.mbarrier.wait(empty[ring.stage], ring.phase ^ 1)
                    ptx.mbarrier.arrive_expect_tx(full[ring.stage], CTAS * STAGE_BYTES, pred=is_leader)
                    mbar = ptx.cluster.map_shared_u32(full[ring.stage].address(), 0)
                    for target, source, first, corner in (
                        (sa, a, k, top), (sb, b, k, half), (factors_a, a_scales, k * (WORDS // BK), a_block),
                        (factors_b, b_scales, k * (WORDS // BK), b_block),
                    ):  # fmt: skip
                        ptx.cp.async_.bulk.tensor_2d(
                            dst=target[ring.stage], src=source, coord=(first, corner), mbar=mbar, cta_group=2
                        )
                    ring.advance()

        # Phase 2, the MMA issuer of the leader CTA: copy the factors and multiply, for both CTAs.
        with ptx.if_((warp == ISSUER) & is_leader), ptx.if_(elect()):
            ring, halves = ptx.pipeline(STAGES), ptx.pipeline(2)
            for tile in queue.each():
                column = find_grouped_tile(tile, tile_rows, tile_columns, BAND)[1]
                ptx.mbarrier.wait(sums_empty[halves.stage], halves.phase ^ 1)
                ptx.tcgen05.fence_after_thread_sync()
                tile_sums = sums + halves.stage * COLUMNS
                for k in ptx.range_(0, depth, BK):
                    ptx.mbarrier.wait(full[ring.stage], ring.phase)
                    ptx.tcgen05.fence_after_thread_sync()
                    scale_a = sums + (2 * COLUMNS + ring.stage * (A_COLUMNS + B_COLUMNS))
                    scale_b = scale_a + A_COLUMNS
                    ptx.tcgen05.cp(scale_a, factors_a[ring.stage], cta_group=2, size="32x128b.warpx4")
                    for block in range(2):
                        ptx.tcgen05.cp(
                            scale_b + 4 * block, factors_b[ring.stage].address() + 4 * WORDS * block, cta_group=2,
                            size="32x128b.warpx4",
                        )  # fmt: skip
                    # A tile in an odd column begins at row 64 of its first block, in the third column.
                    multiply_scaled_stage(
                        tile_sums, sa[ring.stage], sb[ring.stage], scale_a, scale_b + (column & 1) * 2, k != 0
                    )
                    ptx.tcgen05.commit(empty[ring.stage], cta_group=2, multicast_mask=BOTH)
                    ring.advance()
                ptx.tcgen05.commit(sums_full[halves.stage], cta_group=2, multicast_mask=BOTH)
                halves.advance()

        # Phase 2, the scheduler of the leader CTA.
        with ptx.if_((warp == SCHEDULER) & is_leader), ptx.if_(elect()):
            queue.schedule()

        # Phase 2, the output warps of each CTA.
        with ptx.if_(warp < OUTPUT_WARPS):
            output, halves = OutputWarp(sc, warp, elect()), ptx.pipeline(2)
            for tile in queue.each(output.elected):
                row, column = find_grouped_tile(tile, tile_rows, tile_columns, BAND)
                ptx.mbarrier.wait(sums_full[halves.stage], halves.phase)
                ptx.tcgen05.fence_after_thread_sync()
                top = row * (ROWS * CTAS) + rank * ROWS
                output.write(sums + halves.stage * COLUMNS, COLUMNS, c, top, column * COLUMNS)
                ptx.cluster.arrive_remote(sums_empty[halves.stage], 0, pred=output.elected)
                halves.advance()
            output.finish()

        # Phase 3: free tensor memory. Until both CTAs get here, neither exits while its peer signals its mbarriers.
        tensor_memory.free(sums, 512, first_warp, cta_group=2)

    return block_scaled_gemm


def draw(run: Run, random: np.random.Generator) -> tuple[Array, ...]:
    """Return operands, and factors from 1/8 to 8."""
    shape = run.shape
    operands = [random.standard_normal((shape[rows], shape["k"])).astype("float8_e4m3fn") for rows in "mn"]
    sizes = [(shape[f"{name}_blocks"], shape["words"], 4) for name in "ab"]
    factors = [random.integers(124, 131, size, np.uint8).view(np.uint32)[..., 0] for size in sizes]
    return (*operands, *factors)


def scale(values: Array, words: Array) -> Array:
    """Return values times their factors in f64."""
    rows, depth = values.shape
    exponents = order_scales(words.view(np.uint8)).astype(np.int32) - 127
    return np.ldexp(widen(values), np.repeat(exponents, GROUP, axis=1)[:rows, :depth])


def reference(a: Array, b: Array, a_scales: Array, b_scales: Array) -> Array:
    """Return the expected result before rounding to bf16."""
    return scale(a, a_scales) @ scale(b, b_scales).T


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_100a", "sm_103a"),
    runs=(Run(make_shape(256, 192, 128), HALF, 1e-2), Run(make_shape(136, 200, 800), HALF, 1e-2)),
    large=make_shape(8192, 8192, 8192),
    sass=("UTMALDG.2D.2CTA", "UTCCP", "UTCQMMA.2CTA", "UTCBAR.2CTA.MULTICAST", "LDTM.x64", "UTMASTG.2D"),
    draw=draw,
    flops=count_gemm_flops,
)

if __name__ == "__main__":
    EXAMPLE.show()
