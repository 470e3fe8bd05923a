"""The readers of each cell, kept until a write comes after all of them.

A few concurrent readers stand side by side in slots; more of them are interned sets.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pyptx.sim.hazards.clocks import CTA, SEEN
from pyptx.sim.hazards.conflicts import ordered
from pyptx.sim.hazards.events import Access, Ints, Mask, Space
from pyptx.sim.hazards.groups import Group
from pyptx.sim.hazards.records import ALL_LANES
from pyptx.sim.hazards.shadow import SLOTS, Plane, Refs
from pyptx.sim.hazards.state import State


class Readers:
    """Notes readers; strong writes are noted here too, since they do not order each other."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._sets: list[tuple[int, ...]] = [()]
        self._set_number: dict[tuple[int, ...], int] = {(): 0}

    def note(self, access: Access, group: Group, plane: Plane, cells: Ints, refs: Refs) -> None:
        """Note the accesses of a group's lanes."""
        held = plane.reads[0]
        before = held[cells]
        if self._all_replaceable(access, group, before, plane):
            held[cells] = refs
            if len(cells) == 1 or not (held[cells] != refs).any():
                return
            held[cells] = before
        elif not self._repeats(cells):
            self.keep(group.threads, plane, cells, refs)
            return
        self._note_repeated(access, group, plane, cells, refs)

    def _all_replaceable(self, access: Access, group: Group, before: Refs, plane: Plane) -> bool:
        """Tell quickly whether the first slot is free for all, or held by what comes before."""
        if not before.any():
            return True
        if plane.strong:
            return False
        records, record = self.state.records, before >> 6
        late = records.key[record] > group.floor if access.space is Space.SHARED else before != 0
        if late.any():
            late &= records.tag[record] + (before & 63) != group.tags
        return not late.any()

    @staticmethod
    def _repeats(cells: Ints) -> bool:
        return len(cells) > 1 and len(np.unique(cells)) < len(cells)

    def _note_repeated(self, access: Access, group: Group, plane: Plane, cells: Ints, refs: Refs) -> None:
        """Note lanes of which several access one cell: they share a record with their mask."""
        floored = self.state.grid_of(group.first).cluster == 1
        number = self.state.records.number(access)
        for at in range(len(group.warps)):
            mine = np.flatnonzero(group.warp_index == at)
            unique, first, inverse = np.unique(cells[mine], return_index=True, return_inverse=True)
            masks = np.zeros(len(unique), np.int64)
            np.bitwise_or.at(masks, inverse, np.int64(1) << group.lanes[mine])
            new = refs[mine[first]].copy()
            for mask in np.unique(masks[masks & (masks - 1) != 0]).tolist():
                made = self.state.records.by_warps(
                    number,
                    group.lives[at : at + 1],
                    group.columns[at : at + 1],
                    np.array([mask]),
                    self.state.clocks.now,
                    floored,
                )
                new[masks == mask] = int(made[0]) * 64 + ALL_LANES
            self.keep(group.threads[mine[first]], plane, unique, new)

    def keep(self, threads: Ints, plane: Plane, cells: Ints, refs: Refs) -> None:
        """Put readers into the first slot that is free or whose reader comes before them."""
        for slot in range(SLOTS):
            held = plane.slot(slot)
            before = held[cells]
            if not before.any():
                held[cells] = refs
                return
            free = self.replaceable(before, threads, refs)
            if free.all():
                held[cells] = refs
                return
            held[cells[free]] = refs[free]
            cells, refs, threads = cells[~free], refs[~free], threads[~free]
        self._keep_in_sets(threads, plane, cells, refs)

    def replaceable(self, before: Refs, threads: Ints, refs: Refs) -> Mask:
        """Tell which slots are free, or held by a like access that comes before the new one."""
        records, clocks = self.state.records, self.state.clocks
        free = (before == 0) | (before == refs)
        at = np.flatnonzero(~free)
        if not len(at):
            return free
        old, who = before[at].astype(np.int64), threads[at]
        alike = records.flags(old >> 6) == records.flags(refs[at] >> 6)
        alike &= records.family(old >> 6) == records.family(refs[at] >> 6)
        span, column = clocks.cta_span[who >> 5], records.column[old >> 6]
        near = (column >= span[:, 0]) & (column < span[:, 1])
        near &= records.domain(old >> 6) == clocks.domain_of[who >> 5]
        early = near & (records.key[old >> 6] <= clocks.floors[clocks.row_of[who], SEEN, CTA])
        rest = np.flatnonzero(alike & ~early)
        early[rest] = ordered(self.state, old[rest], who[rest])
        free[at] = alike & early
        return free

    def _keep_in_sets(self, threads: Ints, plane: Plane, cells: Ints, refs: Refs) -> None:
        if plane.sets is None:
            plane.sets = np.zeros_like(plane.write)
            plane.crowded = True
        numbers = plane.sets[cells]
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
            key = (*kept, ref)
            number = self._set_number.get(key)
            if number is None:
                number = self._set_number[key] = len(self._sets)
                self._sets.append(key)
            plane.sets[cells[at]] = number

    def in_sets(self, plane: Plane, cells: Ints) -> Iterator[tuple[Ints, tuple[int, ...]]]:
        """Yield the positions of cells that hold a set of readers, and the set."""
        if plane.sets is not None:
            numbers = plane.sets[cells]
            for number in np.unique(numbers[numbers != 0]).tolist():
                yield np.flatnonzero(numbers == number), self._sets[number]
