"""Bytes that copies write to shared memory and columns that products write which are never read: `check="unused"`.

Knows the last writer of each byte, not whether a reader may read it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyptx.diagnostics import Rule
from pyptx.sim import rules
from pyptx.sim.base.events import Bytes, Clock, Ints, Place, Space
from pyptx.sim.hazards.rows import Rows
from pyptx.sim.hazards.state import Grid, State

_GRANULE = 16
_COLUMN = 8
"""Cells of a column of tensor memory: 16 lanes each."""
_COLUMNS = 512


@dataclass(frozen=True, slots=True)
class Brought:
    """The output of an operation: `size` bytes or columns, counted from the first."""

    rule: Rule
    place: Place
    thread: int
    first: int
    size: int


class Unread:
    """The last writer of each byte of shared memory, and of each 16 lanes of a column, of a batch; 0 if read since."""

    def __init__(self, state: State, grid: Grid) -> None:
        self._state, self._grid = state, grid
        self._shared: Clock = np.zeros(grid.slots * grid.shared_stride, np.int32)
        self._tensor: Clock = np.zeros(grid.slots * _COLUMNS * _COLUMN, np.int32)
        self._brought: list[Brought] = []

    def end(self) -> None:
        """Report what is unread when the batch ends."""
        for held in (self._shared, self._tensor):
            cells = np.flatnonzero(held)
            self._report(cells, held[cells], "")

    # Shared memory

    def bring(self, place: Place, thread: int, cells: Ints, size: int) -> None:
        """Record the bytes that a copy writes."""
        self._overwrite(self._shared, cells)
        if len(cells):
            self._brought.append(Brought(rules.UNREAD_COPY, place, thread, int(cells.min()), size))
            self._shared[cells] = len(self._brought)

    def access(self, offsets: Ints, size: int, kind: str) -> None:
        """Record accesses of lanes, from these offsets."""
        cells = (offsets[:, None] + np.arange(size)).reshape(-1)
        if "r" in kind:
            self._shared[cells] = 0
        else:
            self._overwrite(self._shared, cells)

    def read(self, where: Bytes) -> None:
        """Record that an engine reads bytes."""
        if where.space is Space.SHARED:
            self.access(where.starts, where.length, "r")

    def read_rows(self, rows: Rows) -> None:
        """Record that products read granules."""
        self._shared.reshape(-1, _GRANULE)[_list_cells(rows)] = 0

    # Tensor memory

    def operate(
        self, place: Place, thread: int, reads: list[tuple[Space, Rows]], writes: list[tuple[Space, Rows]],
        product: bool,
    ) -> None:  # fmt: skip
        """Record granules that a product or copy, or several equal ones, read and write."""
        for space, rows in reads:
            if space is Space.SHARED:
                self.read_rows(rows)
            else:
                self._tensor[_list_cells(rows)] = 0
        for _, rows in writes:
            cells = _list_cells(rows)
            self._overwrite(self._tensor, cells)
            if product:
                columns = np.unique(cells // _COLUMN % _COLUMNS)
                brought = Brought(rules.UNREAD_ACCUMULATOR, place, thread, int(columns[0]), len(columns))
                self._brought.append(brought)
                self._tensor[cells] = len(self._brought)

    def move(self, ctas: Ints, column: Ints, columns: int, lane: Ints, lanes: int, *, stores: bool) -> None:
        """Record that warps load or store columns in some of their lanes."""
        within = (np.arange(columns)[:, None] * _COLUMN + np.arange(-(-lanes // _GRANULE))).reshape(-1)
        cells = ((ctas * _COLUMNS + column) * _COLUMN + lane // _GRANULE)[:, None] + within
        if stores:
            self._overwrite(self._tensor, cells.reshape(-1))
        else:
            self._tensor[cells] = 0

    def free(self, cta: int, column: int, columns: int) -> None:
        """Record that columns are freed."""
        first = (cta * _COLUMNS + column) * _COLUMN
        self._overwrite(self._tensor, np.arange(first, first + columns * _COLUMN), " before they are freed")

    # Findings

    def _overwrite(self, held: Clock, cells: Ints, when: str = " before they are overwritten") -> None:
        numbers = held[cells]
        if np.count_nonzero(numbers):
            self._report(cells[numbers != 0], numbers[numbers != 0], when)
            held[cells] = 0

    def _report(self, cells: Ints, numbers: Clock, when: str) -> None:
        """Report unread cells by the operation that wrote them."""
        for number in map(int, np.unique(numbers)):
            brought, mine = self._brought[number - 1], np.sort(cells[numbers == number])
            shared = brought.rule is rules.UNREAD_COPY
            detail, where = (self._describe_bytes if shared else self._describe_columns)(brought, mine)
            self._state.report(brought.rule, brought.place, detail + when, thread=brought.thread, where=where)

    def _describe_bytes(self, brought: Brought, cells: Ints) -> tuple[str, str]:
        where = self._state.describe_bytes(Space.SHARED, self._grid, int(cells[0]), 1)
        where = where.removeprefix("1 bytes at ")
        at = int(cells[0]) - brought.first
        return f"{len(cells)} of {brought.size} bytes, the first is byte {at} of the copy, at {where}", where

    def _describe_columns(self, brought: Brought, cells: Ints) -> tuple[str, str]:
        columns, lane = np.unique(cells // _COLUMN % _COLUMNS), int(cells[0]) % _COLUMN * _GRANULE
        where = f"column {int(columns[0])}, lanes from {lane}"
        return f"{len(columns)} of {brought.size} columns, the first is {where}", where


def _list_cells(rows: Rows) -> Ints:
    return np.unique(rows.blocks[..., None] * rows.width + np.arange(rows.width))
