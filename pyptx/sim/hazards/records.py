"""The accesses to which shadow memory refers: who, when and by which instruction, one row each.

A reference is `record * 64 + lane`; lane 32 means all lanes of the record's mask, 33 a crowd, whose mask only signs its
threads; operations have lane 0. A thread's tag is `life * 128 + lane`: every CTA gives its warps new lives. No
operation has a thread's tag.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pyptx.sim.base.events import Access, Clock, Ints, Mask, Scope
from pyptx.sim.hazards.clocks import NEVER
from pyptx.sim.hazards.crowds import Crowds

ALL_LANES, CROWD = 32, 33
WRITES, READS, STRONG, READONLY, LIVE_BARRIER = 1, 2, 4, 8, 64
"""Flags of an access. LIVE_BARRIER marks the eight bytes of an initialized mbarrier."""
_OPERATION = 64
MOST = 1 << 25
"""References are 32-bit numbers."""
_LARGE = 1 << 20
"""Below this many records, grow in larger steps."""
_COLUMNS = ("time", "key", "tag", "column", "mask", "access", "operation")


class Records:
    """Growing columns of records. `key` is the time of an access that a floor can cover, NEVER for all others."""

    def __init__(self) -> None:
        self.count = 1
        self.time = np.zeros(1024, np.int32)
        self.key = np.zeros(1024, np.int32)
        self.tag = np.full(1024, -1, np.int64)
        self.column = np.zeros(1024, np.int32)
        self.mask = np.zeros(1024, np.int64)
        self.access = np.zeros(1024, np.int32)
        self.operation = np.zeros(1024, np.int32)
        self.crowds = Crowds()
        """The threads of records with lane CROWD."""
        self.accesses: list[Access] = []
        self._number_of: dict[int, int] = {}
        self._flags = np.zeros(64, np.int32)
        self._scope = np.zeros(64, np.int8)
        self._family = np.zeros(64, np.int8)
        self._size = np.zeros(64, np.int32)
        self._kind = np.zeros(64, np.int32)
        self._kinds: dict[tuple[int, ...], int] = {}
        self.life_warp: Clock = np.full(64, -1, np.int32)
        self.life_domain: Clock = np.full(64, -1, np.int32)
        self.lives = 1

    # Accesses and lives

    def number_access(self, access: Access, flags: int = 0) -> int:
        """Return the number of an access, which the same object keeps."""
        prior_number = self._number_of.get(id(access)) if not flags else None
        if prior_number is not None:
            return prior_number
        number = len(self.accesses)
        if number == len(self._flags):
            for name in ("_flags", "_scope", "_family", "_size", "_kind"):
                old = getattr(self, name)
                setattr(self, name, np.concatenate([old, np.zeros_like(old)]))
        self.accesses.append(access)
        own = access.writes * WRITES + access.reads * READS + access.strong * STRONG + access.readonly * READONLY
        self._flags[number] = own | flags
        self._scope[number], self._family[number], self._size[number] = access.scope, access.family, access.size
        strong = (access.size, access.scope) if access.strong else ()
        self._kind[number] = self._kinds.setdefault((own | flags, access.family, *strong), len(self._kinds))
        if not flags:
            self._number_of[id(access)] = number
        return number

    def begin_lives(self, warps: Ints, domains: Ints) -> Ints:
        """Start new lives of warps, a row of warps for each CTA, and return them."""
        first, last = self.lives, self.lives + warps.size
        while last > len(self.life_warp):
            self.life_warp = np.concatenate([self.life_warp, self.life_warp])
            self.life_domain = np.concatenate([self.life_domain, self.life_domain])
        self.life_warp[first:last] = warps.reshape(-1)
        self.life_domain[first:last] = np.repeat(domains, warps.shape[1])
        self.lives = last
        return np.arange(first, last).reshape(warps.shape)

    def get_flags(self, record: Ints) -> Clock:
        return self._flags[self.access[record]]

    def has_any_flag(self, numbers: Ints | Clock, flags: int) -> bool:
        """Tell whether any of these accesses has one of these flags."""
        return bool(np.count_nonzero(self._flags[numbers] & flags))

    def get_record_flags(self, record: int) -> int:
        return int(self._flags[self.access[record]])

    def get_scopes(self, record: Ints) -> Clock:
        return self._scope[self.access[record]].astype(np.int32)

    def get_families(self, record: Ints) -> Clock:
        return self._family[self.access[record]].astype(np.int32)

    def get_sizes(self, record: Ints) -> Clock:
        return self._size[self.access[record]]

    def get_kinds(self, record: Ints) -> Clock:
        """Return equal numbers for accesses that conflict with the same unordered accesses: the same flags and family,
        and for strong ones, the same size and scope."""
        return self._kind[self.access[record]]

    def is_same_kind(self, record: int, other: int) -> bool:
        return bool(self._kind[self.access[record]] == self._kind[self.access[other]])

    def get_warps(self, record: Ints) -> Clock:
        return self.life_warp[self.tag[record] >> 7]

    def get_domains(self, record: Ints) -> Clock:
        return self.life_domain[self.tag[record] >> 7]

    def is_write(self, refs: Clock | Ints) -> Mask:
        """Tell which references are to writes."""
        return self._flags[self.access[refs >> 6]] & WRITES != 0

    def match_strong(self, access: Access) -> Mask:
        """Tell, by access number, which accesses never race with a strong one of `.gpu` scope or wider: those like
        it."""
        strong = self._flags & (STRONG | READONLY | LIVE_BARRIER) == STRONG
        return strong & (self._size == access.size) & (self._scope >= Scope.GPU)

    # Records

    def _grow(self, count: int) -> None:
        size = len(self.time)
        if self.count + count >= MOST:
            raise OverflowError(f"more than {MOST} distinct accesses in one run: check a smaller grid")
        if self.count + count <= size:
            return
        size = max(size * (4 if size < _LARGE else 2), size + count)
        for name in _COLUMNS:
            # Zero pages cost nothing until they are written.
            column = getattr(self, name)
            wide = np.zeros(size, column.dtype)
            wide[: self.count] = column[: self.count]
            setattr(self, name, wide)

    def add_warps(
        self, number: int | Ints, lives: Ints, columns: Clock, masks: Ints, now: int | Ints, has_floor: bool
    ) -> Ints:
        """Add a record per warp for an access at a time. `has_floor`: floors can cover it."""
        count, first = len(lives), self.count
        if first + count > len(self.time):
            self._grow(count)
        self.count = last = first + count
        self.time[first:last] = now
        self.key[first:last] = now if has_floor else NEVER
        self.tag[first:last] = lives << 7
        self.column[first:last] = columns
        self.mask[first:last] = masks
        self.access[first:last] = number
        return np.arange(first, last, dtype=np.int64)

    def add_operation(self, access: Access, life: int, column: int, operation: int, lane: int) -> int:
        """Add the record of an asynchronous operation, which no thread knows yet. Its mask names the issuing lane."""
        lives, columns, masks = np.array([life]), np.array([column], np.int32), np.array([1 << lane], np.int64)
        new = int(self.add_warps(self.number_access(access), lives, columns, masks, NEVER, False)[0])
        self.tag[new] += _OPERATION
        self.operation[new] = operation
        return new

    def add_operations(
        self, access: Access, lives: Ints, columns: Ints, operations: Clock, lanes: Ints | None = None
    ) -> Ints:
        """Add records of several equal operations. `lanes` issued them, by default lane 0."""
        masks = np.ones(len(lives), np.int64) if lanes is None else np.int64(1) << lanes
        numbers = self.add_warps(self.number_access(access), lives, columns.astype(np.int32), masks, NEVER, False)
        self.tag[numbers] += _OPERATION
        self.operation[numbers] = operations
        return numbers

    def copy_records(self, sources: Ints, times: Clock) -> Ints:
        """Add copies of records with new times."""
        count, first = len(sources), self.count
        if first + count > len(self.time):
            self._grow(count)
        self.count = last = first + count
        for name in _COLUMNS:
            column = getattr(self, name)
            column[first:last] = column[sources]
        self.time[first:last] = times
        self.key[first:last] = np.where(self.key[sources] == NEVER, NEVER, times)
        return np.arange(first, last, dtype=np.int64)

    def add_barrier(self, access: Access, life: int, column: int, lane: int, now: int) -> int:
        """Add the record of an initialized mbarrier, which no floor covers."""
        lives, columns, masks = np.array([life]), np.array([column], np.int32), np.array([1 << lane], np.int64)
        new = int(self.add_warps(self.number_access(access, LIVE_BARRIER), lives, columns, masks, now, False)[0])
        self.tag[new] += _OPERATION
        return new

    def retire_barrier(self, record: int, now: int) -> None:
        """Turn the record of an mbarrier into an ordinary write, as `mbarrier.inval` does."""
        self.access[record] = self.number_access(self.accesses[int(self.access[record])])
        self.tag[record] -= _OPERATION
        self.time[record] = now

    def add_unfinished(self, access: Access, lives: Ints, columns: Ints, masks: Ints, operation: int) -> Ints:
        """Add a record per warp for accesses that an operation will make."""
        numbers = self.add_warps(self.number_access(access), lives, columns.astype(np.int32), masks, NEVER, False)
        self.tag[numbers] += _OPERATION
        self.operation[numbers] = operation
        return numbers

    def complete(self, numbers: Sequence[int] | Ints, now: int) -> None:
        """Complete operations: a thread that knows their channel up to now knows them."""
        if len(numbers):
            rows = np.asarray(numbers, np.int64)
            self.time[rows] = np.minimum(self.time[rows], now)

    def get_access(self, record: int) -> Access:
        """Return the access of a record."""
        return self.accesses[int(self.access[record])]
