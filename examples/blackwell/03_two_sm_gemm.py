"""Blackwell GEMM on two SMs: c = a @ b.T in bf16 with f32 sums, `a` (M, K), `b` (N, K), any M and N; rows a multiple of
16 bytes.

The idea: a CTA pair computes a 256 x 256 tile. Each CTA holds its own 128 rows of `a` and half of the rows of `b`; the
tensor cores of both read both halves, so each byte of `b` is loaded once for two SMs. An SM then loads 32 KB per stage
of 512 cycles, 64 bytes per cycle; in `02_ring_gemm` it needs 96, but takes in only about 81. The smaller stages also
leave room for six of them. One thread of the leader CTA issues the products of the pair. The sums are in tensor memory,
128 rows in each CTA.

The protocol; each CTA has a producer, the leader an issuer. n = 0, 1, … counts the uses of a stage, and the parity of
phase n is n mod 2:

- `full`, one for each of the six stages, used in the leader CTA only: one arrival, from the leader's producer, and the
  64 KiB of BOTH CTAs. The peer's copies signal the leader's mbarrier, which `cta_group::2` permits. The issuer waits
  for phase n.
- `empty`, one per stage in each CTA: one arrival by `tcgen05.commit`, which signals both CTAs, when the products that
  read the stage are complete. Each CTA's producer waits for phase n - 1; its first wait passes. Only then does the
  peer load new bytes, so they cannot arrive in an earlier phase of `full`.
- `done`, one in each CTA: one arrival by a commit to both CTAs after the last product. All warps wait for phase 0.
- `cluster.sync`, all threads of both CTAs, twice: `allocate` and `free` in `examples/parts/tensor_memory.py`.
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
"""Rows per CTA, columns per pair, K per stage: 256 x 256 x 16 is the largest product of an instruction."""
CTAS, STAGES, WARPS = 2, 6, 4
"""Six stages of 32 KiB and 32 KiB of output buffers fill shared memory."""
STAGE_BYTES = (ROWS + COLUMNS // CTAS) * BK * 2
BOTH = (1 << CTAS) - 1


def grid(m: int, n: int, k: int) -> tuple[int, int, int]:
    """Return the grid for this shape; its size along M is a multiple of 2."""
    del k
    return (-(-m // (ROWS * CTAS)) * CTAS, -(-n // COLUMNS), 1)


def make(arch: str = "sm_100a") -> Kernel:
    """Return the kernel for a target with tensor memory.

    Long: the phases of a kernel share its registers and barriers.
    """
    operands = (
        Tile.wgmma_a("m", "k", bf16, tile_m=ROWS, tile_k=BK),
        Tile.wgmma_a("n", "k", bf16, tile_m=COLUMNS // CTAS, tile_k=BK),
    )
    result = Tile("m", "n", bf16, Layout.TMA_128B, tma_box=(LANES, SLICE))

    @kernel(
        arch=arch, in_specs=operands, out_specs=(result,), grid=grid, block=(32 * WARPS, 1, 1), cluster=(CTAS, 1, 1)
    )
    def tcgen05_gemm(a: TensorSpec, b: TensorSpec, c: TensorSpec) -> None:
        # Long: the phases share registers and barriers.
        depth = a.shape[1]
        sa = smem.wgmma_tile(bf16, (STAGES, ROWS, BK), name="sa")
        sb = smem.wgmma_tile(bf16, (STAGES, COLUMNS // CTAS, BK), name="sb")
        sc = tensor_memory.allocate_buffers(WARPS)
        full, empty = smem.mbarrier(STAGES, name="full"), smem.mbarrier(STAGES, name="empty")
        done = smem.mbarrier(1, name="done")
        warp, rank = ptx.special.tid.x() >> 5, ptx.special.cluster_ctarank()
        first_warp, is_leader = warp == 0, rank == 0
        top, left = ptx.special.ctaid.x() * ROWS, ptx.special.ctaid.y() * COLUMNS

        # Phase 1: a lane of each CTA initializes the mbarriers, one warp allocates tensor memory, and then the CTAs
        # synchronize.
        with ptx.if_(first_warp), ptx.if_(elect()):
            for stage in range(STAGES):
                ptx.mbarrier.init(full[stage], 1)
                ptx.mbarrier.init(empty[stage], 1)
            ptx.mbarrier.init(done[0], 1)
        sums = tensor_memory.allocate(COLUMNS, first_warp, cta_group=2)

        # Phase 2, a lane of warp 0 of each CTA: fill the ring with the CTA's rows of `a` and its half of `b`.
        with ptx.if_(first_warp), ptx.if_(elect()):
            ring = ptx.pipeline(STAGES)
            for k in ptx.range_(0, depth, BK):
                # On a new mbarrier, the phase that precedes the first one counts as complete.
                ptx.mbarrier.wait(empty[ring.stage], ring.phase ^ 1)
                ptx.mbarrier.arrive_expect_tx(full[ring.stage], CTAS * STAGE_BYTES, pred=is_leader)
                mbar = ptx.cluster.map_shared_u32(full[ring.stage].address(), 0)
                half = left + rank * (COLUMNS // CTAS)
                for tile, source, row in ((sa, a, top), (sb, b, half)):
                    ptx.cp.async_.bulk.tensor_2d(
                        dst=tile[ring.stage], src=source, coord=(k, row), mbar=mbar, cta_group=2
                    )
                ring.advance()

        # Phase 2, a lane of warp 1 of the leader CTA: issue the products of both CTAs.
        with ptx.if_((warp == 1) & is_leader), ptx.if_(elect()):
            ring = ptx.pipeline(STAGES)
            shape = ptx.tcgen05.make_instr_desc_f16bf16_f32(m=ROWS * CTAS, n=COLUMNS)
            for k in ptx.range_(0, depth, BK):
                ptx.mbarrier.wait(full[ring.stage], ring.phase)
                ptx.tcgen05.fence_after_thread_sync()
                tensor_memory.multiply_stage(sums, sa[ring.stage], sb[ring.stage], shape, k != 0, cta_group=2)
                # When these products are complete, both CTAs may overwrite the stage.
                ptx.tcgen05.commit(empty[ring.stage], cta_group=2, multicast_mask=BOTH)
                ring.advance()
            ptx.tcgen05.commit(done[0], cta_group=2, multicast_mask=BOTH)

        # Phase 3, all warps: write the result.
        ptx.warp.sync()
        ptx.mbarrier.wait(done[0], 0)
        ptx.tcgen05.fence_after_thread_sync()
        output = OutputWarp(sc, warp, elect())
        output.write(sums, COLUMNS, c, top, left)
        output.finish()

        # Phase 4: free tensor memory after both CTAs have read their sums. Until both get here, neither exits while its
        # peer still signals its mbarriers.
        tensor_memory.free(sums, COLUMNS, first_warp, cta_group=2)

    return tcgen05_gemm


EXAMPLE = Example(
    make=make,
    reference=compute_product,
    targets=("sm_100a", "sm_103a"),
    runs=(
        Run({"m": 256, "n": 256, "k": 128}, HALF, 1e-3),
        Run({"m": 300, "n": 520, "k": 456}, HALF, 1e-3, special=True, findings=tensor_memory.OUTSIDE),
    ),
    large={"m": 4096, "n": 4096, "k": 4096},
    sass=("UTMALDG.2D.2CTA", "UTCHMMA.2CTA", "UTCBAR.2CTA.MULTICAST", "LDTM.x64", "UTMASTG.2D"),
    flops=count_gemm_flops,
    order=TileOrder(ROWS, COLUMNS, COLUMN_BY_COLUMN),
    peer="matmul",
)

if __name__ == "__main__":
    EXAMPLE.show()
