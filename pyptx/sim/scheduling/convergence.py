"""Warp-wide instructions: which lanes have all members of their mask, and which wait (manual: .sync, bar.warp.sync,
wgmma)."""

from __future__ import annotations

import numpy as np

from pyptx.check.body import Step
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.execution.operands import Operands
from pyptx.sim.program.blocks import Block
from pyptx.sim.scheduling.absent_lanes import explain_divergence, may_be_incomplete, needs_all
from pyptx.sim.scheduling.state import State
from pyptx.sim.semantics.registry import find_operation
from pyptx.sim.state.barriers import Waiter
from pyptx.sim.state.meetings import Meeting, find_pending


def converge(state: State, block: Block, depth: int, lanes: Lanes) -> Lanes | None:
    """Return the lanes that may run a warp-wide instruction now; the others wait."""
    step = block.steps[0]
    if step.instruction.predicate is not None:
        running, remaining = lanes.split(state.read_guard(step, block, lanes))
        if remaining is not None:
            state.push(depth, block.pc + 1, remaining)
        if running is None:
            return None
        lanes = running
    earlier = state.converging.pop(block.pc, None)
    if earlier is not None:
        lanes = state.shape.merge([lanes, *(item.lanes for item in earlier)])
    if are_whole_warps(state, lanes, block.unit):
        unit = block.unit * state.shape.ctas
        is_whole = lanes.positions is None and not lanes.lo % unit and not lanes.hi % unit
        if is_whole or not (may_be_incomplete(state) and needs_all(block)):
            return lanes
    ready = find_complete(state, block, lanes, read_members(state, step, block, lanes))
    if state.machine.meetings:
        ready |= find_pending(state.machine, lanes)
    running, remaining = lanes.split(ready)
    if remaining is not None or block.unit == 32:
        # No lane of a complete warpgroup is absent or has exited.
        error = explain_divergence(state, block, depth, lanes)
        if error is not None:
            raise error
    if remaining is not None:
        state.converging[block.pc] = [Waiter(remaining, block.pc, depth, block.pc)]
        release_meetings(state)
    return running


def find_complete(state: State, block: Block, lanes: Lanes, mask: Array) -> Array:
    """Return the lanes whose members are all here and, if the instruction needs it, all of their warpgroup."""
    is_together = find_together(state, lanes, mask)
    return is_together if block.unit == 32 else is_together & _detect_warpgroups(state, lanes)


def release_meetings(state: State) -> None:
    """Release lanes that wait at several places for one another, as the manual allows: all members of their mask
    execute the same instruction with the same qualifiers and mask."""
    kinds: dict[tuple[str, ...], list[Waiter]] = {}
    for pc, items in state.converging.items() if len(state.converging) > 1 else ():
        kind = _classify(state.blocks[pc])
        if kind is not None:
            kinds.setdefault(kind, []).extend(items)
    for items in kinds.values():
        if len({item.block for item in items}) > 1:
            _match_members(state, items)


def _classify(block: Block) -> tuple[str, ...] | None:
    """Return what lanes at several places must have in common, None if all of them must reach one place."""
    step = block.steps[0]
    instruction, plan = step.instruction, step.plan
    if plan is None or ".sync" not in instruction.modifiers or ".aligned" in instruction.modifiers:
        return None
    return instruction.opcode, *sorted(instruction.modifiers)


def _match_members(state: State, items: list[Waiter]) -> None:
    shape, index = state.shape, np.concatenate([item.lanes.index for item in items])
    masks = np.concatenate(
        [read_members(state, state.blocks[item.block].steps[0], state.blocks[item.block], item.lanes) for item in items]
    )
    warp, lane = shape.warp[index], np.int64(1) << shape.lane[index].astype(np.int64)
    _, group_of_lane = np.unique(warp.astype(np.int64) << 32 | masks, return_inverse=True)
    present_bits = np.zeros(group_of_lane.max() + 1, np.int64)
    np.bitwise_or.at(present_bits, group_of_lane, lane)
    living = np.flatnonzero(state.alive)
    alive = _collect_bits(shape.warp[living], shape.lane[living], shape.warps * shape.ctas)
    free = (masks & alive[warp] & ~present_bits[group_of_lane]) == 0
    if not free.any():
        return
    order = np.argsort(index)
    operands = zip(*(_read_sources(state, state.blocks[item.block], item.lanes) for item in items), strict=True)
    values = [np.concatenate(parts)[order][free[order]] for parts in operands]
    together = shape.select_index(index[order][free[order]])
    plan = state.blocks[items[0].block].steps[0].plan
    assert plan is not None
    warp_operation = find_operation(plan.match, plan.signature)
    assert warp_operation is not None
    assert warp_operation.function is not None
    result = warp_operation.function(state.machine, together, *values)
    is_pending = np.zeros(shape.lanes, np.bool_)
    is_pending[together.sel] = True
    state.machine.meetings.append(Meeting(together, result, is_pending))
    for item in items:
        resuming, stay = item.lanes.split(is_pending[item.lanes.sel])
        remaining = [waiter for waiter in state.converging[item.block] if waiter is not item]
        if stay is not None:
            remaining.append(Waiter(stay, item.pc, item.depth, item.block))
        state.converging[item.block] = remaining
        if not remaining:
            del state.converging[item.block]
        if resuming is not None:
            state.push(item.depth, item.block, resuming)


