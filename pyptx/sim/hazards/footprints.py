"""Footprints: the cells that the lanes of a group access together, computed once for repeated accesses.

A footprint knows its cells, the lanes that share them, and other footprints of the plane; not what a conflict is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pyptx.sim.base.events import Clock, Ints, Mask
from pyptx.sim.hazards.crowds import sign_crowds
from pyptx.sim.hazards.groups import Group
from pyptx.sim.hazards.shadow import LEVEL, SLOTS, CellSet, Shadow
from pyptx.sim.hazards.state import Grid

_MOST_BYTES = 1 << 26
_MOST = 1 << 14
"""The limits on cached footprints: bytes and number."""
_BYTES = 40
"""Cached bytes per lane."""
_SMALL = 64
"""Up to this many lanes, build a footprint at the first access."""
_MOST_RECENT = 256
"""The number of recent footprints of a plane to keep; of older ones only the time is kept."""

_MOST_COMPARISONS = 32
"""The most new footprints to compare with in one query; beyond it, the query answers False."""


@dataclass(frozen=True, slots=True)
class SlotReaders:
    """The readers in one slot of each cell: a lane, or `several` lanes of a warp, whose warp and mask are in `warps`
    and `masks` at `pair_index`."""

    slot: int
    cells: Ints
    lanes: Ints
    several: Mask
    warps: Ints
    masks: Ints
    pair_index: Ints


@dataclass(slots=True, eq=False)
class CellCrowds:
    """Cells that many warps access: the first lane of each cell with its warp, and the warps and lanes of all its
    threads, up to its end."""

    cells: Ints
    lanes: Ints
    warps: Ints
    of_warp: Ints
    of_lane: Ints
    ends: Ints
    _first: Clock | None = None
    _columns: tuple[Ints, Ints] | None = None

    def find_columns(self, group: Group) -> tuple[Ints, Ints]:
        """Return the clock columns of the threads, cell by cell, and the number that signs each cell's."""
        if self._first is not group.columns or self._columns is None:
            columns = group.columns[self.of_warp].astype(np.int64) + self.of_lane
            self._first = group.columns
            self._columns = columns, sign_crowds(columns, np.append(0, self.ends[:-1]))
        return self._columns


@dataclass(frozen=True, slots=True)
class Sharing:
    """How the lanes of a group share cells: the lanes of a warp are one reader; warps take consecutive slots, or are
    one crowd if they exceed the slots. `disjoint`: no cell has two crowds."""

    slots: list[SlotReaders]
    crowds: CellCrowds | None
    disjoint: bool = True


