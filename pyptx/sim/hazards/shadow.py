"""Shadow memory: references to the last accesses of each byte, in granules of 16 bytes that split for finer accesses.

Knows bytes and references, not what a conflict is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from pyptx.sim.base.events import Ints, Mask
from pyptx.sim.hazards.spill import Refs, Spill

Cells: TypeAlias = "slice[int, int, None] | Ints"
SIZES = (16, 8, 4, 2, 1)
LEVEL = {size: level for level, size in enumerate(SIZES)}
MOST_LOGGED = 1 << 25
_MOST_APART = 1 << 10
"""The most cached comparisons of a cell set with others."""
SLOTS = 4
"""The number of slots for concurrent readers; more of them are in sets or a sorted list."""


def _find_largest_unit(starts: Ints, length: int) -> int:
    """Return the largest cell size that divides runs of bytes."""
    bits = int(np.bitwise_or.reduce(starts, axis=None)) | length | 16
    return bits & -bits


def list_cells(cells: Cells) -> Ints:
    """Return the numbers of cells as an array."""
    return np.arange(cells.start, cells.stop) if isinstance(cells, slice) else cells


class CellSet:
    """Cells that are accessed together, and the times of their last write and read."""

    def __init__(self, cells: Ints) -> None:
        self.cells = cells
        self.order = np.argsort(cells, kind="stable")
        self.ascending = cells[self.order]
        """The lanes sorted by cell, and their cells: with many CTAs, this order is much faster to traverse."""
        self.low, self.high = int(self.ascending[0]), int(self.ascending[-1])
        self.wrote = self.read = 0
        self.apart_from: dict[CellSet, bool] = {}
        """Cached results of `lies_apart`."""

    def lies_apart(self, other: CellSet) -> bool:
        """Tell whether another cell set of the plane has no cell in common with this one."""
        occupancy = np.zeros(self.high - self.low + 1, np.bool_)
        occupancy[self.ascending - self.low] = True
        theirs = other.ascending
        theirs = theirs[np.searchsorted(theirs, self.low) : np.searchsorted(theirs, self.high, "right")]
        for member in (self, other):
            if len(member.apart_from) > _MOST_APART:
                member.apart_from.clear()
        is_apart = self.apart_from[other] = other.apart_from[self] = not occupancy[theirs - self.low].any()
        return is_apart


class Log:
    """A log of accesses whose order does not matter: cells, threads, access number and time."""

    def __init__(self) -> None:
        self.entries: list[tuple[Refs, Ints, int, int]] = []
        self.lanes = self.size = self.latest = 0

    def add(self, cells: Ints, threads: Ints, number: int, size: int, now: int) -> None:
        """Add an access; all accesses of a log have one size."""
        self.entries.append((cells.astype(np.int32), threads, number, now))
        self.lanes += len(cells)
        self.size, self.latest = size, now

    def clear(self) -> None:
        """Forget all entries."""
        self.entries.clear()
        self.lanes = self.size = self.latest = 0


class Plane:
    """The cells of one size. Arrays are zero pages until written."""

    def __init__(self, cells: int, unit: int, base: int, exact: bool) -> None:
        self.unit, self.base, self.exact = unit, base, exact
        self.write: Refs = np.zeros(cells, np.int32)
        self.reads: list[Refs] = [np.zeros(cells, np.int32)]
        self.sets: Refs | None = None
        self.spill: Spill | None = None
        """Readers of global memory without a slot."""
        self.strong = False
        self.odd = False
        """Whether anything but plain accesses of lanes was here since all threads knew all operations."""
        self.barriers = False
        """Whether mbarriers lie here."""
        self.late = 0
        """The time of the last access that `recent` does not hold."""
        self.recent: dict[CellSet, None] = {}
        """The cell sets accessed last, in order of access."""

        self.log = Log()
        """Atomics that no access had to be compared with so far; `settle` enters them into the cells."""
        self.settle: Callable[[], None] | None = None

    @property
    def crowded(self) -> bool:
        """Whether a cell may have readers outside the first slot."""
        return len(self.reads) > 1 or self.sets is not None or self.spill is not None

    def resolve_log(self) -> Plane:
        """Enter the logged accesses into the cells, and return the plane."""
        if self.settle is not None and self.log.entries:
            self.settle()
        return self

    def find_latest(self) -> int:
        """Return the time of the last access outside the log."""
        last = next(reversed(self.recent), None)
        return max(self.late, last.wrote, last.read) if last is not None else self.late

    def get_slot(self, index: int) -> Refs:
        """Return the references in a slot of readers."""
        while index >= len(self.reads):
            self.reads.append(np.zeros_like(self.write))
        return self.reads[index]

    def clear_reads(self, cells: Cells) -> None:
        """Forget the readers of cells."""
        for plane in self.reads:
            plane[cells] = 0
        if self.sets is not None:
            self.sets[cells] = 0
        if self.spill is not None:
            self.spill.forget(list_cells(cells))


class Shadow:
    """The shadow of one range of addresses. `fresh`: bytes are uninitialized until written, except those that `initial`
    marks."""

    def __init__(
        self, size: int, fresh: bool, name: str = "", base: int = 0, exact: bool = True, initial: Mask | None = None
    ) -> None:
        self.granules = -(-size // 16)
        self.size, self.fresh, self.name, self.base, self.exact = size, fresh, name, base, exact
        self._initial = None if initial is None else np.append(initial, np.zeros(-size % 16, np.bool_))
        self.level = np.zeros(self.granules, np.uint8)
        self.split = False
        self.version = 0
        """Incremented when granules split or become whole again."""
        self.cleared = 0
        """Incremented when bytes are cleared."""
        self.written = fresh
        """Whether any access has written here; until then readers are only logged."""
        self._log: list[tuple[Refs, int, int, Refs]] = []
        self.logged = 0
        self._planes: dict[int, Plane] = {}

    @property
    def planes(self) -> list[tuple[int, Plane]]:
        """The accessed levels with their cells."""
        return [(level, plane.resolve_log()) for level, plane in self._planes.items()]

    def get_plane(self, level: int) -> Plane:
        """Return the cells of one level for an asynchronous operation, and mark them `odd`."""
        plane = self.get_cells(level)
        plane.odd = True
        return plane.resolve_log()

    def get_cells(self, level: int) -> Plane:
        """Return the cells of one level."""
        plane = self._planes.get(level)
        if plane is None:
            plane = self._planes[level] = Plane(self.granules << level, SIZES[level], self.base, self.exact)
        return plane

    def select_empty(self, plane: Plane, cells: Ints) -> Ints:
        """Return the positions of the cells of a fresh shadow without initial values."""
        if self._initial is None:
            return np.arange(len(cells))
        return np.flatnonzero(~self._initial.reshape(-1, plane.unit)[cells].all(axis=1))

    def log_readers(self, addresses: Ints, size: int, refs: Refs, count: int = 1) -> None:
        """Log readers of unwritten memory, each of `count` adjacent places of `size` bytes. Drop readers once the log
        takes a few hundred megabytes."""
        if self.logged < MOST_LOGGED:
            self.logged += len(addresses)
            self._log.append(((addresses // size).astype(np.int32), size, count, refs))

    def log_run_readers(self, starts: Ints, length: int, refs: Refs) -> None:
        """Log operations that each read a row of runs of unwritten bytes."""
        unit = _find_largest_unit(starts, length)
        self.log_readers(starts.reshape(-1), unit, refs.repeat(starts.shape[1]), length // unit)

    def list_log(self) -> Iterator[tuple[Ints, int, Refs]]:
        """Yield the logged readers: addresses, the size of each place, references."""
        for places, size, count, refs in self._log:
            addresses = places.astype(np.int64)
            if count > 1:
                addresses, refs = (addresses[:, None] + np.arange(count)).reshape(-1), refs.repeat(count)
            yield addresses * size, size, refs

    def drain_log(self) -> Iterator[tuple[Ints, int, Refs]]:
        """Yield the logged readers, and forget them."""
        self.written = True
        yield from self.list_log()
        self._log, self.logged = [], 0

    def clear(self, start: int, size: int) -> None:
        """Forget the accesses to a range: the memory of a CTA that starts."""
        self.cleared += 1
        if any(plane.odd for plane in self._planes.values()):
            # Operations on whole granules will recur; accesses of lanes will split them again.
            self.version += 1
            self.level[start // 16 : -(-(start + size) // 16)] = 0
        for level, plane in self._planes.items():
            part = slice(start // SIZES[level], -(-(start + size) // SIZES[level]))
            plane.write[part] = 0
            plane.clear_reads(part)

    def begin(self) -> None:
        """Forget the order of accesses: all threads that made them have exited."""
        for plane in self._planes.values():
            plane.late = 0
            plane.recent.clear()
            plane.log.clear()

    def settle(self) -> None:
        """Enter the logged accesses of all planes into their cells."""
        for plane in self._planes.values():
            plane.resolve_log()

    def find_cells(self, addresses: Ints, size: int) -> Iterator[tuple[Plane, Ints, Ints | None]]:
        """Yield planes with the cells of naturally aligned accesses, and the lane of each cell (None: one per lane, in
        order)."""
        target_level = LEVEL[size]
        granules = addresses >> 4
        levels = self.level[granules]
        if levels.tobytes().count(target_level) == len(levels):
            yield self.get_cells(target_level), addresses >> (4 - target_level), None
            return
        if target_level and (levels < target_level).any():
            coarser = np.zeros(self.granules, np.bool_)
            coarser[granules[levels < target_level]] = True
            self._refine(np.flatnonzero(coarser), target_level)
            levels = self.level[granules]
            if (levels == target_level).all():
                yield self.get_cells(target_level), addresses >> (4 - target_level), None
                return
        for level in [int(number) for number in np.unique(levels)]:
            positions = np.flatnonzero(levels == level)
            factor = 1 << (level - target_level)
            first = addresses[positions] >> (4 - level)
            if factor == 1:
                yield self.get_cells(level), first, positions
            else:
                yield self.get_cells(level), (first[:, None] + np.arange(factor)).ravel(), np.repeat(positions, factor)

    def find_runs(self, starts: Ints, length: int) -> Iterator[tuple[Plane, Cells]]:
        """Yield planes with the cells of runs of bytes."""
        unit = _find_largest_unit(starts, length)
        if len(starts) == 1 and unit == 16:
            part = slice(int(starts[0]) >> 4, (int(starts[0]) + length) >> 4)
            if not self.split or not self.level[part].any():
                yield self.get_plane(0), part
                return
        addresses = starts
        if length != unit:
            addresses = np.reshape(starts[:, None] + np.arange(0, length, unit), -1)
        for plane, cells, _ in self.find_cells(addresses, unit):
            plane.odd = True
            yield plane.resolve_log(), cells

    def _refine(self, granules: Ints, level: int) -> None:
        """Split granules into finer cells, which inherit the accesses of the whole."""
        self.split = True
        self.version += 1
        old = self.level[granules]
        for coarse in np.unique(old).tolist():
            if coarse in self._planes:
                self._copy_granules(
                    self._planes[coarse].resolve_log(), self.get_cells(level), granules[old == coarse], coarse, level
                )
        self.level[granules] = level

    @staticmethod
    def _copy_granules(source: Plane, target: Plane, granules: Ints, coarse: int, level: int) -> None:
        factor = 1 << (level - coarse)
        before = ((granules << coarse)[:, None] + np.arange(1 << coarse)).ravel()
        after = (before[:, None] << (level - coarse)) + np.arange(factor)
        target.strong |= source.strong
        target.odd |= source.odd
        target.barriers |= source.barriers
        target.late = max(target.late, source.find_latest(), source.log.latest)
        target.write[after] = source.write[before][:, None]
        for slot, plane in enumerate(source.reads):
            values = plane[before]
            if slot == 0 or values.any():
                target.get_slot(slot)[after] = values[:, None]
        if source.spill is not None:
            indices, refs = source.spill.find(before)
            if len(indices):
                target.spill = target.spill or Spill(source.spill.identify)
                target.spill.add(after[indices].reshape(-1), np.repeat(refs, after.shape[1]))
                target.spill.numbers |= source.spill.numbers
        if source.sets is not None and source.sets[before].any():
            if target.sets is None:
                target.sets = np.zeros_like(target.write)
            target.sets[after] = source.sets[before][:, None]
