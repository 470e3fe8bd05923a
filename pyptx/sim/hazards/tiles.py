"""Accesses of asynchronous operations: runs of bytes, compared with the distinct references that lie below them."""

from __future__ import annotations

import numpy as np

from pyptx.sim.hazards.conflicts import clashes
from pyptx.sim.hazards.events import Access, Bytes, Ints
from pyptx.sim.hazards.memory import Memory
from pyptx.sim.hazards.shadow import Cells, Plane, Refs, positions
from pyptx.sim.hazards.state import State


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
                    plane.clear_reads(cells)
                else:
                    self._run_reads(threads, plane, cells, ref)

    def _run_over_readers(self, access: Access, threads: Ints, plane: Plane, cells: Cells, record: int) -> None:
        for reads in plane.reads:
            self._compare_run(access, threads, reads[cells], cells, plane, record)
        index = positions(cells)
        for _, members in self.memory.readers.in_sets(plane, index) if plane.sets is not None else ():
            self._compare_run(access, threads, np.array(members, np.int32), cells, plane, record)

    def _run_reads(self, threads: Ints, plane: Plane, cells: Cells, ref: int) -> None:
        before = plane.reads[0][cells]
        first = int(before[0])
        if (before == first).all():
            one = np.array([first], np.int32)
            if self.memory.readers.replaceable(one, threads[:1], np.array([ref], np.int32))[0]:
                plane.reads[0][cells] = ref
                return
        index = positions(cells)
        self.memory.readers.keep(np.full(len(index), threads[0]), plane, index, np.full(len(index), ref, np.int32))

    def _compare_run(self, access: Access, threads: Ints, last: Refs, cells: Cells, plane: Plane, record: int) -> None:
        if not len(last):
            return
        first = int(last[0])
        refs = np.array([first], np.int64) if (last == first).all() else np.unique(last).astype(np.int64)
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
