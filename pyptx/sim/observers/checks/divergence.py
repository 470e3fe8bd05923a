"""Aligned barriers and instructions that part of a warp never reaches, reported where the other lanes reach them."""

from __future__ import annotations

import numpy as np

from pyptx.isa.traits import Trait
from pyptx.sim.base.events import Place
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.observers.checks.session import Session
from pyptx.sim.program.blocks import Block
from pyptx.sim.reports.findings import Finding
from pyptx.sim.scheduling.absent_lanes import Part, find_absent, make_finding
from pyptx.sim.scheduling.state import State


class Divergence:
    """The lanes of one batch that reached aligned instructions without the rest of their warps."""

    def __init__(self, checks: Session, state: State) -> None:
        self._checks, self._state = checks, state
        self._arrivals: dict[int | Place, Array] = {}
        """The lanes that have reached an aligned instruction in this round, by a barrier's block or the instruction's
        place."""

    def check_barrier(self, block: Block, depth: int, lanes: Lanes) -> None:
        """Report lanes at an aligned barrier that the rest of their warps cannot reach."""
        checks, state, step = self._checks, self._state, block.steps[-1]
        if Trait.ALIGNED not in step.traits or (
            block.pc not in self._arrivals and checks.find_incomplete(checks.group_lanes(lanes)) is None
        ):
            return
        for part in find_absent(state, block, depth, self._gather_arrivals(block.pc, lanes)):
            # Lanes with a false guard have been reported already.
            if part.place is not None:
                checks.engine.findings.add(make_finding(state, checks.find_place(step), lanes, part))
                checks.divergent_warps |= set(checks.group_lanes(state.shape.select_index(part.index)).warps.tolist())

    def check_waiting(self) -> None:
        """Report lanes that wait at barriers although nothing can run."""
        for pc, arrivals in [*self._arrivals.items()]:
            if isinstance(pc, int):
                self.check_barrier(self._state.blocks[pc], 0, self._state.shape.select_index(np.flatnonzero(arrivals)))

    def explain(self, place: Place, lanes: Lanes) -> list[Finding]:
        """Return the findings of an aligned instruction inside a block, in some of its lanes."""
        state = self._state
        assert state.running is not None
        block, running = state.running
        parts = find_absent(state, block, state.depth, self._gather_arrivals(place, lanes))
        missing = np.setdiff1d(running.index, np.concatenate([lanes.index, *(part.index for part in parts)]))
        missing = missing[np.isin(state.shape.warp[missing], state.shape.warp[lanes.sel])]
        parts += [Part(missing, None)] if len(missing) else []
        return [make_finding(state, place, lanes, part) for part in parts]

    def _gather_arrivals(self, key: int | Place, lanes: Lanes) -> Lanes:
        """Return lanes at an instruction, with those of their warps that reached it earlier in this round."""
        state, shape = self._state, self._state.shape
        arrivals = self._arrivals.setdefault(key, np.zeros(shape.lanes, np.bool_))
        arrivals[lanes.sel] = True
        present = shape.select_index(np.flatnonzero(arrivals & np.isin(shape.warp, shape.warp[lanes.sel])))
        arrivals &= np.isin(shape.warp, shape.warp[state.alive & ~arrivals])
        if not arrivals.any():
            del self._arrivals[key]
        return present
