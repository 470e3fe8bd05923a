"""Accesses of asynchronous operations: runs of bytes, compared with the distinct references that lie below them."""

from __future__ import annotations

import numpy as np

from pyptx.sim.hazards.clocks import CROSSED_SHARED, CTA, SEEN
from pyptx.sim.hazards.conflicts import all_plainly_after, clashes, plainly_after
from pyptx.sim.hazards.events import Access, Bytes, Clock, Ints, Space
from pyptx.sim.hazards.memory import Memory
from pyptx.sim.hazards.records import WRITES
from pyptx.sim.hazards.shadow import SLOTS, Cells, Plane, Refs, Shadow, positions
from pyptx.sim.hazards.state import State

_FEW = 16
"""So many earlier accesses are quicker to look at one by one."""


def _few(last: Refs) -> list[int] | None:
    """Return the distinct references of cells, None if they are many."""
    first = int(last[0])
    differs = last != first
    if not differs.any():
        return [first]
    rest = last[differs]
    changes = np.flatnonzero(rest[1:] != rest[:-1])
    return [first, *{int(rest[0]), *rest[changes + 1].tolist()}] if len(changes) < _FEW else None


class Tiles:
    """Runs of bytes over the shadow of a memory."""

    def __init__(self, state: State, memory: Memory) -> None:
        self.state, self.memory = state, memory

    def run(self, access: Access, threads: Ints, where: Bytes, record: int) -> None:
        """An operation reads or writes runs of bytes, knowing what each of its issuing threads knows."""
        if not len(where.starts):
            return
        grid = self.state.grid_of(int(threads[0]))
        ref = record * 64
        for part, shadow, base in self.memory.by_buffer(where.space, grid, where.starts):
            starts = where.starts if part is None else where.starts[part]
            if not shadow.written:
                if not access.writes:
                    shadow.note_unwritten_runs(starts - base, where.length, ref)
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
                    self._run_over_readers(access, threads, plane, cells, record)
                    plane.write[cells] = ref
                    if not access.strong:
                        plane.clear_reads(cells)
                elif plane.strong:
                    self._run_over_readers(access, threads, plane, cells, record)
                if access.strong and access.writes:
                    # Reductions do not order each other: who reads the sum has to know of all of them.
                    plane.strong = True
                if access.strong or not access.writes:
                    self._run_reads(threads, plane, cells, ref)

    def reads(self, access: Access, threads: Ints, starts: Ints, records: Ints) -> None:
        """Like operations read granules of shared memory: a row of `starts`, of issuing threads and a record each."""
        shadow = self.state.grid_of(int(threads[0, 0])).shared
        granules = starts >> 4
        levels = shadow.level[granules] if shadow.split else np.zeros((1, granules.shape[1]), np.uint8)
        if (levels != levels[:1]).any():
            for at, record in enumerate(records.tolist()):
                self.run(access, threads[at], Bytes(access.space, starts[at], 16), record)
            return
        for level in np.flatnonzero(np.bincount(levels[0])).tolist():
            some = granules if (levels[0] == level).all() else granules[:, levels[0] == level]
            cells = ((some << level)[:, :, None] + np.arange(1 << level)).reshape(len(some), -1)
            self._read_rows(access, threads, shadow, shadow.plane(level), cells, records)

    def _read_rows(
        self, access: Access, threads: Ints, shadow: Shadow, plane: Plane, cells: Ints, records: Ints
    ) -> None:
        last = plane.write[cells]
        if shadow.fresh and not last.all():
            at, where = np.nonzero(last == 0)
            self.memory.uninitialised(access, threads[at[:1], 0], plane, cells[at, where])
        self._compare_rows(access, threads, last, cells, plane)
        self._keep_rows(threads[:, 0], cells, plane, records * 64)

    def _floor(self, access: Access, threads: Ints) -> Clock:
        """Return the time up to which all that the CTA's own threads did is in order for each of these threads."""
        clocks = self.state.clocks
        floors = clocks.floors[clocks.row_of[threads], :, CTA]
        seen, crossed = floors[..., SEEN], floors[..., CROSSED_SHARED]
        return np.minimum(seen, crossed) if access.async_proxy else seen

    def _compare_rows(self, access: Access, threads: Ints, last: Refs, cells: Ints, plane: Plane) -> None:
        """Compare a row of earlier writes with each operation."""
        newest = self.state.records.key[last >> 6].max(axis=1)
        late = np.flatnonzero(newest > self._floor(access, threads).min(axis=1))
        if not len(late):
            return
        equal = (last[late] == last[late, :1]).all(axis=1)
        rows, refs = late[equal], last[late[equal], 0].astype(np.int64)
        if not equal.all():
            mixed = late[~equal]
            pairs = np.unique(mixed[:, None] << 32 | last[mixed])
            rows, refs = np.append(rows, pairs >> 32), np.append(refs, pairs & 0xFFFFFFFF)
        rows, refs = rows[refs != 0], refs[refs != 0]
        if not len(refs):
            return
        issuers = threads.shape[1]
        who, what = threads[rows].ravel(), np.repeat(refs, issuers)
        if all_plainly_after(self.state, access, what, who):
            return
        bad = clashes(self.state, access, what, who)
        seen: set[tuple[int, int]] = set()
        for at in np.flatnonzero(bad).tolist():
            row, ref = int(rows[at // issuers]), int(what[at])
            if (row, ref) not in seen:
                seen.add((row, ref))
                where = cells[row][np.flatnonzero(last[row] == ref)[:1]]
                self.memory.report(access, what[at : at + 1], who[at : at + 1], where, plane)

    def _keep_rows(self, threads: Ints, cells: Ints, plane: Plane, refs: Ints) -> None:
        """Note reading operations, a row of cells each; rows may overlap."""
        left = np.arange(len(refs))
        for slot in range(SLOTS):
            held = plane.slot(slot)
            before = held[cells[left]]
            free = (before == before[:, :1]).all(axis=1)
            free &= self.memory.readers.replaceable(before[:, 0], threads[left], refs[left].astype(np.int32))
            mine = left[free]
            held[cells[mine]] = refs[mine, None]
            lost = (held[cells[mine]] != refs[mine, None]).any(axis=1)
            left = np.concatenate([left[~free], mine[lost]])
            if not len(left):
                return
        for at in left.tolist():
            row = cells[at]
            here = np.full(len(row), refs[at], np.int32)
            self.memory.readers.keep(np.full(len(row), threads[at]), plane, row, here)

    def _run_over_readers(self, access: Access, threads: Ints, plane: Plane, cells: Cells, record: int) -> None:
        for reads in plane.reads:
            self._compare_run(access, threads, reads[cells], cells, plane, record)
        index = positions(cells)
        for _, members in self.memory.readers.in_sets(plane, index) if plane.sets is not None else ():
            self._compare_run(access, threads, np.array(members, np.int32), cells, plane, record)

    def _run_reads(self, threads: Ints, plane: Plane, cells: Cells, ref: int) -> None:
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
        """Tell quickly whether an operation does not conflict with one earlier access: False says nothing."""
        records = self.state.records
        operation = int(records.operation[record])
        if operation and int(records.operation[ref >> 6]) == operation:
            return True
        if not access.writes and not records.flag(ref >> 6) & WRITES:
            return True
        return all(plainly_after(self.state, access, ref, thread) for thread in threads.tolist())

    def _compare_run(self, access: Access, threads: Ints, last: Refs, cells: Cells, plane: Plane, record: int) -> None:
        if not len(last):
            return
        distinct = _few(last) or np.unique(last).tolist()
        if len(distinct) <= _FEW and all(not ref or self._is_after(access, threads, ref, record) for ref in distinct):
            return
        refs = np.array(distinct, np.int64)
        newest = int(self.state.records.key[refs >> 6].max())
        if access.space is Space.SHARED and newest <= int(self._floor(access, threads).min()):
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
