"""Persistent Hopper GEMM: c = a @ b.T in bf16 with f32 sums, `a` (M, K), `b` (N, K), any M and N; rows a multiple of 16
bytes.

The idea: CTAs stay, and tiles come to them. A CTA for one tile begins with an empty ring: the first load of 48 KiB
takes about 217 + 48 * 4.8 = 447 ns, 780 clk. It ends with an epilogue that passes 64 KiB through shared memory, 512 clk
at 128 B/clk, and waits for the stores. With K = 1024, when the products take 16,384 clk, that is 8 %. Here 132 CTAs,
one per SM, stay for the whole product. The producer runs ahead over tiles: during the epilogue it fills all four stages
of the next tile. The last stores of a tile drain during the products of the next.

The order of tiles decides what L2 must read from memory. 66 clusters work on 66 tiles of 256 x 256 at a time. Row by
row, for N = 8192, they lie in 3 rows and all 32 columns: 35 tiles of the operands. In bands of 8 rows they lie in 8
rows and 9 columns: 17. For K = 8192 that is 71 MB instead of 147 MB in the 75 us that the products take (128 steps of
1024 clk at 1.75 GHz): 0.95 TB/s instead of 1.96, of the 3 that memory delivers. The clusters advance along K together,
so that L2 holds what they share.

The protocol:

- `full`, one for each of the four stages in each CTA: one arrival, from the CTA's own producer, and 48 KiB: half of `b`
  comes from the peer. Use number i of a stage, counted over all tiles from 0, has parity i mod 2: consumers wait for
  it, and producers for that of use i - 1 of `empty`, which passes for i = 0.
- `empty`, one per stage in each CTA: 16 arrivals, one from each of the 2 x 4 consumer warps of BOTH CTAs, since a
  multicast writes to both. A warp arrives one step later, when `wgmma.wait_group 1` has shown that the products have
  read the stage. The last stage of a tile is released before the epilogue, so that the producer need not wait for it.
- Named barriers 1 and 2, one per consumer warpgroup, 128 threads: the epilogue of `examples/parts/epilogue.py`, twice
  for each of the 4 slices of a tile.
- `cluster.sync`, all threads of both CTAs, twice: after the mbarriers are initialized, and at the end, since a CTA must
  not exit while its peer still multicasts to it or arrives at its mbarriers.
"""

from __future__ import annotations

from dataclasses import dataclass

from examples.parts import epilogue, operand_ring
from examples.parts.epilogue import BUFFERS, SLICE
from examples.parts.example import HALF, Example, Run, count_gemm_flops
from examples.parts.operand_ring import OperandRing
from examples.parts.references import compute_product
from examples.parts.tile_order import TileOrder, find_grouped_tile
from examples.parts.warps import elect
from pyptx import Kernel, Layout, TensorSpec, Tile, kernel, ptx, reg, smem
from pyptx.types import bf16, f32, u32

BM, BN, BK = 128, 256, 64
"""A step loads 48 KiB in 1024 clk of products, 48 B/clk of the 69 B/clk that an SM receives. 64 x 256 products read
(64 + 256) * 32 bytes in 128 clk, 80 B/clk of shared memory's 128."""
STAGES = 4
"""4 * 48 KiB and 32 KiB of output buffers fill shared memory (227 KiB)."""
CTAS, CONSUMERS = 2, 2
THREADS = 128 * (1 + CONSUMERS)
# The kernel starts with 168 registers per thread: 128 * 40 + 256 * 232 = 384 * 168.
PRODUCER_REGISTERS, CONSUMER_REGISTERS = 40, 232
BAND = 8
"""Rows of cluster tiles in a band: about the root of the 66 that are in flight."""


