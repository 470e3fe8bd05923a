"""The cells that the lanes of a group access together, computed once for accesses that repeat.

A footprint knows its cells, which lanes share them, and which accesses it meets; not what makes two accesses conflict.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pyptx.sim.base.events import Clock, Ints, Mask
from pyptx.sim.hazards.groups import Group
from pyptx.sim.hazards.shadow import LEVEL, SLOTS, Shadow, Touched
from pyptx.sim.hazards.state import Grid

_MOST_BYTES = 1 << 26
_MOST = 1 << 14
"""The limits on cached footprints: bytes and number."""
_BYTES = 40
"""Cached bytes per lane."""
_SMALL = 64
"""Up to this many lanes, build a footprint at the first access."""
_MOST_RECENT = 256
"""How many recent footprints of a plane to distinguish; of older ones only the time is kept."""

_MOST_ASKED = 32
"""With more new footprints than this to compare, compare another time."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Lanes in one slot of readers: one for each cell, or `several` of a warp, with warp and mask in `warps` and
    `masks`."""

    slot: int
    cells: Ints
    lanes: Ints
    several: Mask
    warps: Ints
    masks: Ints
    which: Ints


@dataclass(slots=True, eq=False)
class Many:
    """Cells that many warps access: the first lane of each, its warp with a mask, and all its threads by warp and lane,
    up to an end each."""

    cells: Ints
    lanes: Ints
    warps: Ints
    masks: Ints
    of_warp: Ints
    of_lane: Ints
    ends: Ints
    _first: Clock | None = None
    _columns: Ints | None = None

    def columns(self, group: Group) -> Ints:
        """Return the columns of the threads in the clocks, cell by cell."""
        if self._first is not group.columns or self._columns is None:
            self._first, self._columns = group.columns, group.columns[self.of_warp].astype(np.int64) + self.of_lane
        return self._columns


@dataclass(frozen=True, slots=True)
class Sharing:
    """How the lanes of a group share cells: those of a warp are one reader, and the warps take consecutive slots, or
    are one reader if they exceed the slots. `disjoint`: no cell occurs twice."""

    turns: list[Turn]
    many: Many | None
    disjoint: bool = True


def sharing(group: Group, cells: Ints, first_thread: int, stride: int) -> Sharing:
    """Return how lanes share cells, some of which have several lanes."""
    ctas = group.ctas(first_thread, stride)
    mine = cells[ctas.first]
    if np.count_nonzero(cells != (mine[ctas.index] if len(mine) > 1 else mine)):
        return _group_by_cell(group, cells, (group.warps * 32 - first_thread) // stride)
    every = np.argsort(ctas.index, kind="stable")
    warps, ends = group.warp_index[ctas.first], np.cumsum([len(members) for members in ctas.members])
    whole = Many(mine, ctas.first, warps, group.masks[warps], group.warp_index[every], group.lanes[every], ends)
    return Sharing([], whole, len(mine) == 1 or len(np.unique(mine)) == len(mine))


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
    many = np.repeat(counts > SLOTS, counts)
    turns: list[Turn] = []
    for slot in range(int(min(counts.max(), SLOTS))):
        chosen = (rank == slot) & ~many
        if chosen.any():
            turns.append(_make_turn(slot, unique[chosen], first[chosen], warps[chosen], masks[chosen]))
    if not many.any():
        return Sharing(turns, None)
    # One reader represents threads of one CTA: clocks track them by columns, which each cluster counts separately.
    unique, first, warps, masks = unique[many], first[many], warps[many], masks[many]
    own = ctas[warps]
    begins = np.flatnonzero(np.append(True, (unique[1:] != unique[:-1]) | (own[1:] != own[:-1])))
    counts = np.diff(np.append(begins, len(unique)))
    disjoint = not np.count_nonzero(np.diff(unique[begins]) == 0)
    return Sharing(turns, _make_many(unique, first, warps, masks, counts), disjoint)


def _make_turn(slot: int, cells: Ints, first: Ints, warps: Ints, masks: Ints) -> Turn:
    several = masks & (masks - 1) != 0
    pairs, which = np.unique(warps[several] << 32 | masks[several], return_inverse=True)
    return Turn(slot, cells, first, several, pairs >> 32, pairs & 0xFFFFFFFF, which.reshape(-1))


def _make_many(cells: Ints, first: Ints, warps: Ints, masks: Ints, counts: Ints) -> Many:
    starts = np.cumsum(counts) - counts
    lanes = (masks[:, None] >> np.arange(32)) & 1 != 0
    of_warp, of_lane = np.repeat(warps, lanes.sum(axis=1)), np.nonzero(lanes)[1]
    ends = np.cumsum(lanes.sum(axis=1))[starts + counts - 1]
    return Many(cells[starts], first[starts], warps[starts], masks[starts], of_warp, of_lane, ends)


class Footprint(Touched):
    """The cells of one plane that the lanes of a group access, in the order of the lanes."""

    def __init__(self, group: Group, shadow: Shadow, addresses: Ints, level: int, size: int) -> None:
        cells, self.level = addresses >> (4 - level), level
        finer = size >> (4 - level)
        if finer > 1:
            cells, group = (cells[:, None] + np.arange(finer)).reshape(-1), Group(np.repeat(group.threads, finer))
        super().__init__(cells)
        self.group, self.shadow, self.plane = group, shadow, shadow.cells(level)
        """The group has a thread for each cell."""
        self.raw = addresses.tobytes()
        self.version, self.cleared = shadow.version, -1
        self.fits, self.written = True, False
        self._sharing: Sharing | None = None

    @cached_property
    def unique(self) -> bool:
        """Whether no two lanes access one cell."""
        return not np.count_nonzero(self.ascending[1:] == self.ascending[:-1])

    def shared(self, grid: Grid) -> Sharing:
        """Return how the lanes share cells."""
        if self._sharing is None:
            self._sharing = sharing(self.group, self.cells, grid.first_thread, grid.stride)
        return self._sharing

    def lies_in(self) -> bool:
        """Tell whether all cells are still those of the plane at the shadow's current granularity."""
        shadow = self.shadow
        if self.cleared != shadow.cleared:
            self.cleared, self.written = shadow.cleared, False
        if self.version != shadow.version:
            self.version = shadow.version
            self.fits = _common_level(shadow, self.cells >> self.level) == self.level
        return self.fits

    def alone(self, floor: int) -> bool:
        """Tell whether all accesses of others to these cells precede a time."""
        plane = self.plane
        if plane.odd or max(plane.late, plane.log.latest) > floor or (self.wrote > floor and not self.unique):
            return False
        low, high, apart, comparisons = self.low, self.high, self.apart_from, 0
        for other in reversed(plane.recent):
            if other.wrote <= floor and other.read <= floor:
                return True
            if other is self or other.high < low or high < other.low:
                continue
            is_apart = apart.get(other)
            if is_apart is None:
                is_apart, comparisons = self.apart(other), comparisons + 1
            if not is_apart or comparisons > _MOST_ASKED:
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
    """The footprints of repeated accesses, by group."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Group, int, int, int, int], Footprint | int] = {}
        self._bytes = 0

    def of(self, group: Group, shadow: Shadow, addresses: Ints, size: int) -> Footprint | None:
        """Return the footprint of a repeated access, if it is in one plane."""
        count = len(addresses)
        key = group, size, addresses.item(0), addresses.item(count >> 1), addresses.item(count - 1)
        kept = self._kept.get(key)
        if isinstance(kept, Footprint):
            if kept.raw != addresses.tobytes():
                self._kept[key] = -2
            elif kept.lies_in():
                return kept
            else:
                return self._make_footprint(key, group, shadow, addresses, size)
        elif kept == 0 or (kept is None and count <= _SMALL):
            return self._make_footprint(key, group, shadow, addresses, size)
        else:
            self._remember(key, (kept or -1) + 1)
        return None

    def _remember(self, key: tuple[Group, int, int, int, int], uses: int) -> None:
        if len(self._kept) >= _MOST:
            self._kept.clear()
            self._bytes = 0
        self._kept[key] = uses

    def _make_footprint(
        self, key: tuple[Group, int, int, int, int], group: Group, shadow: Shadow, addresses: Ints, size: int
    ) -> Footprint | None:
        size_kept = _BYTES * (len(addresses) + _SMALL)
        self._bytes += size_kept
        if self._bytes > _MOST_BYTES:
            self._kept.clear()
            self._bytes = size_kept
        level = _common_level(shadow, addresses >> 4)
        if level is None or level < LEVEL[size]:
            self._kept[key] = 0
            return None
        footprint = self._kept[key] = Footprint(group, shadow, addresses, level, size)
        return footprint if footprint.lies_in() else None


def _common_level(shadow: Shadow, granules: Ints) -> int | None:
    """Return the common level of granules, None if they differ."""
    levels = shadow.level[granules]
    first = int(levels[0])
    return first if levels.tobytes().count(first) == len(levels) else None