def _read_sources(state: State, block: Block, lanes: Lanes) -> list[Array]:
    """Return the operands of a block's first instruction in every lane."""
    step, operands = block.steps[0], Operands(state.program, block)
    assert step.plan is not None
    values: list[Array] = []
    for signature_operand, operand in zip(step.plan.signature, step.instruction.operands, strict=True):
        if signature_operand.access == "r":
            expression = operands.read(operand, signature_operand.type or "b64", step.scope)
            values.append(np.broadcast_to(state.evaluate(operands, expression, lanes), lanes.n))
    return values


def _detect_warpgroups(state: State, lanes: Lanes) -> Array:
    """Tell which lanes are here with their whole warpgroup."""
    group = state.shape.thread[lanes.sel] // 128 * state.shape.ctas + state.shape.cta[lanes.sel]
    return np.bincount(group)[group] == 128


def are_whole_warps(state: State, lanes: Lanes, threads: int = 32) -> bool:
    """Tell quickly whether lanes are whole warps or warpgroups; the last warp of a CTA may have fewer lanes."""
    if threads == 32 and lanes.n == state.live:
        return True
    unit = threads * state.shape.ctas
    has_remainder = lanes.hi % unit and (threads > 32 or lanes.hi < state.shape.lanes)
    return lanes.positions is None and not lanes.lo % unit and not has_remainder


def read_members(state: State, step: Step, block: Block, lanes: Lanes) -> Array:
    """Return the member mask of a warp-wide instruction: all lanes if it has no operand for it."""
    plan = step.plan
    assert plan is not None
    for signature_operand, operand in zip(plan.signature, step.instruction.operands, strict=True):
        if signature_operand.name == "membermask":
            return state.read_value(operand, step, block, lanes).astype(np.uint32)
    return np.full(lanes.n, 0xFFFFFFFF, np.uint32)


def find_together(state: State, lanes: Lanes, mask: Array, among: Lanes | None = None) -> Array:
    """Return the lanes whose members are all here (among these or `among`) or have exited."""
    warps = state.shape.warps * state.shape.ctas
    candidates = lanes if among is None else among
    present_bits = _collect_bits(state.shape.warp[candidates.sel], state.shape.lane[candidates.sel], warps)
    living = np.flatnonzero(state.alive)
    alive = _collect_bits(state.shape.warp[living], state.shape.lane[living], warps)
    warp = state.shape.warp[lanes.sel]
    return (mask & alive[warp] & ~present_bits[warp]) == 0


def release_warps(state: State) -> None:
    """Release lanes whose members all wait in a `bar.warp.sync`, whichever one it is."""
    items = state.warps_waiting
    present = state.shape.merge([item.lanes for item in items])
    remaining: list[Waiter] = []
    releases: list[tuple[Step, Lanes, Array]] = []
    for item in items:
        block = state.blocks[item.block]
        mask = read_members(state, block.steps[-1], block, item.lanes)
        passing = find_together(state, item.lanes, mask, present)
        free, stay = item.lanes.split(passing)
        if free is not None:
            releases.append((block.steps[-1], free, mask[passing]))
            state.push(item.depth, item.pc, free)
        if stay is not None:
            remaining.append(Waiter(stay, item.pc, item.depth, item.block))
    state.warps_waiting = remaining
    if releases and state.sink is not None:
        state.sink.on_warp_barriers(releases)


def _collect_bits(warp: Array, lane: Array, warps: int) -> Array:
    """Return a mask of lanes for each warp."""
    return np.bincount(warp, weights=(1 << lane.astype(np.int64)).astype(np.float64), minlength=warps).astype(np.uint32)
