"""mbarrier objects of a batch of CTAs: pending arrivals, bytes under way, phases (manual: mbarrier).

An object is named by its place in the batch's shared memory. Which lanes wait for one is the scheduler's; here stands
which phases have ended since it last looked, and which lanes a `try_wait` refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyptx.sim.base.formats import Array
from pyptx.sim.state.sink import Sink

MOST = (1 << 20) - 1
"""The greatest count and the greatest number of bytes."""
MOST_REPORTING = 511
"""The greatest count of `.layout::v1`."""
_PENDING_BITS = 20
_ROWS = ("expected", "pending", "tx", "phase", "places", "good", "reporting", "reported", "reports")


class Misuse(Exception):
    """An operation that the object's state does not allow; the caller knows which thread did it."""

    def __init__(self, at: int, why: str) -> None:
        super().__init__(why)
        self.at, self.why = at, why


@dataclass(slots=True)
class Refused:
    """Lanes whose wait found its phase running, and the row of the barrier that each waits for."""

    lanes: Array
    rows: Array


class MBarriers:
    """The live objects. A row holds the count that every phase starts with, what the running one still waits for, and
    the number of phases that have ended; for copies that report on their bytes, whether one did so in the running phase
    and in the last one, and the number of phases that ended without a report (conditional phases)."""

    def __init__(self, size: int, sink: Sink[Any] | None = None) -> None:
        self._sink = sink
        self._row = np.full(max(1, size // 8), -1, np.int32)
        self._used = 0
        self.expected, self.pending, self.tx, self.phase = (np.zeros(64, np.int64) for _ in range(4))
        self.places, self.good = np.zeros(64, np.int64), np.zeros(64, np.int64)
        self.reporting, self.reported, self.reports = (np.zeros(64, np.bool_) for _ in range(3))
        self.completions: list[Array] = []
        self.refusal: Refused | None = None
        self.changes = 0
        self.doubt: Callable[[Any], Array | None] | None = None
        """Which lanes a `try_wait` refuses although their phase has ended, as hardware may: the schedule sets it."""
        self.history: dict[tuple[Any, int], tuple[Any, Array]] = {}
        """The lanes that executed an instruction last, by its site and the first of its places: reports tell it."""

    def reset(self) -> None:
        """Forget every object."""
        if self._used:
            self._row.fill(-1)
        self._used = self.changes = 0
        self.history.clear()
        self.completions, self.refusal = [], None

    def init(self, offsets: Array, counts: Array, reports: bool = False) -> None:
        """Make objects at these places of shared memory, in a phase that waits for so many arrivals; of the layout that
        takes reports, `.layout::v1`, or not."""
        limit = MOST_REPORTING if reports else MOST
        bad = np.flatnonzero((counts < 1) | (counts > limit))
        if len(bad):
            raise Misuse(int(bad[0]), f"a count of {int(counts[bad[0]])}; 1 to {limit} are possible")
        slots = offsets >> 3
        fresh = np.unique(slots[self._row[slots] < 0])
        while self._used + len(fresh) > len(self.expected):
            for name in _ROWS:
                setattr(self, name, np.concatenate([getattr(self, name), np.zeros_like(getattr(self, name))]))
        self._row[fresh] = np.arange(self._used, self._used + len(fresh))
        self._used += len(fresh)
        rows = self._row[slots]
        self.expected[rows] = self.pending[rows] = counts
        self.tx[rows] = self.phase[rows] = self.good[rows] = 0
        self.reporting[rows] = self.reported[rows] = False
        self.reports[rows] = reports
        self.places[rows] = offsets
        self.changes += 1
        if self._sink is not None:
            self._sink.on_mbarrier_init(rows)

    def inval(self, offsets: Array) -> None:
        """End the life of objects."""
        self.find_rows(offsets)
        self._row[offsets >> 3] = -1

    def find_rows(self, offsets: Array) -> Array:
        """Return the rows of live objects."""
        rows = self._row[offsets >> 3]
        if (rows < 0).any():
            raise Misuse(int(np.flatnonzero(rows < 0)[0]), "no mbarrier was initialized there")
        return rows

    def find_row(self, offset: int) -> int:
        """Return the row of the object at a place, -1 if there never was one."""
        return int(self._row[offset >> 3])

    def find_live(self, low: int, high: int) -> Array:
        """Return the rows of the live objects in a part of shared memory, in the order of their places."""
        rows = np.arange(self._used)
        places = self.places[rows]
        rows = rows[(places >= low) & (places < high) & (self._row[places >> 3] == rows)]
        return rows[np.argsort(self.places[rows])]

    def arrive(self, rows: Array, counts: Array, drop: bool = False) -> Array:
        """Arrive with a count in each lane and return the states before; with `drop`, leave later phases too."""
        if self._sink is not None:
            self._sink.on_mbarrier_arrive(rows, None)
        phase, pending = self.phase[rows], self.pending[rows]
        total = np.bincount(rows, weights=counts, minlength=self._used).astype(np.int64)
        if (total > self.pending[: self._used]).any():
            states = [self._arrive_one(at, int(row), int(counts[at]), drop) for at, row in enumerate(rows)]
            return np.array(states, np.uint64)
        if len(rows) > 1:
            order = np.argsort(rows, kind="stable")
            before = np.cumsum(counts[order]) - counts[order]
            start = np.searchsorted(rows[order], rows[order])
            pending[order] -= before - before[start]
        self.pending[: self._used] -= total
        if drop:
            self._drop(rows, counts)
        self._complete_phases(np.flatnonzero(total))
        return phase.astype(np.uint64) << np.uint64(_PENDING_BITS) | pending.astype(np.uint64)

    def _arrive_one(self, at: int, row: int, count: int, drop: bool) -> int:
        """Arrive in one lane, several of which end more than one phase together."""
        if count > self.pending[row]:
            text = f"{count} arrivals, the running phase waits for {self.pending[row]}"
            raise Misuse(at, text + (f" and {self.tx[row]} bytes" if self.tx[row] else ""))
        state = int(self.phase[row]) << _PENDING_BITS | int(self.pending[row])
        self.pending[row] -= count
        if drop:
            self._drop(np.array([row]), np.array([count]))
        self._complete_phases(np.array([row]))
        return state

    def _drop(self, rows: Array, counts: Array) -> None:
        np.subtract.at(self.expected, rows, counts)

    def transfer(self, rows: Array, amounts: Array) -> None:
        """Expect more bytes (positive) or take them as arrived (negative)."""
        if self._sink is not None:
            self._sink.on_mbarrier_arrive(rows, amounts)
        np.add.at(self.tx, rows, amounts)
        over = np.flatnonzero(np.abs(self.tx[rows]) > MOST)
        if len(over):
            raise Misuse(int(over[0]), f"{self.tx[rows[over[0]]]} bytes expected; at most {MOST} are possible")
        self._complete_phases(np.unique(rows))

    def report(self, rows: Array) -> None:
        """Note that a copy has found what it looked for in its bytes."""
        if not self.reports[rows].all():
            at = int(np.flatnonzero(~self.reports[rows])[0])
            raise Misuse(at, "a copy reports on its bytes, the mbarrier was not initialized with `.layout::v1`")
        self.reporting[rows] = True

    def add_pending(self, rows: Array) -> None:
        """Add one to what the running phase waits for."""
        np.add.at(self.pending, rows, 1)

    def _complete_phases(self, rows: Array) -> None:
        """Start the next phase where nothing is pending."""
        self.changes += 1
        complete_rows = rows[(self.pending[rows] == 0) & (self.tx[rows] == 0)]
        if len(complete_rows):
            self.phase[complete_rows] += 1
            self.good[complete_rows] += ~self.reporting[complete_rows]
            self.reported[complete_rows], self.reporting[complete_rows] = self.reporting[complete_rows], False
            self.pending[complete_rows] = self.expected[complete_rows]
            self.completions.append(complete_rows)
            if self._sink is not None:
                self._sink.on_mbarrier_phase(complete_rows, self.phase[complete_rows] - 1)

    def test_phases(self, rows: Array, tokens: Array, parity: bool, conditional: bool = False) -> Array:
        """Tell which lanes' phase has ended: the one of a state, or the last one with a parity, the operand's lowest
        bit: compilers pass -1 for an odd phase. Of conditional phases only those without a report count."""
        if conditional:
            is_complete = (self.good[rows] & 1) != (tokens & 1)
        elif parity:
            is_complete = (self.phase[rows] & 1) != (tokens & 1)
        else:
            is_complete = (self.phase[rows] & 0xFFFFFFFFFFF) != (tokens >> np.uint64(_PENDING_BITS)).astype(np.int64)
        if self._sink is not None:
            self._sink.on_mbarrier_test(rows, tokens, parity, is_complete)
        return is_complete


def extract_pending_count(states: Array) -> Array:
    """Return the arrivals that a state says were pending."""
    return (states & np.uint64(MOST)).astype(np.uint32)
