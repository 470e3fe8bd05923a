"""Asynchronous operations on shared memory that some thread of their CTA may not know yet.

Once all threads know all of them, accesses by lanes need no comparison with them.
"""

from __future__ import annotations

import numpy as np

from pyptx.sim.base.events import Family, Ints, Mask, Space
from pyptx.sim.hazards.clocks import NEVER, SEEN
from pyptx.sim.hazards.records import LIVE_BARRIER, READONLY
from pyptx.sim.hazards.shadow import Plane
from pyptx.sim.hazards.state import Grid, State

_MOST = 1 << 12
"""Stop checking when more operations than this are unknown."""


class Pending:
    """The pending operations of one grid without clusters."""

    def __init__(self, state: State, grid: Grid) -> None:
        self.state, self.grid = state, grid
        self._operations = np.zeros(0, np.int64)
        self._next_record = 1
        self._failed = (-1, -1)
        self._over = False

    def clear(self, plane: Plane) -> bool:
        """Tell whether all threads know all operations that accessed a plane, and clear its `odd` mark if so. A plane
        with mbarriers is never clear."""
        clocks = self.state.clocks
        if plane.barriers or self._over or clocks.splits or self._failed == (clocks.now, clocks.version):
            return False
        self._gather()
        if len(self._operations):
            self._operations = self._operations[~self._test_known(self._operations)]
        if len(self._operations):
            self._failed = clocks.now, clocks.version
            self._over = len(self._operations) > _MOST
            return False
        plane.odd = False
        return True

    def _gather(self) -> None:
        """Add the operations since the last call, and forget those of ended CTAs, whose bytes are cleared."""
        records, clocks, grid = self.state.records, self.state.clocks, self.grid
        pending = np.flatnonzero(records.key[self._next_record : records.count] == NEVER) + self._next_record
        self._next_record = records.count
        if len(pending):
            numbers = records.access[pending]
            kinds: list[int] = np.unique(numbers).tolist()
            shared = [number for number in kinds if records.accesses[number].space is Space.SHARED]
            pending = pending[np.isin(numbers, shared) & (records.get_flags(pending) & LIVE_BARRIER == 0)]
        operations = np.concatenate([self._operations, pending])
        lives = records.tag[operations] >> 7
        slots = (records.life_warp[lives].astype(np.int64) * 32 - grid.first_thread) // grid.stride
        alive = (slots >= 0) & (slots < grid.slots) & (clocks.life_of[records.life_warp[lives]] == lives)
        self._operations = operations[alive]

    def _test_known(self, operations: Ints) -> Mask:
        """Tell which operations are known to all threads of their CTAs."""
        records, clocks, grid = self.state.records, self.state.clocks, self.grid
        slots = (records.get_warps(operations).astype(np.int64) * 32 - grid.first_thread) // grid.stride
        warps = (grid.first_thread + slots * grid.stride >> 5)[:, None] + np.arange(grid.stride >> 5)
        has_ended = np.bitwise_and.reduce(clocks.row_of.reshape(-1, 32)[warps] < 0, axis=2)
        knows = (records.operation[operations] != 0) & (records.get_flags(operations) & READONLY == 0)
        by_lanes = records.get_families(operations) == Family.CP_ASYNC
        for selection, lanes in ((~by_lanes, np.zeros(1, np.int64)), (by_lanes, np.arange(32))):
            indices = np.flatnonzero(knows & selection)
            if len(indices):
                columns = records.column[operations[indices]].astype(np.int64)[:, None, None] + lanes
                times = clocks.table[clocks.base_row[warps[indices]][:, :, None], SEEN, columns]
                good = (times >= records.time[operations[indices]][:, None, None]) | has_ended[indices][:, :, None]
                if len(lanes) > 1:
                    good |= (records.mask[operations[indices]][:, None, None] >> lanes) & 1 == 0
                knows[indices] = np.logical_and.reduce(good.reshape(len(indices), -1), axis=1)
        return knows
