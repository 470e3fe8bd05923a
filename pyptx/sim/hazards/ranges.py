"""The ranges of global memory that a run accessed, each with one of the instructions that did."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pyptx.sim.base.events import Access, Ints, Mask, Scope
from pyptx.sim.hazards.records import ALL_LANES, CROWD
from pyptx.sim.hazards.shadow import SIZES, Refs, Shadow
from pyptx.sim.hazards.stamps import SEEN, Stamp
from pyptx.sim.hazards.state import Grid, State

_NOBODY = -1


@dataclass(frozen=True, slots=True, eq=False)
class Ranges:
    """Ranges of bytes in ascending order that do not overlap. `sources` are positions in a list of accesses."""

    starts: Ints
    ends: Ints
    sources: Ints

    @classmethod
    def merge(cls, starts: Ints, sizes: Ints | int, sources: Ints | int = _NOBODY) -> Ranges:
        """Return ranges for accesses in any order: of bytes that several access, the lowest access keeps them."""
        order = np.argsort(starts, kind="stable")
        starts = np.asarray(starts, np.int64)[order]
        ends = starts + np.broadcast_to(np.asarray(sizes, np.int64), starts.shape)[order]
        sources = np.broadcast_to(np.asarray(sources, np.int64), starts.shape)[order]
        before = np.append(np.int64(0), np.maximum.accumulate(ends)[:-1])
        starts = np.maximum(starts, before)
        nonempty = starts < ends
        starts, ends, sources, before = starts[nonempty], ends[nonempty], sources[nonempty], before[nonempty]
        begins = np.ones(len(starts), np.bool_)
        begins[1:] = (starts[1:] > before[1:]) | (sources[1:] != sources[:-1])
        first = np.flatnonzero(begins)
        last = np.append(first[1:], len(starts)) - 1 if len(first) else first
        return cls(starts[first], ends[last], sources[first])

    def find_overlap(self, other: Ranges) -> tuple[int, int] | None:
        """Return the positions of the first range and of one of the other's that overlap."""
        if not len(self.starts) or not len(other.starts):
            return None
        indices = np.searchsorted(other.ends, self.starts, "right")
        hits = np.flatnonzero(np.append(other.starts, np.iinfo(np.int64).max)[indices] < self.ends)
        return (int(hits[0]), int(indices[hits[0]])) if len(hits) else None

    def subtract(self, others: Sequence[Ranges]) -> Ranges:
        """Return the ranges that no range of the others overlaps."""
        remaining = self
        for other in others:
            positions = np.searchsorted(other.ends, remaining.starts, "right")
            apart = np.append(other.starts, np.iinfo(np.int64).max)[positions]
            mask = apart >= remaining.ends
            remaining = Ranges(remaining.starts[mask], remaining.ends[mask], remaining.sources[mask])
        return remaining

    def select(self, is_kept: Mask) -> Ranges:
        """Return the ranges of some of the accesses."""
        mask = is_kept[self.sources]
        return Ranges(self.starts[mask], self.ends[mask], self.sources[mask])


NONE = Ranges.merge(np.zeros(0, np.int64), 0)


@dataclass(frozen=True, slots=True)
class Overlap:
    """Bytes that two runs access, and how each of them does; None for a run that is no kernel."""

    start: int
    end: int
    writes: bool
    other_writes: bool
    access: Access | None
    other_access: Access | None


@dataclass(frozen=True, slots=True, eq=False)
class AccessedMemory:
    """What a run read and wrote. Strong accesses whose scope includes other grids are apart: they do not race with each
    other."""

    reads: Ranges = NONE
    writes: Ranges = NONE
    strong_reads: Ranges = NONE
    strong_writes: Ranges = NONE
    accesses: Sequence[Access] = ()

    def find_conflict(self, other: AccessedMemory) -> Overlap | None:
        """Return bytes that one of the runs writes and the other accesses, at least one of them weakly."""
        for mine, theirs, writes, other_writes in self._pair(other):
            hit = mine.find_overlap(theirs)
            if hit is not None:
                index, other_index = hit
                start = int(max(mine.starts[index], theirs.starts[other_index]))
                end = int(min(mine.ends[index], theirs.ends[other_index]))
                return Overlap(
                    start, end, writes, other_writes,
                    self._get_access(mine, index), other._get_access(theirs, other_index),
                )  # fmt: skip
        return None

    def select(self, keeps: Callable[[Access], bool]) -> AccessedMemory:
        """Return what some of the instructions accessed."""
        is_kept = np.array([keeps(access) for access in self.accesses], np.bool_)
        reads, writes, strong_reads, strong_writes = (
            item.select(is_kept) for item in (self.reads, self.writes, self.strong_reads, self.strong_writes)
        )
        return AccessedMemory(reads, writes, strong_reads, strong_writes, self.accesses)

    def _pair(self, other: AccessedMemory) -> Iterator[tuple[Ranges, Ranges, bool, bool]]:
        """Yield pairs of ranges that must not overlap, and which of the two write."""
        for weak, strong, writes in ((self.writes, self.strong_writes, True), (self.reads, self.strong_reads, False)):
            yield weak, other.writes, writes, True
            yield weak, other.strong_writes, writes, True
            yield strong, other.writes, writes, True
            if writes:
                yield weak, other.reads, True, False
                yield weak, other.strong_reads, True, False
                yield strong, other.reads, True, False

    def _get_access(self, ranges: Ranges, index: int) -> Access | None:
        source = int(ranges.sources[index])
        return self.accesses[source] if source != _NOBODY else None


