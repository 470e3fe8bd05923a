"""What was last done to every byte: references to records, in granules of 16 bytes that split where accesses are finer.

Knows bytes and references, not what makes two accesses conflict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from pyptx.sim.base.events import Ints
from pyptx.sim.hazards.spill import Refs, Spill

Cells: TypeAlias = "slice[int, int, None] | Ints"
SIZES = (16, 8, 4, 2, 1)
LEVEL = {size: level for level, size in enumerate(SIZES)}
MOST_LOGGED = 1 << 25
_MOST_APART = 1 << 10
"""Of so many others it is known whether cells that are accessed together are apart from theirs."""
SLOTS = 4
"""Concurrent readers kept side by side; more of them are kept in interned sets."""


def _largest_unit(starts: Ints, length: int) -> int:
    """Return the largest size of a cell that runs of bytes are made of."""
    bits = int(np.bitwise_or.reduce(starts, axis=None)) | length | 16
    return bits & -bits


def positions(cells: Cells) -> Ints:
    """Return the numbers of cells."""
    return np.arange(cells.start, cells.stop) if isinstance(cells, slice) else cells


class Touched:
    """Cells that are accessed together, and when they last were."""

    def __init__(self, cells: Ints) -> None:
        self.cells = cells
        self.order = np.argsort(cells, kind="stable")
        self.ascending = cells[self.order]
        """The lanes by cell, and their cells: those of many CTAs are much quicker to go through in this order."""
        self.low, self.high = int(self.ascending[0]), int(self.ascending[-1])
        self.wrote = self.read = 0
        self.apart_from: dict[Touched, bool] = {}
        """What is known of others: whether they have no cell in common with these."""

    def apart(self, other: Touched) -> bool:
        """Say whether others of the plane have no cell in common with these."""
        held = np.zeros(self.high - self.low + 1, np.bool_)
        held[self.ascending - self.low] = True
        theirs = other.ascending
        theirs = theirs[np.searchsorted(theirs, self.low) : np.searchsorted(theirs, self.high, "right")]
        for one in (self, other):
            if len(one.apart_from) > _MOST_APART:
                one.apart_from.clear()
        is_apart = self.apart_from[other] = other.apart_from[self] = not held[theirs - self.low].any()
        return is_apart


class Log:
    """Accesses by lanes that need no order: cells, threads, the number of the access, when it took place."""

    def __init__(self) -> None:
        self.entries: list[tuple[Refs, Ints, int, int]] = []
        self.lanes = self.size = self.latest = 0

    def add(self, cells: Ints, threads: Ints, number: int, size: int, now: int) -> None:
        """Add an access of some size; all of a log have one size."""
        self.entries.append((cells.astype(np.int32), threads, number, now))
        self.lanes += len(cells)
        self.size, self.latest = size, now

    def clear(self) -> None:
        """Forget all."""
        self.entries.clear()
        self.lanes = self.size = self.latest = 0


class Plane:
    """The cells of one granule size. Arrays are zero pages until touched."""

    def __init__(self, cells: int, unit: int, base: int, exact: bool = True) -> None:
        self.unit, self.base, self.exact = unit, base, exact
        self.write: Refs = np.zeros(cells, np.int32)
        self.reads: list[Refs] = [np.zeros(cells, np.int32)]
        self.sets: Refs | None = None
        self.spill: Spill | None = None
        """Readers of global memory that found no slot."""
        self.crowded = False
        self.strong = False
        self.odd = False
        """Whether more than plain accesses of lanes were here, since all threads knew all operations."""
        self.barriers = False
        """Whether mbarriers lie here."""
        self.late = 0
        """When an access took place that `recent` does not hold."""
        self.recent: dict[Touched, None] = {}
        """What was accessed, by the time when it last was."""

        self.log = Log()
        """Atomics that nobody had to be compared with so far; who has to `settle` them first."""
        self.settle: Callable[[], None] | None = None

    def settled(self) -> Plane:
        """Return the plane with all accesses in its cells."""
        if self.settle is not None and self.log.entries:
            self.settle()
        return self

    def latest(self) -> int:
        """Return when the last access took place that is not in the log."""
        last = next(reversed(self.recent), None)
        return max(self.late, last.wrote, last.read) if last is not None else self.late

    def slot(self, index: int) -> Refs:
        """Return a plane of readers."""
        while index >= len(self.reads):
            self.crowded = True
            self.reads.append(np.zeros_like(self.write))
        return self.reads[index]

    def clear_reads(self, cells: Cells) -> None:
        """Forget the readers of cells that were written."""
        for plane in self.reads:
            plane[cells] = 0
        if self.sets is not None:
            self.sets[cells] = 0
        if self.spill is not None:
            self.spill.forget(positions(cells))


class Shadow:
    """The shadow of one range of addresses. `fresh`: bytes count as uninitialized until written."""

    def __init__(self, size: int, fresh: bool, name: str = "", base: int = 0, exact: bool = True) -> None:
        self.granules = -(-size // 16)
        self.size, self.fresh, self.name, self.base, self.exact = size, fresh, name, base, exact
        self.level = np.zeros(self.granules, np.uint8)
        self.split = False
        self.version = 0
        """Raised when granules split or are whole again."""
        self.cleared = 0
        """How often bytes began anew."""
        self.written = fresh
        """Whether anybody has written here; until then readers are only logged."""
        self._log: list[tuple[Refs, int, int, Refs]] = []
        self.logged = 0
        self._planes: dict[int, Plane] = {}

    @property
    def planes(self) -> list[tuple[int, Plane]]:
        """The cells of every level that anybody has accessed."""
        return [(level, plane.settled()) for level, plane in self._planes.items()]

    def plane(self, level: int) -> Plane:
        """Return the cells of one level for operations, which are no plain accesses of lanes."""
        stored = self.cells(level)
        stored.odd = True
        return stored.settled()

    def cells(self, level: int) -> Plane:
        """Return the cells of one level."""
        plane = self._planes.get(level)
        if plane is None:
            plane = self._planes[level] = Plane(self.granules << level, SIZES[level], self.base, self.exact)
        return plane

    def note_unwritten(self, addresses: Ints, size: int, refs: Refs, count: int = 1) -> None:
        """Log readers of memory that nobody has written, each of `count` places of `size` bytes side by side; a log
        that would take more than a few hundred megabytes goes no further."""
        if self.logged < MOST_LOGGED:
            self.logged += len(addresses)
            self._log.append(((addresses // size).astype(np.int32), size, count, refs))

    def note_unwritten_runs(self, starts: Ints, length: int, refs: Refs) -> None:
        """Log operations that read runs of bytes, a row of them each."""
        unit = _largest_unit(starts, length)
        self.note_unwritten(starts.reshape(-1), unit, refs.repeat(starts.shape[1]), length // unit)

    def unwritten(self) -> Iterator[tuple[Ints, int, Refs]]:
        """Yield what was logged, which is forgotten: addresses, the size of each place, references."""
        log, self._log, self.logged, self.written = self._log, [], 0, True
        for places, size, count, refs in log:
            addresses = places.astype(np.int64)
            if count > 1:
                addresses, refs = (addresses[:, None] + np.arange(count)).reshape(-1), refs.repeat(count)
            yield addresses * size, size, refs

    def clear(self, start: int, size: int) -> None:
        """Forget a range: the memory of a CTA that begins."""
        self.cleared += 1
        if any(plane.odd for plane in self._planes.values()):
            # Operations on whole granules come again; accesses of lanes split them alike again.
            self.version += 1
            self.level[start // 16 : -(-(start + size) // 16)] = 0
        for level, plane in self._planes.items():
            part = slice(start // SIZES[level], -(-(start + size) // SIZES[level]))
            plane.write[part] = 0
            plane.clear_reads(part)

    def begin(self) -> None:
        """All who knew these bytes have gone: nobody has to ask what they did last."""
        for plane in self._planes.values():
            plane.late = 0
            plane.recent.clear()
            plane.log.clear()

    def settle(self) -> None:
        """Put what is only logged into the cells."""
        for plane in self._planes.values():
            plane.settled()

    def lanes(self, addresses: Ints, size: int) -> Iterator[tuple[Plane, Ints, Ints | None]]:
        """Yield planes with the cells of naturally aligned accesses, and whose lane each cell is (None: in order)."""
        want = LEVEL[size]
        granules = addresses >> 4
        levels = self.level[granules]
        if levels.tobytes().count(want) == len(levels):
            yield self.cells(want), addresses >> (4 - want), None
            return
        if want and (levels < want).any():
            coarser = np.zeros(self.granules, np.bool_)
            coarser[granules[levels < want]] = True
            self._refine(np.flatnonzero(coarser), want)
            levels = self.level[granules]
            if (levels == want).all():
                yield self.cells(want), addresses >> (4 - want), None
                return
        for level in [int(one) for one in np.unique(levels)]:
            chosen = np.flatnonzero(levels == level)
            factor = 1 << (level - want)
            first = addresses[chosen] >> (4 - level)
            if factor == 1:
                yield self.cells(level), first, chosen
            else:
                yield self.cells(level), (first[:, None] + np.arange(factor)).ravel(), np.repeat(chosen, factor)

    def runs(self, starts: Ints, length: int) -> Iterator[tuple[Plane, Cells]]:
        """Yield planes with the cells of runs of bytes."""
        unit = _largest_unit(starts, length)
        if len(starts) == 1 and unit == 16:
            part = slice(int(starts[0]) >> 4, (int(starts[0]) + length) >> 4)
            if not self.split or not self.level[part].any():
                yield self.plane(0), part
                return
        addresses = starts
        if length != unit:
            addresses = np.reshape(starts[:, None] + np.arange(0, length, unit), -1)
        for plane, cells, _ in self.lanes(addresses, unit):
            plane.odd = True
            yield plane.settled(), cells

    def _refine(self, granules: Ints, level: int) -> None:
        """Split granules into finer ones, which inherit what was done to the whole."""
        self.split = True
        self.version += 1
        old = self.level[granules]
        for coarse in np.unique(old).tolist():
            if coarse in self._planes:
                self._copy_granules(
                    self._planes[coarse].settled(), self.cells(level), granules[old == coarse], coarse, level
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
        target.late = max(target.late, source.latest(), source.log.latest)
        target.write[after] = source.write[before][:, None]
        for slot, plane in enumerate(source.reads):
            values = plane[before]
            if slot == 0 or values.any():
                target.slot(slot)[after] = values[:, None]
        if source.spill is not None:
            at, refs = source.spill.find(before)
            if len(at):
                target.spill = target.spill or Spill(source.spill.who)
                target.crowded = True
                target.spill.add(after[at].reshape(-1), np.repeat(refs, after.shape[1]))
                target.spill.numbers |= source.spill.numbers
        if source.sets is not None and source.sets[before].any():
            if target.sets is None:
                target.sets = np.zeros_like(target.write)
                target.crowded = True
            target.sets[after] = source.sets[before][:, None]
