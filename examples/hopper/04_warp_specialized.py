"""Warp-specialized Hopper GEMM: c = a @ b.T in bf16 with f32 sums, `a` (M, K), `b` (N, K), any M and N; rows a multiple
of 16 bytes.

The idea: warps that load and warps that multiply. If one warpgroup does both, its four warps meet at a barrier in each
step, the tensor cores drain when the next products come late (about 45 clk), and 128 x 128 sums take all its registers:
32 KiB per 520 clk, 63 of the 69 B/clk that an SM receives. Here one thread of a producer warpgroup only moves data.
Two consumer warpgroups multiply 64 x 256 each, and when one waits, the other keeps the tensor cores busy. A step needs
48 KiB per 1024 clk, 48 B/clk. The producer gives up registers with `setmaxnreg`, so that a consumer thread can hold 128
sums, and warps wait for each other only through mbarriers.

The protocol:

- `full`, one for each of the four stages: one arrival, from the producer, and 48 KiB. In round i = 0, 1, ... through
  the ring consumers wait for parity i mod 2.
- `empty`, one per stage: 8 arrivals, one from each of the 2 x 4 consumer warps, one step later, when
  `wgmma.wait_group 1` has shown that its products have read the stage. In round i the producer waits for the parity of
  round i - 1, which counts as complete on a new mbarrier. No one waits for the stage of the last step, so it is not
  released.
- Named barriers 1 and 2, one per consumer warpgroup, 128 threads: the epilogue of `examples/parts/epilogue.py`, 4
  slices with `is_first`.
- `bar.sync 0`, all threads, once: after the mbarriers are initialized.

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
STAGES, CONSUMERS = 4, 2
"""4 * 48 KiB and 32 KiB of output buffers fill shared memory (227 KiB)."""
THREADS = 128 * (1 + CONSUMERS)
# The kernel starts with 168 registers per thread: 128 * 40 + 256 * 232 = 384 * 168.
PRODUCER_REGISTERS, CONSUMER_REGISTERS = 40, 232


def grid(m: int, n: int, k: int) -> tuple[int, int, int]:
    """Return the grid for this shape."""
    del k
    return (-(-m // BM), -(-n // BN), 1)


def make(arch: str = "sm_90a") -> Kernel:
    """Return the kernel for sm_90a, the only target with wgmma.

    Long: the phases of a kernel share its registers and barriers.
    """
    operands = (
        Tile.wgmma_a("m", "k", bf16, tile_m=BM, tile_k=BK),
        Tile.wgmma_a("n", "k", bf16, tile_m=BN, tile_k=BK),
    )
    result = Tile("m", "n", bf16, Layout.TMA_128B, tma_box=(epilogue.ROWS, SLICE))

    @kernel(arch=arch, in_specs=operands, out_specs=(result,), grid=grid, block=(THREADS, 1, 1))
    def warp_specialized(a: TensorSpec, b: TensorSpec, c: TensorSpec) -> None:
        depth = a.shape[1]
        sa = smem.wgmma_tile(bf16, (STAGES, CONSUMERS, BM // CONSUMERS, BK), name="sa")
        sb = smem.wgmma_tile(bf16, (STAGES, 1, BN, BK), name="sb")
        sc = smem.alloc(bf16, (CONSUMERS, BUFFERS, epilogue.ROWS, SLICE), swizzle="128B", align=1024, name="sc")
        ring = OperandRing(sa, sb, smem.mbarrier(STAGES, name="full"), smem.mbarrier(STAGES, name="empty"))
        thread = ptx.special.tid.x()
        group, lane = thread >> 7, thread & 31
        top, left = ptx.special.ctaid.x() * BM, ptx.special.ctaid.y() * BN

        # The other threads must not use the mbarriers before they are initialized.
        with ptx.if_(thread == 0):
            operand_ring.initialize(ring)
        ptx.bar.sync(0)

        with ptx.if_(group == 0):
            ptx.setmaxnreg_dec(PRODUCER_REGISTERS)
            with ptx.if_(thread < 32), ptx.if_(elect()):
                slot = ptx.pipeline(STAGES)
                for k in ptx.range_(0, depth, BK):
                    operand_ring.load_stage(ring, slot, a, b, k, top, left)
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

    return warp_specialized


EXAMPLE = Example(
    make=make,
    reference=compute_product,
    targets=("sm_90a",),
    runs=(
        Run({"m": 128, "n": 256, "k": 64}, HALF, 1e-3),
        Run({"m": 128, "n": 256, "k": 512}, HALF, 1e-3),
        Run({"m": 200, "n": 264, "k": 136}, HALF, 1e-3, special=True, findings=epilogue.OUTSIDE),
    ),
    large={"m": 4096, "n": 4096, "k": 4096},
    sass=("UTMALDG.2D", "HGMMA.64x256x16.F32.BF16", "STSM.16.M88.4", "UTMASTG.2D", "USETMAXREG.TRY_ALLOC"),
    flops=count_gemm_flops,
    order=TileOrder(BM, BN, COLUMN_BY_COLUMN),
    peer="matmul",
)

if __name__ == "__main__":
    EXAMPLE.show()
