"""mbarrier objects of a batch of CTAs: pending counts, tx-counts, phases (manual: mbarrier).

An object is identified by its offset in the batch's shared memory. The scheduler knows which lanes wait; this module
records the phases that completed since the scheduler last looked, and the lanes whose `try_wait` returned false.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.state.sink import Sink

MOST = (1 << 20) - 1
"""The largest arrival count and the largest tx-count."""
MOST_REPORTING = 511
"""The largest arrival count of `.layout::v1`."""
_PENDING_BITS = 20
Refuse = Callable[[Lanes], Array | None]
"""Returns the lanes whose `try_wait` returns false although their phase has completed, as hardware may."""
_ROWS = ("expected", "pending", "tx", "announced", "phase", "places", "good", "reporting", "reported", "reports")


class Misuse(Exception):
    """An operation that the object's state does not allow, by the lane at position `lane`; callers name the thread."""

    def __init__(self, lane: int, why: str) -> None:
        super().__init__(why)
        self.lane, self.why = lane, why


@dataclass(slots=True)
class Refused:
    """Lanes whose phase had not completed when they tested it, and the row of the mbarrier that each waits for."""

    lanes: Array
    rows: Array


class MBarriers:
    """The mbarrier objects, one row each: the expected arrival count of a phase, the pending count and tx-count of the
    current phase, the bytes that it was told to expect, and the number of completed phases. For copies that report on
    their bytes, a row also records whether one reported in the current phase and in the previous one, and the number of
    phases that completed without a report (conditional phases)."""

    def __init__(self, size: int, sink: Sink[Any] | None) -> None:
        self._sink = sink
        self._row = np.full(max(1, size // 8), -1, np.int32)
        self._used = 0
        self.expected, self.pending, self.tx, self.announced, self.phase = (np.zeros(64, np.int64) for _ in range(5))
        self.places, self.good = np.zeros(64, np.int64), np.zeros(64, np.int64)
        self.reporting, self.reported, self.reports = (np.zeros(64, np.bool_) for _ in range(3))
        self.completions: list[Array] = []
        self.refusal: Refused | None = None
        self.changes = 0
        self.refuse: Refuse | None = None
        self.history: dict[tuple[Any, int], tuple[Any, Array]] = {}
        """The lanes that last executed an instruction, by its site and its first mbarrier's offset; used in reports."""

    def begin(self, refuse: Refuse | None) -> None:
        """Begin a batch, without objects."""
        self.refuse = refuse
        if self._used:
            self._row.fill(-1)
        self._used = self.changes = 0
        self.history.clear()
        self.completions, self.refusal = [], None

    def init(self, offsets: Array, counts: Array, reports: bool = False) -> None:
        """Initialize objects at these offsets in shared memory with these arrival counts. With `reports`, they have
        `.layout::v1`, which copies can report to."""
        limit = MOST_REPORTING if reports else MOST
        bad = np.flatnonzero((counts < 1) | (counts > limit))
        if len(bad):
            raise Misuse(int(bad[0]), f"a count of {int(counts[bad[0]])}; it must be 1 to {limit}")
        slots = offsets >> 3
        fresh = np.unique(slots[self._row[slots] < 0])
        while self._used + len(fresh) > len(self.expected):
            for name in _ROWS:
                setattr(self, name, np.concatenate([getattr(self, name), np.zeros_like(getattr(self, name))]))
        self._row[fresh] = np.arange(self._used, self._used + len(fresh))
        self._used += len(fresh)
        rows = self._row[slots]
        self.expected[rows] = self.pending[rows] = counts
        self.tx[rows] = self.announced[rows] = self.phase[rows] = self.good[rows] = 0
        self.reporting[rows] = self.reported[rows] = False
        self.reports[rows] = reports
        self.places[rows] = offsets
        self.changes += 1
        if self._sink is not None:
            self._sink.on_mbarrier_init(rows)

    def inval(self, offsets: Array) -> None:
        """Invalidate objects."""
        self.find_rows(offsets)
        self._row[offsets >> 3] = -1

    def find_rows(self, offsets: Array) -> Array:
        """Return the rows of live objects."""
        rows = self._row[offsets >> 3]
        if (rows < 0).any():
            raise Misuse(int(np.flatnonzero(rows < 0)[0]), "no mbarrier was initialized there")
        return rows

    def find_row(self, offset: int) -> int:
        """Return the row of the live object at an offset, -1 if there is none."""
        return int(self._row[offset >> 3])

    def find_live(self, low: int, high: int) -> Array:
        """Return the rows of the live objects in a range of shared memory, in the order of their offsets."""
        rows = np.arange(self._used)
        places = self.places[rows]
        rows = rows[(places >= low) & (places < high) & (self._row[places >> 3] == rows)]
        return rows[np.argsort(self.places[rows])]

    def arrive(self, rows: Array, counts: Array, drop: bool = False) -> Array:
        """Arrive with a count in each lane and return the previous states; with `drop`, also lower the expected count
        of later phases."""
        if self._sink is not None:
            self._sink.on_mbarrier_arrive(rows, None)
        phase, pending = self.phase[rows], self.pending[rows]
        total = np.bincount(rows, weights=counts, minlength=self._used).astype(np.int64)
        if (total > self.pending[: self._used]).any() or not counts.all():
            states = [self._arrive_one(lane, int(row), int(counts[lane]), drop) for lane, row in enumerate(rows)]
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

    def _arrive_one(self, lane: int, row: int, count: int, drop: bool) -> int:
        """Arrive in one lane; used when a lane may arrive after another has completed the phase."""
        if count > self.pending[row]:
            text = f"{count} arrivals, but the current phase waits for only {self.pending[row]}"
            raise Misuse(lane, text + (f" and {self.tx[row]} bytes" if self.tx[row] else ""))
        state = int(self.phase[row]) << _PENDING_BITS | int(self.pending[row])
        self.pending[row] -= count
        if drop:
            self._drop(np.array([row]), np.array([count]))
        self._complete_phases(np.array([row]))
        return state

    def _drop(self, rows: Array, counts: Array) -> None:
        np.subtract.at(self.expected, rows, counts)

    def transfer(self, rows: Array, amounts: Array) -> None:
        """Add to the tx-count: positive amounts are expected bytes, negative ones have arrived."""
        if self._sink is not None:
            self._sink.on_mbarrier_arrive(rows, amounts)
        np.add.at(self.tx, rows, amounts)
        np.add.at(self.announced, rows, np.maximum(amounts, 0))
        over = np.flatnonzero(np.abs(self.tx[rows]) > MOST)
        if len(over):
            raise Misuse(int(over[0]), f"a tx-count of {self.tx[rows[over[0]]]}; it must be at most {MOST}")
        self._complete_phases(np.unique(rows))

    def report(self, rows: Array) -> None:
        """Record that a copy has reported on its bytes in the current phase."""
        if not self.reports[rows].all():
            lane = int(np.flatnonzero(~self.reports[rows])[0])
            raise Misuse(lane, "a copy reports on its bytes, but the mbarrier was not initialized with `.layout::v1`")
        self.reporting[rows] = True

    def add_pending(self, rows: Array) -> None:
        """Add one to the pending count of the current phase."""
        np.add.at(self.pending, rows, 1)

    def _complete_phases(self, rows: Array) -> None:
        """Complete the phases whose pending count and tx-count are zero."""
        self.changes += 1
        complete_rows = rows[(self.pending[rows] == 0) & (self.tx[rows] == 0)]
        if len(complete_rows):
            self.phase[complete_rows] += 1
            self.good[complete_rows] += ~self.reporting[complete_rows]
            self.reported[complete_rows], self.reporting[complete_rows] = self.reporting[complete_rows], False
            self.pending[complete_rows] = self.expected[complete_rows]
            self.announced[complete_rows] = 0
            self.completions.append(complete_rows)
            if self._sink is not None:
                self._sink.on_mbarrier_phase(complete_rows, self.phase[complete_rows] - 1)

    def test_phases(self, rows: Array, tokens: Array, parity: bool, conditional: bool) -> Array:
        """Return which lanes' phase has completed: the phase of a state, or with `parity` the latest phase of that
        parity, the operand's lowest bit (compilers pass -1 for an odd phase). With `conditional`, count only phases
        without a report."""
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
    """Return the pending counts in these states (manual: mbarrier.pending_count)."""
    return (states & np.uint64(MOST)).astype(np.uint32)
