"""`griddepcontrol`: lanes that let the next grid of a stream start, and lanes that wait for the previous grid (manual:
griddepcontrol). A grid that runs alone has neither."""

from __future__ import annotations

import numpy as np

from pyptx.check.body import Step
from pyptx.isa.traits import Trait
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.program.blocks import Block
from pyptx.sim.scheduling.state import State
from pyptx.sim.state.barriers import Waiter


def execute_unguarded(state: State, block: Block, lanes: Lanes) -> bool:
    """Execute a `griddepcontrol` without a guard; return False if its lanes must wait or other grids should run."""
    step, flight = block.steps[-1], state.machine.flight
    if step.instruction.predicate is not None:
        return False
    if not _is_wait(step):
        return flight is None
    if flight is not None and not flight.is_free:
        return False
    if state.sink is not None:
        state.sink.on_grid_wait(lanes)
    return True


def execute_guarded(state: State, block: Block, depth: int, lanes: Lanes) -> None:
    """Execute a `griddepcontrol` in the lanes whose guard is true."""
    step, flight = block.steps[-1], state.machine.flight
    if not _is_wait(step):
        _trigger_dependents(state, lanes)
    elif flight is not None and not flight.is_free:
        flight.waiters.append(Waiter(lanes, block.pc + 1, depth, block.pc))
        return
    elif state.sink is not None:
        state.sink.on_grid_wait(lanes)
    state.push(depth, block.pc + 1, lanes)


def resume_waiting(state: State) -> bool:
    """Resume the lanes that waited for the previous grid, which has completed and whose memory is visible. Tell whether
    there were any."""
    flight = state.machine.flight
    if flight is None or not flight.waiters:
        return False
    waiters, flight.waiters = flight.waiters, []
    for item in waiters:
        if state.sink is not None:
            state.sink.on_grid_wait(item.lanes)
        state.push(item.depth, item.pc, item.lanes)
    return True


def _is_wait(step: Step) -> bool:
    return Trait.ARRIVES not in step.traits


def _trigger_dependents(state: State, lanes: Lanes) -> None:
    """Record that CTAs let dependents start. Only the first thread of a CTA counts."""
    flight = state.machine.flight
    if flight is None:
        return
    numbers = state.machine.numbers[np.unique(lanes.cta)].tolist()
    first = [number not in flight.trigger_ctas for number in numbers]
    if state.sink is not None and any(first):
        state.sink.on_grid_launch(lanes, first)
    flight.trigger_ctas.update(numbers)
