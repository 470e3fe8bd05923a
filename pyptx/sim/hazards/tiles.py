"""Accesses of asynchronous operations: runs of bytes, compared with the distinct references in their cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyptx.sim.base.events import Access, Bytes, Clock, Family, Ints, Space
from pyptx.sim.hazards.clocks import CROSSED_SHARED, CTA, SEEN
from pyptx.sim.hazards.conflicts import (
    all_follow_fences,
    all_follow_plainly,
    clashes,
    follows_plainly,
)
from pyptx.sim.hazards.memory import Memory
from pyptx.sim.hazards.records import WRITES
from pyptx.sim.hazards.rows import Rows, find_level, list_refs
from pyptx.sim.hazards.shadow import SLOTS, Cells, Plane, Refs, Shadow, list_cells
from pyptx.sim.hazards.state import State

_OPERATIONS = (Family.WGMMA, Family.TCGEN05)
_MOST_KNOWN = 256
_FEW = 16
"""Up to this many earlier accesses are checked one by one."""


def _list_few(last: Refs) -> list[int] | None:
    """Return the distinct references of cells; None if there are many."""
    first = int(last[0])
    differs = last != first
    if not differs.any():
        return [first]
    tail = last[differs]
    changes = np.flatnonzero(tail[1:] != tail[:-1])
    return [first, *{int(tail[0]), *tail[changes + 1].tolist()}] if len(changes) < _FEW else None


def _shorten(refs: Refs) -> Refs:
    """Return only the first column if all columns are equal."""
    first = refs[:, :1]
    return refs if np.count_nonzero(refs != first) else first


@dataclass(frozen=True, slots=True)
class Ready:
    """Equal operations without conflicts, ready to store. `busy`: the slots of readers that a write must clear."""

    access: Access
    threads: Ints
    plane: Plane
    rows: Rows
    busy: list[int]


class Tiles:
    """The checks of accesses to runs of bytes, over the shadow memory of all spaces."""

    def __init__(self, state: State, memory: Memory) -> None:
        self.state, self.memory = state, memory
        self._ordered_queries: dict[tuple[object, ...], int] = {}
        """Cached queries whose accesses are in order, with the epoch of the answer."""

    def run(self, access: Access, threads: Ints, target: Bytes, record: int) -> None:
        """Check an operation that reads or writes runs of bytes, for each of its issuing threads, and record it."""
        if not len(target.starts):
            return
        grid = self.state.find_grid(int(threads[0]))
        ref = record * 64
        for part, shadow, base in self.memory.split_by_buffer(target.space, grid, target.starts):
            starts = target.starts if part is None else target.starts[part]
            if not shadow.written:
                if not access.writes:
                    shadow.log_run_readers((starts - base)[None], target.length, np.array([ref], np.int32))
                    continue
                self.memory.readers.replay(shadow)
            for plane, cells in shadow.find_runs(starts - base, target.length):
                last = plane.write[cells]
                if access.reads and shadow.fresh and not last.all():
                    missing = list_cells(cells)
                    self.memory.report_uninitialized(access, threads[:1], shadow, plane, missing[last == 0])
                last = self.memory.drop_read_writes(last, plane.reads[0][cells]) if access.writes else last
                self._compare_run(access, threads, last, cells, plane, record)
                if access.writes:
                    self._compare_run_readers(access, threads, plane, cells, record)
                    plane.write[cells] = ref
                    if not access.strong:
                        plane.clear_reads(cells)
                elif plane.strong:
                    self._compare_run_readers(access, threads, plane, cells, record)
                if access.strong and access.writes:
                    # Reductions do not order each other: a reader must know all of them.
                    plane.strong = True
                if access.strong or not access.writes:
                    self._keep_run(threads, plane, cells, ref)

    # Equal operations, one row of cells each

    def begin_operations(self, count: int) -> Clock:
        """Return the numbers of new asynchronous operations."""
        state = self.state
        state.operations += count
        return np.arange(state.operations - count, state.operations, dtype=np.int32) + np.int32(1)

    def compare(self, access: Access, threads: Ints, space: Space, rows: Rows | None, shadow: Shadow) -> Ready | None:
        """Compare equal operations, each with a row of issuing threads, with earlier accesses. Return None if one may
        conflict or they overlap: `run` then processes them one by one."""
        level = find_level(shadow, rows) if rows is not None else None
        if rows is None or level is None or access.strong:
            return None
        plane, rows = shadow.get_plane(level), rows.refine(level)
        last = _shorten(rows.gather(plane.write))
        if not access.writes:
            fresh = access.reads and shadow.fresh
            if plane.strong or (fresh and np.count_nonzero(last) < last.size):
                return None
            good = self._is_in_order(access, threads, [last])
            return Ready(access, threads, plane, rows, []) if good else None
        if (
            not rows.disjoint
            or plane.spill is not None
            or (plane.sets is not None and np.count_nonzero(rows.gather(plane.sets)))
        ):
            return None
        readers = [_shorten(rows.gather(slot_refs)) for slot_refs in plane.reads]
        busy = [slot for slot, slot_refs in enumerate(readers) if np.count_nonzero(slot_refs)]
        if 0 in busy:
            last = self._drop_read_writes(last, readers[0])
        good = self._is_in_order(access, threads, [last, *(readers[slot] for slot in busy)])
        return Ready(access, threads, plane, rows, busy) if good else None

    def _drop_read_writes(self, last: Refs, readers: Refs) -> Refs:
        """Drop asynchronous writes that have been read since, as `Memory.drop_read_writes` does."""
        if np.count_nonzero(readers) == readers.size:
            _, refs = list_refs(last)
            if not np.count_nonzero(self.state.records.operation[refs >> 6] == 0):
                return np.zeros((len(last), 1), np.int32)
        return self.memory.drop_read_writes(*np.broadcast_arrays(last, readers))

    def store(self, ready: Ready, records: Ints) -> None:
        """Store the records of equal operations in the shadow."""
        refs, plane = (records * 64).astype(np.int32), ready.plane
        if not ready.access.writes:
            self._keep(ready.threads[:, 0], ready.rows, plane, refs)
            return
        ready.rows.store(plane.write, refs)
        for slot in ready.busy:
            ready.rows.store(plane.reads[slot], np.zeros_like(refs))

    def _is_in_order(self, access: Access, threads: Ints, contents: list[Refs]) -> bool:
        """Tell whether the earlier accesses in each row precede its operation."""
        if access.space is Space.SHARED:
            floor, key = int(self._compute_floor(access, threads).min()), self.state.records.key
            contents = [part for part in contents if int(key[part >> 6].max()) > floor]
            if not contents:
                return True
        layers = [list_refs(part) for part in contents]
        rows, refs = layers[0] if len(layers) == 1 else map(np.concatenate, zip(*layers, strict=True))
        if not len(refs):
            return True
        # Order never gets lost, and products of consecutive tiles repeat the query.
        kind = access.family, access.movement, access.space, access.writes
        query = *kind, threads.tobytes(), rows.tobytes(), refs.tobytes()
        if access.family in _OPERATIONS and self._ordered_queries.get(query) == self.state.clocks.epoch:
            return True
        good = self._knows_all(access, threads, rows, refs)
        if good and access.family in _OPERATIONS:
            if len(self._ordered_queries) >= _MOST_KNOWN:
                self._ordered_queries.clear()
            self._ordered_queries[query] = self.state.clocks.epoch
        return good

    def _knows_all(self, access: Access, threads: Ints, rows: Ints, refs: Ints) -> bool:
        """Tell whether earlier accesses precede the operations in whose rows they are."""
        if access.space is Space.SHARED:
            late = self.state.records.key[refs >> 6] > self._compute_floor(access, threads).min(axis=1)[rows]
            rows, refs = rows[late], refs[late]
            if not len(refs):
                return True
        issuers, each_ref = threads[rows].reshape(-1), refs.repeat(threads.shape[1])
        if all_follow_plainly(self.state, access, each_ref, issuers) or all_follow_fences(
            self.state, access, each_ref, issuers
        ):
            return True
        return not clashes(self.state, access, each_ref, issuers).any()

    def _compute_floor(self, access: Access, threads: Ints) -> Clock:
        """Return, per thread, the time up to which accesses of its own CTA's threads are in order."""
        clocks = self.state.clocks
        floors = clocks.get_floors(threads)[..., CTA]
        order_floors, crossing_floors = floors[..., SEEN], floors[..., CROSSED_SHARED]
        return np.minimum(order_floors, crossing_floors) if access.async_proxy else order_floors

    def _keep(self, threads: Ints, rows: Rows, plane: Plane, refs: Refs) -> None:
        """Record reading operations, a row of cells each; rows that share cells take different slots."""
        for first, (row_numbers, part) in enumerate(rows.layers):
            mine, issuers = (refs, threads) if part is rows else (refs[row_numbers], threads[row_numbers])
            positions = self._fill_slots(issuers, part, plane, mine, first)
            for position in positions.tolist():
                cells = part.list_cells(position)
                cell_refs = np.full(len(cells), mine[position], np.int32)
                self.memory.readers.keep(np.full(len(cells), issuers[position]), plane, cells, cell_refs)

    def _fill_slots(self, threads: Ints, rows: Rows, plane: Plane, refs: Refs, first: int) -> Ints:
        """Put readers into slots, from `first` on, that are free in all cells of their row. Return the other readers:
        those that find no slot, and those with cells in which a slot would stay empty before a later one is filled."""
        positions = np.arange(len(refs))
        has_gap = np.zeros(len(refs), np.bool_)
        if first:
            has_gap |= (rows.gather(plane.get_slot(first - 1)) == 0).any(axis=1)
            positions, rows = positions[~has_gap], rows.select(~has_gap)
        for slot in range(first, SLOTS):
            if not len(positions):
                break
            slot_refs = plane.get_slot(slot)
            before = _shorten(rows.gather(slot_refs))
            if not np.count_nonzero(before):
                rows.store(slot_refs, refs[positions])
                return np.flatnonzero(has_gap)
            free = (before == before[:, :1]).all(axis=1)
            free &= self.memory.readers.find_replaceable(before[:, 0], threads[positions], refs[positions])
            rows.select(free).store(slot_refs, refs[positions[free]])
            is_partial = ~free & (before == 0).any(axis=1)
            has_gap[positions[is_partial]] = True
            is_left = ~free & ~is_partial
            positions, rows = positions[is_left], rows.select(is_left)
        has_gap[positions] = True
        return np.flatnonzero(has_gap)

    def _compare_run_readers(self, access: Access, threads: Ints, plane: Plane, cells: Cells, record: int) -> None:
        for reads in plane.reads:
            self._compare_run(access, threads, reads[cells], cells, plane, record)
        index = list_cells(cells)
        for _, members in self.memory.readers.list_sets(plane, index) if plane.sets is not None else ():
            self._compare_run(access, threads, np.array(members, np.int32), cells, plane, record)
        for ref in np.unique(self.memory.readers.find_spilled(plane, index)[1]).tolist():
            self._compare_run(access, threads, np.array([ref], np.int32), cells, plane, record)

    def _keep_run(self, threads: Ints, plane: Plane, cells: Cells, ref: int) -> None:
        before = plane.reads[0][cells]
        if not len(before):
            return
        first = int(before[0])
        if (before == first).all():
            earlier = np.array([first], np.int32)
            if self.memory.readers.find_replaceable(earlier, threads[:1], np.array([ref], np.int32))[0]:
                plane.reads[0][cells] = ref
                return
        index = list_cells(cells)
        self.memory.readers.keep(np.full(len(index), threads[0]), plane, index, np.full(len(index), ref, np.int32))

    def _is_after(self, access: Access, threads: Ints, ref: int, record: int) -> bool:
        """Tell quickly whether an operation does not conflict with an earlier access. False decides nothing."""
        records = self.state.records
        operation = int(records.operation[record])
        if operation and int(records.operation[ref >> 6]) == operation:
            return True
        if not access.writes and not records.get_record_flags(ref >> 6) & WRITES:
            return True
        return all(follows_plainly(self.state, access, ref, thread) for thread in threads.tolist())

    def _compare_run(self, access: Access, threads: Ints, last: Refs, cells: Cells, plane: Plane, record: int) -> None:
        if not len(last):
            return
        distinct = _list_few(last) or np.unique(last).tolist()
        if len(distinct) <= _FEW and all(not ref or self._is_after(access, threads, ref, record) for ref in distinct):
            return
        refs = np.array(distinct, np.int64)
        newest = int(self.state.records.key[refs >> 6].max())
        if access.space is Space.SHARED and newest <= int(self._compute_floor(access, threads).min()):
            return
        refs = refs[refs != 0]
        operation = int(self.state.records.operation[record])
        refs = refs[(self.state.records.operation[refs >> 6] != operation) | (operation == 0)]
        if not access.writes:
            refs = refs[self.state.records.is_write(refs)]
        if not len(refs):
            return
        for thread in threads.tolist():
            bad = clashes(self.state, access, refs, np.full(len(refs), thread))
            if bad.any():
                index = list_cells(cells)
                report_cells = (
                    index[np.flatnonzero(np.isin(last, refs[bad]))[:1]] if len(last) == len(index) else index[:1]
                )
                self.memory.report(
                    access, refs[bad], np.full(int(bad.sum()), thread), np.repeat(report_cells, int(bad.sum())), plane
                )
                return
