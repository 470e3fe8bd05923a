"""FP8 Hopper GEMM with block scales: c = (scales of a * a) @ (scales of b * b).T, e4m3 to bf16; `a` (M, K), `b` (N, K).

Any M; N a multiple of 8, K of 16. A scale of `a` is for 128 elements of a row, (M, K / 128) rounded up; a scale of `b`
for 128 x 128 elements, (N / 128, K / 128) rounded up.

The idea: promoted accumulation. For fp8 the tensor cores align each sum to its largest term and keep 13 bits of
fraction, so errors of a long sum pile up. The products of 128 of K, four instructions, therefore go to partial sums,
and the CUDA cores add these to f32 sums, times the scales, which also change every 128 of K. With normal random inputs
and K = 4096, the simulator's model of the tensor cores gives an rms error of 0.107, of which rounding to bf16 is 0.106;
without promotion it gives 0.136. fp8 halves the bytes of an element: a step of 128 of K has the 48 KiB and the 1024 clk
of a bf16 step of 64, and twice the operations.

128 sums and 64 partial sums fit into a consumer's registers, so its 64 x 256 are two products of 64 x 128. Between
them it drains the tensor cores (about 45 clk) and promotes: 64 multiply-adds for each of 128 threads, 64 clk of the
four sub-cores. Meanwhile the 4 * 64 clk of the other consumer's products keep the tensor cores busy.

The scales come from global memory by ordinary loads, one step ahead: the 260 clk of L2 pass during the products.

The protocol, tiles, order and epilogue are those of `06_persistent_gemm.py`. `full` (one arrival and 48 KiB), `empty`
(16 arrivals, one from each consumer warp of both CTAs, after the second half's `wgmma.wait_group`), the named barriers
(128 threads) and `cluster.sync` have the same counts and phases; a stage is released in its own step.
"""

from __future__ import annotations

import numpy as np

from examples.parts import epilogue, operand_ring
from examples.parts.epilogue import BUFFERS, SLICE
from examples.parts.example import HALF, Array, Example, Run, count_gemm_flops, draw_array
from examples.parts.operand_ring import OUTSIDE, STEP_BYTES, OperandRing
from examples.parts.tile_order import TileOrder, find_grouped_tile
from examples.parts.warps import elect
from pyptx import Kernel, Layout, TensorSpec, Tile, intrinsic, kernel, ptx, reg, smem
from pyptx.types import bf16, e4m3, f32, s32

BM, BN, BK = 128, 256, 128
BLOCK = 128
"""Elements of K, and rows of `b`, that share a scale."""
HALVES = BN // BLOCK
SUMS = 4e-2
"""Absolute error of a result: 128 products of normal numbers and scales up to 4, added with 13 bits of fraction. The
largest is 2.9e-2 in the simulator's model of the tensor cores."""
STAGES, CTAS, CONSUMERS = 4, 2, 2
THREADS = 128 * (1 + CONSUMERS)
# The kernel starts with 168 registers per thread: 128 * 40 + 256 * 232 = 384 * 168.
PRODUCER_REGISTERS, CONSUMER_REGISTERS = 40, 232
BAND = 8
"""Rows of cluster tiles in a band: about the root of the 66 that are in flight."""


