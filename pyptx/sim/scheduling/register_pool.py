"""The registers that a CTA's warps exchange by `setmaxnreg` (manual: setmaxnreg): an increase waits until decreases
have released enough. If no directive fixes the count at entry, no warp waits."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyptx.ir import ImmediateOperand
from pyptx.isa.limits import REGISTER_UNIT, entry_registers
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.program.blocks import Block, Program
from pyptx.sim.scheduling.state import State
from pyptx.sim.state.barriers import Waiter
from pyptx.sim.state.register_pool import RegisterPool

_MOST = 256


def count_entry_registers(program: Program) -> int | None:
    """Return the registers per thread at entry, None if the compiler chooses them."""
    count = entry_registers({directive.name: directive.values for directive in program.entry.function.directives})
    return None if count is None else min(-(-count // REGISTER_UNIT) * REGISTER_UNIT, _MOST)


def request_registers(state: State, block: Block, depth: int, lanes: Lanes) -> Lanes | None:
    """Account for a `setmaxnreg` and return the lanes that may continue; the others wait."""
    pool = state.registers
    if pool is None:
        entry = count_entry_registers(state.program)
        if entry is None:
            return lanes
        shape = state.shape
        pool = state.registers = RegisterPool(np.full(shape.warps * shape.ctas, entry), np.zeros(shape.ctas, np.int64))
        return_registers(state, np.flatnonzero(~state.alive))
    count = read_count(block)
    if ".inc" in block.steps[0].instruction.modifiers:
        pool.waiters.append(Waiter(lanes, block.pc + 1, depth, block.pc))
        grant_registers(state, pool)
        return None
    for warp in np.unique(state.shape.warp[lanes.sel]).tolist():
        pool.free[warp % state.shape.ctas] += max(0, int(pool.counts[warp]) - count) * 32
        pool.counts[warp] = min(count, int(pool.counts[warp]))
    grant_registers(state, pool)
    return lanes


def read_count(block: Block) -> int:
    """Return the registers per thread that a `setmaxnreg` requests."""
    (count,) = block.steps[0].instruction.operands
    assert isinstance(count, ImmediateOperand)
    return int(count.value)


def grant_registers(state: State, pool: RegisterPool) -> None:
    """Resume warps for which there are enough registers, in the order of their requests."""
    remaining: list[Waiter] = []
    for item in pool.waiters:
        count, ctas = read_count(state.blocks[item.block]), state.shape.ctas
        warps = state.shape.warp[item.lanes.sel]
        is_granted = np.zeros(item.lanes.n, np.bool_)
        for warp in np.unique(warps).tolist():
            need = max(0, count - int(pool.counts[warp])) * 32
            if need <= pool.free[warp % ctas]:
                pool.free[warp % ctas] -= need
                pool.counts[warp] = max(count, int(pool.counts[warp]))
                is_granted |= warps == warp
        free, stay = item.lanes.split(is_granted)
        if free is not None:
            state.push(item.depth, item.pc, free)
        if stay is not None:
            remaining.append(Waiter(stay, item.pc, item.depth, item.block))
    pool.waiters = remaining


def return_registers(state: State, exited: Any) -> None:
    """Release the registers of the warps of these lanes if all their lanes have exited."""
    pool, shape = state.registers, state.shape
    if pool is None:
        return
    for warp in np.unique(shape.warp[exited]).tolist():
        thread, cta = warp // shape.ctas * 32, warp % shape.ctas
        if not state.alive[thread * shape.ctas + cta : (thread + 32) * shape.ctas : shape.ctas].any():
            pool.free[cta] += int(pool.counts[warp]) * 32
    grant_registers(state, pool)
