"""Lanes that wait in barriers of a warp, a CTA or a cluster, and which continue when lanes arrive or exit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pyptx.check.body import Step
from pyptx.ir import ImmediateOperand, LabelOperand, RegisterOperand, opcode_span
from pyptx.ir.operands import Operand
from pyptx.isa.traits import Trait
from pyptx.sim import rules as hazards
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.execution.operands import Operands
from pyptx.sim.program.blocks import Block
from pyptx.sim.rules import faults
from pyptx.sim.scheduling.convergence import (
    are_whole_warps,
    find_complete,
    read_members,
    release_meetings,
    release_warps,
)
from pyptx.sim.scheduling.dependents import execute_guarded, execute_unguarded
from pyptx.sim.scheduling.state import State
from pyptx.sim.state.barriers import BARRIERS, Waiter

_WARP = 99


def may_pass(state: State, block: Block, lanes: Lanes) -> bool:
    """Tell whether all live lanes meet here at a plain `bar.sync`, so that none must wait."""
    if block.steps[-1].traits[Trait.MEETS] == "grid":
        return execute_unguarded(state, block, lanes)
    sink = state.sink
    if sink is not None and sink.detailed:
        return False
    number = state.plain_barriers.get(block.pc)
    if number is None:
        number = state.plain_barriers[block.pc] = _find_plain_barrier(block.steps[-1])
    step = block.steps[-1]
    if number == _WARP:
        if state.warps_waiting or not are_whole_warps(state, lanes):
            return False
        if sink is not None:
            sink.on_warp_barrier(step, lanes, read_members(state, step, block, lanes))
        return True
    if number < 0 or lanes.n != state.live or number in state.barriers.pending:
        return False
    if sink is not None:
        sink.on_barrier_arrive(step, lanes, number, None)
    return True


def wait(state: State, block: Block, depth: int, lanes: Lanes) -> None:
    threads = block.steps[-1].traits[Trait.MEETS]
    if threads == "grid":
        execute_guarded(state, block, depth, lanes)
    elif threads == "warp":
        state.warps_waiting.append(Waiter(lanes, block.pc + 1, depth, block.pc))
        release_warps(state)
    else:
        if state.sink is not None:
            state.sink.on_come(block, depth, lanes)
        (_wait_for_cluster if threads == "cluster" else _wait_for_cta_barrier)(state, block, depth, lanes)


def _wait_for_cluster(state: State, block: Block, depth: int, lanes: Lanes) -> None:
    if Trait.ARRIVES in block.steps[-1].traits:
        if state.sink is not None:
            state.sink.on_cluster_arrive(block.steps[-1], lanes, state.clusters.phase)
        state.clusters.arrive(lanes)
        state.push(depth, block.pc + 1, lanes)
    else:
        state.clusters.waiters.append(Waiter(lanes, block.pc + 1, depth, block.pc))
    release(state)


def _wait_for_cta_barrier(state: State, block: Block, depth: int, lanes: Lanes) -> None:
    step = block.steps[-1]
    operands = list(step.instruction.operands)
    predicate = None
    if Trait.REDUCES in step.traits:
        predicate = _read_predicate(state, operands.pop(), step, block, lanes)
        operands.pop(0)
    numbers = state.read_value(operands[0], step, block, lanes)
    counts = state.read_value(operands[1], step, block, lanes) if len(operands) > 1 else None
    distinct = np.unique(numbers).tolist()
    if len(distinct) > 1 and state.sink is not None:
        state.sink.on_barrier_numbers(step, lanes, numbers)
    for number in distinct:
        if number >= BARRIERS:
            text = f"{hazards.BARRIER_COUNT.title}: barrier {number}: a CTA has barriers 0 to {BARRIERS - 1}"
            place, help = opcode_span(step.instruction), hazards.REMEDIES[hazards.BARRIER_COUNT.code]
            raise faults.error(hazards.BARRIER_COUNT, place, text, help=help)
        selection = numbers == number
        count = None if counts is None else int(counts[selection][0])
        for arriving in _split_rounds(lanes, selection, count):
            if state.sink is not None:
                state.sink.on_barrier_arrive(step, arriving, number, count)
            votes = None if predicate is None else predicate[np.isin(lanes.index, arriving.index)]
            state.barriers.arrive(arriving, number, count, votes)
            if Trait.ARRIVES in step.traits:
                state.push(depth, block.pc + 1, arriving)
            else:
                state.barriers.waiters.setdefault(number, []).append(Waiter(arriving, block.pc + 1, depth, block.pc))
            _release_barrier(state, number)


def _split_rounds(lanes: Lanes, selection: Array, count: int | None) -> Iterator[Lanes]:
    """Yield the lanes that arrive together: warp by warp if they exceed one round of the barrier."""
    subset = lanes.subset(selection)
    assert subset is not None
    if count is None or int(np.bincount(subset.cta).max()) <= count:
        yield subset
        return
    warps = subset.shape.warp[subset.sel] // subset.shape.ctas
    for warp in np.unique(warps):
        part = subset.subset(warps == warp)
        assert part is not None
        yield part


def _read_predicate(state: State, operand: Operand, step: Step, block: Block, lanes: Lanes) -> Array:
    inner = getattr(operand, "operand", None)
    values = state.read_value(operand if inner is None else inner, step, block, lanes).astype(np.bool_)
    return values if inner is None else ~values


def release(state: State) -> None:
    for number in list(state.barriers.waiters):
        _release_barrier(state, number)
    for item, lanes in state.clusters.release():
        if state.sink is not None:
            state.sink.on_cluster_wait(state.blocks[item.block].steps[-1], lanes, state.clusters.phase)
        state.push(item.depth, item.pc, lanes)


def _release_barrier(state: State, number: int) -> None:
    releases, ctas, arrivals, votes = state.barriers.release(number)
    for item, lanes in releases:
        if state.sink is not None:
            state.sink.on_barrier_wait(state.blocks[item.block].steps[-1], lanes, number)
        _reduce(state, state.blocks[item.block], lanes, arrivals, votes)
        state.push(item.depth, item.pc, lanes)
    if state.sink is not None and len(ctas):
        state.sink.on_barrier_complete(number, ctas)


def _reduce(state: State, block: Block, lanes: Lanes, arrivals: Array, votes: Array) -> None:
    """Write the result of a reducing barrier."""
    instruction = block.steps[-1].instruction
    if Trait.REDUCES not in block.steps[-1].traits:
        return
    target = instruction.operands[0]
    assert isinstance(target, RegisterOperand | LabelOperand)
    row = Operands(state.program, block).find_row(target.name, block.steps[-1].scope)
    if row is None:
        return
    count = votes[lanes.cta]
    # The register of `.or` is a predicate, which any count but 0 sets.
    result = count == arrivals[lanes.cta] if ".and" in instruction.modifiers else count
    state.machine.registers[row.letter][row.index][lanes.sel] = result


def retry(state: State) -> bool:
    """Recheck lanes that wait for others of their warp, some of which may have exited."""
    for pc, items in list(state.converging.items()):
        for item in items:
            block = state.blocks[pc]
            mask = read_members(state, block.steps[0], block, item.lanes)
            if find_complete(state, block, item.lanes, mask).any():
                del state.converging[pc]
                for waiter in items:
                    state.push(waiter.depth, pc, waiter.lanes)
                return True
    release_meetings(state)
    if state.warps_waiting:
        release_warps(state)
    release(state)
    return bool(state.ready)


def _find_plain_barrier(step: Step) -> int:
    """Return the number of a barrier that waits for the whole CTA without guard or reduction, `_WARP` for one of the
    warp, else -1."""
    instruction = step.instruction
    if step.traits[Trait.MEETS] == "warp":
        return _WARP if instruction.predicate is None else -1
    first = instruction.operands[0] if instruction.operands else None
    plain = instruction.predicate is None and step.traits.keys().isdisjoint((Trait.ARRIVES, Trait.REDUCES))
    if not plain or len(instruction.operands) != 1 or not isinstance(first, ImmediateOperand):
        return -1
    return int(first.value)
