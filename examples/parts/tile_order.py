"""The order in which the CTAs of a persistent kernel work on the tiles of c = a @ b.T.

Tiles that are in flight together should need few distinct rows of `a` and `b`: L2 then reads each from memory once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from pyptx import intrinsic, reg

ROW_BY_ROW, COLUMN_BY_COLUMN = 1, 1 << 31
"""The heights of bands that are the orders of grids: x along the columns of tiles, or along their rows."""


@dataclass(frozen=True, slots=True)
class TileOrder:
    """The tiles of a product: the size of one, which `ctas` CTAs compute together, the rows of tiles in a band, and the
    bytes of a unit of K. Or each CTA has an equal part of the sequence of tiles (`is_cut`)."""

    rows: int
    columns: int
    band: int
    bytes: int = 2
    ctas: int = 1
    is_cut: bool = False

    @property
    def is_grid(self) -> bool:
        """Whether the order is that of a grid."""
        return self.band in (ROW_BY_ROW, COLUMN_BY_COLUMN)

    def list_tiles(self, m: int, n: int, groups: int = 1) -> Iterator[tuple[int, int]]:
        """Yield row and column of each tile in the order of `find_grouped_tile`, of one group after the other. Groups
        have equal parts of `m`, and their own columns."""
        rows, columns = -(-m // groups // self.rows), -(-n // self.columns)
        for group, first in product(range(groups), range(0, rows, self.band)):
            for column in range(columns):
                for row in range(first, min(first + self.band, rows)):
                    yield group * rows + row, group * columns + column


@dataclass(frozen=True, slots=True)
class HeadOrder:
    """The tiles of attention, head by head: the rows of one, of how many matrices it reads these, and how many matrices
    of its head it reads whole; the bytes of an element."""

    rows: int
    own: int = 1
    whole: int = 2
    bytes: int = 2

    def list_tiles(self, heads: int, length: int) -> Iterator[tuple[int, int]]:
        """Yield the tiles with their heads."""
        rows = -(-length // self.rows)
        yield from ((head * rows + row, head) for head in range(heads) for row in range(rows))


@intrinsic
def find_grouped_tile(index: reg.Reg, rows: int, columns: int, height: int) -> tuple[reg.Reg, reg.Reg]:
    """Return row and column of tile number `index` of rows x columns, in bands of `height` rows, column by column.

    w consecutive tiles lie in `height` rows and w / height columns, so they need about height + w / height tiles of
    the operands, fewest for a height near the root of w. Row by row it would be 1 + w / columns + columns. The last
    band may be lower.
    """
    band = index // (height * columns)
    first, rest = band * height, index % (height * columns)
    actual = (rows - first).min(height)
    column = rest // actual
    return first + (rest - column * actual), column
