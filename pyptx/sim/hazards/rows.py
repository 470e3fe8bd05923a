"""Cells of many equal operations, such as the copies or products of all CTAs, one row per operation.

Knows the layout of cells, not what is done to them.
"""

from __future__ import annotations

from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from pyptx.sim.base.events import Bytes, Ints, Mask, Space
from pyptx.sim.hazards.shadow import Refs, Shadow

_WIDEST = 1024
"""The most granules in one block."""
_FEW = 4
"""With more changes per row than this, sort the row."""
_PAIR = (1 << 32) + 1
_T = TypeVar("_T", np.int32, np.uint8)


class Rows:
    """One row of cells per operation, as numbers of blocks of `width` adjacent cells."""

    def __init__(self, blocks: Ints, width: int, layer: Ints | None = None) -> None:
        """`layer`: per row, the number of its layer, if known: rows of one layer have no cell in common."""
        self.blocks, self.width, self._layer = blocks, width, layer

    def __len__(self) -> int:
        return len(self.blocks)

    @cached_property
    def disjoint(self) -> bool:
        """Whether no two rows share a cell."""
        if self._layer is not None:
            return not self._layer.any()
        if len(self.blocks) == 1:
            return True
        flat = np.sort(self.blocks, axis=None)
        return not np.count_nonzero(flat[1:] == flat[:-1])

    @cached_property
    def layers(self) -> list[tuple[Ints, Rows]]:
        """The rows split into parts in which no two rows share a cell."""
        if self.disjoint:
            return [(np.arange(len(self)), self)]
        layer = _count_repeats(self.blocks[:, 0]) if self._layer is None else self._layer
        parts = [np.flatnonzero(layer == number) for number in range(int(layer.max()) + 1)]
        layer_rows = [(part, Rows(self.blocks[part], self.width)) for part in parts]
        if self._layer is not None or all(rows.disjoint for _, rows in layer_rows):
            return layer_rows
        return [(np.array([row]), Rows(self.blocks[row : row + 1], self.width)) for row in range(len(self))]

    def equals(self, other: Rows) -> bool:
        """Tell whether both have the same cells in the same order."""
        return self.width == other.width and np.array_equal(self.blocks, other.blocks)

    def select(self, selection: Mask) -> Rows:
        """Return some of the rows."""
        return Rows(self.blocks[selection], self.width)

    def refine(self, level: int) -> Rows:
        """Return the same bytes as cells of a finer level."""
        return Rows(self.blocks, self.width << level, self._layer) if level else self

    def gather(self, values: npt.NDArray[_T]) -> npt.NDArray[_T]:
        """Return the values of the cells, one row per operation."""
        if self.width == 1:
            return values.take(self.blocks)
        if self.width == 2 and values.itemsize == 4 and not len(values) & 1:
            return values.view(np.int64).take(self.blocks).view(values.dtype)
        return _split_blocks(values, self.width).take(self.blocks, axis=0).reshape(len(self.blocks), -1)

    def store(self, values: Refs, refs: Refs) -> None:
        """Store the reference of each row in all its cells."""
        count = self.blocks.shape[1]
        if self.width > 2 or len(values) & 1:
            _split_blocks(values, self.width)[self.blocks] = refs[:, None, None]
        elif self.width == 1:
            values[self.blocks.reshape(-1)] = refs.repeat(count)
        else:
            values.view(np.int64)[self.blocks.reshape(-1)] = (refs.astype(np.int64) * _PAIR).repeat(count)

    def list_cells(self, row: int) -> Ints:
        """Return the numbers of a row's cells."""
        return (self.blocks[row][:, None] * self.width + np.arange(self.width)).reshape(-1)


def _count_repeats(values: Ints) -> Ints:
    """Return, for each value, how many equal values precede it."""
    order = np.argsort(values, kind="stable")
    ascending = values[order]
    begins = np.flatnonzero(np.append(True, ascending[1:] != ascending[:-1]))
    counts = np.empty(len(values), np.int64)
    counts[order] = np.arange(len(values)) - begins.repeat(np.diff(np.append(begins, len(values))))
    return counts


def _split_blocks(values: npt.NDArray[_T], width: int) -> npt.NDArray[_T]:
    return values[: len(values) // width * width].reshape(-1, width)


def make_rows(starts: Ints, length: int) -> Rows | None:
    """Return the granules of runs of bytes, one row of `starts` per operation; None if some are partial."""
    if (int(np.bitwise_or.reduce(starts, axis=None)) | length) & 15:
        return None
    first, count = starts >> 4, length >> 4
    common = int(np.bitwise_or.reduce(first, axis=None)) | count | _WIDEST
    width = common & -common
    blocks = first // width
    if count > width:
        blocks = (blocks[:, :, None] + np.arange(count // width)).reshape(len(starts), -1)
    return Rows(blocks, width)


def merge_granules(granules: Ints) -> tuple[Ints, int]:
    """Merge ascending granules into blocks: return the block numbers, and the granules per block."""
    blocks, width = granules, 1
    while width < _WIDEST and not len(blocks) & 1 and not np.count_nonzero(blocks[::2] & 1):
        if np.count_nonzero(blocks[1::2] != blocks[::2] + 1):
            break
        blocks, width = blocks[::2] >> 1, width * 2
    return blocks, width


def place_at_bases(granules: Ints, bases: Ints) -> Rows:
    """Return rows of the same ascending granules, one row per base."""
    layer, gaps = None, np.diff(np.sort(bases))
    if not np.count_nonzero((gaps > 0) & (gaps <= int(granules[-1]) - int(granules[0]))):
        layer = _count_repeats(bases)
    blocks, width = merge_granules(granules)
    while width > 1 and int(np.bitwise_or.reduce(bases)) % width:
        width //= 2
        blocks = (blocks[:, None] * 2 + np.arange(2)).reshape(-1)
    return Rows(blocks + (bases // width)[:, None], width, layer)


def get_row_bytes(space: Space, rows: Rows, row: int) -> Bytes:
    """Return the bytes of a row of granules."""
    return Bytes(space, rows.list_cells(row) * 16, 16)


def find_level(shadow: Shadow, rows: Rows) -> int | None:
    """Return the common level of the granules of rows; None if they differ."""
    if not shadow.split:
        return 0
    levels = rows.gather(shadow.level)
    first = int(levels[0, 0])
    return None if np.count_nonzero(levels != first) else first


def list_refs(refs: Refs) -> tuple[Ints, Ints]:
    """Return the rows and references of cells, without 0 and without equal neighbors."""
    first, row_of_ref = refs[:, 0], np.arange(len(refs))
    if refs.shape[1] > 1:
        changes = refs[:, 1:] != refs[:, :-1]
        count = np.count_nonzero(changes)
        if count > _FEW * len(refs):
            refs = np.sort(refs, axis=1)
            first, changes = refs[:, 0], refs[:, 1:] != refs[:, :-1]
        if count:
            row, position = np.nonzero(changes)
            first, row_of_ref = np.append(first, refs[row, position + 1]), np.append(row_of_ref, row)
    firsts = np.flatnonzero(first)
    return row_of_ref[firsts], first[firsts].astype(np.int64)