@dataclass(frozen=True)
class Config:
    """What a CTA computes at a time, and how it shares and orders that."""

    columns: int = BN
    """Of a tile of 128 rows."""
    stages: int = STAGES
    ctas: int = CTAS
    """Of a cluster, which computes `ctas` tiles, one below the other."""
    band: int = BAND
    """Rows of clusters' tiles in a band."""
    buffers: int = BUFFERS
    """Of 64 x 64 results, for each consumer."""
    registers: tuple[int, int] = (PRODUCER_REGISTERS, CONSUMER_REGISTERS)
    """Per thread of the producer and of the consumers."""

    def count_tiles(self, m: int, n: int) -> tuple[int, int]:
        """Return the number of rows and columns of clusters' tiles."""
        return -(-m // (BM * self.ctas)), -(-n // self.columns)

    def grid(self, m: int, n: int, k: int, sms: int) -> tuple[int, int, int]:
        """Return the grid for this shape: a cluster per group of SMs, but no more than tiles."""
        del k
        if sms < self.ctas or sms % self.ctas:
            raise ValueError(f"sms must be a positive multiple of {self.ctas}, the CTAs of a cluster; found {sms}")
        rows, columns = self.count_tiles(m, n)
        return (min(sms, rows * columns * self.ctas), 1, 1)


def make(arch: str = "sm_90a", config: Config = Config()) -> Kernel:
    """Return the kernel for sm_90a, the only target with wgmma.

    Long: the phases of a kernel share its registers and barriers.
    """
    (stages, ctas, width), grid = (config.stages, config.ctas, config.columns), config.grid
    operands = (
        Tile.wgmma_a("m", "k", bf16, tile_m=BM, tile_k=BK),
        Tile.wgmma_a("n", "k", bf16, tile_m=width // ctas, tile_k=BK),
    )
    result = Tile("m", "n", bf16, Layout.TMA_128B, tma_box=(epilogue.ROWS, SLICE))

    @kernel(
        arch=arch, in_specs=operands, out_specs=(result,), grid=grid, block=(THREADS, 1, 1), cluster=(ctas, 1, 1)
    )  # fmt: skip
    def persistent_gemm(a: TensorSpec, b: TensorSpec, c: TensorSpec, *, sms: int = 132) -> None:
        # Long: the phases share registers and barriers.
        (m, depth), n = a.shape, b.shape[0]
        rows, columns = config.count_tiles(m, n)
        clusters = grid(m, n, depth, sms)[0] // ctas
        sa = smem.wgmma_tile(bf16, (stages, CONSUMERS, BM // CONSUMERS, BK), name="sa")
        sb = smem.wgmma_tile(bf16, (stages, ctas, width // ctas, BK), name="sb")
        sc = smem.alloc(
            bf16, (CONSUMERS, config.buffers, epilogue.ROWS, SLICE), swizzle="128B", align=1024, name="sc"
        )  # fmt: skip
        ring = OperandRing(sa, sb, smem.mbarrier(stages, name="full"), smem.mbarrier(stages, name="empty"))
        thread, rank = ptx.special.tid.x(), ptx.special.cluster_ctarank()
        group, lane, cluster = thread >> 7, thread & 31, ptx.special.clusterid.x()

        # One thread initializes the mbarriers, which the other CTA signals; `cluster.sync` makes them visible to both.
        with ptx.if_(thread == 0):
            operand_ring.initialize(ring)
        ptx.cluster.sync()

        with ptx.if_(group == 0):
            ptx.setmaxnreg_dec(config.registers[0])
            with ptx.if_(thread < 32), ptx.if_(elect()):
                slot = ptx.pipeline(stages)
                for tile in ptx.range_(cluster, rows * columns, clusters):
                    row, column = find_grouped_tile(tile, rows, columns, config.band)
                    top, left = (row * ctas + rank) * BM, column * width
                    for k in ptx.range_(0, depth, BK):
                        operand_ring.load_stage(ring, slot, a, b, k, top, left, rank if ctas > 1 else None)
                        slot.advance()

        with ptx.else_():
            ptx.setmaxnreg_inc(config.registers[1])
            consumer, slot, previous = group - 1, ptx.pipeline(stages), reg.scalar(u32, 0, name="previous")
            sums = reg.wgmma_frag(m=BM // CONSUMERS, n=width, dtype=f32, name="sum")
            writer = epilogue.make_writer(thread, group, lane)
            for tile in ptx.range_(cluster, rows * columns, clusters):
                # Phase 1: multiply.
                operand_ring.multiply_stages(ring, (slot, previous), depth, consumer, sums, lane)
                operand_ring.release(ring, previous, lane)

                # Phase 2: write the result. The last stores are still under way when the next tile begins.
                row, column = find_grouped_tile(tile, rows, columns, config.band)
                top, left = (row * ctas + rank) * BM + consumer * epilogue.ROWS, column * width
                epilogue.store_tile(writer, sums, sc, consumer, c, left, top, is_first=False)
            ptx.cp.async_.bulk.wait_group(0, pred=writer.leader)

        # A CTA must not exit while its peer still multicasts to it or arrives at its mbarriers.
        ptx.cluster.sync()

    return persistent_gemm


EXAMPLE = Example(
    make=make,
    reference=compute_product,
    targets=("sm_90a",),
    runs=(
        Run({"m": 256, "n": 256, "k": 64, "sms": 2}, HALF, 1e-3),
        Run({"m": 256, "n": 512, "k": 320, "sms": 2}, HALF, 1e-3),
        Run({"m": 264, "n": 520, "k": 72, "sms": 4}, HALF, 1e-3, special=True, findings=operand_ring.OUTSIDE),
    ),
    large={"m": 8192, "n": 8192, "k": 8192, "sms": 132},
    sass=(
        "UTMALDG.2D.MULTICAST",
        "HGMMA.64x256x16.F32.BF16",
        "STSM.16.M88.4",
        "UTMASTG.2D",
        "USETMAXREG.TRY_ALLOC",
    ),
    flops=count_gemm_flops,
    order=TileOrder(BM * CTAS, BN, BAND, ctas=CTAS),
    peer="matmul triton_matmul",
)

if __name__ == "__main__":
    EXAMPLE.show()
