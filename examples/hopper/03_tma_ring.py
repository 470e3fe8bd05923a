"""One warpgroup with a ring of TMA loads: c = a @ b.T in bf16 with f32 sums, `a` (M, K), `b` (N, K), any M and N; rows
a multiple of 16 bytes.

The idea: load ahead. Even from L2, a load of 16 KiB takes about 217 + 16 * 4.8 = 294 ns, 510 clk at 1.75 GHz, while
the products of 64 x 64 x 64 take the tensor cores 131 clk: a kernel that loads, waits and multiplies in turn leaves
them idle 80 % of the time. Here a ring of three stages has two loads in flight while the third stage is multiplied: a
load of 32 KiB (650 clk) has two steps of 520 clk to arrive. The tile is larger because 64 x 64 needs 16 KiB per 131
clk, 125 B/clk, and an SM receives at most 69; 128 x 128 needs 32 KiB per 520 clk, 63 B/clk.

The protocol:

- `full`, one for each of the three stages: one arrival, from thread 0, and 32 KiB. In round i = 0, 1, ... through
  the ring all threads wait for parity i mod 2.
- `bar.sync 0`, all 128 threads, once after the mbarriers are initialized, then once per step, after its products are
  issued: every warp has waited for those of the previous step (`wgmma.wait_group 1`), so thread 0 may overwrite their
  stage. There is no mbarrier for empty stages.
- Named barrier 1, 128 threads: the epilogue of `examples/parts/epilogue.py`, once per half of 64 rows, 2 slices each;
  half 0 with `is_first`.

The async proxy writes the stages (TMA) and reads them (wgmma), so they need no proxy fence.
"""

from __future__ import annotations

from examples.parts import epilogue
from examples.parts.epilogue import BUFFERS, SLICE
from examples.parts.example import HALF, Example, Run, count_gemm_flops
from examples.parts.references import compute_product
from examples.parts.tile_order import COLUMN_BY_COLUMN, TileOrder
from pyptx import Kernel, Layout, TensorSpec, Tile, kernel, ptx, reg, smem
from pyptx.types import bf16, f32, u32

BM, BN, BK, STEP = 128, 128, 64, 16
STAGES = 3
"""3 * 32 KiB and 16 KiB of output buffers: two CTAs share an SM, and one multiplies while the other waits."""
HALVES = 2
"""Products have 64 rows, so the warpgroup multiplies the halves of the tile by the same `b`."""
STAGE_BYTES = (BM + BN) * BK * 2


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

    @kernel(arch=arch, in_specs=operands, out_specs=(result,), grid=grid, block=(128, 1, 1))
    def tma_ring(a: TensorSpec, b: TensorSpec, c: TensorSpec) -> None:
        depth = a.shape[1]
        sa = smem.wgmma_tile(bf16, (STAGES, HALVES, BM // HALVES, BK), name="sa")
        sb = smem.wgmma_tile(bf16, (STAGES, BN, BK), name="sb")
        sc = smem.alloc(bf16, (1, BUFFERS, epilogue.ROWS, SLICE), swizzle="128B", align=1024, name="sc")
        full = smem.mbarrier(STAGES, name="full")
        thread = ptx.special.tid.x()
        top, left = ptx.special.ctaid.x() * BM, ptx.special.ctaid.y() * BN

        def load(stage: reg.Reg | int, k: reg.Reg | int) -> None:
            ptx.mbarrier.arrive_expect_tx(full[stage], STAGE_BYTES)
            ptx.cp.async_.bulk.tensor_2d(dst=sa[stage], src=a, coord=(k, top), mbar=full[stage])
            ptx.cp.async_.bulk.tensor_2d(dst=sb[stage], src=b, coord=(k, left), mbar=full[stage])

        # Phase 1: thread 0 fills all stages but one.
        with ptx.if_(thread == 0):
            for stage in range(STAGES):
                ptx.mbarrier.init(full[stage], 1)
            for stage in range(min(STAGES - 1, -(-depth // BK))):
                load(stage, stage * BK)
        # The other threads must not wait on the mbarriers before they are initialized.
        ptx.bar.sync(0)

        # Phase 2: multiply. `refill` is the stage of the previous step, the next to load.
        slot, refill = ptx.pipeline(STAGES), reg.scalar(u32, STAGES - 1, name="refill")
        sums = [reg.wgmma_frag(m=BM // HALVES, n=BN, dtype=f32, name=f"sum{half}_") for half in range(HALVES)]
        for k in ptx.range_(0, depth, BK):
            ptx.mbarrier.wait(full[slot.stage], slot.phase)
            is_later = k != 0
            ptx.wgmma.fence()
            for half in range(HALVES):
                for step in range(0, BK, STEP):
                    ptx.wgmma.mma_async(
                        shape=(BM // HALVES, BN, STEP), dtype_d=f32, dtype_a=bf16, dtype_b=bf16, d=sums[half],
                        a=sa[slot.stage, half], b=sb[slot.stage], scale_d=True if step else is_later,
                        a_k_offset=sa.k_offset(step), b_k_offset=sb.k_offset(step),
                    )  # fmt: skip
            ptx.wgmma.commit_group()
            # The products of the previous step are complete, first in this warp, then in all.
            ptx.wgmma.wait_group(1)
            ptx.bar.sync(0)
            with ptx.if_((thread == 0) & (k + (STAGES - 1) * BK < depth)):
                load(refill, k + (STAGES - 1) * BK)
            ptx.mov(u32, refill, slot.stage)
            slot.advance()
        ptx.wgmma.wait_group(0)

        # Phase 3: write the result, one half after the other.
        writer = epilogue.make_writer(thread, 1, thread & 31)
        for half in range(HALVES):
            epilogue.store_tile(
                writer, sums[half], sc, 0, c, left, top + half * epilogue.ROWS, is_first=half == 0
            )  # fmt: skip
        ptx.cp.async_.bulk.wait_group(0, pred=writer.leader)

    return tma_ring


EXAMPLE = Example(
    make=make,
    reference=compute_product,
    targets=("sm_90a",),
    runs=(
        Run({"m": 128, "n": 128, "k": 64}, HALF, 1e-3),
        Run({"m": 128, "n": 128, "k": 512}, HALF, 1e-3),
        Run({"m": 200, "n": 264, "k": 136}, HALF, 1e-3, special=True, findings=epilogue.OUTSIDE),
    ),
    large={"m": 4096, "n": 4096, "k": 4096},
    sass=("UTMALDG.2D", "HGMMA.64x128x16.F32.BF16", "STSM.16.M88.4", "UTMASTG.2D"),
    flops=count_gemm_flops,
    order=TileOrder(BM, BN, COLUMN_BY_COLUMN),
    peer="matmul",
)

if __name__ == "__main__":
    EXAMPLE.show()
