"""Hopper GEMM in clusters: c = a @ b.T in bf16 with f32 sums, `a` (M, K), `b` (N, K), any M and N; rows a multiple of
16 bytes.

The idea: two CTAs form a cluster. They need different rows of `a` but the same rows of `b`, so each loads half of the
`b` tile and multicasts it to both. Alone, a CTA reads 48 KiB from L2 for the 1024 clk of a step, 48 B/clk; but when 114
SMs read at once, L2 delivers 35 B/clk to each. The pair reads 64 KiB instead of 96, 32 B/clk for each SM.

The protocol:

- `full`, one for each of the four stages in each CTA: one arrival, from the CTA's own producer, and 48 KiB. Both CTAs
  load halves of `b`. The peer's bytes may arrive before this CTA's producer expects them: the pending arrival keeps the
  phase from completing. In round i = 0, 1, ... through the ring consumers wait for parity i mod 2.
- `empty`, one per stage in each CTA: 16 arrivals, one from each of the 2 x 4 consumer warps of BOTH CTAs, because a
  multicast writes to both. A warp arrives one step later, when `wgmma.wait_group 1` has shown that its products have
  read the stage. In round i producers wait for the parity of round i - 1, which counts as complete on a new mbarrier.
  No one waits for the stage of the last step, so it is not released.
- Named barriers 1 and 2, one per consumer warpgroup, 128 threads: the epilogue of `examples/parts/epilogue.py`, 4
  slices with `is_first`.
- `cluster.sync`, all threads of both CTAs, twice: after the mbarriers are initialized, and at the end, since a CTA must
  not exit while its peer still multicasts to it or arrives at its mbarriers.

The async proxy writes the stages (TMA) and reads them (wgmma), so they need no proxy fence.
"""

from __future__ import annotations

from examples.parts import epilogue, operand_ring
from examples.parts.epilogue import BUFFERS, SLICE
from examples.parts.example import HALF, Example, Run, count_gemm_flops
from examples.parts.operand_ring import OperandRing
from examples.parts.references import compute_product
from examples.parts.tile_order import COLUMN_BY_COLUMN, TileOrder
from examples.parts.warps import elect
from pyptx import Kernel, Layout, TensorSpec, Tile, kernel, ptx, reg, smem
from pyptx.types import bf16, f32, u32

BM, BN, BK = 128, 256, 64
STAGES, CTAS, CONSUMERS = 4, 2, 2
THREADS = 128 * (1 + CONSUMERS)
# The kernel starts with 168 registers per thread: 128 * 40 + 256 * 232 = 384 * 168.
PRODUCER_REGISTERS, CONSUMER_REGISTERS = 40, 232


def grid(m: int, n: int, k: int) -> tuple[int, int, int]:
    """Return the grid for this shape; its size along M is a multiple of the cluster size."""
    del k
    return (-(-m // (BM * CTAS)) * CTAS, -(-n // BN), 1)


def make(arch: str = "sm_90a") -> Kernel:
    """Return the kernel for sm_90a, the only target with wgmma.

    Long: the phases of a kernel share its registers and barriers.
    """
    operands = (
        Tile.wgmma_a("m", "k", bf16, tile_m=BM, tile_k=BK),
        Tile.wgmma_a("n", "k", bf16, tile_m=BN // CTAS, tile_k=BK),
    )
    result = Tile("m", "n", bf16, Layout.TMA_128B, tma_box=(epilogue.ROWS, SLICE))

    @kernel(
        arch=arch, in_specs=operands, out_specs=(result,), grid=grid, block=(THREADS, 1, 1), cluster=(CTAS, 1, 1)
    )  # fmt: skip
    def hopper_gemm(a: TensorSpec, b: TensorSpec, c: TensorSpec) -> None:
        # Long: the phases share registers and barriers.
        depth = a.shape[1]
        sa = smem.wgmma_tile(bf16, (STAGES, CONSUMERS, BM // CONSUMERS, BK), name="sa")
        sb = smem.wgmma_tile(bf16, (STAGES, CTAS, BN // CTAS, BK), name="sb")
        sc = smem.alloc(bf16, (CONSUMERS, BUFFERS, epilogue.ROWS, SLICE), swizzle="128B", align=1024, name="sc")
        ring = OperandRing(sa, sb, smem.mbarrier(STAGES, name="full"), smem.mbarrier(STAGES, name="empty"))
        thread, rank = ptx.special.tid.x(), ptx.special.cluster_ctarank()
        group, lane = thread >> 7, thread & 31
        top, left = ptx.special.ctaid.x() * BM, ptx.special.ctaid.y() * BN

        # One thread initializes the mbarriers, which the other CTA signals; `cluster.sync` makes them visible to both.
        with ptx.if_(thread == 0):
            operand_ring.initialize(ring)
        ptx.cluster.sync()

        with ptx.if_(group == 0):
            ptx.setmaxnreg_dec(PRODUCER_REGISTERS)
            with ptx.if_(thread < 32), ptx.if_(elect()):
                slot = ptx.pipeline(STAGES)
                for k in ptx.range_(0, depth, BK):
                    operand_ring.load_stage(ring, slot, a, b, k, top, left, rank)
                    slot.advance()

        with ptx.else_():
            ptx.setmaxnreg_inc(CONSUMER_REGISTERS)
            consumer, slot, previous = group - 1, ptx.pipeline(STAGES), reg.scalar(u32, 0, name="previous")
            sums = reg.wgmma_frag(m=BM // CONSUMERS, n=BN, dtype=f32, name="sum")

            # Phase 1: multiply.
            operand_ring.multiply_stages(ring, (slot, previous), depth, consumer, sums, lane)

            # Phase 2: write the result.
            writer = epilogue.make_writer(thread, group, lane)
            epilogue.store_tile(writer, sums, sc, consumer, c, left, top + consumer * epilogue.ROWS, is_first=True)
            ptx.cp.async_.bulk.wait_group(0, pred=writer.leader)

        # A CTA must not exit while its peer still multicasts to it or arrives at its mbarriers.
        ptx.cluster.sync()

    return hopper_gemm


EXAMPLE = Example(
    make=make,
    reference=compute_product,
    targets=("sm_90a",),
    runs=(
        Run({"m": 256, "n": 256, "k": 64}, HALF, 1e-3),
        Run({"m": 256, "n": 256, "k": 512}, HALF, 1e-3),
        Run({"m": 300, "n": 520, "k": 200}, HALF, 1e-3, special=True, findings=operand_ring.OUTSIDE),
    ),
    large={"m": 4096, "n": 4096, "k": 4096},
    sass=(
        "UTMALDG.2D.MULTICAST",
        "HGMMA.64x256x16.F32.BF16",
        "STSM.16.M88.4",
        "UTMASTG.2D",
        "USETMAXREG.TRY_ALLOC",
    ),
    flops=count_gemm_flops,
    order=TileOrder(BM, BN, COLUMN_BY_COLUMN),
    peer="matmul",
)

if __name__ == "__main__":
    EXAMPLE.show()
