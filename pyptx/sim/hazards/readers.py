"""The readers of each cell, kept until a write follows all of them.

A few concurrent readers are in slots, more in interned sets or in a sorted list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from pyptx.sim.base.events import Access, Family, Ints, Mask, Space
from pyptx.sim.hazards.clocks import CTA, SEEN
from pyptx.sim.hazards.conflicts import follows_plainly, precedes
from pyptx.sim.hazards.crowds import sign_crowds
from pyptx.sim.hazards.footprints import CellCrowds, Footprint, SlotReaders, find_sharing
from pyptx.sim.hazards.groups import Group
from pyptx.sim.hazards.records import ALL_LANES, CROWD
from pyptx.sim.hazards.shadow import SLOTS, Log, Plane, Refs, Shadow
from pyptx.sim.hazards.spill import Spill
from pyptx.sim.hazards.state import State

RefsOf = Callable[[Access, Group], Refs]
_SPREAD = 0x9E3779B97F4A7
"""A multiplier that spreads masks over the bits of a reader's number."""
_MOST_SETS = 64
"""The most cells of global memory whose readers beyond the slots go into sets; with more, into a sorted list."""


class Readers:
    """Recording of readers, and of strong writes, which do not order each other either."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._sets: list[tuple[int, ...]] = [()]
        self._set_number: dict[tuple[int, ...], int] = {(): 0}

    def note(
        self, access: Access, group: Group, plane: Plane, cells: Ints, refs: Refs, footprint: Footprint | None = None
    ) -> None:
        """Record the accesses of a group's lanes; `footprint` is theirs, if cached."""
        if access.family is Family.ST_ASYNC:
            self._note_signalling(group, plane, cells, refs)
            return
        slot_refs = plane.reads[0]
        before = slot_refs[cells]
        if self._all_replaceable(access, group, before, plane):
            slot_refs[cells] = refs
            if len(cells) == 1 or not np.count_nonzero(slot_refs[cells] != refs):
                return
            slot_refs[cells] = before
        elif not self._has_repeats(cells):
            self.keep(group.threads, plane, cells, refs)
            return
        grid = self.state.find_grid(group.first)
        sharing = (
            footprint.get_sharing(grid)
            if footprint is not None
            else find_sharing(group, cells, grid.first_thread, grid.stride)
        )
        for slot_readers in sharing.slots:
            self.keep(
                group.threads[slot_readers.lanes],
                plane,
                slot_readers.cells,
                self._make_refs(access, group, slot_readers, refs),
                slot_readers.slot,
            )
        if sharing.crowds is not None:
            crowds = self._make_crowds(access, group, sharing.crowds)
            if sharing.disjoint:
                self.keep(group.threads[sharing.crowds.lanes], plane, sharing.crowds.cells, crowds)
            else:
                self.append(plane, sharing.crowds.cells, crowds)

    def _note_signalling(self, group: Group, plane: Plane, cells: Ints, refs: Refs) -> None:
        """Record reductions that signal an mbarrier: those of a warp are one operation, so lanes that share a cell need
        one reference only."""
        for warp in range(len(group.warps)):
            unique, first = np.unique(cells[group.warp_index == warp], return_index=True)
            mine = np.flatnonzero(group.warp_index == warp)[first]
            self.keep(group.threads[mine], plane, unique, refs[mine])

    def replace(self, access: Access, group: Group, footprint: Footprint, refs: RefsOf) -> None:
        """Record the accesses of a group's lanes that share cells and that all earlier readers precede."""
        plane, sharing = footprint.plane, footprint.get_sharing(self.state.find_grid(group.first))
        for slot_readers in sharing.slots:
            plane.get_slot(slot_readers.slot)[slot_readers.cells] = self._make_refs(
                access, group, slot_readers, refs(access, group)
            )
        if sharing.crowds is not None:
            # Cells of shared memory belong to one CTA, so none has two crowds.
            plane.reads[0][sharing.crowds.cells] = self._make_crowds(access, group, sharing.crowds)

    def _make_refs(self, access: Access, group: Group, slot_readers: SlotReaders, refs: Refs) -> Refs:
        """Return the references for one slot: lanes, and new records where several lanes of a warp share a cell."""
        new = refs[slot_readers.lanes]
        if len(slot_readers.warps):
            numbers = self._make_records(access, group, slot_readers.warps, slot_readers.masks)
            new[slot_readers.several] = numbers[slot_readers.pair_index] * 64 + ALL_LANES
        return new

    def _make_crowds(self, access: Access, group: Group, crowds: CellCrowds) -> Refs:
        """Return a reference for each cell, to a crowd of all its threads."""
        columns, signatures = crowds.find_columns(group)
        numbers = self._make_records(access, group, crowds.warps, signatures)
        self.state.records.crowds.add(int(numbers[0]), columns, crowds.ends, self.state.clocks.now)
        return (numbers * 64 + CROWD).astype(np.int32)

    def _make_records(self, access: Access, group: Group, warps: Ints, masks: Ints) -> Ints:
        records, now, has_floor = (
            self.state.records,
            self.state.clocks.now,
            self.state.find_grid(group.first).cluster == 1,
        )
        return records.add_warps(
            records.number_access(access), group.lives[warps], group.columns[warps], masks, now, has_floor
        )  # fmt: skip

    def replay(self, shadow: Shadow) -> None:
        """Record the logged readers of a buffer before its first write."""
        for addresses, size, refs in shadow.drain_log():
            for plane, cells, lanes in shadow.find_cells(addresses, size):
                self.append(plane, cells, refs if lanes is None else refs[lanes])

    def append(self, plane: Plane, cells: Ints, refs: Refs) -> None:
        """Add readers without comparing them: each takes a free slot of its cell, or that of an equal access."""
        records = self.state.records
        for slot in range(SLOTS):
            slot_refs = plane.get_slot(slot)
            before = slot_refs[cells]
            alike = self._identify(before) == self._identify(refs)
            alike &= records.get_kinds(before >> 6) == records.get_kinds(refs >> 6)
            free = (before == 0) | alike
            slot_refs[cells[free]] = refs[free]
            is_left = slot_refs[cells] != refs
            cells, refs = cells[is_left], refs[is_left]
            if not len(cells):
                return
        self._spill(plane, cells, refs)

    def _all_replaceable(self, access: Access, group: Group, before: Refs, plane: Plane) -> bool:
        """Tell quickly whether the first slot of all cells is free, or its reader precedes the access."""
        if not np.count_nonzero(before):
            return True
        if plane.strong:
            return False
        records, record = self.state.records, before >> 6
        late = records.key[record] > group.floor if access.space is Space.SHARED else before != 0
        if np.count_nonzero(late):
            late &= records.tag[record] + (before & 63) != group.tags
        return not np.count_nonzero(late)

    @staticmethod
    def _has_repeats(cells: Ints) -> bool:
        return len(cells) > 1 and len(np.unique(cells)) < len(cells)

    def settle(self, plane: Plane) -> None:
        """Record the logged accesses: for each cell and instruction, a crowd of all threads with their last times.

        Drop no earlier access: threads that know it now may not have known it at the time of theirs.
        """
        state, log = self.state, plane.log
        cells, numbers, threads, times = _select_latest(log)
        plane.late = max(plane.late, log.latest)
        log.clear()
        starts = np.flatnonzero(np.append(True, (cells[1:] != cells[:-1]) | (numbers[1:] != numbers[:-1])))
        ends, columns = np.append(starts[1:], len(cells)), state.clocks.find_columns(threads)
        warps, time = threads[starts] >> 5, np.maximum.reduceat(times, starts)
        first = (columns[starts] - (threads[starts] & 31)).astype(np.int32)
        lives, signatures = state.clocks.life_of[warps], sign_crowds(columns, starts)
        record_numbers = state.records.add_warps(numbers[starts], lives, first, signatures, time, True)
        for record, low, high in zip(record_numbers.tolist(), starts.tolist(), ends.tolist(), strict=True):
            state.records.crowds[record] = columns[low:high], times[low:high]
        self._add(plane, cells[starts], (record_numbers * 64 + CROWD).astype(np.int32))

    def _add(self, plane: Plane, cells: Ints, refs: Refs) -> None:
        """Merge readers with those of the same instruction, or put them into a free slot or a set. A cell may occur
        repeatedly."""
        while len(cells):
            _, first = np.unique(cells, return_index=True)
            is_repeat = np.ones(len(cells), np.bool_)
            is_repeat[first] = False
            unique_cells, new = cells[first], refs[first]
            cells, refs = cells[is_repeat], refs[is_repeat]
            is_left = ~self._fold(plane, unique_cells, new)
            for slot in range(SLOTS):
                slot_refs, indices = plane.get_slot(slot), np.flatnonzero(is_left)
                free = indices[slot_refs[unique_cells[indices]] == 0]
                slot_refs[unique_cells[free]] = new[free]
                is_left[free] = False
            sets = self._select_sets(plane)
            for cell, ref in zip(unique_cells[is_left].tolist(), new[is_left].tolist(), strict=True):
                sets[cell] = self._number_set((*self._sets[sets[cell]], ref))

    def keep(self, threads: Ints, plane: Plane, cells: Ints, refs: Refs, first: int = 0) -> None:
        """Put readers into the first slot, from `first` on, that is free or whose reader precedes them."""
        if plane.strong and plane.exact and len(cells) > 1 and plane.reads[0][cells].any():
            positions = np.flatnonzero(~self._fold(plane, cells, refs))
            if not len(positions):
                return
            cells, refs, threads = cells[positions], refs[positions], threads[positions]
        for slot in range(first, SLOTS):
            slot_refs = plane.get_slot(slot)
            before = slot_refs[cells]
            if not np.count_nonzero(before):
                slot_refs[cells] = refs
                return
            free = self.find_replaceable(before, threads, refs)
            if free.all():
                slot_refs[cells] = refs
                return
            slot_refs[cells[free]] = refs[free]
            cells, refs, threads = cells[~free], refs[~free], threads[~free]
        positions = np.flatnonzero(~self._fold(plane, cells, refs))
        if len(positions) and (plane.exact or len(positions) <= _MOST_SETS):
            self._keep_in_sets(threads[positions], plane, cells[positions], refs[positions])
        elif len(positions):
            self._spill(plane, cells[positions], refs[positions])

    def _spill(self, plane: Plane, cells: Ints, refs: Refs) -> None:
        """Put readers without a slot into the sorted list."""
        if plane.spill is None:
            plane.spill = Spill(self._identify_readers)
        plane.spill.add(cells, refs)
        plane.spill.numbers.update(np.unique(self.state.records.access[refs >> 6]).tolist())

    def _identify(self, refs: Refs) -> Ints:
        """Number the threads of references."""
        records, record, lane = self.state.records, refs >> 6, refs.astype(np.int64) & 63
        masks = np.where(lane < ALL_LANES, 0, records.mask[record])
        return records.tag[record] + lane + masks * _SPREAD

    def _identify_readers(self, refs: Refs) -> Ints:
        """Number readers: two references are one reader if they have the same instruction and threads."""
        return (self.state.records.access[refs >> 6].astype(np.int64) << 38) + self._identify(refs)

    def find_spilled(self, plane: Plane, cells: Ints, exclude: Mask | None = None) -> tuple[Ints, Refs]:
        """Return the readers of cells in the sorted list, and the position of each one's cell. `exclude` marks the
        numbers of accesses to omit."""
        spill, records = plane.spill, self.state.records
        if spill is None or (exclude is not None and all(exclude[number] for number in spill.numbers)):
            return np.zeros(0, np.int64), np.zeros(0, np.int32)
        indices, refs = spill.find(cells)
        if exclude is None:
            return indices, refs
        selection = ~exclude[records.access[refs >> 6]]
        return indices[selection], refs[selection]

    def _fold(self, plane: Plane, cells: Ints, refs: Refs) -> Mask:
        """Merge readers with earlier ones of the same instruction into one crowd per cell. Tell which cells have
        such."""
        records = self.state.records
        old = np.array([slot_refs[cells] for slot_refs in plane.reads], np.int64)
        alike = (records.access[old >> 6] == records.access[refs >> 6]) & (old != 0)
        alike &= (records.operation[old >> 6] == 0) & (records.operation[refs >> 6] == 0)
        alike &= records.get_domains(old >> 6) == records.get_domains(refs >> 6)
        # A crowd has threads of one CTA only: scopes are compared with the CTA of its first thread.
        begins = self.state.clocks.cta_span[:, 0]
        alike &= begins[records.get_warps(old >> 6)] == begins[records.get_warps(refs >> 6)]
        is_folded = alike.any(axis=0)
        if not is_folded.any():
            return is_folded
        slots, positions = np.nonzero(alike[:, is_folded])
        crowds = self._unite(refs[is_folded], positions, old[:, is_folded][slots, positions])
        for slot, slot_refs in enumerate(plane.reads):
            slot_refs[cells[alike[slot]]] = 0
        target = alike.argmax(axis=0)[is_folded]
        for slot in np.unique(target).tolist():
            plane.reads[slot][cells[is_folded][target == slot]] = crowds[target == slot]
        return is_folded

    def _unite(self, refs: Refs, positions: Ints, earlier_refs: Ints) -> Refs:
        """Return crowds of the threads of each reference and of the earlier ones; `positions` are those that the
        earlier ones join."""
        records = self.state.records
        every = np.concatenate([refs.astype(np.int64), earlier_refs])
        owner, columns, times = self._expand_members(every)
        owner = np.concatenate([np.arange(len(refs)), positions])[owner]
        order = np.lexsort((times, columns, owner))
        owner, columns, times = owner[order], columns[order], times[order]
        last = np.append((owner[1:] != owner[:-1]) | (columns[1:] != columns[:-1]), True)
        owner, columns, times = owner[last], columns[last], times[last]
        starts = np.flatnonzero(np.append(True, owner[1:] != owner[:-1]))
        record = refs >> 6
        numbers = records.copy_records(record, np.maximum.reduceat(times, starts))
        records.mask[numbers] = sign_crowds(columns, starts)
        ends = np.append(starts[1:], len(owner))
        for number, low, high in zip(numbers.tolist(), starts.tolist(), ends.tolist(), strict=True):
            records.crowds[number] = columns[low:high], times[low:high]
        return (numbers * 64 + CROWD).astype(np.int32)

    def _expand_members(self, refs: Ints) -> tuple[Ints, Ints, Ints]:
        """Return the threads of references: position of the reference, column and time of each."""
        records, record, lane = self.state.records, refs >> 6, refs & 63
        masks = np.where(lane == ALL_LANES, records.mask[record], np.int64(1) << lane)
        masks[lane == CROWD] = 0
        owner, lanes = np.nonzero((masks[:, None] >> np.arange(32)) & 1)
        columns, times = records.column[record[owner]] + lanes, records.time[record[owner]].astype(np.int64)
        crowds = np.flatnonzero(lane == CROWD)
        if not len(crowds):
            return owner, columns, times
        crowds_members = [records.crowds[number] for number in record[crowds].tolist()]
        owners = crowds.repeat([len(mine) for mine, _ in crowds_members])
        return (
            np.concatenate([owner, owners]),
            np.concatenate([columns, *(mine for mine, _ in crowds_members)]),
            np.concatenate([times, *(when for _, when in crowds_members)]),
        )

    def find_replaceable(self, before: Refs, threads: Ints, refs: Refs) -> Mask:
        """Tell which slots are free, or hold an access of the same kind that precedes the new one."""
        records, clocks = self.state.records, self.state.clocks
        if len(before) == 1 and before[0] and self._follows(int(before[0]), int(threads[0]), int(refs[0])):
            return np.ones(1, np.bool_)
        free = (before == 0) | (before == refs)
        indices = np.flatnonzero(~free)
        if not len(indices):
            return free
        old, reader_threads = before[indices].astype(np.int64), threads[indices]
        alike = records.get_kinds(old >> 6) == records.get_kinds(refs[indices] >> 6)
        # Only accesses of grids without clusters, where a domain is a CTA, have keys that a floor can reach.
        near = records.get_domains(old >> 6) == clocks.domain_of[reader_threads >> 5]
        early = near & (records.key[old >> 6] <= clocks.get_floors(reader_threads)[:, SEEN, CTA])
        if not early.all():
            early |= self._is_repeat(old, refs[indices].astype(np.int64))
        open_positions = np.flatnonzero(alike & ~early)
        early[open_positions] = precedes(self.state, old[open_positions], reader_threads[open_positions])
        free[indices] = alike & early
        return free

    def _is_repeat(self, old: Ints, new: Ints) -> Mask:
        """Tell which old accesses are repeated by all their threads: who knows the new ones knows the old ones."""
        records = self.state.records
        masks: list[Ints] = []
        for record, lane in ((old >> 6, old & 63), (new >> 6, new & 63)):
            mask = np.where(lane == ALL_LANES, records.mask[record], np.int64(1) << lane)
            masks.append(np.where(lane == CROWD, -1, mask))
        same_warp = records.tag[old >> 6] == records.tag[new >> 6]
        repeats = same_warp & (records.operation[old >> 6] == 0) & (masks[0] & ~masks[1] == 0)
        repeats &= np.minimum(*masks) >= 0
        crowds = np.flatnonzero((masks[0] < 0) & (masks[1] < 0))
        same_threads = records.mask[old[crowds] >> 6] == records.mask[new[crowds] >> 6]
        repeats[crowds] = same_warp[crowds] & same_threads
        return repeats

    def _follows(self, old: int, thread: int, ref: int) -> bool:
        """Tell quickly whether an access of the same kind precedes a new one. False decides nothing."""
        records = self.state.records
        if not records.is_same_kind(old >> 6, ref >> 6):
            return False
        return follows_plainly(self.state, records.get_access(ref >> 6), old, thread)

    def _keep_in_sets(self, threads: Ints, plane: Plane, cells: Ints, refs: Refs) -> None:
        sets = self._select_sets(plane)
        numbers = sets[cells]
        pairs, inverse = np.unique(numbers.astype(np.int64) << 32 | refs, return_inverse=True)
        for index, pair in enumerate(pairs):
            ref = int(pair) & 0xFFFFFFFF
            indices = np.flatnonzero(inverse == index)
            thread = threads[indices[:1]]
            survivors: list[int] = []
            members: tuple[int, ...] = self._sets[int(pair) >> 32]
            for member in members:
                member_ref = np.array([member], np.int32)
                if member != ref and not self.find_replaceable(member_ref, thread, refs[indices[:1]])[0]:
                    survivors.append(member)
            sets[cells[indices]] = self._number_set((*survivors, ref))

    @staticmethod
    def _select_sets(plane: Plane) -> Refs:
        """Return the set number of each cell of a plane."""
        if plane.sets is None:
            plane.sets = np.zeros_like(plane.write)
        return plane.sets

    def _number_set(self, members: tuple[int, ...]) -> int:
        """Return the number of a set."""
        number = self._set_number.get(members)
        if number is None:
            number = self._set_number[members] = len(self._sets)
            self._sets.append(members)
        return number

    def list_sets(self, plane: Plane, cells: Ints) -> Iterator[tuple[Ints, tuple[int, ...]]]:
        """Yield each set of readers in some cells, after the positions of its cells."""
        if plane.sets is not None:
            numbers = plane.sets[cells]
            for number in np.unique(numbers[numbers != 0]).tolist():
                yield np.flatnonzero(numbers == number), self._sets[number]


def _select_latest(log: Log) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the last access of each thread to each cell, sorted: cells, access numbers, threads, times."""
    numbers, times = (
        np.array(column) for column in zip(*((number, now) for *_, number, now in log.entries), strict=True)
    )
    low = min(int(threads.min()) for _, threads, _, _ in log.entries)
    span = max(int(threads.max()) for _, threads, _, _ in log.entries) - low + 1
    keys = np.concatenate(
        [
            (cells.astype(np.int64) * span + (threads - low)) * len(times) + index
            for index, (cells, threads, _, _) in enumerate(log.entries)
        ]
    )
    keys.sort()
    key_pairs = keys // len(times)
    keys = keys[np.append(key_pairs[1:] != key_pairs[:-1], True)]
    pairs, indices = np.divmod(keys, len(times))
    cells, threads = np.divmod(pairs, span)
    order = np.lexsort((threads, numbers[indices], cells))
    return cells[order], numbers[indices][order], threads[order] + low, times[indices][order]