def count_tiles(m: int, n: int) -> tuple[int, int]:
    """Return the number of rows and columns of tiles; a cluster computes 256 x 256."""
    return -(-m // (BM * CTAS)), -(-n // BN)


def count_blocks(size: int) -> int:
    """Return the number of scales along a dimension."""
    return -(-size // BLOCK)


def grid(m: int, n: int, k: int, kb: int, nb: int, sms: int) -> tuple[int, int, int]:
    """Return the grid for this shape: a cluster per pair of SMs, but no more than tiles."""
    if (kb, nb) != (count_blocks(k), count_blocks(n)):
        raise ValueError(
            f"K = {k} and N = {n} need {count_blocks(k)} and {count_blocks(n)} scales of {BLOCK}; found {kb} and {nb}"
        )
    if sms < CTAS or sms % CTAS:
        raise ValueError(f"sms must be a positive multiple of {CTAS}, the CTAs of a cluster; found {sms}")
    rows, columns = count_tiles(m, n)
    return (min(sms, rows * columns * CTAS), 1, 1)


@intrinsic
def multiply_half(a: reg.Reg, b: reg.Reg, partial: reg.RegArray) -> None:
    """Set the partial sums to the product of 64 rows of a stage and 128 of its columns, and wait for it."""
    # Order the reads of the previous partial sums before the products.
    ptx.wgmma.fence()
    for offset in range(0, BK, STEP_BYTES):
        ptx.wgmma.mma_async(
            shape=(BM // CONSUMERS, BLOCK, STEP_BYTES), dtype_d=f32, dtype_a=e4m3, dtype_b=e4m3, d=partial, a=a, b=b,
            scale_d=offset > 0, a_k_offset=offset, b_k_offset=offset,
        )  # fmt: skip
    ptx.wgmma.commit_group()
    ptx.wgmma.wait_group(0)


@intrinsic
def promote(partial: reg.RegArray, factors: list[reg.Reg], sums: list[reg.Reg]) -> None:
    """Add the partial sums, times their scales, to the sums. Register 4 j + 2 h + e is in row h of the lane's two."""
    for i, total in enumerate(sums):
        ptx.fma(f32, total, partial[i], factors[i // 2 % 2], total)


@intrinsic
def load_scales(scales: reg.RegArray, addresses: list[reg.Reg], step: reg.Reg) -> None:
    """Load the scales of a step: of the lane's two rows of `a`, then of the two blocks of `b`."""
    for register, address in zip(scales, addresses, strict=True):
        ptx.ld(f32, register, ptx.addr(address, step * 4))


def make(arch: str = "sm_90a", *, stages: int = STAGES, band: int = BAND) -> Kernel:
    """Return the kernel for sm_90a, the only target with wgmma.

    Long: the phases of a kernel share its registers and barriers.
    """
    operands = (
        Tile.wgmma_a("m", "k", e4m3, tile_m=BM, tile_k=BK),
        Tile("m", "kb", f32),
        Tile.wgmma_a("n", "k", e4m3, tile_m=BN // CTAS, tile_k=BK),
        Tile("nb", "kb", f32),
    )
    result = Tile("m", "n", bf16, Layout.TMA_128B, tma_box=(epilogue.ROWS, SLICE))

    @kernel(
        arch=arch, in_specs=operands, out_specs=(result,), grid=grid, block=(THREADS, 1, 1), cluster=(CTAS, 1, 1)
    )  # fmt: skip
    def fp8_gemm(
        a: TensorSpec, a_scale: TensorSpec, b: TensorSpec, b_scale: TensorSpec, c: TensorSpec, *, sms: int = 132
    ) -> None:
        # Long: the phases share registers and barriers.
        (m, depth), n, (row_blocks, blocks) = a.shape, b.shape[0], b_scale.shape
        rows, columns = count_tiles(m, n)
        clusters = grid(m, n, depth, blocks, row_blocks, sms)[0] // CTAS
        pa, pb = ptx.global_ptrs(a_scale, b_scale)
        sa = smem.wgmma_tile(e4m3, (stages, CONSUMERS, BM // CONSUMERS, BK), name="sa")
        sb = smem.wgmma_tile(e4m3, (stages, CTAS, BN // CTAS, BK), name="sb")
        sc = smem.alloc(bf16, (CONSUMERS, BUFFERS, epilogue.ROWS, SLICE), swizzle="128B", align=1024, name="sc")
        ring = OperandRing(sa, sb, smem.mbarrier(stages, name="full"), smem.mbarrier(stages, name="empty"))
        thread, rank = ptx.special.tid.x(), ptx.special.cluster_ctarank()
        group, lane, cluster = thread >> 7, thread & 31, ptx.special.clusterid.x()

        # One thread initializes the mbarriers, which the other CTA signals; `cluster.sync` makes them visible to both.
        with ptx.if_(thread == 0):
            operand_ring.initialize(ring)
        ptx.cluster.sync()

        with ptx.if_(group == 0):
            ptx.setmaxnreg_dec(PRODUCER_REGISTERS)
            with ptx.if_(thread < 32), ptx.if_(elect()):
                slot = ptx.pipeline(stages)
                for tile in ptx.range_(cluster, rows * columns, clusters):
                    row, column = find_grouped_tile(tile, rows, columns, band)
                    top, left = (row * CTAS + rank) * BM, column * BN
                    for k in ptx.range_(0, depth, BK):
                        operand_ring.load_stage(ring, slot, a, b, k, top, left, rank)
                        slot.advance()

        with ptx.else_():
            ptx.setmaxnreg_inc(CONSUMER_REGISTERS)
            consumer, slot = group - 1, ptx.pipeline(stages)
            sums = reg.wgmma_frag(m=BM // CONSUMERS, n=BN, dtype=f32, name="sum")
            partial = reg.wgmma_frag(m=BM // CONSUMERS, n=BLOCK, dtype=f32, name="partial")
            scales = reg.array(f32, 2 + HALVES, name="scale")
            writer = epilogue.make_writer(thread, group, lane)
            # The lane's first row within the CTA's tile: 16 rows per warp; the second is 8 below.
            lane_row = consumer * epilogue.ROWS + ((thread >> 5) & 3) * 16 + (lane >> 2)
            # Hides from ptxas that all lanes load the same scales of `b`. It would copy them to uniform registers when
            # they are loaded, and so wait for them before the products that should hide their latency.
            zero = ptx.special.laneid() >> 5
            for tile in ptx.range_(cluster, rows * columns, clusters):
                row, column = find_grouped_tile(tile, rows, columns, band)
                top, left = (row * CTAS + rank) * BM, column * BN

                # Phase 1: multiply and promote. Rows and blocks past the end of a matrix use the scales of the last.
                addresses = [
                    *(ptx.mad((top + lane_row + 8 * i).min(m - 1), blocks * 4, pa, mode="wide") for i in range(2)),
                    *(
                        ptx.mad((column * HALVES + i).min(row_blocks - 1) + zero, blocks * 4, pb, mode="wide")
                        for i in range(HALVES)
                    ),
                ]
                load_scales(scales, addresses, reg.scalar(s32, 0))
                for register in sums:
                    ptx.mov(f32, register, 0)
                for step in ptx.range_(0, blocks):
                    factors = [[scales[i] * scales[2 + half] for i in range(2)] for half in range(HALVES)]
                    load_scales(scales, addresses, (step + 1).min(blocks - 1))
                    ptx.mbarrier.wait(ring.full[slot.stage], slot.phase)
                    da = ptx.wgmma.auto_descriptor(
                        sa[slot.stage, consumer], dtype=e4m3, shape=(BM // CONSUMERS, BK), major="K"
                    )
                    for half in range(HALVES):
                        db = ptx.wgmma.auto_descriptor(sb[slot.stage, half], dtype=e4m3, shape=(BLOCK, BK), major="K")
                        multiply_half(da, db, partial)
                        if half == HALVES - 1:
                            operand_ring.release(ring, slot.stage, lane)
                        promote(partial, factors[half], sums[64 * half : 64 * half + 64])
                    slot.advance()

                # Phase 2: write the result. The last stores are still under way when the next tile begins.
                top += consumer * epilogue.ROWS
                epilogue.store_tile(writer, sums, sc, consumer, c, left, top, is_first=False)
            ptx.cp.async_.bulk.wait_group(0, pred=writer.leader)

        # A CTA must not exit while its peer still multicasts to it or arrives at its mbarriers.
        ptx.cluster.sync()

    return fp8_gemm


def reference(a: Array, a_scale: Array, b: Array, b_scale: Array, sms: int = 132) -> Array:
    """Return the expected result before rounding to bf16, in f64."""
    del sms
    a, a_scale, b, b_scale = (x.astype(np.float64) for x in (a, a_scale, b, b_scale))
    k, n = a.shape[1], b.shape[0]
    b_scale = np.repeat(b_scale, BLOCK, axis=0)[:n]
    return (a * np.repeat(a_scale, BLOCK, axis=1)[:, :k]) @ (b * np.repeat(b_scale, BLOCK, axis=1)[:, :k]).T


def draw(run: Run, random: np.random.Generator) -> list[Array]:
    """Return random operands and scales from 0.5 to 2."""
    a, a_scale, b, b_scale = (draw_array(tile, run, random) for tile in make().in_specs)
    return [a, np.exp2(np.clip(a_scale, -1, 1)), b, np.exp2(np.clip(b_scale, -1, 1))]


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_90a",),
    runs=(
        Run({"m": 256, "n": 256, "k": 128, "kb": 1, "nb": 2, "sms": 2}, HALF, SUMS),
        Run({"m": 256, "n": 256, "k": 640, "kb": 5, "nb": 2, "sms": 2}, HALF, SUMS),
        Run({"m": 300, "n": 520, "k": 208, "kb": 2, "nb": 5, "sms": 4}, HALF, SUMS, special=True, findings=OUTSIDE),
    ),
    large={"m": 4096, "n": 4096, "k": 4096, "kb": 32, "nb": 32, "sms": 132},
    sass=(
        "UTMALDG.2D.MULTICAST",
        "QGMMA.64x128x32.F32.E4M3.E4M3",
        "FFMA",
        "STSM.16.M88.4",
        "UTMASTG.2D",
        "USETMAXREG.TRY_ALLOC",
    ),
    draw=draw,
    flops=count_gemm_flops,
    order=TileOrder(BM * CTAS, BN, BAND, bytes=1, ctas=CTAS),
    peer="fp8_matmul fp8_matmul_fast",
)

if __name__ == "__main__":
    EXAMPLE.show()
