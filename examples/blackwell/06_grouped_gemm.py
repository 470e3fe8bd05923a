"""Grouped Blackwell GEMM (mixture of experts): c = a @ b[g].T for the rows of each group g, in bf16 with f32 sums.

`a` (T, K) has the rows of group 0, then of group 1, and so on; `b` is (G, N, K). `sizes`, uint32 on the device, has the
number of rows of each group, which may be 0; their sum is T. K and N are multiples of 8, and G is at most 512.

The idea: the tiles are known only on the device. A launch per group would wait for the sizes on the host, and a group
of 256 rows has 16 tiles for N = 4096, too few for 74 pairs. Here one launch computes all groups, and each task finds
the tiles itself: it keeps the group and the number of tiles before it, and steps to later groups, at about 30 cycles
for a size in shared memory. A tile with K = 2048 takes 16,384 cycles. The grid is one pair for every two SMs, and a
pair takes every 74th tile. Cluster launch control would need a grid of the largest number of tiles that the sizes could
make, and cancel the rest one by one.

Tiles never cross groups, so the last tile of a group may load rows of the next one; they are multiplied but not stored.
A warp whose 32 rows belong to the group stores them by TMA (`OutputWarp` in `examples/parts/tensor_memory.py`). In the
warp with the group's last row, each thread stores its own row, 16 bytes at a time, if it belongs to the group.

The rest, with its protocol, is `04_persistent_gemm` without the tile queue. All threads of a CTA first copy the sizes
to shared memory; the `cluster.sync` of `allocate` publishes these as well. An output warp without rows of the group
reads no sums, but arrives at `sums_empty` like the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from examples.parts import tensor_memory
from examples.parts.example import HALF, Array, Example, Run, draw_array, widen
from examples.parts.tensor_memory import LANES, SLICE, OutputWarp
from examples.parts.tile_order import COLUMN_BY_COLUMN, TileOrder
from examples.parts.warps import elect
from pyptx import Kernel, Layout, TensorSpec, Tile, intrinsic, kernel, ptx, reg, smem
from pyptx.types import bf16, bf16x2, u32

ROWS, COLUMNS, BK = 128, 256, 64
"""Rows per CTA, columns per pair, K per stage, for the reasons of `04_persistent_gemm`. A group's last tile wastes up
to 255 rows; one SM alone would waste 127 at most, but loads set its pace, as in `02_ring_gemm`."""
CTAS, STAGES = 2, 6
STAGE_BYTES = (ROWS + COLUMNS // CTAS) * BK * 2
BOTH = (1 << CTAS) - 1
OUTPUT_WARPS, PRODUCER, ISSUER, WARPS = 4, 4, 5, 6
CHUNK = 8
"""Columns that a thread stores at once: 16 bytes."""
MOST_GROUPS = 512


def grid(g: int, n: int, k: int, sms: int, **sizes: int) -> tuple[int, int, int]:
    """Return the grid: a pair of CTAs for every two SMs, as the number of tiles is not known here."""
    del sizes
    if n % CHUNK or k % CHUNK or g > MOST_GROUPS or sms % CTAS:
        raise ValueError(
            f"N and K must be multiples of {CHUNK}, with at most {MOST_GROUPS} groups and an even number of SMs; found "
            f"{n}, {k}, {g} and {sms}"
        )
    return (sms, 1, 1)


@dataclass(frozen=True)
class Place:
    """A tile of a pair: its group, its first row, the end of its group's rows, and its first column."""

    group: reg.Reg
    top: reg.Reg
    end: reg.Reg
    left: reg.Reg


def list_tiles(sizes: smem.SharedAlloc, columns: int, stride: int) -> Iterator[Place]:
    """Loop over a pair's tiles, every `stride`th. `sizes` has one more entry than groups; tiles of a group go down the
    rows first, so that neighboring pairs read the same weights."""
    groups = sizes.shape[0] - 1
    index = reg.from_(ptx.special.clusterid.x(), u32)
    group, tiles, end = (reg.scalar(u32, 0, name=name) for name in ("group", "tiles", "end"))
    size, height = reg.from_(smem.load(u32, sizes[0]), u32), reg.scalar(u32)
    ptx.mov(u32, end, size)
    with ptx.loop("tile"):
        ptx.mov(u32, height, count_tile_rows(size))
        with ptx.while_(lambda: (group < groups) & (index >= tiles + height * columns)):
            tiles += height * columns
            group += 1
            ptx.mov(u32, size, smem.load(u32, sizes[group]))
            end += size
            ptx.mov(u32, height, count_tile_rows(size))
        ptx.break_(pred=group >= groups)
        within = index - tiles
        column = within // height
        top = end - size + (within - column * height) * (ROWS * CTAS)
        yield Place(group, top, end, column * COLUMNS)
        index += stride


