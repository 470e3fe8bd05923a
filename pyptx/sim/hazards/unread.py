"""Unread results, for `check="unused"`: bytes that copies write to shared memory, columns that products write.

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
"""The cells of a column of tensor memory, of 16 lanes each."""
_COLUMNS = 512


@dataclass(frozen=True, slots=True)
class Output:
    """The output of an operation: `size` bytes or columns from `first`."""

    rule: Rule
    place: Place
    thread: int
    first: int
    size: int


class Unread:
    """Per byte of shared memory, and per 16 lanes of a column: the number of the last output, 0 if read since."""

    def __init__(self, state: State, grid: Grid) -> None:
        self._state, self._grid = state, grid
        self._shared: Clock = np.zeros(grid.slots * grid.shared_stride, np.int32)
        self._tensor: Clock = np.zeros(grid.slots * _COLUMNS * _COLUMN, np.int32)
        self._outputs: list[Output] = []

    def end(self) -> None:
        """Report the outputs that are unread when the batch ends."""
        for writers in (self._shared, self._tensor):
            cells = np.flatnonzero(writers)
            self._report(cells, writers[cells], "")

    # Shared memory

    def record_copy(self, place: Place, thread: int, cells: Ints, size: int) -> None:
        """Record the bytes that a copy writes."""
        self._overwrite(self._shared, cells)
        if len(cells):
            self._outputs.append(Output(rules.UNREAD_COPY, place, thread, int(cells.min()), size))
            self._shared[cells] = len(self._outputs)

    def record_access(self, offsets: Ints, size: int, kind: str) -> None:
        """Record accesses of lanes at offsets."""
        cells = (offsets[:, None] + np.arange(size)).reshape(-1)
        if "r" in kind:
            self._shared[cells] = 0
        else:
            self._overwrite(self._shared, cells)

    def record_read(self, source: Bytes) -> None:
        """Record that an engine reads bytes."""
        if source.space is Space.SHARED:
            self.record_access(source.starts, source.length, "r")

    def record_product_reads(self, rows: Rows) -> None:
        """Record that products read granules."""
        self._shared.reshape(-1, _GRANULE)[_list_cells(rows)] = 0

    # Tensor memory

    def operate(
        self, place: Place, thread: int, reads: list[tuple[Space, Rows]], writes: list[tuple[Space, Rows]],
        product: bool,
    ) -> None:  # fmt: skip
        """Record the granules that products or copies read and write."""
        for space, rows in reads:
            if space is Space.SHARED:
                self.record_product_reads(rows)
            else:
                self._tensor[_list_cells(rows)] = 0
        for _, rows in writes:
            cells = _list_cells(rows)
            self._overwrite(self._tensor, cells)
            if product:
                columns = np.unique(cells // _COLUMN % _COLUMNS)
                output = Output(rules.UNREAD_ACCUMULATOR, place, thread, int(columns[0]), len(columns))
                self._outputs.append(output)
                self._tensor[cells] = len(self._outputs)

    def move(self, ctas: Ints, column: Ints, columns: int, lane: Ints, lanes: int, *, stores: bool) -> None:
        """Record that warps load or store columns in their lanes."""
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

    def _overwrite(self, writers: Clock, cells: Ints, when: str = " before they are overwritten") -> None:
        numbers = writers[cells]
        if np.count_nonzero(numbers):
            self._report(cells[numbers != 0], numbers[numbers != 0], when)
            writers[cells] = 0

    def _report(self, cells: Ints, numbers: Clock, when: str) -> None:
        """Report unread cells, by the output that they belong to."""
        for number in map(int, np.unique(numbers)):
            output, mine = self._outputs[number - 1], np.sort(cells[numbers == number])
            shared = output.rule is rules.UNREAD_COPY
            detail, location = (self._describe_bytes if shared else self._describe_columns)(output, mine)
            self._state.report(output.rule, output.place, detail + when, thread=output.thread, where=location)

    def _describe_bytes(self, output: Output, cells: Ints) -> tuple[str, str]:
        location = self._state.describe_bytes(Space.SHARED, self._grid, int(cells[0]), 1)
        location = location.removeprefix("1 bytes at ")
        offset = int(cells[0]) - output.first
        return f"{len(cells)} of {output.size} bytes, the first is byte {offset} of the copy, at {location}", location

    def _describe_columns(self, output: Output, cells: Ints) -> tuple[str, str]:
        columns, lane = np.unique(cells // _COLUMN % _COLUMNS), int(cells[0]) % _COLUMN * _GRANULE
        location = f"column {int(columns[0])}, lanes from {lane}"
        return f"{len(columns)} of {output.size} columns, the first is {location}", location


def _list_cells(rows: Rows) -> Ints:
    return np.unique(rows.blocks[..., None] * rows.width + np.arange(rows.width))
