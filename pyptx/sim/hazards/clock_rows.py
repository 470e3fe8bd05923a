"""The rows of vector clocks: which row each lane has, and how rows are allocated, split and merged.

Lanes with equal knowledge share a row. Row w belongs to warp w until its lanes diverge. `clocks` defines the columns
and the events that change them.
"""

from __future__ import annotations

import numpy as np

from pyptx.sim.base.events import Clock, Ints
from pyptx.sim.hazards.stamps import FLOORED, KINDS, AnyStamp, Stamp

PRIOR = 0
"""The column of everything in earlier grids."""


def _count_distinct(rows: Clock) -> tuple[Clock, Ints]:
    """Return the distinct rows in ascending order, and the number of threads of each."""
    begins = np.flatnonzero(np.append(True, rows[1:] != rows[:-1]))
    distinct = rows[begins]
    if len(distinct) > 1 and np.count_nonzero(distinct[1:] <= distinct[:-1]):
        return np.unique(rows, return_counts=True)
    return distinct, np.diff(np.append(begins, len(rows)))


class ClockRows:
    """The knowledge of every lane of the resident grids, by row."""

    def __init__(self) -> None:
        self.version: int = 0
        """Incremented whenever a thread changes its row."""
        self.epoch: int = 0
        """Incremented whenever CTAs start."""
        self._table = np.zeros((0, KINDS, 1), np.int32)
        self._floors = np.zeros((0, FLOORED, 3), np.int32)
        self.row_warp = np.zeros(0, np.int32)
        self.dirty = np.zeros(0, np.bool_)
        """Per row: its columns and floors, its warp, and whether its columns hold more than its floors."""
        self._row_of = np.zeros(0, np.int32)
        self._learned_at = np.zeros(0, np.int32)
        """Per thread: the latest time among its pending releases."""
        self.crossed_own = np.zeros((0, 2), np.int32)
        self.copied_own = np.zeros((0, 3), np.int32)
        """Per thread: its row, and when its own accesses and copies crossed between proxies."""
        self.base_row = np.zeros(0, np.int32)
        self.life_of = np.zeros(0, np.int64)
        self.copy_column = np.zeros(0, np.int32)
        self.domain_of = np.zeros(0, np.int32)
        self.first_thread = np.zeros(0, np.int64)
        self.cta_span = np.zeros((0, 2), np.int32)
        """Per warp: its first row, its life, the column of its copies, its cluster and the cluster's first thread, and
        the columns of its CTA."""
        self._foreign: dict[int, dict[int, Clock]] = {}
        """Per row: the clocks that it has acquired from other clusters, by cluster."""
        self._splits: dict[int, set[int]] = {}
        """The rows, besides the first, of warps whose lanes have different knowledge."""
        self._pending: dict[int, tuple[AnyStamp, ...]] = {}
        """Per thread: the releases it has acquired but not yet written into its row."""
        self._row_stamps: dict[int, Stamp] = {}
        """Cached stamps of rows, valid until a row changes."""
        self._free: list[int] = []

    def settle(self, threads: Ints | None = None) -> None:
        """Write the pending releases of threads, by default all, into their rows."""
        raise NotImplementedError

    @property
    def row_of(self) -> Clock:
        """The row of each thread, -1 if it is not live."""
        if self._pending:
            self.settle()
        return self._row_of

    @property
    def table(self) -> Clock:
        """The clocks, by row, kind and column."""
        if self._pending:
            self.settle()
        return self._table

    @property
    def floors(self) -> Clock:
        """The times of the last barriers, by row, kind and level; pending releases do not change them."""
        return self._floors

    @property
    def foreign(self) -> dict[int, dict[int, Clock]]:
        """Per row: the clocks that it has acquired from other clusters, by cluster."""
        if self._pending:
            self.settle()
        return self._foreign

    @property
    def splits(self) -> dict[int, set[int]]:
        """The rows, besides the first, of warps whose lanes have different knowledge."""
        if self._pending:
            self.settle()
        return self._splits

    @property
    def lanes_differ(self) -> bool:
        """Whether lanes of a warp may have different knowledge."""
        return bool(self._splits or self._pending)

    def get_floors(self, threads: Ints) -> Clock:
        """Return the floors of threads, whose pending releases need not be settled."""
        return self._floors[self._row_of[threads]]

    def add_warps(self, warps: int) -> int:
        """Add warps and return the number of the first."""
        first, row = len(self.domain_of), len(self._table)
        self._grow_rows(warps)
        rows = np.arange(row, row + warps, dtype=np.int32)
        self.base_row = np.concatenate([self.base_row, rows])
        self.row_warp[rows] = np.arange(first, first + warps)
        self._row_of = np.concatenate([self._row_of, np.full(warps * 32, -1, np.int32)])
        self._learned_at = np.concatenate([self._learned_at, np.zeros(warps * 32, np.int32)])
        self.crossed_own = np.concatenate([self.crossed_own, np.zeros((warps * 32, 2), np.int32)])
        self.copied_own = np.concatenate([self.copied_own, np.zeros((warps * 32, 3), np.int32)])
        self.life_of = np.concatenate([self.life_of, np.zeros(warps, np.int64)])
        self.copy_column = np.concatenate([self.copy_column, np.zeros(warps, np.int32)])
        self.domain_of = np.concatenate([self.domain_of, np.zeros(warps, np.int32)])
        self.first_thread = np.concatenate([self.first_thread, np.zeros(warps, np.int64)])
        self.cta_span = np.concatenate([self.cta_span, np.zeros((warps, 2), np.int32)])
        return first

    def _grow_rows(self, count: int) -> None:
        columns = self._table.shape[2]
        self._table = np.concatenate([self._table, np.zeros((count, KINDS, columns), np.int32)])
        self._floors = np.concatenate([self._floors, np.zeros((count, FLOORED, 3), np.int32)])
        self.row_warp = np.concatenate([self.row_warp, np.zeros(count, np.int32)])
        self.dirty = np.concatenate([self.dirty, np.zeros(count, np.bool_)])

    def ensure_columns(self, columns: int) -> None:
        """Extend the table to a number of columns."""
        width = self._table.shape[2]
        if columns > width:
            wide = np.zeros((len(self._table), KINDS, max(columns, width + width // 2 + 32)), np.int32)
            wide[:, :, :width] = self._table
            self._table = wide

    def start(
        self, threads: Ints, warps: Ints, domains: Ints, firsts: Ints, begins: Ints, stride: int, prior: int
    ) -> None:  # fmt: skip
        """Start the threads of CTAs, which know only earlier grids. Each CTA has a row of `warps`, a domain, the
        domain's first thread, and the column of its own first thread."""
        rows = self.base_row[warps].reshape(-1)
        self._row_stamps.clear()
        self._table[rows] = 0
        self._floors[rows] = 0
        self.dirty[rows] = False
        self._table[rows, :, PRIOR] = prior
        self.domain_of[warps] = domains[:, None]
        self.first_thread[warps] = firsts[:, None]
        self.cta_span[warps] = np.stack([begins, begins + stride], axis=1)[:, None]
        self.version += 1
        self.epoch += 1
        self._row_of.reshape(-1, 32)[warps] = -1
        for warp in warps.reshape(-1).tolist() if self._splits else ():
            for extra_row in self._splits.pop(warp, set()):
                self._release_row(extra_row)
        for row in rows.tolist() if self._foreign else ():
            self._foreign.pop(row, None)
        self._row_of[threads] = self.base_row[threads >> 5]
        self.crossed_own[threads] = 0
        self.copied_own[threads] = 0
        self.copy_column[warps] = 0

    def compute_tags(self, threads: Ints) -> Ints:
        """Return the tags of threads, which `records` defines."""
        return (self.life_of[threads >> 5] << 7) + (threads & 31)

    def find_columns(self, threads: Ints) -> Ints:
        """Return the columns of threads in the clocks of their own cluster."""
        return threads - self.first_thread[threads >> 5] + 1

    def find_rows(self, threads: Ints) -> list[int]:
        """Return the distinct rows of threads."""
        if self._pending:
            self.settle(threads)
        rows = self._row_of[threads]
        first = int(rows[0])
        return [first] if len(rows) == 1 or (rows == first).all() else _count_distinct(rows)[0].tolist()

    def isolate_rows(self, threads: Ints) -> list[int]:
        """Return rows that hold exactly these threads; split rows that hold other threads too."""
        if self._pending:
            self.settle(threads)
        thread_rows = self._row_of[threads]
        first = int(thread_rows[0])
        if len(thread_rows) <= 32 and (len(thread_rows) == 1 or (thread_rows == first).all()):
            warp = int(self.row_warp[first])
            if len(thread_rows) < np.count_nonzero(self._row_of[warp * 32 : warp * 32 + 32] == first):
                return [self._split(first, warp, threads)]
            return [first]
        rows, counts = _count_distinct(thread_rows)
        numbers: list[int] = rows.tolist()
        if len(thread_rows) == 32 * len(numbers):
            return numbers
        warps = self.row_warp[rows]
        lanes = (self._row_of.reshape(-1, 32)[warps] == rows[:, None]).sum(axis=1)
        for index in np.flatnonzero(counts < lanes).tolist():
            members = threads[self._row_of[threads] == numbers[index]]
            numbers[index] = self._split(numbers[index], int(warps[index]), members)
        return numbers

    def _split(self, row: int, warp: int, threads: Ints) -> int:
        if not self._free:
            count = len(self._table)
            self._grow_rows(max(16, count // 2))
            self._free = list(range(len(self._table) - 1, count - 1, -1))
        new = self._free.pop()
        self._table[new], self._floors[new], self.dirty[new] = self._table[row], self._floors[row], True
        self.row_warp[new] = warp
        if row in self._foreign:
            self._foreign[new] = dict(self._foreign[row])
        self._row_of[threads] = new
        self._splits.setdefault(warp, set()).add(new)
        self.version += 1
        return new

    def _release_row(self, row: int) -> None:
        self._foreign.pop(row, None)
        self._free.append(row)

    def join_lanes(self, threads: Ints) -> None:
        """Merge the rows of each warp's threads, which now have equal knowledge."""
        if not self._splits:
            return
        for warp in {int(self.row_warp[row]) for row in self.find_rows(threads)}:
            if warp in self._splits:
                self._merge_rows(warp, threads[threads >> 5 == warp])

    def _merge_rows(self, warp: int, threads: Ints) -> None:
        """Merge the rows of lanes of one warp that now have equal knowledge."""
        self._row_stamps.clear()
        base, extra = int(self.base_row[warp]), self._splits[warp]
        shared_row = self.find_rows(threads)[0]
        self._row_of[threads] = shared_row
        lanes = self._row_of[warp * 32 : warp * 32 + 32]
        if shared_row != base and not (lanes == base).any():
            self._table[base], self._floors[base], self.dirty[base] = (
                self._table[shared_row],
                self._floors[shared_row],
                True,
            )
            self._foreign[base] = self._foreign.get(shared_row, {})
            self._row_of[threads] = base
        self.version += 1
        for row in [row for row in extra if not (lanes == row).any()]:
            extra.discard(row)
            self._release_row(row)
        if not extra:
            del self._splits[warp]
