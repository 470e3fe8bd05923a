"""Vector clocks: which accesses each lane knows by the happens-before edges of the memory model.

Time is one counter that every release increments. A lane knows an access if its clock of the accessing agent is not
before the access. Lanes with equal knowledge share a row; a row splits when some of its lanes learn more. A barrier of
a whole warp, CTA or cluster raises a `floor`, one number instead of a column per thread.
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
    AnyStamp,
    LazyStamp,
    Stamp,
    make_lazy_stamp,
    merge_foreign,
    merge_stamps,
)
from pyptx.sim.hazards.stamps import RELAXED as RELAXED
from pyptx.sim.hazards.stamps import join_stamps as join_stamps

WARP, CTA, FAR = range(3)
"""The levels of floors. FAR is for threads of other CTAs: no barrier raises it, so it is always 0."""
_Rows = TypeVar("_Rows", Clock, Ints)
NEVER = np.iinfo(np.int32).max
_MOST_PENDING = 256
"""Merge the pending releases of a thread at this number."""


_ORDER_SLICES = slice(SEEN, SEEN + 1), slice(WIDE_SHARED, WIDE_GLOBAL + 1)
"""The kinds of ORDER as slices."""


def _merge_range(rows: _Rows) -> _Rows | slice[int, int, None]:
    """Return sorted rows as a range if they are one."""
    first, last = int(rows[0]), int(rows[-1]) + 1
    return slice(first, last) if last - first == len(rows) else rows


class Clocks(ClockRows):
    """The clocks of all lanes, and the events that advance them."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 2
        self.crossed_at = 0
        """The time of the last proxy fence, 0 before the first."""

    def find_current_rows(self, threads: Ints, times: Clock) -> Clock:
        """Return the rows of threads, after settling pending releases of these times or later."""
        if self._pending:
            late = self._learned_at[threads] >= times
            if np.count_nonzero(late):
                self.settle(np.unique(threads[late]))
        return self._row_of[threads]

    @property
    def raw_tables(self) -> tuple[Clock, Clock, dict[int, dict[int, Clock]]]:
        """The table, the floors and the clocks of other clusters, for rows of `find_current_rows`."""
        return self._table, self._floors, self._foreign

    def learn_later(self, thread: int, release: AnyStamp) -> None:
        """Let a thread acquire a release when its clock is next needed."""
        pending = self._pending.get(thread, ())
        if release not in pending:
            pending = (*pending, release)
            self._pending[thread] = (
                pending if len(pending) < _MOST_PENDING else (make_lazy_stamp(None, 0, self.now, pending),)
            )
            time = release.now if isinstance(release, LazyStamp) else self.now
            if time > self._learned_at[thread]:
                self._learned_at[thread] = time

    def settle(self, threads: Ints | None = None) -> None:
        """Write the pending releases of threads, by default all, into their rows; threads with the same ones go
        together."""
        pending, learners = self._pending, self._find_learners(threads)
        learners_of: dict[tuple[AnyStamp, ...], list[int]] = {}
        for thread in learners:
            learners_of.setdefault(pending.pop(thread), []).append(thread)
        self._learned_at[learners] = 0
        for releases, members in learners_of.items():
            stamp = (
                releases[0].resolve()
                if len(releases) == 1 and isinstance(releases[0], LazyStamp)
                else merge_stamps(releases)
            )
            self.acquire(np.array(sorted(members), np.int64), stamp)

    def _find_learners(self, threads: Ints | None) -> list[int]:
        """Return the threads, by default of all, that have pending releases."""
        pending = self._pending
        if threads is None:
            return [*pending]
        if len(threads) > len(pending):
            members = set(threads.tolist())
            return [thread for thread in pending if thread in members]
        return [thread for thread in threads.tolist() if thread in pending]

    def _settle_together(self, threads: Ints) -> None:
        """Write the pending releases of all these threads into all their rows: a barrier follows."""
        learners = self._find_learners(threads)
        if learners:
            self._learned_at[learners] = 0
            self.acquire(
                threads, merge_stamps([release for thread in learners for release in self._pending.pop(thread)])
            )

    def tick(self) -> int:
        """Return the current time and advance it: later accesses are not covered by current releases."""
        self.now += 1
        return self.now - 1

    def stop(self, threads: Ints) -> None:
        """End threads without pending releases; the other threads of their rows continue."""
        self._learned_at[threads] = 0
        self._row_of[threads] = -1
        self.version += 1

    def publish_lazily(self, thread: int) -> AnyStamp:
        """Return the release of a thread, resolved only when needed, without advancing time."""
        warp = thread >> 5
        if self.crossed_at or self.copy_column[warp]:
            return self.publish(np.array([thread], np.int64))
        row = int(self._row_of[thread])
        common = self._row_stamps.get(row)
        if common is None:
            common = self._row_stamps[row] = self.make_stamp(row)
        column = thread - int(self.first_thread[warp]) + 1
        return make_lazy_stamp(common, column, self.now, self._pending.get(thread, ()))

    def make_stamp(self, row: int) -> Stamp:
        """Return the clocks of a row, with the floors written as columns."""
        clock = self._table[row].copy()
        floors = self._floors[row]
        if floors.any():
            warp = int(self.row_warp[row])
            base = int(self.first_thread[warp])
            low, high = self.cta_span[warp]
            lane = warp * 32 - base + 1
            low_kinds = clock[:FLOORED]
            for part, level in ((slice(lane, lane + 32), WARP), (slice(low, high), CTA)):
                if floors[:, level].any():
                    np.maximum(low_kinds[:, part], floors[:, level : level + 1], out=low_kinds[:, part])
            np.maximum(clock[RAN], clock[SEEN], out=clock[RAN])
        return Stamp(int(self.domain_of[self.row_warp[row]]), clock, dict(self._foreign.get(row, {})))

    def publish(self, threads: Ints) -> Stamp:
        """Return the stamp of a release by these threads, without advancing time."""
        stamp: Stamp | None = None
        rows = self.find_rows(threads)
        domains = self.domain_of[self.row_warp[rows]]
        if len(rows) > 1 and (domains == domains[0]).all() and not any(row in self._foreign for row in rows):
            return self._publish_own(self._join_rows(np.array(rows)), threads)
        for row in rows:
            members = threads if len(rows) == 1 else threads[self._row_of[threads] == row]
            part = self._publish_own(self.make_stamp(row), members)
            stamp = part if stamp is None else stamp.merge(part)
        assert stamp is not None
        return stamp

    def _publish_own(self, part: Stamp, threads: Ints) -> Stamp:
        """Add the accesses of threads to the stamp of their rows."""
        columns = self.find_columns(threads)
        part.clock[PUBLISHED, columns] = self.now
        if self.crossed_at:
            crossings = np.maximum(part.clock[CROSSED, columns], self.crossed_own[threads].T)
            part.clock[CROSSED, columns] = crossings
        self._publish_copies(part, threads)
        return part

    def _join_rows(self, rows: Ints) -> Stamp:
        """Return the union of rows of whole warps of a cluster."""
        clock, floors, warps = self._table[_merge_range(rows)].max(axis=0), self._floors[rows], self.row_warp[rows]
        if floors.any():
            low_kinds, first = clock[:FLOORED], int(self.first_thread[warps[0]])
            lanes = (warps[:, None] * 32 - first + 1) + np.arange(32)
            below = floors[:, :, WARP]
            if not self._splits or len(np.unique(warps)) == len(warps):
                low_kinds[:, lanes] = np.maximum(low_kinds[:, lanes], below.T[:, :, None])
            else:
                np.maximum.at(low_kinds, (np.arange(FLOORED)[:, None, None], lanes), below.T[:, :, None])
            spans = self.cta_span[warps]
            same_cta = np.count_nonzero(spans[:, 0] != spans[0, 0]) == 0
            for low, high in spans[:1].tolist() if same_cta else np.unique(spans, axis=0).tolist():
                cta_floors = floors if same_cta else floors[spans[:, 0] == low]
                level = cta_floors[:, :, CTA].max(axis=0)[:, None]
                np.maximum(low_kinds[:, low:high], level, out=low_kinds[:, low:high])
            np.maximum(clock[RAN], clock[SEEN], out=clock[RAN])
        return Stamp(int(self.domain_of[warps[0]]), clock, {})

    def _publish_copies(self, part: Stamp, threads: Ints) -> None:
        """Add the `cp.async` operations that these threads have waited for, each for its own."""
        first = int(self.copy_column[threads[0] >> 5])
        if not first:
            return
        columns = first + threads - self.first_thread[threads >> 5]
        for index, kinds in enumerate(((*ORDER, RAN), (CROSSED_SHARED,), (CROSSED_GLOBAL,))):
            for kind in kinds:
                part.clock[kind, columns] = np.maximum(part.clock[kind, columns], self.copied_own[threads, index])

    def record_copy_wait(self, threads: Ints) -> None:
        """Record that threads waited for their own `cp.async` operations."""
        self.copied_own[threads, 0] = self.now
        rows = self.row_of[threads]  # This may add rows, which moves the other tables.
        self.dirty[rows] = True

    def release(self, threads: Ints) -> Stamp:
        """Return the stamp of a release by these threads, and advance time."""
        stamp = self.publish(threads)
        self.now += 1
        return stamp

    def acquire(self, threads: Ints, stamp: Stamp, kinds: Sequence[int] = range(KINDS)) -> None:
        """Let threads acquire a stamp, in the given kinds of clocks."""
        self._row_stamps.clear()
        all_kinds = len(kinds) == KINDS
        rows = self.isolate_rows(threads)
        low, high = rows[0], rows[0] + len(rows)
        part = slice(low, high) if rows == [*range(low, high)] else np.array(rows)
        self.dirty[part] = True
        if all_kinds and not stamp.foreign and (self.domain_of[self.row_warp[part]] == stamp.domain).all():
            width = min(stamp.clock.shape[1], self._table.shape[2])
            if isinstance(part, slice):
                view = self._table[part, :, :width]
                np.maximum(view, stamp.clock[:, :width], out=view)
            else:
                self._table[part, :, :width] = np.maximum(self._table[part, :, :width], stamp.clock[:, :width])
            return
        for row in rows:
            home = int(self.domain_of[self.row_warp[row]])
            for domain, value in ((stamp.domain, stamp.clock), *stamp.foreign.items()):
                if domain != home:
                    merge_foreign(self._foreign.setdefault(row, {}), domain, value)
                    continue
                width = min(value.shape[1], self._table.shape[2])
                if all_kinds:
                    view = self._table[row, :, :width]
                    np.maximum(view, value[:, :width], out=view)
                else:
                    for kind in kinds:
                        view = self._table[row, kind, :width]
                        np.maximum(view, value[kind, :width], out=view)

    def acquire_from_other_warps(self, threads: Ints, stamp: Stamp) -> None:
        """Let threads acquire a stamp, except accesses of their own warps: their order only shows that simulated warps
        run in lockstep."""
        rows = np.array(self.isolate_rows(threads))
        warps = self.row_warp[rows].astype(np.int64)
        columns = (warps * 32 - self.first_thread[warps] + 1)[:, None, None] + np.arange(32)
        cells = rows[:, None, None], np.arange(KINDS)[:, None], columns
        before = self._table[cells]
        self.acquire(threads, stamp)
        self._table[cells] = before

    def learn(self, threads: Ints, column: int, time: int, kinds: Sequence[int] = range(BEFORE)) -> None:
        """Let threads know a channel of their own cluster up to a time. `tcgen05` fences are still needed."""
        self._row_stamps.clear()
        rows = self.isolate_rows(threads)
        self.dirty[rows] = True
        cells = np.array(rows)[:, None], np.array(kinds), column
        self._table[cells] = np.maximum(self._table[cells], time)

    def learn_each(self, groups: Sequence[Group], columns: Ints, time: int) -> None:
        """Let the threads of each group know the group's channel up to a time."""
        sizes = [len(group.warps) for group in groups]
        warps = np.concatenate([group.warps for group in groups])
        if any(len(group) != 32 * size for group, size in zip(groups, sizes, strict=True)) or not self.learn_warps(
            warps, columns.repeat(sizes), time
        ):
            for group, column in zip(groups, columns.tolist(), strict=True):
                self.learn(group.threads, column, time)

    def learn_warps(self, warps: Ints, columns: Ints, time: int) -> bool:
        """Let whole warps each know a channel up to a time. Return False, with nothing done, if lanes of a warp
        differ."""
        if self._splits and any(warp in self._splits for warp in warps.tolist()):
            return False
        self._row_stamps.clear()
        rows = self.base_row[warps]
        self.dirty[rows] = True
        for kind in range(BEFORE):
            self._table[rows, kind, columns] = np.maximum(self._table[rows, kind, columns], time)
        return True

    def cross(self, threads: Ints, spaces: Sequence[Space]) -> None:
        """Execute `fence.proxy.async`: accesses that these threads know, and their own, cross to the other proxy."""
        self._row_stamps.clear()
        self.crossed_at = self.now
        rows = self.isolate_rows(threads)
        crossing = [kind for space, kind in zip((Space.SHARED, Space.GLOBAL), CROSS, strict=True) if space in spaces]
        for kind in crossing:
            self._table[rows, kind] = np.maximum(self._table[rows, kind], self._table[rows, SEEN])
            self._floors[rows, kind] = np.maximum(self._floors[rows, kind], self._floors[rows, SEEN])
        for row in rows if self.foreign else ():
            for domain, value in list(self.foreign.get(row, {}).items()):
                clock = value.copy()
                for kind in crossing:
                    np.maximum(clock[kind], clock[SEEN], out=clock[kind])
                self.foreign[row][domain] = clock
        for index, space in enumerate((Space.SHARED, Space.GLOBAL)):
            if space in spaces:
                self.crossed_own[threads, index] = self.now
                self.copied_own[threads, 1 + index] = self.copied_own[threads, 0]
        self.now += 1

    def fence_tensor_memory(self, threads: Ints, before: bool) -> None:
        """Execute `tcgen05.fence::before_thread_sync` or `::after_thread_sync`. Threads of other clusters access other
        tensor memory, so the fence is not about what is known of them."""
        self._row_stamps.clear()
        source, target = (RAN, BEFORE) if before else (BEFORE, AFTER)
        for row in self.isolate_rows(threads):
            self.dirty[row] = True
            np.maximum(self._table[row, target], self._table[row, source], out=self._table[row, target])

    def synchronize(self, threads: Ints, level: int | None) -> None:
        """Synchronize threads at a barrier. `level`: they are all live threads of a warp or a CTA."""
        self._row_stamps.clear()
        if self._pending:
            self._settle_together(threads)
        rows = self.find_rows(threads)
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
            rows = self.find_rows(threads)
            for kind in ORDER:
                self._floors[np.array(rows)[:, None], kind, np.arange(level + 1)] = self.now
            # Warps of a CTA with equal columns need no more than their floors.
            self.dirty[rows] = level != CTA
        self.now += 1

    def synchronize_ctas(self, group: Group, first_thread: int, stride: int) -> None:
        """Synchronize all threads of several CTAs, each CTA separately."""
        self._row_stamps.clear()
        for members in group.split_by_cta(first_thread, stride).members if self._pending else ():
            self._settle_together(members)
        if group.rows_at != self.version:
            group.rows_at, group.rows = self.version, _merge_range(np.unique(self._row_of[group.threads]))
        rows = group.rows
        if not self._splits:
            quiet = not np.count_nonzero(self.dirty[rows]) and (
                not self.crossed_at or int(self._floors[rows, SEEN, CTA].min()) > self.crossed_at
            )
            for kinds in _ORDER_SLICES if quiet else ():
                self._floors[rows, kinds, : CTA + 1] = self.now
            if quiet or (
                not self._foreign and self._join_ctas(group, len(group.split_by_cta(first_thread, stride).members))
            ):
                group.floor = self.now
                self.now += 1
                group.floor_at = self.now, self.version
                return
        for members in group.split_by_cta(first_thread, stride).members:
            self.synchronize(members, CTA)

    def _join_ctas(self, group: Group, ctas: int) -> bool:
        """Synchronize the warps of each CTA, all CTAs at once. Return False, with nothing done, if the CTAs differ in
        shape."""
        warps, masks = group.warps, group.masks
        copies = self.copy_column[warps]
        if len(warps) % ctas or (copies.any() and not copies.all()):
            return False
        cta_index, rows = np.arange(ctas)[:, None], self.base_row[warps].reshape(ctas, -1)
        present = ((masks[:, None] >> np.arange(32)) & 1).astype(np.int32).reshape(ctas, -1)
        threads = (warps[:, None] * 32 + np.arange(32)).reshape(ctas, -1)
        columns = self.find_columns(threads)
        clock, floors = self._table[rows].max(axis=1), self._floors[rows]
        cta_floors = floors.max(axis=1)
        cta_floors[:, ORDER, : CTA + 1] = self.now
        for index, kind in enumerate(CROSS):
            crossings = np.maximum(clock[cta_index, kind, columns], present * self.crossed_own[threads, index])
            crossings = np.maximum(crossings, np.repeat(floors[:, :, kind, : CTA + 1].max(axis=2), 32, axis=1))
            crossings = np.maximum(crossings, cta_floors[:, kind, CTA : CTA + 1])
            clock[cta_index, kind, columns] = crossings
            cta_floors[:, kind, : CTA + 1] = crossings.min(axis=1)[:, None]
        if copies.any():
            columns = copies.repeat(32).reshape(ctas, -1) + columns - 1
            for index, kinds in enumerate(((*ORDER, RAN), (CROSSED_SHARED,), (CROSSED_GLOBAL,))):
                for kind in kinds:
                    copy_times = present * self.copied_own[threads, index]
                    clock[cta_index, kind, columns] = np.maximum(clock[cta_index, kind, columns], copy_times)
        self._table[rows], self._floors[rows], self.dirty[rows] = clock[:, None], cta_floors[:, None], False
        return True

    def _raise_floors(self, threads: Ints, rows: Ints, level: int) -> bool:
        """Raise only the floors. Return False if threads differ in what has crossed between proxies."""
        for kind in ORDER:
            self._floors[rows, kind, : level + 1] = self.now
        if not self.crossed_at:
            return True
        own = self.crossed_own[threads]
        low, high = own.min(axis=0), own.max(axis=0)
        crossings = [max(int(low[i]), int(self._floors[rows, kind, level].max())) for i, kind in enumerate(CROSS)]
        if any(int(high[i]) > crossings[i] for i in range(2)) or self._floors[rows][:, CROSS, :level].max(
            initial=0
        ) > min(crossings):
            return False
        for i, kind in enumerate(CROSS):
            self._floors[rows, kind, : level + 1] = crossings[i]
        return True
