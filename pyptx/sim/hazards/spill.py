"""Readers of global memory beyond the slots: pairs of a cell and a reference, sorted by cell."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from pyptx.sim.base.events import Ints, Mask

Refs = npt.NDArray[np.int32]
MOST = 1 << 24
"""The most pairs of a plane; later ones are counted but not checked."""
_MOST_PARTS = 8


class Spill:
    """The pairs of one plane, in a few sorted parts."""

    def __init__(self, identify: Callable[[Refs], Ints]) -> None:
        """`identify` numbers the readers of references: only the last reference of each reader is kept."""
        self.identify = identify
        self.lost = 0
        self.numbers: set[int] = set()
        """The access numbers of the readers."""
        self._parts: list[tuple[Refs, Refs, Mask]] = []
        self.size = 0

    def add(self, cells: Ints, refs: Refs) -> None:
        """Add readers of cells."""
        if self.size + len(cells) > MOST:
            self._merge()
        if self.size + len(cells) > MOST:
            self.lost += len(cells)
            return
        order = np.argsort(cells, kind="stable")
        self._parts.append((cells[order].astype(np.int32), refs[order], np.ones(len(cells), np.bool_)))
        self.size += len(cells)
        if len(self._parts) > _MOST_PARTS:
            self._merge()

    def find(self, cells: Ints) -> tuple[Ints, Refs]:
        """Return the readers of cells: the position of each one's cell, and its reference."""
        matches = [
            (indices, part[1][places])
            for part in self._parts
            for indices, places in [_find_places(part, cells)]
            if len(indices)
        ]
        if not matches:
            return np.zeros(0, np.int64), np.zeros(0, np.int32)
        return np.concatenate([indices for indices, _ in matches]), np.concatenate([refs for _, refs in matches])

    def forget(self, cells: Ints) -> None:
        """Drop the readers of cells: a write follows all of them."""
        for part in self._parts:
            part[2][_find_places(part, cells)[1]] = False

    def _merge(self) -> None:
        cells = np.concatenate([part_cells[alive] for part_cells, _, alive in self._parts])
        refs = np.concatenate([part_cells[alive] for _, part_cells, alive in self._parts])
        readers = self.identify(refs)
        order = np.lexsort((refs, readers, cells))
        cells, refs, readers = cells[order], refs[order], readers[order]
        last = np.append((cells[1:] != cells[:-1]) | (readers[1:] != readers[:-1]), True)
        self._parts = [(cells[last], refs[last], np.ones(int(last.sum()), np.bool_))]
        self.size = len(self._parts[0][0])


def _find_places(part: tuple[Refs, Refs, Mask], cells: Ints) -> tuple[Ints, Ints]:
    """Return the readers of cells in a part: the position of each one's cell, and its index in the part."""
    part_cells, _, alive = part
    first, beyond = np.searchsorted(part_cells, cells, "left"), np.searchsorted(part_cells, cells, "right")
    counts = beyond - first
    indices = np.repeat(np.arange(len(cells)), counts)
    places = np.arange(len(indices)) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(first, counts)
    is_alive = alive[places]
    return indices[is_alive], places[is_alive]
