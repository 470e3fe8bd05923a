"""Every access to memory: compare it with what was last done to its bytes, then leave its own reference there.

Lane accesses are arrays from end to end; operations on tiles look at the distinct references below them.
"""

from __future__ import annotations

import numpy as np

from pyptx.sim.hazards import rules
from pyptx.sim.hazards.clocks import CTA, SEEN
from pyptx.sim.hazards.conflicts import clashes, ordered, rule_of
from pyptx.sim.hazards.events import Access, Bytes, Family, Ints, Mask, Space
from pyptx.sim.hazards.groups import Group
from pyptx.sim.hazards.records import ALL_LANES, WRITES
from pyptx.sim.hazards.shadow import SLOTS, Cells, Plane, Refs, Shadow
from pyptx.sim.hazards.state import Grid, State


class Memory:
    """The shadow of all spaces of a state."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._sets: list[tuple[int, ...]] = [()]
        self._set_number: dict[tuple[int, ...], int] = {(): 0}

    # Lanes

    def access(
        self, access: Access, group: Group, addresses: Ints, *, benign: bool = False, operation: int = 0
    ) -> None:
        """One instruction's accesses, one per thread. `benign`: lanes that store to the same bytes store the same
        values. `operation`: the accesses happen later, until which `unfinished` holds their records."""
        grid = self.state.grid_of(group.first)
        for part, shadow, base in self._by_buffer(access.space, grid, addresses):
            some = group if part is None else group[part]
            where = addresses if part is None else addresses[part]
            size = min(access.size, 16)
            if access.size > 16:
                where = (where[:, None] + np.arange(0, access.size, 16)).ravel()
                some = Group(np.repeat(some.threads, access.size // 16))
            for plane, cells, chosen in shadow.lanes(where - base if base else where, size):
                self._lane_cells(
                    access, some if chosen is None else some[chosen], shadow, plane, cells, benign, operation
                )

    def _by_buffer(self, space: Space, grid: Grid, addresses: Ints) -> list[tuple[Ints | None, Shadow, int]]:
        """Split addresses by the buffer they lie in; those of no known buffer are left out."""
        first = self.state.shadow_of(space, grid, int(addresses[0]))
        if space is not Space.GLOBAL:
            return [(None, *first)] if first else []
        if first and int(addresses.min()) >= first[1] and int(addresses.max()) < first[1] + first[0].size:
            return [(None, *first)]
        found: dict[int, tuple[Shadow, int, list[int]]] = {}
        for at, address in enumerate(addresses.tolist()):
            hit = self.state.shadow_of(space, grid, address)
            if hit:
                found.setdefault(hit[1], (*hit, []))[2].append(at)
        return [(np.array(at, np.int64), shadow, base) for shadow, base, at in found.values()]

    def _lane_cells(
        self, access: Access, group: Group, shadow: Shadow, plane: Plane, cells: Ints, benign: bool, operation: int
    ) -> None:
        state = self.state
        last = plane.write[cells]
        if access.reads and shadow.fresh and not access.writes and not last.all():
            self._uninitialised(access, group.threads[last == 0], plane, cells[last == 0])
        readers = plane.reads[0][cells]
        self._compare(access, group, self._undisputed(access, last, readers), cells, plane)
        order = np.arange(len(cells), dtype=np.int32)
        plane.winner[cells] = order
        repeated = (plane.winner[cells] != order) if len(cells) > 1 else None
        doubled = repeated is not None and bool(repeated.any())
        if access.writes and not access.strong and doubled and not benign:
            self._same_store(access, group, cells)
        refs = self._refs(access, group, operation)
        if access.writes:
            self._compare_readers(access, group, plane, cells, readers)
            plane.write[cells] = refs
            if readers.any() or len(plane.reads) > 1 or plane.sets is not None:
                plane.clear_reads(cells)
        elif state.records.flags[readers >> 6].max() & WRITES:
            self._compare_readers(access, group, plane, cells, readers)
        if access.reads:
            self._note_reads(access, group, plane, cells, refs, doubled)

    def _undisputed(self, access: Access, last: Refs, readers: Refs) -> Refs:
        """Drop asynchronous writes that were read since: who comes after the readers comes after those writes.

        A commit hands on the operation that it tracks, not what its issuer knew, so this is not in the clocks."""
        if not access.writes or not readers.any():
            return last
        asynchronous = self.state.records.operation[last >> 6] != 0
        return np.where(asynchronous & (readers != 0), 0, last).astype(np.int32) if asynchronous.any() else last

    def _refs(self, access: Access, group: Group, operation: int) -> Refs:
        state, warps = self.state, group.warps
        clocks = state.clocks
        columns = (warps * 32 - clocks.first_thread[warps] + 1).astype(np.int32)
        floored = state.grid_of(group.first).cluster == 1
        if operation:
            return self._unfinished_refs(access, group, operation)
        made = state.records.by_warps(access, warps, clocks.domain_of[warps], columns, group.masks, clocks.now, floored)
        return (made[group.warp_index] * 64 + group.lanes).astype(np.int32)

    def _unfinished_refs(self, access: Access, group: Group, operation: int) -> Refs:
        """Return references of cp.async and st.async: nobody knows them until they finish."""
        state, warps = self.state, group.warps
        domain = state.domain_of(group.first)
        columns = state.operation_columns(operation, warps)
        made = state.records.unfinished(access, warps, domain.number, columns, group.masks, operation)
        state.unfinished.setdefault(operation, []).extend(made.tolist())
        lanes = group.lanes if access.family is Family.CP_ASYNC else 0
        return (made[group.warp_index] * 64 + lanes).astype(np.int32)

    def _floor(self, group: Group) -> int:
        """Return the time up to which all threads of the group know all accesses of their CTA."""
        clocks = self.state.clocks
        rows = clocks.row_of[group.threads] if len(group.warps) > 1 else clocks.row_of[group.threads[:1]]
        return int(clocks.floors[rows, SEEN, CTA].min())

    def _compare(self, access: Access, group: Group, last: Refs, cells: Ints, plane: Plane) -> None:
        """Report lanes whose earlier access at the same cell is not in order."""
        key = self.state.records.key[last >> 6]
        floor = self._floor(group)
        if access.space is Space.SHARED:
            if int(key.max()) <= floor:
                return
            suspects = key > floor
        else:
            suspects = last != 0
            if suspects.any() and not access.readonly:
                domain = self.state.records.domain[last >> 6]
                suspects &= (key > floor) | (domain != self.state.clocks.domain_of[group.threads >> 5])
        self._compare_some(access, group.threads, last, cells, plane, suspects)

    def _compare_some(
        self, access: Access, threads: Ints, last: Refs, cells: Ints, plane: Plane, suspects: Mask
    ) -> None:
        at = np.flatnonzero(suspects & (last != 0))
        if not len(at):
            return
        refs, who = last[at].astype(np.int64), threads[at]
        bad = clashes(self.state, access, refs, who)
        if bad.any():
            self._report(access, refs[bad], who[bad], cells[at][bad], plane)

    def _compare_readers(self, access: Access, group: Group, plane: Plane, cells: Ints, readers: Refs) -> None:
        flags = self.state.records.flags
        for slot in range(len(plane.reads)):
            refs = readers if slot == 0 else plane.reads[slot][cells]
            if not access.writes:
                refs = np.where(flags[refs >> 6] & WRITES, refs, 0).astype(np.int32)
            if refs.any():
                self._compare(access, group, refs, cells, plane)
        if plane.sets is None:
            return
        numbers = plane.sets[cells]
        for number in np.unique(numbers[numbers != 0]).tolist():
            at = np.flatnonzero(numbers == number)
            for ref in self._sets[number]:
                if access.writes or flags[ref >> 6] & WRITES:
                    self._compare(access, group[at], np.full(len(at), ref, np.int32), cells[at], plane)

    def _note_reads(self, access: Access, group: Group, plane: Plane, cells: Ints, refs: Refs, doubled: bool) -> None:
        if not doubled:
            self._keep_reader(group.threads, plane, cells, refs)
            return
        for at, warp in enumerate(group.warps.tolist()):
            mine = np.flatnonzero(group.warp_index == at)
            unique, first, inverse = np.unique(cells[mine], return_index=True, return_inverse=True)
            masks = np.zeros(len(unique), np.int64)
            np.bitwise_or.at(masks, inverse, np.int64(1) << group.lanes[mine])
            new = refs[mine[first]].copy()
            for mask in np.unique(masks[masks & (masks - 1) != 0]).tolist():
                clocks = self.state.clocks
                column = np.array([warp * 32 - clocks.first_thread[warp] + 1], np.int32)
                made = self.state.records.by_warps(
                    access,
                    np.array([warp]),
                    clocks.domain_of[warp : warp + 1],
                    column,
                    np.array([mask]),
                    clocks.now,
                    self.state.grid_of(group.first).cluster == 1,
                )
                new[masks == mask] = int(made[0]) * 64 + ALL_LANES
            self._keep_reader(group.threads[mine[first]], plane, unique, new)

    def _keep_reader(self, threads: Ints, plane: Plane, cells: Ints, refs: Refs) -> None:
        """Put readers into the first slot that is free or whose reader comes before them."""
        for slot in range(SLOTS):
            held = plane.slot(slot)
            before = held[cells]
            if not before.any():
                held[cells] = refs
                return
            free = self._replaceable(before, threads, refs)
            if free.all():
                held[cells] = refs
                return
            held[cells[free]] = refs[free]
            cells, refs, threads = cells[~free], refs[~free], threads[~free]
        self._keep_in_sets(threads, plane, cells, refs)

    def _replaceable(self, before: Refs, threads: Ints, refs: Refs) -> Mask:
        records, clocks = self.state.records, self.state.clocks
        old, new = before >> 6, refs >> 6
        free = (before == 0) | (before == refs)
        if int(threads[0]) >= 0 and not free.all():
            rows = clocks.row_of[threads]
            same = records.domain[old] == clocks.domain_of[threads >> 5]
            near = (records.column[old] >= clocks.cta_span[threads >> 5, 0]) & (
                records.column[old] < clocks.cta_span[threads >> 5, 1]
            )
            free |= same & near & (records.key[old] <= clocks.floors[rows, SEEN, CTA])
            at = np.flatnonzero(~free)
            if len(at):
                alike = (records.family[old[at]] == records.family[new[at]]) & (
                    records.flags[old[at]] == records.flags[new[at]]
                )
                free[at] = alike & ordered(self.state, before[at].astype(np.int64), threads[at])
        return free

    def _keep_in_sets(self, threads: Ints, plane: Plane, cells: Ints, refs: Refs) -> None:
        if plane.sets is None:
            plane.sets = np.zeros_like(plane.write)
        numbers = plane.sets[cells]
        pairs, inverse = np.unique(numbers.astype(np.int64) << 32 | refs, return_inverse=True)
        for index, pair in enumerate(pairs.tolist()):
            ref = pair & 0xFFFFFFFF
            at = np.flatnonzero(inverse == index)
            thread = threads[at[:1]]
            kept = [
                one
                for one in self._sets[pair >> 32]
                if one != ref and not self._replaceable(np.array([one], np.int32), thread, refs[at[:1]])[0]
            ]
            key = (*kept, ref)
            number = self._set_number.get(key)
            if number is None:
                number = self._set_number[key] = len(self._sets)
                self._sets.append(key)
            plane.sets[cells[at]] = number

    # Runs of bytes, by asynchronous operations

    def run(self, access: Access, threads: Ints, where: Bytes, record: int) -> None:
        """An operation reads or writes runs of bytes, knowing what each of its issuing threads knows."""
        grid = self.state.grid_of(int(threads[0]))
        ref = record * 64
        for part, shadow, base in self._by_buffer(where.space, grid, where.starts):
            starts = where.starts if part is None else where.starts[part]
            for plane, cells in shadow.runs(starts - base, where.length):
                last = plane.write[cells]
                if access.reads and shadow.fresh and not last.all():
                    missing = np.arange(cells.start, cells.stop) if isinstance(cells, slice) else cells
                    self._uninitialised(access, threads[:1], plane, missing[last == 0])
                last = self._undisputed(access, last, plane.reads[0][cells])
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
        if plane.sets is not None:
            for number in np.unique(plane.sets[cells]).tolist():
                refs = np.array(self._sets[number], np.int32)
                self._compare_run(access, threads, refs, cells, plane, record)

    def _run_reads(self, threads: Ints, plane: Plane, cells: Cells, ref: int) -> None:
        before = plane.reads[0][cells]
        first = int(before[0])
        if (before == first).all():
            one = np.array([first], np.int32)
            if self._replaceable(one, threads[:1], np.array([ref], np.int32))[0]:
                plane.reads[0][cells] = ref
                return
        index = np.arange(cells.start, cells.stop) if isinstance(cells, slice) else cells
        self._keep_reader(np.full(len(index), threads[0]), plane, index, np.full(len(index), ref, np.int32))

    def _compare_run(self, access: Access, threads: Ints, last: Refs, cells: Cells, plane: Plane, record: int) -> None:
        if not len(last):
            return
        first = int(last[0])
        refs = np.array([first], np.int64) if (last == first).all() else np.unique(last).astype(np.int64)
        refs = refs[refs != 0]
        operation = int(self.state.records.operation[record])
        refs = refs[(self.state.records.operation[refs >> 6] != operation) | (operation == 0)]
        if not access.writes:
            refs = refs[self.state.records.flags[refs >> 6] & WRITES != 0]
        if not len(refs):
            return
        for thread in threads.tolist():
            bad = clashes(self.state, access, refs, np.full(len(refs), thread))
            if bad.any():
                index = np.arange(cells.start, cells.stop) if isinstance(cells, slice) else cells
                where = index[np.flatnonzero(np.isin(last, refs[bad]))[:1]] if len(last) == len(index) else index[:1]
                self._report(
                    access, refs[bad], np.full(int(bad.sum()), thread), np.repeat(where, int(bad.sum())), plane
                )
                return

    # Findings

    def _report(self, access: Access, refs: Ints, threads: Ints, cells: Ints, plane: Plane) -> None:
        seen: dict[int, int] = {}
        for ref, thread, cell in zip(refs.tolist(), threads.tolist(), cells.tolist(), strict=True):
            record = ref >> 6
            if record in seen and seen[record] >= 0:
                seen[record] += 1
                continue
            rule = rule_of(self.state, access, ref, thread)
            seen[record] = 1
            if rule is None:
                continue
            earlier = self.state.records.place(record)
            where = self._where(access, plane, cell, thread)
            engine = self.state.agent_of(ref).engine
            by = f"{engine} " if engine else ""
            what = f"{access.verb} {where} after {by}{earlier.verb.removesuffix('s')} of them"
            count = int((refs >> 6 == record).sum())
            self.state.report(rule, access.place, what, thread=thread, ref=ref, where=where, count=count)

    def _where(self, access: Access, plane: Plane, cell: int, thread: int) -> str:
        size = max(access.size, plane.unit)
        return self.state.location(access.space, self.state.grid_of(thread), plane.base + cell * plane.unit, size)

    def _uninitialised(self, access: Access, threads: Ints, plane: Plane, cells: Ints) -> None:
        rule = rules.UNINITIALISED_TENSOR if access.space is Space.TENSOR else rules.UNINITIALISED_SHARED
        thread = int(threads[0])
        where = self._where(access, plane, int(cells[0]), thread)
        what = f"{access.verb} {where}, which nobody wrote"
        self.state.report(rule, access.place, what, thread=thread, where=where, count=len(threads))

    def _same_store(self, access: Access, group: Group, cells: Ints) -> None:
        _, first, counts = np.unique(cells, return_index=True, return_counts=True)
        thread = int(group.threads[first[counts > 1][0]])
        what = f"{int((counts > 1).sum())} locations are each written by several lanes of one store"
        self.state.report(rules.RACE, access.place, what, thread=thread, count=int(counts[counts > 1].sum()))
