"""Accesses of asynchronous operations: runs of bytes, compared with the distinct references in their cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyptx.sim.base.events import Access, Bytes, Clock, Family, Ints, Space
from pyptx.sim.hazards.clocks import CROSSED_SHARED, CTA, SEEN
from pyptx.sim.hazards.conflicts import all_follow_fences, all_follow_plainly, clashes, follows_plainly
from pyptx.sim.hazards.memory import Memory
from pyptx.sim.hazards.records import WRITES
from pyptx.sim.hazards.rows import Rows, by_row, level_of
from pyptx.sim.hazards.shadow import SLOTS, Cells, Plane, Refs, Shadow, positions
from pyptx.sim.hazards.state import State

_OPERATIONS = (Family.WGMMA, Family.TCGEN05)
_MOST_KNOWN = 256
_FEW = 16
"""Up to this many earlier accesses are faster to check one by one."""


def _list_few(last: Refs) -> list[int] | None:
    """Return the distinct references of cells, None if they are many."""
    first = int(last[0])
    differs = last != first
    if not differs.any():
        return [first]
    rest = last[differs]
    changes = np.flatnonzero(rest[1:] != rest[:-1])
    return [first, *{int(rest[0]), *rest[changes + 1].tolist()}] if len(changes) < _FEW else None


def _shorten(held: Refs) -> Refs:
    """Return one column if all are equal."""
    first = held[:, :1]
    return held if np.count_nonzero(held != first) else first


@dataclass(frozen=True, slots=True)
class Ready:
    """Equal operations without conflicts, and the slots of readers that writing ones replace."""

    access: Access
    threads: Ints
    plane: Plane
    rows: Rows
    busy: list[int]


class Tiles:
    """Runs of bytes over the shadow of a memory."""

    def __init__(self, state: State, memory: Memory) -> None:
        self.state, self.memory = state, memory
        self._known: dict[tuple[object, ...], int] = {}
        """Accesses known to be in order, with the number of CTAs that had begun."""

    def run(self, access: Access, threads: Ints, where: Bytes, record: int) -> None:
        """Check an operation that reads or writes runs of bytes, with the knowledge of each of its issuing threads."""
        if not len(where.starts):
            return
        grid = self.state.find_grid(int(threads[0]))
        ref = record * 64
        for part, shadow, base in self.memory.by_buffer(where.space, grid, where.starts):
            starts = where.starts if part is None else where.starts[part]
            if not shadow.written:
                if not access.writes:
                    shadow.note_unwritten_runs((starts - base)[None], where.length, np.array([ref], np.int32))
                    continue
                self.memory.readers.replay(shadow)
            for plane, cells in shadow.runs(starts - base, where.length):
                last = plane.write[cells]
                if access.reads and shadow.fresh and not last.all():
                    missing = positions(cells)
                    self.memory.uninitialised(access, threads[:1], plane, missing[last == 0])
                last = self.memory.undisputed(last, plane.reads[0][cells]) if access.writes else last
                self._compare_run(access, threads, last, cells, plane, record)
                if access.writes:
                    self._compare_run_readers(access, threads, plane, cells, record)
                    plane.write[cells] = ref
                    if not access.strong:
                        plane.clear_reads(cells)
                elif plane.strong:
                    self._compare_run_readers(access, threads, plane, cells, record)
                if access.strong and access.writes:
                    # Reductions do not order each other: a reader of the sum must know all of them.
                    plane.strong = True
                if access.strong or not access.writes:
                    self._keep_run(threads, plane, cells, ref)

    # Equal operations, one row of cells each

    def begin(self, count: int) -> Clock:
        """Return the numbers of new operations."""
        state = self.state
        state.operations += count
        return np.arange(state.operations - count, state.operations, dtype=np.int32) + np.int32(1)

    def ready(self, access: Access, threads: Ints, space: Space, rows: Rows | None, shadow: Shadow) -> Ready | None:
        """Compare equal operations with earlier accesses, a row of issuing threads for each. Return None if one of them
        may be wrong, or they overlap: `run` processes them one by one."""
        level = level_of(shadow, rows) if rows is not None else None
        if rows is None or level is None or access.strong:
            return None
        plane, rows = shadow.plane(level), rows.finer(level)
        last = _shorten(rows.of(plane.write))
        if not access.writes:
            fresh = access.reads and shadow.fresh
            if plane.strong or (fresh and np.count_nonzero(last) < last.size):
                return None
            good = self._is_in_order(access, threads, [last])
            return Ready(access, threads, plane, rows, []) if good else None
        if (
            not rows.apart
            or plane.spill is not None
            or (plane.sets is not None and np.count_nonzero(rows.of(plane.sets)))
        ):
            return None
        readers = [_shorten(rows.of(held)) for held in plane.reads]
        busy = [slot for slot, held in enumerate(readers) if np.count_nonzero(held)]
        if 0 in busy:
            last = self._drop_read_writes(last, readers[0])
        good = self._is_in_order(access, threads, [last, *(readers[slot] for slot in busy)])
        return Ready(access, threads, plane, rows, busy) if good else None

    def _drop_read_writes(self, last: Refs, readers: Refs) -> Refs:
        """Drop asynchronous writes that have been read since, as in `Memory.undisputed`."""
        if np.count_nonzero(readers) == readers.size:
            _, refs = by_row(last)
            if not np.count_nonzero(self.state.records.operation[refs >> 6] == 0):
                return np.zeros((len(last), 1), np.int32)
        return self.memory.undisputed(*np.broadcast_arrays(last, readers))

    def take(self, ready: Ready, records: Ints) -> None:
        """Store the records of equal operations in the shadow."""
        refs, plane = (records * 64).astype(np.int32), ready.plane
        if not ready.access.writes:
            self._keep(ready.threads[:, 0], ready.rows, plane, refs)
            return
        ready.rows.put(plane.write, refs)
        for slot in ready.busy:
            ready.rows.put(plane.reads[slot], np.zeros_like(refs))

    def _is_in_order(self, access: Access, threads: Ints, held: list[Refs]) -> bool:
        """Tell whether the contents of each row precede its operation."""
        if access.space is Space.SHARED:
            floor, key = int(self._compute_floor(access, threads).min()), self.state.records.key
            held = [one for one in held if int(key[one >> 6].max()) > floor]
            if not held:
                return True
        layers = [by_row(one) for one in held]
        rows, refs = layers[0] if len(layers) == 1 else map(np.concatenate, zip(*layers, strict=True))
        if not len(refs):
            return True
        # Known order stays known: products of consecutive tiles ask for the same.
        query = access.family, access.space, access.writes, threads.tobytes(), rows.tobytes(), refs.tobytes()
        if access.family in _OPERATIONS and self._known.get(query) == self.state.clocks.epoch:
            return True
        good = self._knows_all(access, threads, rows, refs)
        if good and access.family in _OPERATIONS:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[query] = self.state.clocks.epoch
        return good

    def _knows_all(self, access: Access, threads: Ints, rows: Ints, refs: Ints) -> bool:
        """Tell whether earlier accesses precede the operations whose rows hold them."""
        if access.space is Space.SHARED:
            late = self.state.records.key[refs >> 6] > self._compute_floor(access, threads).min(axis=1)[rows]
            rows, refs = rows[late], refs[late]
            if not len(refs):
                return True
        who, each_ref = threads[rows].reshape(-1), refs.repeat(threads.shape[1])
        if all_follow_plainly(self.state, access, each_ref, who) or all_follow_fences(
            self.state, access, each_ref, who
        ):
            return True
        return not clashes(self.state, access, each_ref, who).any()

    def _compute_floor(self, access: Access, threads: Ints) -> Clock:
        """Return the time up to which all accesses of the CTA's own threads are in order for each of these threads."""
        clocks = self.state.clocks
        floors = clocks.floors[clocks.row_of[threads], :, CTA]
        seen, crossed = floors[..., SEEN], floors[..., CROSSED_SHARED]
        return np.minimum(seen, crossed) if access.async_proxy else seen

    def _keep(self, threads: Ints, rows: Rows, plane: Plane, refs: Refs) -> None:
        """Record reading operations, a row of cells each, beside those of other rows with the same cells."""
        for first, (chosen, part) in enumerate(rows.layers):
            mine, who = (refs, threads) if part is rows else (refs[chosen], threads[chosen])
            left = self._fill_slots(who, part, plane, mine, first)
            for at in left.tolist():
                cells = part.cells(at)
                here = np.full(len(cells), mine[at], np.int32)
                self.memory.readers.keep(np.full(len(cells), who[at]), plane, cells, here)

    def _fill_slots(self, threads: Ints, rows: Rows, plane: Plane, refs: Refs, first: int) -> Ints:
        """Put readers into free slots, from one on, in all cells of their row; return those without one."""
        left = np.arange(len(refs))
        for slot in range(first, SLOTS):
            held = plane.slot(slot)
            before = _shorten(rows.of(held))
            if not np.count_nonzero(before):
                rows.put(held, refs[left])
                return left[:0]
            free = (before == before[:, :1]).all(axis=1)
            free &= self.memory.readers.replaceable(before[:, 0], threads[left], refs[left])
            rows.some(free).put(held, refs[left[free]])
            left, rows = left[~free], rows.some(~free)
            if not len(left):
                break
        return left

    def _compare_run_readers(self, access: Access, threads: Ints, plane: Plane, cells: Cells, record: int) -> None:
        for reads in plane.reads:
            self._compare_run(access, threads, reads[cells], cells, plane, record)
        index = positions(cells)
        for _, members in self.memory.readers.in_sets(plane, index) if plane.sets is not None else ():
            self._compare_run(access, threads, np.array(members, np.int32), cells, plane, record)
        for ref in np.unique(self.memory.readers.spilled(plane, index)[1]).tolist():
            self._compare_run(access, threads, np.array([ref], np.int32), cells, plane, record)

    def _keep_run(self, threads: Ints, plane: Plane, cells: Cells, ref: int) -> None:
        before = plane.reads[0][cells]
        if not len(before):
            return
        first = int(before[0])
        if (before == first).all():
            one = np.array([first], np.int32)
            if self.memory.readers.replaceable(one, threads[:1], np.array([ref], np.int32))[0]:
                plane.reads[0][cells] = ref
                return
        index = positions(cells)
        self.memory.readers.keep(np.full(len(index), threads[0]), plane, index, np.full(len(index), ref, np.int32))

    def _is_after(self, access: Access, threads: Ints, ref: int, record: int) -> bool:
        """Tell quickly whether an operation does not conflict with one earlier access: False decides nothing."""
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
                index = positions(cells)
                where = index[np.flatnonzero(np.isin(last, refs[bad]))[:1]] if len(last) == len(index) else index[:1]
                self.memory.report(
                    access, refs[bad], np.full(int(bad.sum()), thread), np.repeat(where, int(bad.sum())), plane
                )
                return
