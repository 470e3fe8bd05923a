"""Grouped Hopper GEMM (mixture of experts): c = a @ b[g].T for the rows of each group g, in bf16 with f32 sums.

`a` (T, K) has the rows of group 0, then of group 1, and so on; `b` is (G, N, K). `sizes`, int32 on the device, has the
number of rows of each group, which may be 0; their sum is T. K and N are multiples of 8.

The idea: the tiles are known only on the device. One launch per group would wait for the sizes on the host, and a group
of 100 rows has 16 tiles of 128 x 256 for N = 4096, too few for 132 SMs. Here persistent CTAs find their tiles
themselves. Each warp runs the same search: 32 lanes hold the tiles of 32 groups, a prefix sum of five shuffles (about
25 clk each) tells where each group's tiles begin, and a vote which group has tile number i. A tile's products take 1024
clk per 64 of K, so the search is lost in them. In a group, tiles go down the rows first: neighboring CTAs read the same
weights.

Tiles never cross groups, so the last tile of a group may load rows of the next group. They are multiplied but not
stored. A warpgroup whose 64 rows all belong to the group stores them by TMA, as in `06_persistent_gemm.py`. A TMA store
would also write rows of the next group; where there are any, threads store 16 bytes each, if row and column are in
bounds. Each warp passes its own 16 rows through shared memory, so that eight lanes write 128 consecutive bytes.

The protocol:

- `full`, one for each of the four stages: one arrival, from the producer, and 48 KiB. Use number i of a stage, counted
  over all tiles from 0, has parity i mod 2: consumers wait for it, and the producer for that of use i - 1 of `empty`,
  which passes for i = 0.
- `empty`, one per stage: 8 arrivals, one from each of the 2 x 4 consumer warps, one step later, when
  `wgmma.wait_group 1` has shown that its products have read the stage, or before the epilogue for the last stage of a
  tile.
- Named barriers 1 and 2, one per consumer warpgroup, 128 threads: for TMA stores see `examples/parts/epilogue.py`;
  before threads store, once, after the leader has waited until no TMA store reads the first buffer, which they use.
- `bar.warp.sync`, between a warp's writes to its rows of the buffer and the reads, and before the writes of the next
  slice. Only generic loads and stores touch the buffer then: no proxy fence.
- `bar.sync 0`, all threads, once: after the mbarriers are initialized.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from examples.parts import epilogue, operand_ring
from examples.parts.epilogue import BUFFERS, ROWS, SLICE, store_slice
from examples.parts.example import HALF, Array, Example, Run, draw_array
from examples.parts.operand_ring import OperandRing
from examples.parts.tile_order import COLUMN_BY_COLUMN, TileOrder
from examples.parts.warps import elect
from pyptx import Kernel, Layout, TensorSpec, Tile, intrinsic, kernel, ptx, reg, smem
from pyptx.types import b32, bf16, f32, s32, u32

BM, BN, BK = 128, 256, 64
"""The tile of `04_warp_specialized.py`: 48 KiB per 1024 clk, 48 of the 69 B/clk that an SM receives. A cluster would
need less, but with tiles of 256 rows, of which a group's last one wastes up to 255."""
STAGES, CONSUMERS = 4, 2
THREADS = 128 * (1 + CONSUMERS)
# The kernel starts with 168 registers per thread: 128 * 40 + 256 * 232 = 384 * 168.
PRODUCER_REGISTERS, CONSUMER_REGISTERS = 40, 232
LANES = 32
CHUNK = 8
"""Columns that a thread stores at once: 16 bytes."""


def grid(t: int, g: int, n: int, k: int, sms: int) -> tuple[int, int, int]:
    """Return the grid: a CTA per SM, as the number of tiles is not known here."""
    del t, g
    if n % CHUNK or k % CHUNK:
        raise ValueError(f"N and K must be multiples of {CHUNK}; found {n} and {k}")
    return (sms, 1, 1)


@dataclass(frozen=True)
class Search:
    """A position in the groups: 32 of them from `first`, and the tiles and rows of all groups before."""

    sizes: reg.Reg
    groups: int
    columns: int
    """Tiles along N."""
    lane: reg.Reg
    first: reg.Reg
    tiles: reg.Reg
    rows: reg.Reg


@dataclass(frozen=True)
class Place:
    """A tile: whether it exists, its group, its first row, the end of its group's rows, and its first column."""

    exists: reg.Reg
    group: reg.Reg
    top: reg.Reg
    end: reg.Reg
    left: reg.Reg


def start_search(sizes: reg.Reg, groups: int, columns: int, lane: reg.Reg) -> Search:
    """Return the position before all groups."""
    first, tiles, rows = (reg.scalar(s32, 0, name=name) for name in ("first", "tiles", "rows"))
    return Search(sizes, groups, columns, lane, first, tiles, rows)


