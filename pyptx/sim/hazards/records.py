"""The accesses that shadow memory points to: who, when, what and where, one row each.

A reference is `record * 64 + lane`; lane 32 stands for all lanes of the record's mask, 0 for an asynchronous operation.
"""

from __future__ import annotations

import numpy as np

from pyptx.sim.hazards.clocks import NEVER
from pyptx.sim.hazards.events import Access, Clock, Family, Ints

ALL_LANES = 32
LIVE_BARRIER = 1 << 6
"""A flag of the record that an initialised mbarrier leaves on its eight bytes."""
WRITES, READS, STRONG, READONLY = 1, 2, 4, 8


class Records:
    """Growing columns. `key` is the time of accesses that a floor can cover, NEVER for all others."""

    def __init__(self) -> None:
        self.count = 1
        self.time = np.zeros(1024, np.int32)
        self.key = np.zeros(1024, np.int32)
        self.warp = np.full(1024, -1, np.int32)
        self.domain = np.full(1024, -1, np.int32)
        self.column = np.zeros(1024, np.int32)
        self.mask = np.zeros(1024, np.int64)
        self.flags = np.zeros(1024, np.int32)
        self.scope = np.zeros(1024, np.int8)
        self.family = np.zeros(1024, np.int8)
        self.size = np.zeros(1024, np.int32)
        self.access = np.zeros(1024, np.int32)
        self.operation = np.zeros(1024, np.int32)
        self.accesses: list[Access] = []
        self._number_of: dict[int, int] = {}
        self._latest: dict[tuple[int, int], tuple[int, int]] = {}

    def number(self, access: Access) -> int:
        """Return the number of an access description; the same object keeps its number."""
        found = self._number_of.get(id(access))
        if found is None:
            found = self._number_of[id(access)] = len(self.accesses)
            self.accesses.append(access)
        return found

    def _grow(self, more: int) -> None:
        size = len(self.time)
        if self.count + more <= size:
            return
        extra = max(size, more)
        for name in ("time", "key", "warp", "domain", "column", "mask", "flags", "scope", "family", "size", "access"):
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old, np.zeros(extra, old.dtype)]))
        self.operation = np.concatenate([self.operation, np.zeros(extra, np.int32)])

    def by_warps(
        self, access: Access, warps: Ints, domains: Clock, columns: Clock, masks: Ints, now: int, floored: bool
    ) -> Ints:
        """Return one record per warp for an access made now; `floored`: their CTA's floor may cover it."""
        number = self.number(access)
        if len(warps) == 1:
            key = (int(warps[0]), number << 32 | int(masks[0]))
            kept = self._latest.get(key)
            if kept and kept[1] == now:
                return np.array([kept[0]], np.int64)
        count = len(warps)
        self._grow(count)
        first = self.count
        part = slice(first, first + count)
        self.time[part] = now
        self.key[part] = now if floored else NEVER
        self.warp[part], self.domain[part], self.column[part] = warps, domains, columns
        self.mask[part], self.access[part] = masks, number
        self._describe(part, access)
        self.count += count
        if count == 1:
            self._latest[int(warps[0]), number << 32 | int(masks[0])] = (first, now)
        return np.arange(first, first + count, dtype=np.int64)

    def of_operation(self, access: Access, warp: int, domain: int, column: int, operation: int, lane: int) -> int:
        """Return a record of an asynchronous operation, unfinished until `finish`. Its mask names the issuing lane."""
        self._grow(1)
        new = self.count
        self.time[new] = self.key[new] = NEVER
        self.warp[new], self.domain[new], self.column[new] = warp, domain, column
        self.mask[new], self.operation[new] = 1 << lane, operation
        self.access[new] = self.number(access)
        self._describe(slice(new, new + 1), access)
        self.count += 1
        return new

    def _describe(self, part: slice, access: Access) -> None:
        self.flags[part] = (
            access.writes * WRITES + access.reads * READS + access.strong * STRONG + access.readonly * READONLY
        )
        self.scope[part], self.size[part] = access.scope, access.size
        self.family[part] = access.family

    def live_barrier(self, access: Access, warp: int, domain: int, column: int, lane: int, now: int) -> int:
        """Return the record of an initialised mbarrier: no floor ever covers it."""
        new = self.of_operation(access, warp, domain, column, 0, lane)
        self.time[new] = now
        self.flags[new] |= LIVE_BARRIER
        return new

    def retire_barrier(self, record: int, now: int) -> None:
        """Turn the record of an mbarrier into that of an ordinary write: `inval`."""
        self.flags[record] &= ~LIVE_BARRIER
        self.time[record] = now

    def unfinished(self, access: Access, warps: Ints, domain: int, columns: Ints, masks: Ints, operation: int) -> Ints:
        """Return one record per warp for accesses that an operation will make."""
        count = len(warps)
        self._grow(count)
        first = self.count
        part = slice(first, first + count)
        self.time[part] = self.key[part] = NEVER
        self.warp[part], self.domain[part], self.column[part], self.mask[part] = warps, domain, columns, masks
        self.operation[part], self.access[part] = operation, self.number(access)
        self._describe(part, access)
        self.count += count
        return np.arange(first, first + count, dtype=np.int64)

    def place(self, record: int) -> Access:
        """Return what the record's instruction does."""
        return self.accesses[int(self.access[record])]
