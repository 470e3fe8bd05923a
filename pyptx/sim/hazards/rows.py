"""Cells of many equal operations, one row each: those of all CTAs that copy or multiply alike.

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
"""The most granules of one block."""
_FEW = 4
"""Up to this many changes along a row are faster to search than to sort."""
_PAIR = (1 << 32) + 1
_T = TypeVar("_T", np.int32, np.uint8)


class Rows:
    """One row of cells per operation: numbers of blocks of `width` adjacent cells."""

    def __init__(self, blocks: Ints, width: int, layer: Ints | None = None) -> None:
        """`layer`: what `layers` goes by, where it is known which rows have no cell in common."""
        self.blocks, self.width, self._layer = blocks, width, layer

    def __len__(self) -> int:
        return len(self.blocks)

    @cached_property
    def apart(self) -> bool:
        """Whether no cell is in two rows."""
        if self._layer is not None:
            return not self._layer.any()
        if len(self.blocks) == 1:
            return True
        flat = np.sort(self.blocks, axis=None)
        return not np.count_nonzero(flat[1:] == flat[:-1])

    @cached_property
    def layers(self) -> list[tuple[Ints, Rows]]:
        """The rows in parts, none of which has a cell in two rows."""
        if self.apart:
            return [(np.arange(len(self)), self)]
        layer = _count_repeats(self.blocks[:, 0]) if self._layer is None else self._layer
        parts = [np.flatnonzero(layer == number) for number in range(int(layer.max()) + 1)]
        layered = [(part, Rows(self.blocks[part], self.width)) for part in parts]
        if self._layer is not None or all(rows.apart for _, rows in layered):
            return layered
        return [(np.array([at]), Rows(self.blocks[at : at + 1], self.width)) for at in range(len(self))]

    def same(self, other: Rows) -> bool:
        """Tell whether these are the same cells in the same order."""
        return self.width == other.width and np.array_equal(self.blocks, other.blocks)

    def some(self, chosen: Mask) -> Rows:
        """Return some of the rows."""
        return Rows(self.blocks[chosen], self.width)

    def finer(self, level: int) -> Rows:
        """Return the same bytes in the cells of a finer level."""
        return Rows(self.blocks, self.width << level, self._layer) if level else self

    def of(self, held: npt.NDArray[_T]) -> npt.NDArray[_T]:
        """Return the contents of the cells, one row per operation."""
        if self.width == 1:
            return held.take(self.blocks)
        if self.width == 2 and held.itemsize == 4 and not len(held) & 1:
            return held.view(np.int64).take(self.blocks).view(held.dtype)
        return _split_blocks(held, self.width).take(self.blocks, axis=0).reshape(len(self.blocks), -1)

    def put(self, held: Refs, refs: Refs) -> None:
        """Store the reference of each row in all its cells."""
        count = self.blocks.shape[1]
        if self.width > 2 or len(held) & 1:
            _split_blocks(held, self.width)[self.blocks] = refs[:, None, None]
        elif self.width == 1:
            held[self.blocks.reshape(-1)] = refs.repeat(count)
        else:
            held.view(np.int64)[self.blocks.reshape(-1)] = (refs.astype(np.int64) * _PAIR).repeat(count)

    def cells(self, row: int) -> Ints:
        """Return the numbers of a row's cells."""
        return (self.blocks[row][:, None] * self.width + np.arange(self.width)).reshape(-1)


def _count_repeats(values: Ints) -> Ints:
    """Return for each value how many equal ones precede it."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    begins = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    counts = np.empty(len(values), np.int64)
    counts[order] = np.arange(len(values)) - begins.repeat(np.diff(np.append(begins, len(values))))
    return counts


def _split_blocks(held: npt.NDArray[_T], width: int) -> npt.NDArray[_T]:
    return held[: len(held) // width * width].reshape(-1, width)


def rows_of(starts: Ints, length: int) -> Rows | None:
    """Return the granules of runs of bytes, one row of `starts` per operation; None if they are not whole."""
    if (int(np.bitwise_or.reduce(starts, axis=None)) | length) & 15:
        return None
    first, count = starts >> 4, length >> 4
    common = int(np.bitwise_or.reduce(first, axis=None)) | count | _WIDEST
    width = common & -common
    blocks = first // width
    if count > width:
        blocks = (blocks[:, :, None] + np.arange(count // width)).reshape(len(starts), -1)
    return Rows(blocks, width)


def side_by_side(granules: Ints) -> tuple[Ints, int]:
    """Return ascending numbers of granules as numbers of blocks, and the granules per block."""
    blocks, width = granules, 1
    while width < _WIDEST and not len(blocks) & 1 and not np.count_nonzero(blocks[::2] & 1):
        if np.count_nonzero(blocks[1::2] != blocks[::2] + 1):
            break
        blocks, width = blocks[::2] >> 1, width * 2
    return blocks, width


def spread(granules: Ints, bases: Ints) -> Rows:
    """Return the same granules, in ascending order, from each of several bases."""
    layer, gaps = None, np.diff(np.sort(bases))
    if not np.count_nonzero((gaps > 0) & (gaps <= int(granules[-1]) - int(granules[0]))):
        layer = _count_repeats(bases)
    blocks, width = side_by_side(granules)
    while width > 1 and int(np.bitwise_or.reduce(bases)) % width:
        width //= 2
        blocks = (blocks[:, None] * 2 + np.arange(2)).reshape(-1)
    return Rows(blocks + (bases // width)[:, None], width, layer)


def bytes_of(space: Space, rows: Rows, at: int) -> Bytes:
    """Return the bytes of a row of granules."""
    return Bytes(space, rows.cells(at) * 16, 16)


def level_of(shadow: Shadow, rows: Rows) -> int | None:
    """Return the level of all granules of some rows, None if they differ."""
    if not shadow.split:
        return 0
    levels = rows.of(shadow.level)
    first = int(levels[0, 0])
    return None if np.count_nonzero(levels != first) else first


def by_row(held: Refs) -> tuple[Ints, Ints]:
    """Return the references in each row, without repeated neighbors and 0: rows, references."""
    first, whose = held[:, 0], np.arange(len(held))
    if held.shape[1] > 1:
        changes = held[:, 1:] != held[:, :-1]
        count = np.count_nonzero(changes)
        if count > _FEW * len(held):
            held = np.sort(held, axis=1)
            first, changes = held[:, 0], held[:, 1:] != held[:, :-1]
        if count:
            at, where = np.nonzero(changes)
            first, whose = np.append(first, held[at, where + 1]), np.append(whose, at)
    firsts = np.flatnonzero(first)
    return whose[firsts], first[firsts].astype(np.int64)
