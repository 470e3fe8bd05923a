"""Persistent Blackwell GEMM: c = a @ b.T in bf16 with f32 sums, `a` (M, K), `b` (N, K), any M and N; rows a multiple of
16 bytes.

The idea: overlap the output of a tile with the products of the next one. `03_two_sm_gemm` computes one tile per CTA
pair. For K = 4096 its tensor cores work for 256 steps of 128 cycles; then they idle while the sums are converted and
stored (about 5,000 cycles, 15 %), and while the next pair starts and fills its ring (about 1,000). Here a pair stays,
and every task has its own warps: TMA producer, MMA issuer, scheduler, and four warps for the output. Tensor memory
holds the sums of two tiles, 2 x 256 of its 512 columns, so the products of a tile need not wait for the output of the
previous one.

Cluster launch control distributes the tiles (`examples/parts/tile_queue.py`): 256 tiles of 4096 x 4096 on the 74 pairs
of a B200 are 3.46 rounds. Tiles are numbered down bands of 8 rows: 74 concurrent tiles read about 8 panels of `a` and 9
of `b`. Row by row they would read 5 and 16 for N = 4096, and 3 and 32 for N = 8192.

The protocol; n = 0, 1, … counts the uses of a stage or half in all tiles. Readers wait for phase n, of parity n mod 2,
writers for the previous phase, which for n = 0 counts as complete on a new mbarrier:

- `full`, for each of the six stages, used in the leader CTA only: one arrival, from the leader's producer, and the 64
  KiB of both CTAs. The MMA issuer waits for it.
- `empty`, in each CTA, per stage: one arrival by `tcgen05.commit` when the products that read the stage are complete.
  The producer of each CTA waits for the previous phase.
- `sums_full`, in each CTA, for each of the two halves of tensor memory: one arrival by `tcgen05.commit` after a tile's
  last product. The output warps wait for it.
- `sums_empty`, used in the leader CTA only, per half: 8 arrivals, one from each output warp of the pair, after
  `tcgen05.wait::ld` and `tcgen05.fence::before_thread_sync`. The MMA issuer waits for the previous phase.
- The tile queue has 12 readers: two producers, the MMA issuer, the scheduler, and 8 output warps.
- The output warps share no buffers: see `OutputWarp` in `examples/parts/tensor_memory.py`.
- `cluster.sync`, all threads of both CTAs, twice: `allocate` and `free` in the same file.
"""

from __future__ import annotations

from examples.parts import tensor_memory
from examples.parts.example import HALF, Example, Run, count_gemm_flops
from examples.parts.references import compute_product
from examples.parts.tensor_memory import LANES, SLICE, OutputWarp
from examples.parts.tile_order import TileOrder, find_grouped_tile
from examples.parts.tile_queue import TileQueue
from examples.parts.warps import elect
from pyptx import Kernel, Layout, TensorSpec, Tile, kernel, ptx, smem
from pyptx.types import bf16

