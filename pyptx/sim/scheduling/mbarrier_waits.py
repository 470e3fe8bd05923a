"""Lanes that wait for mbarriers: which are refused, which test again, and when waits time out."""

from __future__ import annotations

import numpy as np

from pyptx.isa.traits import Trait
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.program.blocks import Block
from pyptx.sim.scheduling.column_waits import resume_allocated
from pyptx.sim.scheduling.register_pool import request_registers
from pyptx.sim.scheduling.state import State, Suspended
from pyptx.sim.state.barriers import Waiter

_TIMEOUTS = 64
"""How often waits for mbarriers may time out without any change before the run is a deadlock."""


def suspend(state: State, block: Block, depth: int, lanes: Lanes) -> Lanes | None:
    """Suspend the lanes that an mbarrier refused, or that need more registers or tensor memory columns than are free;
    return the others."""
    barriers = state.machine.memory.mbarriers
    refused = barriers.refusal
    awaited = block.steps[0].traits[Trait.SUSPENDS]
    if awaited == "registers":
        return request_registers(state, block, depth, lanes)
    if awaited == "columns":
        return resume_allocated(state, block, depth, lanes)
    if refused is None:
        return lanes
    barriers.refusal = None
    waiting = state.shape.select_index(refused.lanes)
    state.suspended.append(Suspended(Waiter(waiting, block.pc, depth, block.pc), refused.rows))
    return lanes.subset(~np.isin(lanes.index, refused.lanes)) if waiting.n < lanes.n else None


def resume(state: State) -> None:
    """Let lanes test again the mbarriers whose phase has completed."""
    barriers = state.machine.memory.mbarriers
    if not barriers.completions:
        return
    turned, barriers.completions = np.concatenate(barriers.completions), []
    kept: list[Suspended] = []
    for item in state.suspended:
        waiting = item.waiting
        wakes = np.isin(item.rows, turned)
        if not wakes.any():
            kept.append(item)
            continue
        woken, rest = waiting.lanes.split(wakes)
        if woken is not None:
            state.push(waiting.depth, waiting.pc, woken)
        if rest is not None:
            kept.append(Suspended(Waiter(rest, waiting.pc, waiting.depth, waiting.at), item.rows[~wakes]))
    state.suspended = kept


def land_late(state: State) -> bool:
    """Let engines complete what lanes wait for, or else their oldest work; tell whether there was any."""
    effects, barriers = state.machine.effects, state.machine.memory.mbarriers
    if not effects.pending:
        return False
    if state.suspended:
        awaited = np.zeros(len(barriers.phase), np.bool_)
        for item in state.suspended:
            awaited[item.rows] = True
        if effects.land_awaited(awaited):
            return True
    return effects.land_oldest()


def time_out(state: State) -> bool:
    """Resume lanes that wait for mbarriers with a refusal, as hardware does after a while; return False if repeated
    timeouts changed nothing."""
    changes = state.machine.memory.mbarriers.changes
    count = state.timeouts[1] + 1 if state.timeouts[0] == changes else 1
    state.timeouts = (changes, count)
    if not state.suspended or count > _TIMEOUTS:
        return False
    for item in state.suspended:
        state.push(item.waiting.depth, item.waiting.pc + 1, item.waiting.lanes)
    state.suspended = []
    return True
