"""Which accesses each lane knows: vector clocks of lanes, by the happens-before edges of the memory model.

Time is one counter, ticked by every release, so an access is known if its time is not after what the reader knows of
its agent. Lanes with equal knowledge share a row; a row splits when some of its lanes learn more. What a whole warp,
CTA or cluster has synchronized is a `floor`, one number instead of a column per thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from pyptx.sim.base.events import Clock, Ints, Space
from pyptx.sim.hazards.clock_rows import PRIOR as PRIOR
from pyptx.sim.hazards.clock_rows import ClockRows
from pyptx.sim.hazards.groups import Group
from pyptx.sim.hazards.stamps import (
    AFTER,
    BEFORE,
    CROSS,
    CROSSED,
    CROSSED_GLOBAL,
    CROSSED_SHARED,
    FLOORED,
    KINDS,
    ORDER,
    PUBLISHED,
    RAN,
    SEEN,
    WIDE_GLOBAL,
    WIDE_SHARED,
    Handed,
    Later,
    Stamp,
    join,
    later,
    union,
)
from pyptx.sim.hazards.stamps import RELAXED as RELAXED
from pyptx.sim.hazards.stamps import joined as joined

WARP, CTA, CLUSTER = range(3)
_Rows = TypeVar("_Rows", Clock, Ints)
NEVER = np.iinfo(np.int32).max
_SOME = 256
"""Merge this many learned but unresolved releases of a thread."""


_RAISED = slice(SEEN, SEEN + 1), slice(WIDE_SHARED, WIDE_GLOBAL + 1)
"""The kinds of ORDER, which are adjacent."""


def _merge_range(rows: _Rows) -> _Rows | slice[int, int, None]:
    """Return sorted rows as a range if they are one."""
    first, last = int(rows[0]), int(rows[-1]) + 1
    return slice(first, last) if last - first == len(rows) else rows


class Clocks(ClockRows):
    """What lanes know of one another, and the events that teach them."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 2
        self.crossed_at = -1
        """When a proxy fence was last executed."""

    def rows_by(self, threads: Ints, times: Clock) -> Clock:
        """Return the rows of threads with all knowledge that is of these times or later."""
        if self._pending:
            late = self._learned_at[threads] >= times
            if np.count_nonzero(late):
                self.settle(np.unique(threads[late]))
        return self._row_of[threads]

    @property
    def written(self) -> tuple[Clock, Clock, dict[int, dict[int, Clock]]]:
        """The table, the floors and the knowledge of other clusters, for rows of `rows_by`."""
        return self._table, self._floors, self._foreign

    def learn_later(self, thread: int, handed: Handed) -> None:
        """Let a thread learn a release when its knowledge is next needed."""
        held = self._pending.get(thread, ())
        if handed not in held:
            held = (*held, handed)
            self._pending[thread] = held if len(held) < _SOME else (later(None, 0, self.now, held),)
            at = handed.now if isinstance(handed, Later) else self.now
            if at > self._learned_at[thread]:
                self._learned_at[thread] = at

    def settle(self, threads: Ints | None = None) -> None:
        """Write what threads, by default all, have learned into their rows: at once for those that have learned the
        same."""
        pending, waiting = self._pending, self._find_waiting(threads)
        alike: dict[tuple[Handed, ...], list[int]] = {}
        for thread in waiting:
            alike.setdefault(pending.pop(thread), []).append(thread)
        self._learned_at[waiting] = 0
        for held, mine in alike.items():
            stamp = held[0].made() if len(held) == 1 and isinstance(held[0], Later) else union(held)
            self.acquire(np.array(sorted(mine), np.int64), stamp)

    def _find_waiting(self, threads: Ints | None) -> list[int]:
        """Return which of these threads, by default of all, have learned what is not in their rows."""
        pending = self._pending
        if threads is None:
            return [*pending]
        if len(threads) > len(pending):
            chosen = set(threads.tolist())
            return [thread for thread in pending if thread in chosen]
        return [thread for thread in threads.tolist() if thread in pending]

    def _settle_together(self, threads: Ints) -> None:
        """Write what threads have learned that are about to know the same."""
        waiting = self._find_waiting(threads)
        if waiting:
            self._learned_at[waiting] = 0
            self.acquire(threads, union([one for thread in waiting for one in self._pending.pop(thread)]))

    def tick(self) -> int:
        """Return the current time and advance it: later accesses are not covered by current releases."""
        self.now += 1
        return self.now - 1

    def stop(self, threads: Ints) -> None:
        """End threads: the others of their row continue without them."""
        for thread in threads.tolist() if self._pending else ():
            self._pending.pop(thread, None)
        self._learned_at[threads] = 0
        self._row_of[threads] = -1
        self.version += 1

    def handed_on(self, thread: int) -> Handed:
        """Return what a release by a thread passes on, without advancing time."""
        warp = thread >> 5
        if self.crossed_at >= 0 or self.copy_column[warp]:
            return self.publish(np.array([thread], np.int64))
        row = int(self._row_of[thread])
        common = self._known.get(row)
        if common is None:
            common = self._known[row] = self.knowledge(row)
        column = thread - int(self.first_thread[warp]) + 1
        return later(common, column, self.now, self._pending.get(thread, ()))

    def knowledge(self, row: int) -> Stamp:
        """Return the knowledge of a row, with the floors as columns."""
        known = self._table[row].copy()
        floors = self._floors[row]
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
        return Stamp(int(self.domain_of[self.row_warp[row]]), known, dict(self._foreign.get(row, {})))

    def publish(self, threads: Ints) -> Stamp:
        """Return what a release by these threads passes on, without advancing time."""
        stamp: Stamp | None = None
        rows = self.rows(threads)
        domains = self.domain_of[self.row_warp[rows]]
        if len(rows) > 1 and (domains == domains[0]).all() and not any(row in self._foreign for row in rows):
            return self._publish_own(self._join_rows(np.array(rows)), threads)
        for row in rows:
            mine = threads if len(rows) == 1 else threads[self._row_of[threads] == row]
            part = self._publish_own(self.knowledge(row), mine)
            stamp = part if stamp is None else stamp.merge(part)
        assert stamp is not None
        return stamp

    def _publish_own(self, part: Stamp, threads: Ints) -> Stamp:
        """Add the accesses of threads that share knowledge to it."""
        columns = self.columns_of(threads)
        part.known[PUBLISHED, columns] = self.now
        if self.crossed_at >= 0:
            crossed = np.maximum(part.known[CROSSED, columns], self.crossed_own[threads].T)
            part.known[CROSSED, columns] = crossed
        self._publish_copies(part, threads)
        return part

    def _join_rows(self, rows: Ints) -> Stamp:
        """Return the joint knowledge of rows of whole warps of a cluster."""
        known, floors, warps = self._table[_merge_range(rows)].max(axis=0), self._floors[rows], self.row_warp[rows]
        if floors.any():
            low_kinds, first = known[:FLOORED], int(self.first_thread[warps[0]])
            lanes = (warps[:, None] * 32 - first + 1) + np.arange(32)
            below = floors[:, :, WARP]
            if not self._splits or len(np.unique(warps)) == len(warps):
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
        """Pass on the cp.async operations for which these threads waited, each for its own."""
        first = int(self.copy_column[threads[0] >> 5])
        if not first:
            return
        columns = first + threads - self.first_thread[threads >> 5]
        for index, kinds in enumerate(((*ORDER, RAN), (CROSSED_SHARED,), (CROSSED_GLOBAL,))):
            for kind in kinds:
                part.known[kind, columns] = np.maximum(part.known[kind, columns], self.copied_own[threads, index])

    def copied(self, threads: Ints) -> None:
        """Record that the threads waited for their own cp.async operations."""
        self.copied_own[threads, 0] = self.now
        self.dirty[self.row_of[threads]] = True

    def release(self, threads: Ints) -> Stamp:
        """Return what a release by these threads passes on."""
        stamp = self.publish(threads)
        self.now += 1
        return stamp

    def acquire(self, threads: Ints, stamp: Stamp, kinds: Sequence[int] = range(KINDS)) -> None:
        """Let threads learn a stamp, in the given kinds of knowledge."""
        self._known.clear()
        everything = len(kinds) == KINDS
        rows = self.own_rows(threads)
        low, high = rows[0], rows[0] + len(rows)
        part = slice(low, high) if rows == [*range(low, high)] else np.array(rows)
        self.dirty[part] = True
        if everything and not stamp.foreign and (self.domain_of[self.row_warp[part]] == stamp.domain).all():
            width = min(stamp.known.shape[1], self._table.shape[2])
            if isinstance(part, slice):
                mine = self._table[part, :, :width]
                np.maximum(mine, stamp.known[:, :width], out=mine)
            else:
                self._table[part, :, :width] = np.maximum(self._table[part, :, :width], stamp.known[:, :width])
            return
        for row in rows:
            home = int(self.domain_of[self.row_warp[row]])
            for domain, value in ((stamp.domain, stamp.known), *stamp.foreign.items()):
                if domain != home:
                    join(self._foreign.setdefault(row, {}), domain, value)
                    continue
                width = min(value.shape[1], self._table.shape[2])
                if everything:
                    mine = self._table[row, :, :width]
                    np.maximum(mine, value[:, :width], out=mine)
                else:
                    for kind in kinds:
                        mine = self._table[row, kind, :width]
                        np.maximum(mine, value[kind, :width], out=mine)

    def acquire_of_others(self, threads: Ints, stamp: Stamp) -> None:
        """Let threads learn a stamp, except the accesses of lanes of their own warps: their order only shows that the
        simulated warp runs in lockstep."""
        rows = np.array(self.own_rows(threads))
        warps = self.row_warp[rows].astype(np.int64)
        columns = (warps * 32 - self.first_thread[warps] + 1)[:, None, None] + np.arange(32)
        at = rows[:, None, None], np.arange(KINDS)[:, None], columns
        before = self._table[at]
        self.acquire(threads, stamp)
        self._table[at] = before

    def learn(self, threads: Ints, column: int, time: int, kinds: Sequence[int] = range(BEFORE)) -> None:
        """Let threads know a channel of their own cluster up to a time; tensor-memory fences are still needed."""
        self._known.clear()
        rows = self.own_rows(threads)
        self.dirty[rows] = True
        at = np.array(rows)[:, None], np.array(kinds), column
        self._table[at] = np.maximum(self._table[at], time)

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
        """Let whole warps each know a channel up to a time; return False, with nothing learned, if lanes of one
        differ."""
        if self.splits and any(warp in self.splits for warp in warps.tolist()):
            return False
        self._known.clear()
        rows = self.base_row[warps]
        self.dirty[rows] = True
        for kind in range(BEFORE):
            self._table[rows, kind, columns] = np.maximum(self._table[rows, kind, columns], time)
        return True

    def cross(self, threads: Ints, spaces: Sequence[Space]) -> None:
        """`fence.proxy.async`: what these threads have seen, and their own accesses, crosses to the other proxy."""
        self._known.clear()
        self.crossed_at = self.now
        rows = self.own_rows(threads)
        crossing = [kind for space, kind in zip((Space.SHARED, Space.GLOBAL), CROSS, strict=True) if space in spaces]
        for kind in crossing:
            self._table[rows, kind] = np.maximum(self._table[rows, kind], self._table[rows, SEEN])
            self._floors[rows, kind] = np.maximum(self._floors[rows, kind], self._floors[rows, SEEN])
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
        self._known.clear()
        source, target = (RAN, BEFORE) if before else (BEFORE, AFTER)
        for row in self.own_rows(threads):
            self.dirty[row] = True
            np.maximum(self._table[row, target], self._table[row, source], out=self._table[row, target])
            for domain, value in list(self.foreign.get(row, {}).items()):
                fenced = value.copy()
                np.maximum(fenced[target], fenced[source], out=fenced[target])
                self.foreign[row][domain] = fenced

    def synchronise(self, threads: Ints, level: int | None) -> None:
        """Synchronize these threads at a barrier. `level`: they are all of a warp, a CTA or a cluster."""
        self._known.clear()
        if self._pending:
            self._settle_together(threads)
        rows = self.rows(threads)
        quiet = level is not None and not self.dirty[rows].any()
        if quiet and not any(int(self.row_warp[row]) in self._splits for row in rows):
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
                self._floors[np.array(rows)[:, None], kind, np.arange(level + 1)] = self.now
            # Warps of a CTA with equal knowledge are as good as those that know only their floors.
            self.dirty[rows] = level != CTA
        self.now += 1

    def synchronise_ctas(self, group: Group, first_thread: int, stride: int) -> None:
        """Synchronize all threads of several CTAs, each CTA separately."""
        self._known.clear()
        for members in group.ctas(first_thread, stride).members if self._pending else ():
            self._settle_together(members)
        if group.rows_at != self.version:
            group.rows_at, group.rows = self.version, _merge_range(np.unique(self._row_of[group.threads]))
        rows = group.rows
        if not self._splits:
            quiet = not np.count_nonzero(self.dirty[rows]) and (
                self.crossed_at < 0 or int(self._floors[rows, SEEN, CTA].min()) > self.crossed_at
            )
            for kinds in _RAISED if quiet else ():
                self._floors[rows, kinds, : CTA + 1] = self.now
            if quiet or (not self._foreign and self._join_ctas(group, len(group.ctas(first_thread, stride).members))):
                group.floor = self.now
                self.now += 1
                group.floor_at = self.now, self.version
                return
        for members in group.ctas(first_thread, stride).members:
            self.synchronise(members, CTA)

    def _join_ctas(self, group: Group, ctas: int) -> bool:
        """Let the warps of each CTA know what any of them knows; return False if the CTAs differ too much to do it at
        once."""
        warps, masks = group.warps, group.masks
        copies = self.copy_column[warps]
        if len(warps) % ctas or (copies.any() and not copies.all()):
            return False
        at, rows = np.arange(ctas)[:, None], self.base_row[warps].reshape(ctas, -1)
        here = ((masks[:, None] >> np.arange(32)) & 1).astype(np.int32).reshape(ctas, -1)
        threads = (warps[:, None] * 32 + np.arange(32)).reshape(ctas, -1)
        columns = self.columns_of(threads)
        known, floors = self._table[rows].max(axis=1), self._floors[rows]
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
        self._table[rows], self._floors[rows], self.dirty[rows] = known[:, None], wide[:, None], False
        return True

    def _raise_floors(self, threads: Ints, rows: Ints, level: int) -> bool:
        """Raise only the floors; return False if what has crossed differs between threads."""
        for kind in ORDER:
            self._floors[rows, kind, : level + 1] = self.now
        if self.crossed_at < 0:
            return True
        own = self.crossed_own[threads]
        low, high = own.min(axis=0), own.max(axis=0)
        crossed = [max(int(low[i]), int(self._floors[rows, kind, level].max())) for i, kind in enumerate(CROSS)]
        if any(int(high[i]) > crossed[i] for i in range(2)) or self._floors[rows][:, CROSS, :level].max(
            initial=0
        ) > min(crossed):
            return False
        for i, kind in enumerate(CROSS):
            self._floors[rows, kind, : level + 1] = crossed[i]
        return True