ROWS, COLUMNS, BK = 128, 256, 64
"""Rows per CTA, columns per pair, K per stage."""
CTAS, STAGES = 2, 6
"""Six stages of 32 KiB and 32 KiB of output buffers fill shared memory. A stage is 512 cycles of products, so the ring
hides 2,500 cycles; a load of its size takes about 1,500 when all SMs load."""
STAGE_BYTES = (ROWS + COLUMNS // CTAS) * BK * 2
BOTH = (1 << CTAS) - 1
OUTPUT_WARPS, PRODUCER, ISSUER, SCHEDULER = 4, 4, 5, 6
"""Warps 0 to 3 write the output, since a warp reaches the 32 lanes of tensor memory of its number modulo 4; then the
numbers of the other warps."""
WARPS = 7
BAND = 8
"""Rows of tiles in a band: near the square root of the 74 pairs of a B200."""


def count_tiles(m: int, n: int) -> tuple[int, int]:
    """Return the number of tiles along M and N."""
    return -(-m // (ROWS * CTAS)), -(-n // COLUMNS)


def grid(m: int, n: int, k: int) -> tuple[int, int, int]:
    """Return the grid for this shape: one cluster per tile."""
    del k
    rows, columns = count_tiles(m, n)
    return (rows * columns * CTAS, 1, 1)


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
    def persistent_gemm(a: TensorSpec, b: TensorSpec, c: TensorSpec) -> None:
        # Long: the phases share registers and barriers.
        depth, (tile_rows, tile_columns) = a.shape[1], count_tiles(a.shape[0], b.shape[0])
        sa = smem.wgmma_tile(bf16, (STAGES, ROWS, BK), name="sa")
        sb = smem.wgmma_tile(bf16, (STAGES, COLUMNS // CTAS, BK), name="sb")
        sc = tensor_memory.allocate_buffers(OUTPUT_WARPS)
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
        sums = tensor_memory.allocate(2 * COLUMNS, first_warp, cta_group=2)

        # Phase 2, the producer of each CTA: load the CTA's rows of `a` and its half of `b`.
        with ptx.if_(warp == PRODUCER), ptx.if_(elect()):
            ring = ptx.pipeline(STAGES)
            for tile in queue.each():
                row, column = find_grouped_tile(tile, tile_rows, tile_columns, BAND)
                top = row * (ROWS * CTAS) + rank * ROWS
                left = column * COLUMNS + rank * (COLUMNS // CTAS)
                for k in ptx.range_(0, depth, BK):
                    ptx.mbarrier.wait(empty[ring.stage], ring.phase ^ 1)
                    ptx.mbarrier.arrive_expect_tx(full[ring.stage], CTAS * STAGE_BYTES, pred=is_leader)
                    mbar = ptx.cluster.map_shared_u32(full[ring.stage].address(), 0)
                    for target, source, corner in ((sa, a, top), (sb, b, left)):
                        ptx.cp.async_.bulk.tensor_2d(
                            dst=target[ring.stage], src=source, coord=(k, corner), mbar=mbar, cta_group=2
                        )
                    ring.advance()

        # Phase 2, the MMA issuer of the leader CTA: multiply for both CTAs.
        with ptx.if_((warp == ISSUER) & is_leader), ptx.if_(elect()):
            ring, halves = ptx.pipeline(STAGES), ptx.pipeline(2)
            shape = ptx.tcgen05.make_instr_desc_f16bf16_f32(m=ROWS * CTAS, n=COLUMNS)
            for _ in queue.each():
                ptx.mbarrier.wait(sums_empty[halves.stage], halves.phase ^ 1)
                ptx.tcgen05.fence_after_thread_sync()
                tile_sums = sums + halves.stage * COLUMNS
                for k in ptx.range_(0, depth, BK):
                    ptx.mbarrier.wait(full[ring.stage], ring.phase)
                    ptx.tcgen05.fence_after_thread_sync()
                    tensor_memory.multiply_stage(tile_sums, sa[ring.stage], sb[ring.stage], shape, k != 0, cta_group=2)
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
                # The warp has read its sums: the next tile but one may overwrite them.
                ptx.cluster.arrive_remote(sums_empty[halves.stage], 0, pred=output.elected)
                halves.advance()
            output.finish()

        # Phase 3: free tensor memory. Until both CTAs get here, neither exits: the leader's mbarriers receive arrivals
        # of the peer's output warps, and the peer's those of the leader's products.
        tensor_memory.free(sums, 2 * COLUMNS, first_warp, cta_group=2)

    return persistent_gemm


EXAMPLE = Example(
    make=make,
    reference=compute_product,
    targets=("sm_100a", "sm_103a"),
    runs=(
        Run({"m": 256, "n": 256, "k": 64}, HALF, 1e-3),
        Run({"m": 300, "n": 264, "k": 456}, HALF, 1e-3, special=True, findings=tensor_memory.OUTSIDE),
        Run({"m": 2320, "n": 264, "k": 64}, HALF, 1e-3, findings=tensor_memory.OUTSIDE),
    ),
    large={"m": 8192, "n": 8192, "k": 8192},
    sass=("UTMALDG.2D.2CTA", "UTCHMMA.2CTA", "UTCBAR.2CTA.MULTICAST", "LDTM.x64", "UTMASTG.2D", "UGETNEXTWORKID"),
    flops=count_gemm_flops,
    order=TileOrder(ROWS * CTAS, COLUMNS, BAND, ctas=CTAS),
    peer="matmul triton_matmul",
)

if __name__ == "__main__":
    EXAMPLE.show()
