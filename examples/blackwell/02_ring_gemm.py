"""Blackwell GEMM on one SM: c = a @ b.T in bf16 with f32 sums, `a` (M, K), `b` (N, K), any M and N; rows a multiple of
16 bytes.

The idea: a ring of stages. `01_tcgen05_tile` loads, waits and multiplies in turn; a stage of 48 KB then takes about
1,850 cycles to arrive and 512 to multiply, so the tensor core would work 22 % of the time. Here a producer loads four
stages ahead of the MMA issuer, which hides the latency. The rate of the loads remains: 48 KB per 512 cycles are 96
bytes per cycle, and one SM takes in about 81. `03_two_sm_gemm` removes this limit.

The protocol; producer and issuer are one lane each, of warps 0 and 1. n = 0, 1, … counts the uses of a stage, and the
parity of phase n is n mod 2:

- `full`, one for each of the four stages: one arrival, the producer's, and the 48 KiB of both tiles. The issuer waits
  for phase n.
- `empty`, one per stage: one arrival by `tcgen05.commit` when the products that read the stage are complete. The
  producer waits for phase n - 1, which for n = 0 counts as complete on a new mbarrier.
- `done`: one arrival by `tcgen05.commit` after the last product, in its only phase. All four warps wait for it; then
  each writes its 32 rows of the tile (`OutputWarp` in `examples/parts/tensor_memory.py`).
- `bar.sync 0`, all threads, twice: `allocate` and `free` in the same file.
"""

from __future__ import annotations

from examples.parts import tensor_memory
from examples.parts.example import HALF, Example, Run, count_gemm_flops
from examples.parts.references import compute_product
from examples.parts.tensor_memory import LANES, SLICE, OutputWarp
from examples.parts.tile_order import COLUMN_BY_COLUMN, TileOrder
from examples.parts.warps import elect
from pyptx import Kernel, Layout, TensorSpec, Tile, kernel, ptx, smem
from pyptx.types import bf16

ROWS, COLUMNS, BK = 128, 256, 64
"""The tile of a CTA, and K per stage. A product of 128 x 256 x 16 takes 128 cycles, and its operands 96; with 128
columns both take 64, and every byte of `a` is loaded twice as often."""
STAGES, WARPS = 4, 4
"""Four stages of 48 KiB and 32 KiB of output buffers fill shared memory."""


def grid(m: int, n: int, k: int) -> tuple[int, int, int]:
    """Return the grid for this shape."""
    del k
    return (-(-m // ROWS), -(-n // COLUMNS), 1)


def make(arch: str = "sm_100a") -> Kernel:
    """Return the kernel for a target with tensor memory.

    Long: the phases of a kernel share its registers and barriers.
    """
    operands = (
        Tile.wgmma_a("m", "k", bf16, tile_m=ROWS, tile_k=BK),
        Tile.wgmma_a("n", "k", bf16, tile_m=COLUMNS, tile_k=BK),
    )
    result = Tile("m", "n", bf16, Layout.TMA_128B, tma_box=(LANES, SLICE))

    @kernel(arch=arch, in_specs=operands, out_specs=(result,), grid=grid, block=(32 * WARPS, 1, 1))
    def ring_gemm(a: TensorSpec, b: TensorSpec, c: TensorSpec) -> None:
        depth = a.shape[1]
        sa = smem.wgmma_tile(bf16, (STAGES, ROWS, BK), name="sa")
        sb = smem.wgmma_tile(bf16, (STAGES, COLUMNS, BK), name="sb")
        sc = tensor_memory.allocate_buffers(WARPS)
        full, empty = smem.mbarrier(STAGES, name="full"), smem.mbarrier(STAGES, name="empty")
        done = smem.mbarrier(1, name="done")
        warp = ptx.special.tid.x() >> 5
        first_warp = warp == 0
        top, left = ptx.special.ctaid.x() * ROWS, ptx.special.ctaid.y() * COLUMNS

        # Phase 1: initialize the mbarriers and allocate tensor memory.
        with ptx.if_(first_warp), ptx.if_(elect()):
            for stage in range(STAGES):
                ptx.mbarrier.init(full[stage], 1)
                ptx.mbarrier.init(empty[stage], 1)
            ptx.mbarrier.init(done[0], 1)
        sums = tensor_memory.allocate(COLUMNS, first_warp)

        # Phase 2, the producer: fill the ring.
        with ptx.if_(first_warp), ptx.if_(elect()):
            ring = ptx.pipeline(STAGES)
            for k in ptx.range_(0, depth, BK):
                ptx.mbarrier.wait(empty[ring.stage], ring.phase ^ 1)
                ptx.mbarrier.arrive_expect_tx(full[ring.stage], (sa.size + sb.size) // STAGES)
                for tile, source, corner in ((sa, a, top), (sb, b, left)):
                    ptx.cp.async_.bulk.tensor_2d(
                        dst=tile[ring.stage], src=source, coord=(k, corner), mbar=full[ring.stage]
                    )
                ring.advance()

        # Phase 2, the MMA issuer: multiply the stages as they arrive.
        with ptx.if_(warp == 1), ptx.if_(elect()):
            ring = ptx.pipeline(STAGES)
            shape = ptx.tcgen05.make_instr_desc_f16bf16_f32(m=ROWS, n=COLUMNS)
            for k in ptx.range_(0, depth, BK):
                ptx.mbarrier.wait(full[ring.stage], ring.phase)
                ptx.tcgen05.fence_after_thread_sync()
                tensor_memory.multiply_stage(sums, sa[ring.stage], sb[ring.stage], shape, k != 0)
                ptx.tcgen05.commit(empty[ring.stage])
                ring.advance()
            ptx.tcgen05.commit(done[0])

        # Phase 3, all warps: write the result.
        ptx.warp.sync()
        ptx.mbarrier.wait(done[0], 0)
        ptx.tcgen05.fence_after_thread_sync()
        output = OutputWarp(sc, warp, elect())
        output.write(sums, COLUMNS, c, top, left)
        output.finish()

        # Phase 4: free tensor memory after all warps have read their sums.
        tensor_memory.free(sums, COLUMNS, first_warp)

    return ring_gemm


EXAMPLE = Example(
    make=make,
    reference=compute_product,
    targets=("sm_100a", "sm_103a"),
    runs=(
        Run({"m": 128, "n": 64, "k": 64}, HALF, 1e-3, findings=tensor_memory.OUTSIDE),
        Run({"m": 200, "n": 264, "k": 456}, HALF, 1e-3, special=True, findings=tensor_memory.OUTSIDE),
    ),
    large={"m": 4096, "n": 4096, "k": 4096},
    sass=("UTMALDG.2D", "UTCHMMA", "UTCBAR", "LDTM.x64", "UTMASTG.2D"),
    flops=count_gemm_flops,
    order=TileOrder(ROWS, COLUMNS, COLUMN_BY_COLUMN),
    peer="matmul",
)

if __name__ == "__main__":
    EXAMPLE.show()
