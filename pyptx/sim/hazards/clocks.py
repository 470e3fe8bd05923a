"""Who knows of whose accesses: vector clocks of lanes, by the happens-before edges of the memory model.

Time is one counter for all, ticked by every release, so an access is known when its time is not after what the reader
knows of its agent. Lanes that know the same share a row; a row splits when some of its lanes learn more. What a whole
warp, CTA or cluster has synchronised is a `floor`, one number instead of a column per thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from pyptx.sim.hazards.events import Clock, Ints, Space
from pyptx.sim.hazards.groups import Group

SEEN, CROSSED_SHARED, CROSSED_GLOBAL, WIDE_SHARED, WIDE_GLOBAL, RAN, BEFORE, AFTER = range(8)
"""What a row knows: by any memory edge; through a proxy fence, per space; by edges whose scope spans CTAs, per space;
by any edge, relaxed ones too; that through `tcgen05.fence::before_thread_sync`; and through `::after_thread_sync`."""
KINDS = 8
FLOORED = 5
RELAXED = [RAN, BEFORE, AFTER]
"""What a relaxed edge hands on."""
ORDER = [SEEN, WIDE_SHARED, WIDE_GLOBAL]
CROSS = [CROSSED_SHARED, CROSSED_GLOBAL]
_PUBLISHED, _CROSSED = (np.array(kinds)[:, None] for kinds in ([*ORDER, RAN], CROSS))
WARP, CTA, CLUSTER = range(3)
_Rows = TypeVar("_Rows", Clock, Ints)
PRIOR = 0
"""The column of everything in earlier grids."""
NEVER = np.iinfo(np.int32).max


@dataclass(slots=True, eq=False)
class Stamp:
    """What a release hands on: the knowledge of one row, and of agents outside its cluster."""

    domain: int
    known: Clock
    foreign: dict[int, Clock]

    def copy(self) -> Stamp:
        return Stamp(self.domain, self.known.copy(), dict(self.foreign))

    def merge(self, other: Stamp) -> Stamp:
        """Return the union of both."""
        if other.domain == self.domain:
            known, foreign = wider(self.known, other.known), dict(self.foreign)
        else:
            known, foreign = self.known, dict(self.foreign)
            _join(foreign, other.domain, other.known)
        for domain, value in other.foreign.items():
            if domain == self.domain:
                known = wider(known, value)
            else:
                _join(foreign, domain, value)
        return Stamp(self.domain, known, foreign)


_RAISED = slice(SEEN, SEEN + 1), slice(WIDE_SHARED, WIDE_GLOBAL + 1)
"""The kinds of ORDER, side by side."""


def joined(stamp: Stamp | None, other: Stamp) -> Stamp:
    """Return the union of what was gathered so far and more, which nobody else holds: the larger one is changed."""
    if stamp is None:
        return other
    if stamp.domain != other.domain or stamp.foreign or other.foreign:
        return stamp.merge(other)
    width = other.known.shape[1]
    if width > stamp.known.shape[1]:
        return joined(other, stamp)
    part = stamp.known[:, :width]
    np.maximum(part, other.known, out=part)
    return stamp


def _side_by_side(rows: _Rows) -> _Rows | slice[int, int, None]:
    """Return sorted rows as a range if they are one."""
    first, last = int(rows[0]), int(rows[-1]) + 1
    return slice(first, last) if last - first == len(rows) else rows


def _distinct(rows: Clock) -> tuple[Clock, Ints]:
    """Return the rows of threads in ascending order, and how many threads each has."""
    begins = np.flatnonzero(np.append(True, rows[1:] != rows[:-1]))
    found = rows[begins]
    if len(found) > 1 and np.count_nonzero(found[1:] <= found[:-1]):
        return np.unique(rows, return_counts=True)
    return found, np.diff(np.append(begins, len(rows)))


def wider(a: Clock, b: Clock) -> Clock:
    """Return the larger of two arrays of clocks, of which one may have fewer columns."""
    if a.shape[1] < b.shape[1]:
        a, b = b, a
    out = a.copy()
    np.maximum(out[:, : b.shape[1]], b, out=out[:, : b.shape[1]])
    return out


def _join(foreign: dict[int, Clock], domain: int, value: Clock) -> None:
    foreign[domain] = wider(foreign[domain], value) if domain in foreign else value


class Clocks:
    """The knowledge of every lane of the resident grids. Row w is warp w's until its lanes diverge."""

    def __init__(self) -> None:
        self.now = 2
        self.version = 0
        self.epoch = 0
        self.crossed_at = -1
        """When a proxy fence was last executed."""
        self.life_of = np.zeros(0, np.int64)
        self.table = np.zeros((0, KINDS, 1), np.int32)
        self.floors = np.zeros((0, FLOORED, 3), np.int32)
        self.row_of = np.zeros(0, np.int32)
        self.crossed_own = np.zeros((0, 2), np.int32)
        self.copied_own = np.zeros((0, 3), np.int32)
        self.copy_column = np.zeros(0, np.int32)
        self.row_warp = np.zeros(0, np.int32)
        self.base_row = np.zeros(0, np.int32)
        self.dirty = np.zeros(0, np.bool_)
        self.domain_of = np.zeros(0, np.int32)
        self.first_thread = np.zeros(0, np.int64)
        self.cta_span = np.zeros((0, 2), np.int32)
        self.foreign: dict[int, dict[int, Clock]] = {}
        self.splits: dict[int, set[int]] = {}
        self._free: list[int] = []
        self._sizes: dict[int, int] = {}
        """How many threads the clusters have whose size was asked for."""

    def tick(self) -> int:
        """Return the present time and move on: what follows is not covered by what was released now."""
        self.now += 1
        return self.now - 1

    def add_warps(self, warps: int) -> int:
        """Make room for warps; return the first one's number."""
        first, row = len(self.domain_of), len(self.table)
        self._grow_rows(warps)
        rows = np.arange(row, row + warps, dtype=np.int32)
        self.base_row = np.concatenate([self.base_row, rows])
        self.row_warp[rows] = np.arange(first, first + warps)
        self.row_of = np.concatenate([self.row_of, np.full(warps * 32, -1, np.int32)])
        self.crossed_own = np.concatenate([self.crossed_own, np.zeros((warps * 32, 2), np.int32)])
        self.copied_own = np.concatenate([self.copied_own, np.zeros((warps * 32, 3), np.int32)])
        self.life_of = np.concatenate([self.life_of, np.zeros(warps, np.int64)])
        self.copy_column = np.concatenate([self.copy_column, np.zeros(warps, np.int32)])
        self.domain_of = np.concatenate([self.domain_of, np.zeros(warps, np.int32)])
        self.first_thread = np.concatenate([self.first_thread, np.zeros(warps, np.int64)])
        self.cta_span = np.concatenate([self.cta_span, np.zeros((warps, 2), np.int32)])
        return first

    def _grow_rows(self, more: int) -> None:
        columns = self.table.shape[2]
        self.table = np.concatenate([self.table, np.zeros((more, KINDS, columns), np.int32)])
        self.floors = np.concatenate([self.floors, np.zeros((more, FLOORED, 3), np.int32)])
        self.row_warp = np.concatenate([self.row_warp, np.zeros(more, np.int32)])
        self.dirty = np.concatenate([self.dirty, np.zeros(more, np.bool_)])

    def ensure_columns(self, columns: int) -> None:
        """Make room for channels of asynchronous operations."""
        have = self.table.shape[2]
        if columns > have:
            wide = np.zeros((len(self.table), KINDS, max(columns, have + have // 2 + 32)), np.int32)
            wide[:, :, :have] = self.table
            self.table = wide

    def start(
        self, threads: Ints, warps: Ints, domains: Ints, firsts: Ints, begins: Ints, stride: int, prior: int
    ) -> None:  # fmt: skip
        """Begin the lives of CTAs' threads: they know what came before their grid and nothing else. Each CTA has a row
        of `warps`, a domain, that domain's first thread, and the column of its own first one."""
        rows = self.base_row[warps].reshape(-1)
        self.table[rows] = 0
        self.floors[rows] = 0
        self.dirty[rows] = False
        self.table[rows, :, PRIOR] = prior
        self.domain_of[warps] = domains[:, None]
        self.first_thread[warps] = firsts[:, None]
        self.cta_span[warps] = np.stack([begins, begins + stride], axis=1)[:, None]
        self.version += 1
        self.epoch += 1
        self.row_of.reshape(-1, 32)[warps] = -1
        for warp in warps.reshape(-1).tolist() if self.splits else ():
            for other in self.splits.pop(warp, set()):
                self._release_row(other)
        for row in rows.tolist() if self.foreign else ():
            self.foreign.pop(row, None)
        self.row_of[threads] = self.base_row[threads >> 5]
        self.crossed_own[threads] = 0
        self.copied_own[threads] = 0
        self.copy_column[warps] = 0

    def stop(self, threads: Ints) -> None:
        """End the life of threads: those of their row go on without them."""
        self.row_of[threads] = -1
        self.version += 1

    def tags(self, threads: Ints) -> Ints:
        """Return the threads' tags: records.py says what they are."""
        return (self.life_of[threads >> 5] << 7) + (threads & 31)

    def columns_of(self, threads: Ints) -> Ints:
        """Return the threads' columns in rows of their own cluster."""
        return threads - self.first_thread[threads >> 5] + 1

    def rows(self, threads: Ints) -> list[int]:
        """Return the rows that hold these threads."""
        rows = self.row_of[threads]
        first = int(rows[0])
        return [first] if len(rows) == 1 or (rows == first).all() else _distinct(rows)[0].tolist()

    def own_rows(self, threads: Ints) -> list[int]:
        """Return rows that hold exactly these threads, splitting those that hold others too."""
        every = self.row_of[threads]
        first = int(every[0])
        if len(every) <= 32 and (len(every) == 1 or (every == first).all()):
            warp = int(self.row_warp[first])
            if len(every) < np.count_nonzero(self.row_of[warp * 32 : warp * 32 + 32] == first):
                return [self._split(first, warp, threads)]
            return [first]
        rows, counts = _distinct(every)
        found: list[int] = rows.tolist()
        if len(every) == 32 * len(found):
            return found
        warps = self.row_warp[rows]
        lanes = (self.row_of.reshape(-1, 32)[warps] == rows[:, None]).sum(axis=1)
        for at in np.flatnonzero(counts < lanes).tolist():
            mine = threads[self.row_of[threads] == found[at]]
            found[at] = self._split(found[at], int(warps[at]), mine)
        return found

    def _split(self, row: int, warp: int, threads: Ints) -> int:
        if not self._free:
            count = len(self.table)
            self._grow_rows(max(16, count // 2))
            self._free = list(range(len(self.table) - 1, count - 1, -1))
        new = self._free.pop()
        self.table[new], self.floors[new], self.dirty[new] = self.table[row], self.floors[row], True
        self.row_warp[new] = warp
        if row in self.foreign:
            self.foreign[new] = dict(self.foreign[row])
        self.row_of[threads] = new
        self.splits.setdefault(warp, set()).add(new)
        self.version += 1
        return new

    def _release_row(self, row: int) -> None:
        self.foreign.pop(row, None)
        self._free.append(row)

    def knowledge(self, row: int) -> Stamp:
        """Return all that a row knows, the floors written out as columns."""
        known = self.table[row].copy()
        floors = self.floors[row]
        if floors.any():
            warp = int(self.row_warp[row])
            base = int(self.first_thread[warp])
            low, high = self.cta_span[warp]
            lane = warp * 32 - base + 1
            low_kinds = known[:FLOORED]
            for part, level in ((slice(lane, lane + 32), WARP), (slice(low, high), CTA), (slice(1, None), CLUSTER)):
                if level == CLUSTER:
                    part = slice(1, self.threads_of_cluster(warp) + 1)
                if floors[:, level].any():
                    np.maximum(low_kinds[:, part], floors[:, level : level + 1], out=low_kinds[:, part])
            np.maximum(known[RAN], known[SEEN], out=known[RAN])
        return Stamp(int(self.domain_of[self.row_warp[row]]), known, dict(self.foreign.get(row, {})))

    def threads_of_cluster(self, warp: int) -> int:
        """Return how many threads the cluster of a warp has."""
        domain = int(self.domain_of[warp])
        if domain not in self._sizes:
            self._sizes[domain] = self._counted(warp, domain)
        return self._sizes[domain]

    def _counted(self, warp: int, domain: int) -> int:
        base = self.first_thread[warp]
        last = int(base >> 5)
        while last < len(self.domain_of) and self.domain_of[last] == domain:
            last += 1
        return last * 32 - int(base)

    def publish(self, threads: Ints) -> Stamp:
        """Return what a release by these threads hands on, without moving time."""
        stamp: Stamp | None = None
        rows = self.rows(threads)
        domains = self.domain_of[self.row_warp[rows]]
        if len(rows) > 1 and (domains == domains[0]).all() and not any(row in self.foreign for row in rows):
            return self._published(self._common(np.array(rows)), threads)
        for row in rows:
            mine = threads if len(rows) == 1 else threads[self.row_of[threads] == row]
            part = self._published(self.knowledge(row), mine)
            stamp = part if stamp is None else stamp.merge(part)
        assert stamp is not None
        return stamp

    def _published(self, part: Stamp, threads: Ints) -> Stamp:
        """Add to knowledge what threads that share it did themselves."""
        columns = self.columns_of(threads)
        part.known[_PUBLISHED, columns] = self.now
        if self.crossed_at >= 0:
            crossed = np.maximum(part.known[_CROSSED, columns], self.crossed_own[threads].T)
            part.known[_CROSSED, columns] = crossed
        self._publish_copies(part, threads)
        return part

    def _common(self, rows: Ints) -> Stamp:
        """Return all that rows of whole warps of a cluster know."""
        known, floors, warps = self.table[_side_by_side(rows)].max(axis=0), self.floors[rows], self.row_warp[rows]
        if floors.any():
            low_kinds, first = known[:FLOORED], int(self.first_thread[warps[0]])
            lanes = (warps[:, None] * 32 - first + 1) + np.arange(32)
            below = floors[:, :, WARP]
            if not self.splits or len(np.unique(warps)) == len(warps):
                low_kinds[:, lanes] = np.maximum(low_kinds[:, lanes], below.T[:, :, None])
            else:
                np.maximum.at(low_kinds, (np.arange(FLOORED)[:, None, None], lanes), below.T[:, :, None])
            spans = self.cta_span[warps]
            alike = np.count_nonzero(spans[:, 0] != spans[0, 0]) == 0
            for low, high in spans[:1].tolist() if alike else np.unique(spans, axis=0).tolist():
                mine = floors if alike else floors[spans[:, 0] == low]
                level = mine[:, :, CTA].max(axis=0)[:, None]
                np.maximum(low_kinds[:, low:high], level, out=low_kinds[:, low:high])
            wide = floors[:, :, CLUSTER].max(axis=0)
            if wide.any():
                part = low_kinds[:, 1 : self.threads_of_cluster(int(warps[0])) + 1]
                np.maximum(part, wide[:, None], out=part)
            np.maximum(known[RAN], known[SEEN], out=known[RAN])
        return Stamp(int(self.domain_of[warps[0]]), known, {})

    def _publish_copies(self, part: Stamp, threads: Ints) -> None:
        """Hand on the cp.async operations that these threads waited for, each its own."""
        first = int(self.copy_column[threads[0] >> 5])
        if not first:
            return
        columns = first + threads - self.first_thread[threads >> 5]
        for index, kinds in enumerate(((*ORDER, RAN), (CROSSED_SHARED,), (CROSSED_GLOBAL,))):
            for kind in kinds:
                part.known[kind, columns] = np.maximum(part.known[kind, columns], self.copied_own[threads, index])

    def copied(self, threads: Ints) -> None:
        """The threads waited for their own cp.async operations."""
        self.copied_own[threads, 0] = self.now
        self.dirty[self.row_of[threads]] = True

    def release(self, threads: Ints) -> Stamp:
        """Return what a release by these threads hands on."""
        stamp = self.publish(threads)
        self.now += 1
        return stamp

    def acquire(self, threads: Ints, stamp: Stamp, kinds: Sequence[int] = range(KINDS)) -> None:
        """Let threads learn a stamp, in the given kinds of knowledge."""
        everything = len(kinds) == KINDS
        rows = self.own_rows(threads)
        low, high = rows[0], rows[0] + len(rows)
        part = slice(low, high) if rows == [*range(low, high)] else np.array(rows)
        self.dirty[part] = True
        if everything and not stamp.foreign and (self.domain_of[self.row_warp[part]] == stamp.domain).all():
            width = min(stamp.known.shape[1], self.table.shape[2])
            if isinstance(part, slice):
                mine = self.table[part, :, :width]
                np.maximum(mine, stamp.known[:, :width], out=mine)
            else:
                self.table[part, :, :width] = np.maximum(self.table[part, :, :width], stamp.known[:, :width])
            return
        for row in rows:
            home = int(self.domain_of[self.row_warp[row]])
            for domain, value in ((stamp.domain, stamp.known), *stamp.foreign.items()):
                if domain != home:
                    _join(self.foreign.setdefault(row, {}), domain, value)
                    continue
                width = min(value.shape[1], self.table.shape[2])
                if everything:
                    mine = self.table[row, :, :width]
                    np.maximum(mine, value[:, :width], out=mine)
                else:
                    for kind in kinds:
                        mine = self.table[row, kind, :width]
                        np.maximum(mine, value[kind, :width], out=mine)

    def learn(self, threads: Ints, column: int, time: int, kinds: Sequence[int] = range(BEFORE)) -> None:
        """Let threads know a channel of their own cluster up to a time; tensor-memory fences are still due."""
        rows = self.own_rows(threads)
        self.dirty[rows] = True
        at = np.array(rows)[:, None], np.array(kinds), column
        self.table[at] = np.maximum(self.table[at], time)

    def learn_each(self, groups: Sequence[Group], columns: Ints, time: int) -> None:
        """Let the threads of each group know a channel of their own up to a time."""
        sizes = [len(group.warps) for group in groups]
        warps = np.concatenate([group.warps for group in groups])
        if any(len(group) != 32 * size for group, size in zip(groups, sizes, strict=True)) or not self.learn_warps(
            warps, columns.repeat(sizes), time
        ):
            for group, column in zip(groups, columns.tolist(), strict=True):
                self.learn(group.threads, column, time)

    def learn_warps(self, warps: Ints, columns: Ints, time: int) -> bool:
        """Let whole warps know a channel each up to a time; False, with nothing learned, where lanes of one differ."""
        if self.splits and any(warp in self.splits for warp in warps.tolist()):
            return False
        rows = self.base_row[warps]
        self.dirty[rows] = True
        for kind in range(BEFORE):
            self.table[rows, kind, columns] = np.maximum(self.table[rows, kind, columns], time)
        return True

    def snapshot(self, threads: Ints) -> dict[int, Stamp]:
        """Return, per thread, what it could release now: lanes of a row share what they have in common."""
        found: dict[int, Stamp] = {}
        for row in self.rows(threads):
            common = self.knowledge(row)
            for thread in threads[self.row_of[threads] == row].tolist():
                one = np.array([thread], np.int64)
                column = int(self.columns_of(one)[0])
                part = common.copy()
                part.known[[*ORDER, RAN], column] = self.now
                for index, kind in enumerate(CROSS):
                    part.known[kind, column] = max(int(part.known[kind, column]), int(self.crossed_own[thread, index]))
                self._publish_copies(part, one)
                found[thread] = part
        return found

    def cross(self, threads: Ints, spaces: Sequence[Space]) -> None:
        """`fence.proxy.async`: what these threads have seen, and their own accesses, have crossed."""
        self.crossed_at = self.now
        rows = self.own_rows(threads)
        crossing = [kind for space, kind in zip((Space.SHARED, Space.GLOBAL), CROSS, strict=True) if space in spaces]
        for kind in crossing:
            self.table[rows, kind] = np.maximum(self.table[rows, kind], self.table[rows, SEEN])
            self.floors[rows, kind] = np.maximum(self.floors[rows, kind], self.floors[rows, SEEN])
        for row in rows if self.foreign else ():
            for domain, value in list(self.foreign.get(row, {}).items()):
                crossed = value.copy()
                for kind in crossing:
                    np.maximum(crossed[kind], crossed[SEEN], out=crossed[kind])
                self.foreign[row][domain] = crossed
        for index, space in enumerate((Space.SHARED, Space.GLOBAL)):
            if space in spaces:
                self.crossed_own[threads, index] = self.now
                self.copied_own[threads, 1 + index] = self.copied_own[threads, 0]
        self.now += 1

    def tensor_fence(self, threads: Ints, before: bool) -> None:
        """`tcgen05.fence::before_thread_sync` or `::after_thread_sync`."""
        source, target = (RAN, BEFORE) if before else (BEFORE, AFTER)
        for row in self.own_rows(threads):
            self.dirty[row] = True
            np.maximum(self.table[row, target], self.table[row, source], out=self.table[row, target])
            for domain, value in list(self.foreign.get(row, {}).items()):
                fenced = value.copy()
                np.maximum(fenced[target], fenced[source], out=fenced[target])
                self.foreign[row][domain] = fenced

    def synchronise(self, threads: Ints, level: int | None) -> None:
        """A barrier of these threads. `level` says that they are all of a warp, a CTA or a cluster."""
        rows = self.rows(threads)
        quiet = level is not None and not self.dirty[rows].any()
        if quiet and not any(int(self.row_warp[row]) in self.splits for row in rows):
            assert level is not None
            if self._raise_floors(threads, np.array(rows), level):
                self.now += 1
                return
        stamp = self.publish(threads)
        self.acquire(threads, stamp)
        self.join_lanes(threads)
        if level is not None:
            rows = self.rows(threads)
            for kind in ORDER:
                self.floors[np.array(rows)[:, None], kind, np.arange(level + 1)] = self.now
            # Warps of a CTA that know the same are as good as those that know only their floors.
            self.dirty[rows] = level != CTA
        self.now += 1

    def join_lanes(self, threads: Ints) -> None:
        """Let threads that know the same now share the rows of their warps."""
        if not self.splits:
            return
        for warp in {int(self.row_warp[row]) for row in self.rows(threads)}:
            if warp in self.splits:
                self._merge_rows(warp, threads[threads >> 5 == warp])

    def synchronise_ctas(self, group: Group, first_thread: int, stride: int) -> None:
        """A barrier of all threads of some CTAs, each by itself."""
        if group.rows_at != self.version:
            group.rows_at, group.rows = self.version, _side_by_side(np.unique(self.row_of[group.threads]))
        rows = group.rows
        if not self.splits:
            quiet = not np.count_nonzero(self.dirty[rows]) and (
                self.crossed_at < 0 or int(self.floors[rows, SEEN, CTA].min()) > self.crossed_at
            )
            for kinds in _RAISED if quiet else ():
                self.floors[rows, kinds, : CTA + 1] = self.now
            if quiet or (not self.foreign and self._join_ctas(group, len(group.ctas(first_thread, stride).members))):
                group.floor = self.now
                self.now += 1
                group.floor_at = self.now, self.version
                return
        for members in group.ctas(first_thread, stride).members:
            self.synchronise(members, CTA)

    def _join_ctas(self, group: Group, ctas: int) -> bool:
        """Let the warps of each CTA know what any of them knows; False where CTAs differ too much to do it at once."""
        warps, masks = group.warps, group.masks
        copies = self.copy_column[warps]
        if len(warps) % ctas or (copies.any() and not copies.all()):
            return False
        at, rows = np.arange(ctas)[:, None], self.base_row[warps].reshape(ctas, -1)
        here = ((masks[:, None] >> np.arange(32)) & 1).astype(np.int32).reshape(ctas, -1)
        threads = (warps[:, None] * 32 + np.arange(32)).reshape(ctas, -1)
        columns = self.columns_of(threads)
        known, floors = self.table[rows].max(axis=1), self.floors[rows]
        wide = floors.max(axis=1)
        known[at, RAN, columns] = np.maximum(known[at, RAN, columns], here * self.now)
        wide[:, ORDER, : CTA + 1] = self.now
        for index, kind in enumerate(CROSS):
            crossed = np.maximum(known[at, kind, columns], here * self.crossed_own[threads, index])
            crossed = np.maximum(crossed, np.repeat(floors[:, :, kind, : CTA + 1].max(axis=2), 32, axis=1))
            crossed = np.maximum(crossed, wide[:, kind, CTA : CTA + 1])
            known[at, kind, columns] = crossed
            wide[:, kind, : CTA + 1] = crossed.min(axis=1)[:, None]
        if copies.any():
            columns = copies.repeat(32).reshape(ctas, -1) + columns - 1
            for index, kinds in enumerate(((*ORDER, RAN), (CROSSED_SHARED,), (CROSSED_GLOBAL,))):
                for kind in kinds:
                    copied = here * self.copied_own[threads, index]
                    known[at, kind, columns] = np.maximum(known[at, kind, columns], copied)
        self.table[rows], self.floors[rows], self.dirty[rows] = known[:, None], wide[:, None], False
        return True

    def _raise_floors(self, threads: Ints, rows: Ints, level: int) -> bool:
        """Raise the floors only; False when what has crossed differs from thread to thread."""
        for kind in ORDER:
            self.floors[rows, kind, : level + 1] = self.now
        if self.crossed_at < 0:
            return True
        own = self.crossed_own[threads]
        low, high = own.min(axis=0), own.max(axis=0)
        crossed = [max(int(low[i]), int(self.floors[rows, kind, level].max())) for i, kind in enumerate(CROSS)]
        if any(int(high[i]) > crossed[i] for i in range(2)) or self.floors[rows][:, CROSS, :level].max(initial=0) > min(
            crossed
        ):
            return False
        for i, kind in enumerate(CROSS):
            self.floors[rows, kind, : level + 1] = crossed[i]
        return True

    def _merge_rows(self, warp: int, threads: Ints) -> None:
        """Give lanes of a warp that now know the same one row."""
        base, extra = int(self.base_row[warp]), self.splits[warp]
        kept = self.rows(threads)[0]
        self.row_of[threads] = kept
        lanes = self.row_of[warp * 32 : warp * 32 + 32]
        if kept != base and not (lanes == base).any():
            self.table[base], self.floors[base], self.dirty[base] = self.table[kept], self.floors[kept], True
            self.foreign[base] = self.foreign.get(kept, {})
            self.row_of[threads] = base
        self.version += 1
        for row in [row for row in extra if not (lanes == row).any()]:
            extra.discard(row)
            self._release_row(row)
        if not extra:
            del self.splits[warp]
