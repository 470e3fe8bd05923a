"""A ring of shared memory stages for both operands of c = a @ b.T, which all threads fill by `cp.async`.

Knows how tiles get from global memory to the fragments of `WarpTile`, and the pipelined loop over K. Coordinates along
K are bytes. Bytes outside the matrices become zeros, which add nothing to the sums.

The protocol: every thread commits one group of copies per stage. `wait_group(stages - 2)` completes its own copies of
the stage, and the `bar.sync 0` after it, of all threads, everyone's. The same barrier shows that all threads have read
the stage before, which is filled next. Fragments are loaded one step ahead, at the end from a stage of zeros, so n
tiles along K take n + 1 barriers, and a last `wait_group(0)` completes the groups of zeros.
"""

from __future__ import annotations

from dataclasses import dataclass

from examples.parts.warp_tile import STEP, WarpTile
from pyptx import intrinsic, ptx, reg, smem
from pyptx.types import PtxType, b8, f32, u32

CHUNK = 16
"""Bytes of one copy."""


@dataclass(frozen=True)
class Operand:
    """An operand: its matrix, its ring, and the thread's offsets in a stage."""

    source: reg.Reg
    """The global address of the matrix."""
    shape: tuple[int, int]
    """Rows of the matrix, and bytes of a row."""
    ring: smem.SharedAlloc
    """Stages of rows x bytes."""
    row: reg.Reg
    column: reg.Reg
    """The row in a tile and the byte in the row at which the thread's first chunk begins."""
    write_offset: reg.Reg
    """The offset in a stage to which the thread copies its first chunk."""
    read_offset: reg.Reg
    """The offset in a stage of the lane's row in its warp's first fragment, for step 0."""
    threads: int

    @intrinsic
    def fill(self, stage: reg.Reg, top: reg.Reg, k: reg.Reg, end: int | reg.Reg) -> None:
        """Copy the thread's chunks of a tile: rows from `top`, bytes from `k`. Zero what is past the byte `end` of a
        row, and rows past the last."""
        rows, pitch = self.ring.shape[1:]
        step = self.threads // (pitch // CHUNK)
        row, column = top + self.row, k + self.column
        source = ptx.mad(row, self.shape[1], self.source + ptx.cvt("u64", "u32", column), mode="wide")
        target, in_row = self.ring[stage].address() + self.write_offset, column < end
        for down in range(0, rows, step):
            valid = in_row if self.shape[0] % rows == 0 else in_row & (row + down < self.shape[0])
            size = ptx.selp(u32, CHUNK, 0, valid)
            # A step is a multiple of 8 rows, so the swizzle leaves chunks at the same place in the row.
            ptx.cp.async_.cg(ptx.addr(target, down * pitch), source, CHUNK, src_size=size)
            if down + step < rows:
                source = source + step * self.shape[1]


@dataclass(frozen=True)
class Ring:
    """Both operands. `top` is the tile's first row of each."""

    a: Operand
    b: Operand
    tile: WarpTile

    @property
    def stages(self) -> int:
        """The number of stages."""
        return self.a.ring.shape[0]

    def fill(self, stage: reg.Reg, tops: tuple[reg.Reg, reg.Reg], k: reg.Reg, end: int | reg.Reg) -> None:
        """Start the copies of a stage, and commit them as one group."""
        for operand, top in zip((self.a, self.b), tops, strict=True):
            operand.fill(stage, top, k, end)
        ptx.cp.async_.commit_group()

    def find_rows(self, stage: reg.Reg) -> tuple[reg.Reg, reg.Reg]:
        """Return the addresses of the lane's rows of a stage."""
        a, b = (operand.ring[stage].address() + operand.read_offset for operand in (self.a, self.b))
        return a, b


def make_ring(
    tile: WarpTile, stages: int, threads: int, a: tuple[reg.Reg, tuple[int, int], int],
    b: tuple[reg.Reg, tuple[int, int], int], place: tuple[reg.Reg, reg.Reg, reg.Reg],
) -> Ring:  # fmt: skip
    """Return a ring. `a` and `b` are address, shape (rows, bytes) and rows of a tile; `place` is the thread, and where
    its warp's tile begins, down and right, in the tile of the CTA."""
    thread, down, right = place
    chunks = tile.pitch // CHUNK
    row, column = thread // chunks, thread % chunks * CHUNK
    write_offset = smem.apply_swizzle(row * tile.pitch + column, tile.swizzle)
    a_operand, b_operand = (
        Operand(
            source, shape, smem.alloc(b8, (stages, rows, tile.pitch), swizzle=tile.swizzle, align=1024, name=name),
            row, column, write_offset, read_offset, threads,
        )
        for name, (source, shape, rows), read_offset in zip(
            ("sa", "sb"), (a, b), tile.locate_rows(thread & 31, down, right), strict=True
        )
    )  # fmt: skip
    return Ring(a_operand, b_operand, tile)


def multiply_tiles(
    ring: Ring, sums: reg.RegArray, tops: tuple[reg.Reg, reg.Reg], begin: int | reg.Reg, end: int | reg.Reg,
    *, totals: reg.RegArray | None = None,
) -> None:  # fmt: skip
    """Add the products of bytes `begin` to `end` along K of one tile to the sums; `begin` < `end`.

    Fragments are loaded one step ahead, also across stages, so products never wait for `ldmatrix`. To use the ring
    again, all threads must have returned: put a `bar.sync` between two calls. With `totals`, the
    sums hold one stage only, and are added to the totals at its end.
    """
    pitch, steps = ring.tile.pitch, ring.tile.pitch // STEP
    slot, reader = ptx.pipeline(ring.stages), ptx.pipeline(ring.stages)
    for ahead in range(ring.stages - 1):
        ring.fill(slot.stage, tops, reg.from_(begin, u32) + ahead * pitch, end)
        slot.advance()

    fragments = [ring.tile.make_fragments() for _ in range(2)]
    ptx.cp.async_.wait_group(ring.stages - 2)
    ptx.bar.sync(0)
    ring.tile.load(ring.find_rows(reader.stage), 0, fragments[0])
    for k in ptx.range_(reg.from_(begin, u32), end, pitch):
        # The barrier of the previous iteration shows that all threads have read the stage that is filled here.
        ring.fill(slot.stage, tops, k + (ring.stages - 1) * pitch, end)
        slot.advance()
        rows = ring.find_rows(reader.stage)
        for step in range(steps - 1):
            ring.tile.load(rows, step + 1, fragments[(step + 1) % 2])
            ring.tile.multiply(sums, *fragments[step % 2], fresh=totals is not None and step == 0)
        # All of this stage is in registers. Past the end of K the next one holds zeros.
        ptx.cp.async_.wait_group(ring.stages - 2)
        ptx.bar.sync(0)
        reader.advance()
        ring.tile.load(ring.find_rows(reader.stage), 0, fragments[0])
        ring.tile.multiply(sums, *fragments[(steps - 1) % 2])
        for total, part in zip(totals or (), sums, strict=False):
            ptx.add(f32, total, total, part)
    # Copies of zeros are still pending, and must not outlive the CTA.
    ptx.cp.async_.wait_group(0)


def count_row_bytes(shape: tuple[int, ...], dtype: PtxType) -> tuple[int, int]:
    """Return rows, and bytes of a row."""
    return shape[0], shape[1] * dtype.bits // 8
