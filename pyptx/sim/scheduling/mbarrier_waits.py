"""Lanes that wait for mbarriers: which must wait, which test again, and when waits time out."""

from __future__ import annotations

import numpy as np

from pyptx.isa.traits import Trait
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.program.blocks import Block
from pyptx.sim.scheduling.column_waits import resume_allocated
from pyptx.sim.scheduling.register_pool import request_registers
from pyptx.sim.scheduling.state import MBarrierWait, State
from pyptx.sim.state.barriers import Waiter

_TIMEOUTS = 64
"""How often waits for mbarriers may time out without any change before the run is a deadlock."""


def suspend(state: State, block: Block, depth: int, lanes: Lanes) -> Lanes | None:
    """Suspend the lanes whose phase has not completed, or that need more registers or tensor memory columns than are
    free; return the others."""
    barriers = state.machine.memory.mbarriers
    refusal = barriers.refusal
    event = block.steps[0].traits[Trait.SUSPENDS]
    if event == "registers":
        return request_registers(state, block, depth, lanes)
    if event == "columns":
        return resume_allocated(state, block, depth, lanes)
    if refusal is None:
        return lanes
    barriers.refusal = None
    waiters = state.shape.select_index(refusal.lanes)
    state.mbarrier_waits.append(MBarrierWait(Waiter(waiters, block.pc, depth, block.pc), refusal.rows))
    return lanes.subset(~np.isin(lanes.index, refusal.lanes)) if waiters.n < lanes.n else None


def resume(state: State) -> None:
    """Let lanes test again the mbarriers whose phase has completed."""
    barriers = state.machine.memory.mbarriers
    if not barriers.completions:
        return
    rows, barriers.completions = np.concatenate(barriers.completions), []
    remaining: list[MBarrierWait] = []
    for item in state.mbarrier_waits:
        waiter = item.waiter
        is_waking = np.isin(item.rows, rows)
        if not is_waking.any():
            remaining.append(item)
            continue
        waking, staying = waiter.lanes.split(is_waking)
        if waking is not None:
            state.push(waiter.depth, waiter.pc, waking)
        if staying is not None:
            remaining.append(
                MBarrierWait(Waiter(staying, waiter.pc, waiter.depth, waiter.block), item.rows[~is_waking])
            )
    state.mbarrier_waits = remaining


def land_late(state: State) -> bool:
    """Let engines complete the work that lanes wait for, or else their oldest; tell whether there was any."""
    effects, barriers = state.machine.effects, state.machine.memory.mbarriers
    if not effects.pending:
        return False
    if state.mbarrier_waits:
        is_awaited = np.zeros(len(barriers.phase), np.bool_)
        for item in state.mbarrier_waits:
            is_awaited[item.rows] = True
        if effects.land_awaited(is_awaited):
            return True
    return effects.land_oldest()


def time_out(state: State) -> bool:
    """Resume lanes that wait for mbarriers as after a timeout: their `try_wait` returns false. Return False if repeated
    timeouts changed nothing."""
    changes = state.machine.memory.mbarriers.changes
    count = state.timeouts[1] + 1 if state.timeouts[0] == changes else 1
    state.timeouts = (changes, count)
    if not state.mbarrier_waits or count > _TIMEOUTS:
        return False
    for item in state.mbarrier_waits:
        state.push(item.waiter.depth, item.waiter.pc + 1, item.waiter.lanes)
    state.mbarrier_waits = []
    return True
