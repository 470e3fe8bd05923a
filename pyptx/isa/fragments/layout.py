"""The common form of all register fragments: digits of the lane and of the element, each advancing by rows and
columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import prod
from typing import NamedTuple

from pyptx.types import PtxType


class Digit(NamedTuple):
    """One digit of a mixed-radix number: `size` values, each step advancing by a number of rows, columns and
    matrices."""

    size: int
    row: int = 0
    col: int = 0
    matrix: int = 0


class Place(NamedTuple):
    """The place of one element: the lane, its register, and the lowest bit of the element in that register."""

    lane: int
    register: int
    bit: int


@dataclass(frozen=True, slots=True)
class Fragment:
    """A matrix distributed over lanes. The lane and the element's number within it are numbers in the radices of
    `lanes` and `elements`, lowest digit first; the position is the sum of the digits' contributions. Elements fill
    registers of `register_bits` from the lowest bit, `bits` each. A fragment may hold several matrices, or an element
    twice."""

    lanes: tuple[Digit, ...]
    elements: tuple[Digit, ...]
    bits: int
    register_bits: int = 32

    @property
    def lane_count(self) -> int:
        """The number of lanes: 32 for a warp, 128 for a warpgroup."""
        return prod(digit.size for digit in self.lanes)

    @property
    def count(self) -> int:
        """The number of elements per lane."""
        return prod(digit.size for digit in self.elements)

    @property
    def registers(self) -> int:
        """The number of registers per lane."""
        return -(-self.count * self.bits // self.register_bits)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the matrix."""
        digits = (*self.lanes, *self.elements)
        return (
            1 + sum((digit.size - 1) * digit.row for digit in digits),
            1 + sum((digit.size - 1) * digit.col for digit in digits),
        )

    def position(self, lane: int, element: int) -> tuple[int, int]:
        """Return (row, column) of a lane's element."""
        return self.position3(lane, element)[:2]

    def position3(self, lane: int, element: int) -> tuple[int, int, int]:
        """Return (row, column, matrix) of a lane's element."""
        row = col = matrix = 0
        for number, digits in ((lane, self.lanes), (element, self.elements)):
            for digit in digits:
                number, value = divmod(number, digit.size)
                row, col, matrix = row + value * digit.row, col + value * digit.col, matrix + value * digit.matrix
            if number:
                raise IndexError(
                    f"no lane {lane} or element {element}: each of {self.lane_count} lanes holds {self.count} elements"
                )
        return row, col, matrix

    def slot(self, element: int) -> tuple[int, int]:
        """Return (register, lowest bit) of a lane's element."""
        register, bit = divmod(element * self.bits, self.register_bits)
        return register, bit

    def places(self, row: int, col: int, matrix: int = 0) -> tuple[Place, ...]:
        """Return every place of an element: several if lanes hold copies."""
        matches = _invert(self).get((row, col, matrix), ())
        if not matches:
            raise IndexError(f"no element ({row}, {col}) in a fragment of {self.shape[0]} x {self.shape[1]}")
        return matches

    def place(self, row: int, col: int, matrix: int = 0) -> Place:
        """Return the first place of an element."""
        return self.places(row, col, matrix)[0]


@cache
def _invert(fragment: Fragment) -> dict[tuple[int, int, int], tuple[Place, ...]]:
    places: dict[tuple[int, int, int], tuple[Place, ...]] = {}
    for lane in range(fragment.lane_count):
        for element in range(fragment.count):
            position = fragment.position3(lane, element)
            places[position] = (*places.get(position, ()), Place(lane, *fragment.slot(element)))
    return places


def element_bits(dtype: PtxType, kind: str | None = None) -> int:
    """Return the bits that an element of A or B occupies in a register: TF32 fills 32, and 4- and 6-bit floats are held
    in bytes (E2M1 in bits 2 to 5, the others in bits 0 to 5) except in the kinds with only 4-bit floats."""
    if dtype.kind == "f" and dtype.bits < 8:
        return 4 if kind in ("mxf4", "mxf4nvf4") else 8
    return dtype.bits