def find_sharing(group: Group, cells: Ints, first_thread: int, stride: int) -> Sharing:
    """Return how lanes share cells of which some have several lanes."""
    ctas = group.split_by_cta(first_thread, stride)
    mine = cells[ctas.first]
    if np.count_nonzero(cells != (mine[ctas.index] if len(mine) > 1 else mine)):
        return _group_by_cell(group, cells, (group.warps * 32 - first_thread) // stride)
    every = np.argsort(ctas.index, kind="stable")
    warps, ends = group.warp_index[ctas.first], np.cumsum([len(members) for members in ctas.members])
    crowds = CellCrowds(mine, ctas.first, warps, group.warp_index[every], group.lanes[every], ends)
    return Sharing([], crowds, len(mine) == 1 or len(np.unique(mine)) == len(mine))


def _group_by_cell(group: Group, cells: Ints, ctas: Ints) -> Sharing:
    order = np.argsort(cells * len(group.warps) + group.warp_index, kind="stable")
    pair = cells[order] * len(group.warps) + group.warp_index[order]
    starts = np.flatnonzero(np.concatenate([[True], pair[1:] != pair[:-1]]))
    first = order[starts]
    masks = np.bitwise_or.reduceat(np.int64(1) << group.lanes[order], starts)
    unique, warps = cells[first], group.warp_index[first]
    begins = np.flatnonzero(np.concatenate([[True], unique[1:] != unique[:-1]]))
    counts = np.diff(np.append(begins, len(unique)))
    rank = np.arange(len(unique)) - np.repeat(begins, counts)
    is_crowd = np.repeat(counts > SLOTS, counts)
    slots: list[SlotReaders] = []
    for slot in range(int(min(counts.max(), SLOTS))):
        selection = (rank == slot) & ~is_crowd
        if selection.any():
            slots.append(
                _make_slot_readers(slot, unique[selection], first[selection], warps[selection], masks[selection])
            )
    if not is_crowd.any():
        return Sharing(slots, None)
    # A crowd has threads of one CTA only: their columns count from the first thread of their cluster.
    unique, first, warps, masks = unique[is_crowd], first[is_crowd], warps[is_crowd], masks[is_crowd]
    pair_ctas = ctas[warps]
    begins = np.flatnonzero(np.append(True, (unique[1:] != unique[:-1]) | (pair_ctas[1:] != pair_ctas[:-1])))
    counts = np.diff(np.append(begins, len(unique)))
    disjoint = not np.count_nonzero(np.diff(unique[begins]) == 0)
    return Sharing(slots, _make_crowds(unique, first, warps, masks, counts), disjoint)


def _make_slot_readers(slot: int, cells: Ints, first: Ints, warps: Ints, masks: Ints) -> SlotReaders:
    several = masks & (masks - 1) != 0
    pairs, pair_index = np.unique(warps[several] << 32 | masks[several], return_inverse=True)
    return SlotReaders(slot, cells, first, several, pairs >> 32, pairs & 0xFFFFFFFF, pair_index.reshape(-1))


def _make_crowds(cells: Ints, first: Ints, warps: Ints, masks: Ints, counts: Ints) -> CellCrowds:
    starts = np.cumsum(counts) - counts
    lanes = (masks[:, None] >> np.arange(32)) & 1 != 0
    of_warp, of_lane = np.repeat(warps, lanes.sum(axis=1)), np.nonzero(lanes)[1]
    ends = np.cumsum(lanes.sum(axis=1))[starts + counts - 1]
    return CellCrowds(cells[starts], first[starts], warps[starts], of_warp, of_lane, ends)


class Footprint(CellSet):
    """The cells of one plane that the lanes of a group access, in lane order."""

    def __init__(self, group: Group, shadow: Shadow, addresses: Ints, level: int, size: int) -> None:
        cells, self.level = addresses >> (4 - level), level
        finer = size >> (4 - level)
        if finer > 1:
            cells, group = (cells[:, None] + np.arange(finer)).reshape(-1), Group(np.repeat(group.threads, finer))
        super().__init__(cells)
        self.group, self.shadow, self.plane = group, shadow, shadow.get_cells(level)
        """`group` has a thread for each cell."""
        self.raw = addresses.tobytes()
        self.version, self.cleared = shadow.version, -1
        self.fits, self.written = True, False
        self._sharing: Sharing | None = None

    @cached_property
    def unique(self) -> bool:
        """Whether no two lanes access one cell."""
        return not np.count_nonzero(self.ascending[1:] == self.ascending[:-1])

    def get_sharing(self, grid: Grid) -> Sharing:
        """Return how the lanes share cells."""
        if self._sharing is None:
            self._sharing = find_sharing(self.group, self.cells, grid.first_thread, grid.stride)
        return self._sharing

    def is_current(self) -> bool:
        """Tell whether the cells still have the shadow's current granularity."""
        shadow = self.shadow
        if self.cleared != shadow.cleared:
            self.cleared, self.written = shadow.cleared, False
        if self.version != shadow.version:
            self.version = shadow.version
            self.fits = _common_level(shadow, self.cells >> self.level) == self.level
        return self.fits

    def is_alone(self, floor: int) -> bool:
        """Tell whether all other accesses to these cells are before a time."""
        plane = self.plane
        if plane.odd or max(plane.late, plane.log.latest) > floor or (self.wrote > floor and not self.unique):
            return False
        low, high, apart, comparisons = self.low, self.high, self.apart_from, 0
        for earlier in reversed(plane.recent):
            if earlier.wrote <= floor and earlier.read <= floor:
                return True
            if earlier is self or earlier.high < low or high < earlier.low:
                continue
            is_apart = apart.get(earlier)
            if is_apart is None:
                is_apart, comparisons = self.lies_apart(earlier), comparisons + 1
            if not is_apart or comparisons > _MOST_COMPARISONS:
                return False
        return True

    def note(self, writes: bool, now: int) -> None:
        """Record that the lanes access the cells now."""
        if writes:
            self.wrote = now
        else:
            self.read = now
        recent = self.plane.recent
        recent.pop(self, None)
        recent[self] = None
        if len(recent) > _MOST_RECENT:
            for old in [*recent][: _MOST_RECENT // 2]:
                del recent[old]
                old.apart_from.clear()
                self.plane.late = max(self.plane.late, old.wrote, old.read)


class Footprints:
    """The cached footprints of repeated accesses."""

    def __init__(self) -> None:
        self._entries: dict[tuple[Group, int, int, int, int], Footprint | int] = {}
        self._bytes = 0

    def find(self, group: Group, shadow: Shadow, addresses: Ints, size: int) -> Footprint | None:
        """Return the footprint of a repeated access; None if it is new or spans several planes."""
        count = len(addresses)
        key = group, size, addresses.item(0), addresses.item(count >> 1), addresses.item(count - 1)
        entry = self._entries.get(key)
        if isinstance(entry, Footprint):
            if entry.raw != addresses.tobytes():
                self._entries[key] = -2
            elif entry.is_current():
                return entry
            else:
                return self._make_footprint(key, group, shadow, addresses, size)
        elif entry == 0 or (entry is None and count <= _SMALL):
            return self._make_footprint(key, group, shadow, addresses, size)
        else:
            self._remember(key, (entry or -1) + 1)
        return None

    def _remember(self, key: tuple[Group, int, int, int, int], uses: int) -> None:
        if len(self._entries) >= _MOST:
            self._entries.clear()
            self._bytes = 0
        self._entries[key] = uses

    def _make_footprint(
        self, key: tuple[Group, int, int, int, int], group: Group, shadow: Shadow, addresses: Ints, size: int
    ) -> Footprint | None:
        size_kept = _BYTES * (len(addresses) + _SMALL)
        self._bytes += size_kept
        if self._bytes > _MOST_BYTES:
            self._entries.clear()
            self._bytes = size_kept
        level = _common_level(shadow, addresses >> 4)
        if level is None or level < LEVEL[size]:
            self._entries[key] = 0
            return None
        footprint = self._entries[key] = Footprint(group, shadow, addresses, level, size)
        return footprint if footprint.is_current() else None


def _common_level(shadow: Shadow, granules: Ints) -> int | None:
    """Return the common level of granules, None if they differ."""
    levels = shadow.level[granules]
    first = int(levels[0])
    return first if levels.tobytes().count(first) == len(levels) else None