def count_tile_rows(size: reg.Reg) -> reg.Reg:
    """Return the number of rows of tiles of a group."""
    return (size + (ROWS * CTAS - 1)) // (ROWS * CTAS)


@intrinsic
def store_rows(sums: reg.Reg, out: reg.Reg, row: reg.Reg, left: reg.Reg, n: int, is_valid: reg.Reg) -> None:
    """Store the thread's row of a tile if it is valid, up to column `n`."""
    line = ptx.mad(row, n * 2, out, mode="wide")
    for first in range(0, COLUMNS, SLICE):
        for chunk, packed in enumerate(tensor_memory.load_slice(sums + first)):
            column = left + (first + chunk * CHUNK)
            ptx.st(bf16x2, ptx.addr(line + column * 2), packed, pred=is_valid & (column < n))


def make(arch: str = "sm_100a") -> Kernel:
    """Return the kernel for a target with tensor memory.

    Long: the phases of a kernel share its registers and barriers.
    """
    operands = (
        Tile.wgmma_a("t", "k", bf16, tile_m=ROWS, tile_k=BK),
        Tile("g", "n", "k", bf16, Layout.TMA_128B, tma_box=(1, COLUMNS // CTAS, BK)),
        Tile("g", u32),
    )
    result = Tile("t", "n", bf16, Layout.TMA_128B, tma_box=(LANES, SLICE))

    @kernel(
        arch=arch, in_specs=operands, out_specs=(result,), grid=grid, block=(32 * WARPS, 1, 1), cluster=(CTAS, 1, 1)
    )
    def grouped_gemm(a: TensorSpec, b: TensorSpec, sizes: TensorSpec, c: TensorSpec, *, sms: int = 148) -> None:
        # Long: the phases share registers and barriers.
        groups, n, depth = b.shape
        source, out = ptx.global_ptrs(sizes, c)
        sa = smem.wgmma_tile(bf16, (STAGES, ROWS, BK), name="sa")
        sb = smem.wgmma_tile(bf16, (STAGES, COLUMNS // CTAS, BK), name="sb")
        sc = tensor_memory.allocate_buffers(OUTPUT_WARPS)
        group_sizes = smem.alloc(u32, groups + 1, name="group_sizes")
        full, empty = smem.mbarrier(STAGES, name="full"), smem.mbarrier(STAGES, name="empty")
        sums_full, sums_empty = smem.mbarrier(2, name="sums_full"), smem.mbarrier(2, name="sums_empty")
        thread, rank = ptx.special.tid.x(), ptx.special.cluster_ctarank()
        warp, is_leader = thread >> 5, rank == 0
        first_warp, tiles = warp == 0, (group_sizes, -(-n // COLUMNS), sms // CTAS)

        # Phase 1: copy the sizes, initialize the mbarriers of both CTAs, and allocate all of tensor memory.
        for group in ptx.range_(thread, groups, 32 * WARPS):
            group_sizes[group] = ptx.ld(u32, ptx.addr(source, group * 4))
        with ptx.if_(first_warp), ptx.if_(elect()):
            group_sizes[groups] = 0
            for stage in range(STAGES):
                ptx.mbarrier.init(full[stage], 1)
                ptx.mbarrier.init(empty[stage], 1)
            for half in range(2):
                ptx.mbarrier.init(sums_full[half], 1)
                ptx.mbarrier.init(sums_empty[half], CTAS * OUTPUT_WARPS)
        sums = tensor_memory.allocate(2 * COLUMNS, first_warp, cta_group=2)

        # Phase 2, the producer of each CTA: load the CTA's rows of `a` and its half of the group's weights.
        with ptx.if_(warp == PRODUCER), ptx.if_(elect()):
            ring = ptx.pipeline(STAGES)
            for tile in list_tiles(*tiles):
                top, left = tile.top + rank * ROWS, tile.left + rank * (COLUMNS // CTAS)
                for k in ptx.range_(0, depth, BK):
                    ptx.mbarrier.wait(empty[ring.stage], ring.phase ^ 1)
                    ptx.mbarrier.arrive_expect_tx(full[ring.stage], CTAS * STAGE_BYTES, pred=is_leader)
                    mbar = ptx.cluster.map_shared_u32(full[ring.stage].address(), 0)
                    ptx.cp.async_.bulk.tensor_2d(dst=sa[ring.stage], src=a, coord=(k, top), mbar=mbar, cta_group=2)
                    ptx.cp.async_.bulk.tensor_3d(
                        dst=sb[ring.stage], src=b, coord=(k, left, tile.group), mbar=mbar, cta_group=2
                    )
                    ring.advance()

        # Phase 2, the MMA issuer of the leader CTA: multiply for both CTAs.
        with ptx.if_((warp == ISSUER) & is_leader), ptx.if_(elect()):
            ring, halves = ptx.pipeline(STAGES), ptx.pipeline(2)
            shape = ptx.tcgen05.make_instr_desc_f16bf16_f32(m=ROWS * CTAS, n=COLUMNS)
            for _ in list_tiles(*tiles):
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

        # Phase 2, the output warps of each CTA.
        with ptx.if_(warp < OUTPUT_WARPS):
            output, halves = OutputWarp(sc, warp, elect()), ptx.pipeline(2)
            for tile in list_tiles(*tiles):
                ptx.mbarrier.wait(sums_full[halves.stage], halves.phase)
                ptx.tcgen05.fence_after_thread_sync()
                top, tile_sums = tile.top + rank * ROWS, sums + halves.stage * COLUMNS
                first = top + warp * LANES
                with ptx.if_(first + LANES <= tile.end):
                    output.write(tile_sums, COLUMNS, c, top, tile.left)
                with ptx.elif_(first < tile.end):
                    row = top + thread
                    store_rows(tile_sums + (warp << 21), out, row, tile.left, n, row < tile.end)
                    ptx.tcgen05.fence_before_thread_sync()
                ptx.warp.sync()  # All lanes have seen this phase of `sums_full` before one arrives for them.
                ptx.cluster.arrive_remote(sums_empty[halves.stage], 0, pred=output.elected)
                halves.advance()
            output.finish()

        # Phase 3: free tensor memory. Until both CTAs get here, neither exits while its peer signals its mbarriers.
        tensor_memory.free(sums, 2 * COLUMNS, first_warp, cta_group=2)

    return grouped_gemm


def reference(a: Array, b: Array, sizes: Array, sms: int = 148) -> Array:
    """Return the expected result before rounding to bf16."""
    del sms
    parts = np.split(widen(a), np.cumsum(sizes)[:-1])
    return np.concatenate([part @ widen(weights).T for part, weights in zip(parts, b, strict=True)])


def draw(run: Run, random: np.random.Generator) -> list[Array]:
    """Return random operands, and random sizes, some of them 0."""
    a, b, _ = (draw_array(tile, run, random) for tile in make().in_specs)
    weights = random.random(len(b)) * (random.random(len(b)) < 0.7) + 1e-9
    return [a, b, random.multinomial(len(a), weights / weights.sum()).astype(np.uint32)]


OUTSIDE = tensor_memory.OUTSIDE | {
    "PTX0977": "rows of a tile past the end of its group are multiplied, because a product has 256, and not stored"
}

EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_100a", "sm_103a"),
    runs=(
        Run({"t": 100, "g": 2, "n": 64, "k": 64, "sms": 2}, HALF, 1e-3, findings=OUTSIDE),
        Run({"t": 600, "g": 5, "n": 136, "k": 456, "sms": 4}, HALF, 1e-3, special=True, findings=OUTSIDE),
    ),
    large={"t": 16384, "g": 64, "n": 4096, "k": 2048, "sms": 148},
    sass=("UTMALDG.2D.2CTA", "UTMALDG.3D.2CTA", "UTCHMMA.2CTA", "LDTM.x64", "UTMASTG.2D", "STG.E.128"),
    draw=draw,
    flops=lambda shape: 2 * shape["t"] * shape["n"] * shape["k"],
    order=TileOrder(ROWS * CTAS, COLUMNS, COLUMN_BY_COLUMN, ctas=CTAS),
    peer="grouped_matmul",
)

if __name__ == "__main__":
    EXAMPLE.show()
