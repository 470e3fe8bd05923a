"""A warp's part of c = a @ b.T by `mma.sync`: fragments from shared memory by `ldmatrix`, products, and the result.

Shapes along K are in bytes: a step is 32 bytes, which are 16 elements of bf16, 32 of an 8-bit type, 64 of a 4-bit type.
The layout of fragments in bytes is then the same for all types, and so is all code here but the product's spelling.
"""

from __future__ import annotations

from dataclasses import dataclass

from examples.parts.vectors import pack
from pyptx import intrinsic, ptx, reg, smem
from pyptx.types import PtxType, b32, bf16x2, f32

STEP = 32
"""Bytes along K of one product."""


Fragments = tuple[reg.RegArray, reg.RegArray]
"""One step's fragments of both operands."""


@dataclass(frozen=True)
class WarpTile:
    """`rows` x `columns` elements of the result, multiples of 16. Rows of the operands have `pitch` bytes in shared
    memory, 64 or 128, swizzled over as many bytes: the eight rows that an `ldmatrix` reads are in different banks."""

    dtype: PtxType
    rows: int
    columns: int
    pitch: int = 128

    @property
    def swizzle(self) -> str:
        """The name of the swizzle."""
        return f"{self.pitch}B"

    def locate_rows(self, lane: reg.Reg, down: reg.Reg, right: reg.Reg) -> tuple[reg.Reg, reg.Reg]:
        """Return the offsets of the lane's `ldmatrix` rows for step 0, if the tile begins at row `down` of `a` and row
        `right` of `b`.

        `ldmatrix` takes the row addresses of four 8 x 8 matrices from lanes 0–7, 8–15, … For `a`, these are the upper
        and lower 8 rows, then the same rows 16 bytes further; for `b`, the two halves of the step, then 8 rows further.
        """
        a_offset = (down + (lane & 15)) * self.pitch + (lane >> 4) * 16
        b_offset = (right + (lane & 7) + (lane >> 4) * 8) * self.pitch + ((lane >> 3) & 1) * 16
        return smem.apply_swizzle(a_offset, self.swizzle), smem.apply_swizzle(b_offset, self.swizzle)

    def make_sums(self) -> reg.RegArray:
        """Return zeroed sums: four registers for each 16 x 8 product, row by row."""
        sums = reg.array(f32, self.rows * self.columns // 32, name="sum")
        clear(sums)
        return sums

    def make_fragments(self) -> Fragments:
        """Return registers for the fragments of one step."""
        return reg.array(b32, self.rows // 4, name="a"), reg.array(b32, self.columns // 4, name="b")

    @intrinsic
    def load(self, starts: tuple[reg.Reg, reg.Reg], step: int, fragments: Fragments) -> None:
        """Load the fragments of one step: `starts` are the addresses of the lane's rows in both tiles of the stage."""
        for start, registers in zip(starts, fragments, strict=True):
            # The swizzle XORs these address bits, so XOR also steps along the row.
            address = start ^ (STEP * step) if step else start
            for part in range(registers.count // 4):
                ptx.ldmatrix(dst=registers[4 * part : 4 * part + 4], src=ptx.addr(address, part * 16 * self.pitch))

    @intrinsic
    def multiply(
        self,
        sums: reg.RegArray,
        a: reg.RegArray | list[reg.Reg],
        b: reg.RegArray | list[reg.Reg],
        *,
        fresh: bool = False,
    ) -> None:
        """Add the products of one step to the sums, or with `fresh` replace them. A step has four registers per 16 rows
        of `a`, and two per 8 rows of `b`."""
        zeros = [reg.scalar(f32, 0)] * 4 if fresh else None
        depth = STEP * 8 // self.dtype.bits
        for i in range(self.rows // 16):
            for j in range(self.columns // 8):
                cell = 4 * (i * (self.columns // 8) + j)
                d = sums[cell : cell + 4]
                ptx.mma.sync(
                    shape=(16, 8, depth), dtype_d=f32, dtype_a=self.dtype, dtype_b=self.dtype, dtype_c=f32,
                    d=d, a=a[4 * i : 4 * i + 4], b=b[2 * j : 2 * j + 2], c=zeros or d,
                )  # fmt: skip

    def store(
        self, sums: reg.RegArray, c: reg.Reg, shape: tuple[int, int], lane: reg.Reg, top: reg.Reg, left: reg.Reg,
        *, is_inside: bool,
    ) -> None:  # fmt: skip
        """Write the sums as bf16 to the matrix of `shape` at address `c`, from row `top` and column `left`.

        Registers 2 h and 2 h + 1 of a product are row lane / 4 + 8 h, columns 2 (lane mod 4) and the next. `is_inside`
        says that no tile crosses an edge; otherwise every pair is checked. The number of columns is even.
        """
        (rows, columns), row, column = shape, top + (lane >> 2), left + (lane & 3) * 2
        corner = ptx.mad(column, 2, ptx.mad(row, columns * 2, c, mode="wide"), mode="wide")
        for i in range(self.rows // 16):
            for half in range(2):
                down = 16 * i + 8 * half
                line = corner + down * columns * 2
                is_row = None if is_inside else row + down < rows
                for j in range(self.columns // 8):
                    low, high = sums[4 * (i * (self.columns // 8) + j) + 2 * half :][:2]
                    valid = None if is_row is None else is_row & (column + 8 * j < columns)
                    ptx.st(bf16x2, ptx.addr(line, 16 * j), pack(low, high), pred=valid)


@intrinsic
def clear(sums: reg.RegArray) -> None:
    """Zero the sums."""
    for register in sums:
        ptx.mov(f32, register, 0)


def refuse_shape(n: int, k: int, dtype: PtxType) -> None:
    """Raise a ValueError unless rows of operands are a multiple of 16 bytes, the unit of all copies, and rows of the
    result are pairs."""
    if k * dtype.bits % 128:
        raise ValueError(f"K must be a multiple of {128 // dtype.bits}, 16 bytes of {dtype.name}; found {k}")
    if n % 2:
        raise ValueError(f"N must be even, because results are stored in pairs; found {n}")


def count_tiles(m: int, n: int, rows: int, columns: int) -> tuple[int, int]:
    """Return how many tiles of rows x columns cover a result, down and right."""
    return -(-m // rows), -(-n // columns)
