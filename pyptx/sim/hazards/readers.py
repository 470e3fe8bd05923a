"""The readers of each cell, kept until a write follows all of them.

A few concurrent readers are kept in slots; more of them are interned sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from pyptx.sim.base.events import Access, Family, Ints, Mask, Space
from pyptx.sim.hazards.clocks import CTA, SEEN
from pyptx.sim.hazards.conflicts import follows_plainly, precedes
from pyptx.sim.hazards.footprints import Footprint, Many, Turn, sharing
from pyptx.sim.hazards.groups import Group
from pyptx.sim.hazards.records import ALL_LANES, CROWD
from pyptx.sim.hazards.shadow import SLOTS, Log, Plane, Refs, Shadow
from pyptx.sim.hazards.spill import Spill
from pyptx.sim.hazards.state import State

RefsOf = Callable[[Access, Group], Refs]
_SPREAD = 0x9E3779B97F4A7
"""Separates masks from the other parts of a reader's identity."""
_MOST_SETS = 64
"""Up to this many cells of global memory, readers beyond the slots are kept in sets; otherwise in a sorted list."""


class Readers:
    """Records readers, and strong writes, since they do not order each other."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._sets: list[tuple[int, ...]] = [()]
        self._set_number: dict[tuple[int, ...], int] = {(): 0}

    def note(
        self, access: Access, group: Group, plane: Plane, cells: Ints, refs: Refs, whole: Footprint | None = None
    ) -> None:
        """Record the accesses of a group's lanes, whose footprint is `whole` if known."""
        if access.family is Family.ST_ASYNC:
            self._note_signalling(group, plane, cells, refs)
            return
        held = plane.reads[0]
        before = held[cells]
        if self._all_replaceable(access, group, before, plane):
            held[cells] = refs
            if len(cells) == 1 or not np.count_nonzero(held[cells] != refs):
                return
            held[cells] = before
        elif not self._has_repeats(cells):
            self.keep(group.threads, plane, cells, refs)
            return
        grid = self.state.find_grid(group.first)
        how = whole.shared(grid) if whole is not None else sharing(group, cells, grid.first_thread, grid.stride)
        for turn in how.turns:
            self.keep(
                group.threads[turn.lanes], plane, turn.cells, self._make_refs(access, group, turn, refs), turn.slot
            )
        if how.many is not None:
            crowds = self._make_crowds(access, group, how.many)
            if how.disjoint:
                self.keep(group.threads[how.many.lanes], plane, how.many.cells, crowds)
            else:
                self.append(plane, how.many.cells, crowds)

    def _note_signalling(self, group: Group, plane: Plane, cells: Ints, refs: Refs) -> None:
        """Record reductions that signal an mbarrier: those of a warp are one operation, which a record of lanes cannot
        represent, however many of them share a cell."""
        for warp in range(len(group.warps)):
            unique, first = np.unique(cells[group.warp_index == warp], return_index=True)
            mine = np.flatnonzero(group.warp_index == warp)[first]
            self.keep(group.threads[mine], plane, unique, refs[mine])

    def replace(self, access: Access, group: Group, whole: Footprint, refs: RefsOf) -> None:
        """Record the accesses of a group's lanes that share cells and follow all readers so far."""
        plane, how = whole.plane, whole.shared(self.state.find_grid(group.first))
        for turn in how.turns:
            plane.slot(turn.slot)[turn.cells] = self._make_refs(access, group, turn, refs(access, group))
        if how.many is not None:
            crowds = self._make_crowds(access, group, how.many)
            plane.reads[0][how.many.cells] = crowds
            if not how.disjoint:
                left = plane.reads[0][how.many.cells] != crowds
                self.append(plane, how.many.cells[left], crowds[left])

    def _make_refs(self, access: Access, group: Group, turn: Turn, refs: Refs) -> Refs:
        """Return references for one slot: those of single lanes, and records of several lanes of warps."""
        new = refs[turn.lanes]
        if len(turn.warps):
            numbers = self._make_records(access, group, turn.warps, turn.masks)
            new[turn.several] = numbers[turn.which] * 64 + ALL_LANES
        return new

    def _make_crowds(self, access: Access, group: Group, many: Many) -> Refs:
        """Return a reference for each cell, to all its threads."""
        numbers = self._make_records(access, group, many.warps, many.masks)
        self.state.records.crowds.add(int(numbers[0]), many.columns(group), many.ends, self.state.clocks.now)
        return (numbers * 64 + CROWD).astype(np.int32)

    def _make_records(self, access: Access, group: Group, warps: Ints, masks: Ints) -> Ints:
        records, now, floored = (
            self.state.records,
            self.state.clocks.now,
            self.state.find_grid(group.first).cluster == 1,
        )
        return records.add_warps(
            records.number_access(access), group.lives[warps], group.columns[warps], masks, now, floored
        )  # fmt: skip

    def replay(self, shadow: Shadow) -> None:
        """Record the logged readers before the first write."""
        for addresses, size, refs in shadow.unwritten():
            for plane, cells, chosen in shadow.lanes(addresses, size):
                self.append(plane, cells, refs if chosen is None else refs[chosen])

    def append(self, plane: Plane, cells: Ints, refs: Refs) -> None:
        """Record readers that no access is known to follow, up to one per slot of a cell."""
        records = self.state.records
        for slot in range(SLOTS):
            held = plane.slot(slot)
            before = held[cells]
            same = records.tag[before >> 6] + (before & 63) == records.tag[refs >> 6] + (refs & 63)
            free = (before == 0) | (same & (records.get_kinds(before >> 6) == records.get_kinds(refs >> 6)))
            held[cells[free]] = refs[free]
            lost = held[cells] != refs
            cells, refs = cells[lost], refs[lost]
            if not len(cells):
                return
        self._spill(plane, cells, refs)

    def _all_replaceable(self, access: Access, group: Group, before: Refs, plane: Plane) -> bool:
        """Tell quickly whether the first slot is free for all, or held by earlier accesses."""
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
        """Record what was only logged: of each instruction at a cell, all threads with the last time of each.

        Earlier accesses stay in place. Nothing is dropped by what threads know now, as they may not have known it then.
        """
        state, log = self.state, plane.log
        cells, numbers, threads, times = _select_latest(log)
        plane.late = max(plane.late, log.latest)
        log.clear()
        starts = np.flatnonzero(np.append(True, (cells[1:] != cells[:-1]) | (numbers[1:] != numbers[:-1])))
        ends, columns = np.append(starts[1:], len(cells)), state.clocks.find_columns(threads)
        warps, time = threads[starts] >> 5, np.maximum.reduceat(times, starts)
        first = (columns[starts] - (threads[starts] & 31)).astype(np.int32)
        lives, masks = state.clocks.life_of[warps], np.int64(1) << (threads[starts] & 31)
        settled = state.records.add_warps(numbers[starts], lives, first, masks, time, True)
        for one, low, high in zip(settled.tolist(), starts.tolist(), ends.tolist(), strict=True):
            state.records.crowds[one] = columns[low:high], times[low:high]
        self._add(plane, cells[starts], (settled * 64 + CROWD).astype(np.int32))

    def _add(self, plane: Plane, cells: Ints, refs: Refs) -> None:
        """Merge readers with equal ones in a free slot or a set. A cell may occur repeatedly."""
        while len(cells):
            _, first = np.unique(cells, return_index=True)
            again = np.ones(len(cells), np.bool_)
            again[first] = False
            here, new = cells[first], refs[first]
            cells, refs = cells[again], refs[again]
            left = ~self._fold(plane, here, new)
            for slot in range(SLOTS):
                held, at = plane.slot(slot), np.flatnonzero(left)
                free = at[held[here[at]] == 0]
                held[here[free]] = new[free]
                left[free] = False
            sets = self._select_sets(plane)
            for cell, ref in zip(here[left].tolist(), new[left].tolist(), strict=True):
                sets[cell] = self._number_set((*self._sets[sets[cell]], ref))

    def keep(self, threads: Ints, plane: Plane, cells: Ints, refs: Refs, first: int = 0) -> None:
        """Put readers into the first slot that is free or whose reader precedes them, from a slot on."""
        if plane.strong and plane.exact and len(cells) > 1 and plane.reads[0][cells].any():
            left = np.flatnonzero(~self._fold(plane, cells, refs))
            if not len(left):
                return
            cells, refs, threads = cells[left], refs[left], threads[left]
        for slot in range(first, SLOTS):
            held = plane.slot(slot)
            before = held[cells]
            if not np.count_nonzero(before):
                held[cells] = refs
                return
            free = self.replaceable(before, threads, refs)
            if free.all():
                held[cells] = refs
                return
            held[cells[free]] = refs[free]
            cells, refs, threads = cells[~free], refs[~free], threads[~free]
        left = np.flatnonzero(~self._fold(plane, cells, refs))
        if len(left) and (plane.exact or len(left) <= _MOST_SETS):
            self._keep_in_sets(threads[left], plane, cells[left], refs[left])
        elif len(left):
            self._spill(plane, cells[left], refs[left])

    def _spill(self, plane: Plane, cells: Ints, refs: Refs) -> None:
        """Keep readers without a slot."""
        if plane.spill is None:
            plane.spill, plane.crowded = Spill(self._identify), True
        plane.spill.add(cells, refs)
        plane.spill.numbers.update(np.unique(self.state.records.access[refs >> 6]).tolist())

    def _identify(self, refs: Refs) -> Ints:
        """Return numbers of readers: a lane, or the same lanes of the same warps, by the same instruction."""
        records, record, lane = self.state.records, refs >> 6, refs.astype(np.int64) & 63
        masks = np.where(lane < ALL_LANES, 0, records.mask[record])
        return (records.access[record].astype(np.int64) << 38) + records.tag[record] + lane + masks * _SPREAD

    def spilled(self, plane: Plane, cells: Ints, without: Mask | None = None) -> tuple[Ints, Refs]:
        """Return readers of cells without a slot, with the position of the cell of each. `without` excludes accesses by
        their numbers."""
        spill, records = plane.spill, self.state.records
        if spill is None or (without is not None and all(without[number] for number in spill.numbers)):
            return np.zeros(0, np.int64), np.zeros(0, np.int32)
        at, refs = spill.find(cells)
        if without is None:
            return at, refs
        asked = ~without[records.access[refs >> 6]]
        return at[asked], refs[asked]

    def _fold(self, plane: Plane, cells: Ints, refs: Refs) -> Mask:
        """Merge readers with earlier ones of the same instruction, those of a cell in one slot; tell which cells have
        such."""
        records = self.state.records
        old = np.array([held[cells] for held in plane.reads], np.int64)
        alike = (records.access[old >> 6] == records.access[refs >> 6]) & (old != 0)
        alike &= (records.operation[old >> 6] == 0) & (records.operation[refs >> 6] == 0)
        alike &= records.get_domains(old >> 6) == records.get_domains(refs >> 6)
        folded = alike.any(axis=0)
        if not folded.any():
            return folded
        slots, at = np.nonzero(alike[:, folded])
        crowds = self._unite(refs[folded], at, old[:, folded][slots, at])
        for slot, held in enumerate(plane.reads):
            held[cells[alike[slot]]] = 0
        target = alike.argmax(axis=0)[folded]
        for slot in np.unique(target).tolist():
            plane.reads[slot][cells[folded][target == slot]] = crowds[target == slot]
        return folded

    def _unite(self, refs: Refs, at: Ints, others: Ints) -> Refs:
        """Return references to crowds, each of the threads of a reference and of the others in its place."""
        records = self.state.records
        every = np.concatenate([refs.astype(np.int64), others])
        which, columns, times = self._expand_members(every)
        which = np.concatenate([np.arange(len(refs)), at])[which]
        order = np.lexsort((times, columns, which))
        which, columns, times = which[order], columns[order], times[order]
        last = np.append((which[1:] != which[:-1]) | (columns[1:] != columns[:-1]), True)
        which, columns, times = which[last], columns[last], times[last]
        starts = np.flatnonzero(np.append(True, which[1:] != which[:-1]))
        record = refs >> 6
        numbers = records.copy_records(record, np.maximum.reduceat(times, starts))
        ends = np.append(starts[1:], len(which))
        for one, low, high in zip(numbers.tolist(), starts.tolist(), ends.tolist(), strict=True):
            records.crowds[one] = columns[low:high], times[low:high]
        return (numbers * 64 + CROWD).astype(np.int32)

    def _expand_members(self, refs: Ints) -> tuple[Ints, Ints, Ints]:
        """Return the columns and times of the threads of references, and the reference of each."""
        records, record, lane = self.state.records, refs >> 6, refs & 63
        masks = np.where(lane == ALL_LANES, records.mask[record], np.int64(1) << lane)
        masks[lane == CROWD] = 0
        which, lanes = np.nonzero((masks[:, None] >> np.arange(32)) & 1)
        columns, times = records.column[record[which]] + lanes, records.time[record[which]].astype(np.int64)
        crowds = np.flatnonzero(lane == CROWD)
        if not len(crowds):
            return which, columns, times
        held = [records.crowds[one] for one in record[crowds].tolist()]
        whose = crowds.repeat([len(mine) for mine, _ in held])
        return (
            np.concatenate([which, whose]),
            np.concatenate([columns, *(mine for mine, _ in held)]),
            np.concatenate([times, *(when for _, when in held)]),
        )

    def replaceable(self, before: Refs, threads: Ints, refs: Refs) -> Mask:
        """Tell which slots are free, or held by an equal access that precedes the new one."""
        records, clocks = self.state.records, self.state.clocks
        if len(before) == 1 and before[0] and self._follows(int(before[0]), int(threads[0]), int(refs[0])):
            return np.ones(1, np.bool_)
        free = (before == 0) | (before == refs)
        at = np.flatnonzero(~free)
        if not len(at):
            return free
        old, who = before[at].astype(np.int64), threads[at]
        alike = records.get_kinds(old >> 6) == records.get_kinds(refs[at] >> 6)
        span, column = clocks.cta_span[who >> 5], records.column[old >> 6]
        near = (column >= span[:, 0]) & (column < span[:, 1])
        near &= records.get_domains(old >> 6) == clocks.domain_of[who >> 5]
        early = near & (records.key[old >> 6] <= clocks.get_floors(who)[:, SEEN, CTA])
        if not early.all():
            early |= self._is_repeat(old, refs[at].astype(np.int64))
        rest = np.flatnonzero(alike & ~early)
        early[rest] = precedes(self.state, old[rest], who[rest])
        free[at] = alike & early
        return free

    def _is_repeat(self, old: Ints, new: Ints) -> Mask:
        """Tell which accesses are of threads that all access again now: to know the new ones is to know the old
        ones."""
        records = self.state.records
        masks: list[Ints] = []
        for record, lane in ((old >> 6, old & 63), (new >> 6, new & 63)):
            mask = np.where(lane == ALL_LANES, records.mask[record], np.int64(1) << lane)
            masks.append(np.where(lane == CROWD, -1, mask))
        same = records.tag[old >> 6] == records.tag[new >> 6]
        repeats = same & (records.operation[old >> 6] == 0) & (masks[0] & ~masks[1] == 0) & (masks[0] >= 0)
        crowds = np.flatnonzero((masks[0] < 0) & (masks[1] < 0))
        if len(crowds):
            repeats[crowds] = records.crowds.find_repeats(old[crowds] >> 6, new[crowds] >> 6)
        return repeats

    def _follows(self, old: int, thread: int, ref: int) -> bool:
        """Tell quickly whether an equal access plainly precedes a new one; False decides nothing."""
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
            at = np.flatnonzero(inverse == index)
            thread = threads[at[:1]]
            kept: list[int] = []
            members: tuple[int, ...] = self._sets[int(pair) >> 32]
            for one in members:
                held = np.array([one], np.int32)
                if one != ref and not self.replaceable(held, thread, refs[at[:1]])[0]:
                    kept.append(one)
            sets[cells[at]] = self._number_set((*kept, ref))

    @staticmethod
    def _select_sets(plane: Plane) -> Refs:
        """Return the numbers of the sets of a plane's cells."""
        if plane.sets is None:
            plane.sets = np.zeros_like(plane.write)
            plane.crowded = True
        return plane.sets

    def _number_set(self, members: tuple[int, ...]) -> int:
        """Return the number of a set."""
        number = self._set_number.get(members)
        if number is None:
            number = self._set_number[members] = len(self._sets)
            self._sets.append(members)
        return number

    def in_sets(self, plane: Plane, cells: Ints) -> Iterator[tuple[Ints, tuple[int, ...]]]:
        """Yield the positions of cells that hold a set of readers, and the set."""
        if plane.sets is not None:
            numbers = plane.sets[cells]
            for number in np.unique(numbers[numbers != 0]).tolist():
                yield np.flatnonzero(numbers == number), self._sets[number]


def _select_latest(log: Log) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the last access of each thread to each cell, sorted: cells, numbers of accesses, threads, times."""
    numbers, times = (
        np.array(column) for column in zip(*((number, now) for *_, number, now in log.entries), strict=True)
    )
    low = min(int(threads.min()) for _, threads, _, _ in log.entries)
    span = max(int(threads.max()) for _, threads, _, _ in log.entries) - low + 1
    keys = np.concatenate(
        [
            (cells.astype(np.int64) * span + (threads - low)) * len(times) + at
            for at, (cells, threads, _, _) in enumerate(log.entries)
        ]
    )
    keys.sort()
    whose = keys // len(times)
    keys = keys[np.append(whose[1:] != whose[:-1], True)]
    rest, at = np.divmod(keys, len(times))
    cells, threads = np.divmod(rest, span)
    order = np.lexsort((threads, numbers[at], cells))
    return cells[order], numbers[at][order], threads[order] + low, times[at][order]
