"""Accesses of a dependent grid to global memory before `griddepcontrol.wait`: the previous grid, which is not part of
the run, may still read or write it."""

from __future__ import annotations

import numpy as np

from pyptx.sim import rules
from pyptx.sim.base.events import Ints, Place, Space
from pyptx.sim.hazards.clocks import PRIOR, SEEN
from pyptx.sim.hazards.state import Grid, State


class Early:
    """The global accesses of a dependent grid that runs alone."""

    def __init__(self, state: State, grid: Grid) -> None:
        self._state, self._grid = state, grid

    def access(self, place: Place, threads: Ints, addresses: Ints, size: int, *, writes: bool) -> None:
        """Report accesses to global memory, one address per thread, that no wait precedes. Threads may repeat."""
        clocks = self._state.clocks
        has_waited = clocks.table[clocks.row_of[threads], SEEN, PRIOR] > self._grid.prior
        early = np.flatnonzero(np.broadcast_to(~has_waited, addresses.shape))
        if len(early):
            thread = int(threads[early[0]] if len(threads) > 1 else threads[0])
            location = self._state.describe_bytes(Space.GLOBAL, self._grid, int(addresses[early[0]]), size)
            detail = f"{'writes' if writes else 'reads'} {location}"
            self._state.report(rules.BEFORE_WAIT, place, detail, thread=thread, where=location, count=len(early))