def find_accessed_memory(state: State, grid: Grid, known: Stamp | None = None) -> AccessedMemory:
    """Return the global memory that a grid accessed, without the accesses that the owner of a stamp knows. Of reads
    that a write followed, only the write is known, and of writes the last."""
    accesses = state.records.accesses
    is_strong = np.array([access.strong and access.scope >= Scope.GPU for access in accesses], np.bool_)
    is_write = np.array([access.writes for access in accesses], np.bool_)
    parts = [part for shadow in state.list_buffers() for part in _list_references(shadow)]
    if known is None:
        parts = [_keep_first(state, part) for part in parts]
    if not parts:
        return AccessedMemory()
    starts, refs = (np.concatenate([part[column] for part in parts]) for column in (0, 1))
    sizes = np.concatenate([np.full(len(part[0]), part[2]) for part in parts])
    if len(state.grids) > 1:
        own = state.grid_of_domain[state.records.get_domains(refs >> 6)] == grid.number
        starts, refs, sizes = starts[own], refs[own], sizes[own]
    if known is not None:
        is_open = ~_find_known(state, known, refs)
        starts, refs, sizes = starts[is_open], refs[is_open], sizes[is_open]
    sources = state.records.access[refs >> 6].astype(np.int64)

    def select(mask: Mask) -> Ranges:
        return Ranges.merge(starts[mask], sizes[mask], sources[mask])

    strong, writes = is_strong[sources], is_write[sources]
    return AccessedMemory(
        select(~strong & ~writes), select(~strong & writes), select(strong & ~writes), select(strong & writes), accesses
    )


def _keep_first(state: State, part: tuple[Ints, Refs, int]) -> tuple[Ints, Refs, int]:
    """Keep, of the references of a grid's threads to one place by one access, the first: threads that read the same
    places are many."""
    starts, refs, size = part
    access, domain = state.records.access[refs >> 6].astype(np.int64), state.records.get_domains(refs >> 6)
    grids = state.grid_of_domain[domain] if len(state.grids) > 1 else 0
    keys = ((starts - starts[:1]) * len(state.records.accesses) + access) * (len(state.grids) + 1) + grids
    first = np.unique(keys, return_index=True)[1]
    return starts[first], refs[first], size


def _find_known(state: State, stamp: Stamp, refs: Refs) -> Mask:
    """Tell which accesses the owner of a stamp knows."""
    records = state.records
    unique, inverse = np.unique(refs, return_inverse=True)
    is_known = np.zeros(len(unique), np.bool_)
    for index, ref in enumerate(unique.tolist()):
        record, lane = ref >> 6, ref & 63
        domain = int(records.get_domains(np.array([record]))[0])
        clock = stamp.clock if domain == stamp.domain else stamp.foreign.get(domain)
        columns, times = np.array([records.column[record] + lane]), records.time[record]
        if lane == CROWD:
            columns, times = records.crowds[record]
        elif lane == ALL_LANES:
            columns = records.column[record] + np.flatnonzero((records.mask[record] >> np.arange(32)) & 1)
        is_known[index] = (
            clock is not None and columns.max() < clock.shape[1] and bool((clock[SEEN, columns] >= times).all())
        )
    return is_known[inverse.reshape(-1)]


def _list_references(shadow: Shadow) -> Iterator[tuple[Ints, Refs, int]]:
    """Yield addresses, the references of their cells, and the size of a cell."""
    for addresses, size, refs in shadow.list_log():
        yield addresses + shadow.base, refs, size
    for level, plane in shadow.planes:
        granules = np.flatnonzero(shadow.level == level)
        cells = ((granules[:, None] << level) + np.arange(1 << level)).reshape(-1)
        for column in (plane.write, *plane.reads):
            refs = column[cells]
            used = np.flatnonzero(refs)
            if len(used):
                yield cells[used] * SIZES[level] + shadow.base, refs[used], SIZES[level]
        if plane.spill is not None:
            indices, refs = plane.spill.find(cells)
            yield cells[indices] * SIZES[level] + shadow.base, refs, SIZES[level]