@intrinsic
def find_tile(search: Search, index: reg.Reg) -> Place:
    """Return tile number `index`, the same in all lanes of the warp. Numbers must ascend from call to call."""
    lane = search.lane
    size, row_sum, tile_sum, holders = reg.scalar(s32), reg.scalar(s32), reg.scalar(s32), reg.scalar(b32)
    with ptx.loop("window"):
        group = search.first + lane
        ptx.mov(s32, size, 0)
        ptx.ld(s32, size, ptx.addr(search.sizes, group * 4), pred=group < search.groups)
        # Inclusive prefix sums over the lanes.
        ptx.mov(s32, row_sum, size)
        ptx.mov(s32, tile_sum, (size + (BM - 1)) // BM * search.columns)
        for distance in (1, 2, 4, 8, 16):
            for total in (row_sum, tile_sum):
                below = ptx.warp.shfl_up(total, distance)
                ptx.add(s32, total, total, below, pred=lane >= distance)
        row_sum += search.rows
        tile_sum += search.tiles
        ptx.mov(b32, holders, ptx.warp.ballot(index < tile_sum))
        ptx.break_(pred=(holders != 0) | (search.first + LANES >= search.groups))
        ptx.mov(s32, search.rows, ptx.warp.shfl_idx(row_sum, LANES - 1))
        ptx.mov(s32, search.tiles, ptx.warp.shfl_idx(tile_sum, LANES - 1))
        ptx.add(s32, search.first, search.first, LANES)
    # The lowest of the lanes whose sum exceeds the index has the group.
    lowest = reg.scalar(b32)
    ptx.inst.brev.b32(lowest, holders)
    holder = reg.scalar(u32)
    ptx.inst.clz.b32(holder, lowest)
    size, end, last = (ptx.warp.shfl_idx(value, holder) for value in (size, row_sum, tile_sum))
    height = (size + (BM - 1)) // BM
    rest = index - (last - height * search.columns)
    column = rest // height.max(1)
    top = end - size + (rest - column * height) * BM
    return Place(holders != 0, search.first + holder.view(s32), top, end, column * BN)


@intrinsic
def store_rows(
    sums: list[reg.Reg], buffer: reg.Reg, lane: reg.Reg, out: reg.Reg, row: reg.Reg, end: reg.Reg, column: reg.Reg,
    n: int,
) -> None:  # fmt: skip
    """Store a warp's 16 rows of a slice from `row` and `column` of `out`, up to row `end` and column `n`, through its 2
    KiB of `buffer`."""
    store_slice(sums, buffer + smem.apply_swizzle((lane & 15) * 128 + (lane >> 4) * 16, "128B"))
    ptx.bar.warp_sync()
    chunk, first = lane & 7, lane >> 3
    column = column + chunk * CHUNK
    for i in range(0, 16, 4):
        line = first + i
        values = ptx.ld(u32, buffer + smem.apply_swizzle(line * 128 + chunk * 16, "128B"), vec=4, space="shared")
        target = ptx.mad(row + line, n * 2, out, mode="wide") + column * 2
        ptx.st(u32, ptx.addr(target), values, pred=(row + line < end) & (column < n))


def make(arch: str = "sm_90a") -> Kernel:
    """Return the kernel for sm_90a, the only target with wgmma.

    Long: the phases of a kernel share its registers and barriers.
    """
    operands = (
        Tile.wgmma_a("t", "k", bf16, tile_m=BM, tile_k=BK),
        Tile("g", "n", "k", bf16, Layout.TMA_128B, tma_box=(1, BN, BK)),
        Tile("g", s32),
    )

    result = Tile("t", "n", bf16, Layout.TMA_128B, tma_box=(ROWS, SLICE))

    @kernel(arch=arch, in_specs=operands, out_specs=(result,), grid=grid, block=(THREADS, 1, 1))
    def grouped_gemm(a: TensorSpec, b: TensorSpec, sizes: TensorSpec, c: TensorSpec, *, sms: int = 132) -> None:
        # Long: the phases share registers and barriers.
        groups, n, depth = b.shape
        pointers = ptx.global_ptrs(sizes, c)
        sa = smem.wgmma_tile(bf16, (STAGES, CONSUMERS, BM // CONSUMERS, BK), name="sa")
        sb = smem.wgmma_tile(bf16, (STAGES, 1, BN, BK), name="sb")
        sc = smem.alloc(bf16, (CONSUMERS, BUFFERS, ROWS, SLICE), swizzle="128B", align=1024, name="sc")
        ring = OperandRing(sa, sb, smem.mbarrier(STAGES, name="full"), smem.mbarrier(STAGES, name="empty"))
        thread = ptx.special.tid.x()
        warp, group, lane = thread >> 5, thread >> 7, (thread & 31).view(s32)

        # The other threads must not use the mbarriers before they are initialized.
        with ptx.if_(thread == 0):
            operand_ring.initialize(ring)
        ptx.bar.sync(0)

        search = start_search(pointers[0], groups, -(-n // BN), lane)
        index, slot = reg.from_(ptx.special.ctaid.x().view(s32), s32), ptx.pipeline(STAGES)
        with ptx.if_(group == 0):
            ptx.setmaxnreg_dec(PRODUCER_REGISTERS)
            # The whole warp searches, one lane loads.
            with ptx.if_(warp == 0), ptx.loop("tile"):
                place = find_tile(search, index)
                ptx.break_(pred=~place.exists)
                with ptx.if_(elect()):
                    for k in ptx.range_(0, depth, BK):
                        mbar = operand_ring.claim_stage(ring, slot)
                        ptx.cp.async_.bulk.tensor_2d(dst=sa[slot.stage], src=a, coord=(k, place.top), mbar=mbar)
                        ptx.cp.async_.bulk.tensor_3d(
                            dst=sb[slot.stage], src=b, coord=(k, place.left, place.group), mbar=mbar
                        )
                        slot.advance()
                index += sms

        with ptx.else_():
            ptx.setmaxnreg_inc(CONSUMER_REGISTERS)
            consumer, previous = group - 1, reg.scalar(u32, 0, name="previous")
            sums = reg.wgmma_frag(m=BM // CONSUMERS, n=BN, dtype=f32, name="sum")
            writer = epilogue.make_writer(thread, group, thread & 31)
            # A warp has 16 rows of its warpgroup's 64.
            warp_row = (warp & 3) * 16
            buffer = sc[consumer, 0].address() + warp_row * (SLICE * 2)
            with ptx.loop("tile"):
                place = find_tile(search, index)
                ptx.break_(pred=~place.exists)
                # Phase 1: multiply.
                operand_ring.multiply_stages(ring, (slot, previous), depth, consumer, sums, lane)
                operand_ring.release(ring, previous, lane)

                # Phase 2: write the rows of the group, by TMA if all of the warpgroup's rows are.
                top = place.top + consumer.view(s32) * ROWS
                with ptx.if_(top + ROWS <= place.end):
                    epilogue.store_tile(writer, sums, sc, consumer, c, place.left, top, is_first=False)
                with ptx.else_():
                    # Threads use the first buffer; the last store of an earlier tile reads the second.
                    ptx.cp.async_.bulk.wait_group(1, read=True, pred=writer.leader)
                    writer.barrier.sync()
                    for part in range(BN // SLICE):
                        if part:
                            ptx.bar.warp_sync()
                        values = sums[part * SLICE // 2 : (part + 1) * SLICE // 2]
                        row, left = top + warp_row.view(s32), place.left + part * SLICE
                        store_rows(values, buffer, lane, pointers[1], row, place.end, left, n)
                index += sms
            ptx.cp.async_.bulk.wait_group(0, pred=writer.leader)

    return grouped_gemm


def reference(a: Array, b: Array, sizes: Array, sms: int = 132) -> Array:
    """Return the expected result before rounding to bf16."""
    del sms
    ends = np.cumsum(sizes)
    products = [
        a[end - size : end].astype(np.float32) @ weights.astype(np.float32).T
        for weights, size, end in zip(b, sizes, ends, strict=True)
    ]
    return np.concatenate(products)


def draw(run: Run, random: np.random.Generator) -> list[Array]:
    """Return random operands, and random sizes, some of them 0."""
    a, b, _ = (draw_array(tile, run, random) for tile in make().in_specs)
    weights = random.random(len(b)) * (random.random(len(b)) < 0.8) + 1e-9
    return [a, b, random.multinomial(len(a), weights / weights.sum()).astype(np.int32)]


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_90a",),
    runs=(
        Run({"t": 200, "g": 3, "n": 256, "k": 64, "sms": 1}, HALF, 1e-3),
        Run({"t": 300, "g": 5, "n": 328, "k": 136, "sms": 3}, HALF, 1e-3, special=True, findings=epilogue.OUTSIDE),
        Run({"t": 150, "g": 70, "n": 40, "k": 72, "sms": 2}, HALF, 1e-3),
    ),
    large={"t": 16384, "g": 64, "n": 4096, "k": 2048, "sms": 132},
    sass=(
        "UTMALDG.2D",
        "UTMALDG.3D",
        "HGMMA.64x256x16.F32.BF16",
        "SHFL.UP",
        "VOTE",
        "UTMASTG.2D",
        "STG.E.128",
        "USETMAXREG.TRY_ALLOC",
    ),
    draw=draw,
    flops=lambda shape: 2 * shape["t"] * shape["n"] * shape["k"],
    order=TileOrder(BM, BN, COLUMN_BY_COLUMN),
    peer="grouped_matmul",
)

if __name__ == "__main__":
    EXAMPLE.show()
