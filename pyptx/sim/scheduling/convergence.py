"""Warp-wide instructions: which lanes have all members of their mask, and which wait (manual: .sync, bar.warp.sync,
wgmma)."""

from __future__ import annotations

import numpy as np

from pyptx.check.body import Step
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.execution.operands import Operands
from pyptx.sim.program.blocks import Block
from pyptx.sim.scheduling.apart import explain_divergence, may_be_incomplete, needs_all
from pyptx.sim.scheduling.state import State
from pyptx.sim.semantics.registry import operation
from pyptx.sim.state.barriers import Waiter
from pyptx.sim.state.meetings import Meeting, find_pending


def converge(state: State, block: Block, depth: int, lanes: Lanes) -> Lanes | None:
    """Return the lanes that may run a warp-wide instruction now; the others wait."""
    step = block.steps[0]
    if step.instruction.predicate is not None:
        chosen, others = lanes.split(state.read_guard(step, block, lanes))
        if others is not None:
            state.push(depth, block.pc + 1, others)
        if chosen is None:
            return None
        lanes = chosen
    before = state.converging.pop(block.pc, None)
    if before is not None:
        lanes = state.shape.merge([lanes, *(item.lanes for item in before)])
    if are_whole_warps(state, lanes, block.unit):
        unit = block.unit * state.shape.ctas
        here = lanes.positions is None and not lanes.lo % unit and not lanes.hi % unit
        if here or not (may_be_incomplete(state) and needs_all(block)):
            return lanes
    mask = read_members(state, step, block, lanes)
    if mask is None:
        return lanes
    ready = complete(state, block, lanes, mask)
    if state.machine.meetings:
        ready |= find_pending(state.machine, lanes)
    chosen, others = lanes.split(ready)
    if others is not None or block.unit == 32:
        # No lane of a complete warpgroup is absent or has exited.
        wrong = explain_divergence(state, block, depth, lanes)
        if wrong is not None:
            raise wrong
    if others is not None:
        state.converging[block.pc] = [Waiter(others, block.pc, depth, block.pc)]
        meet(state)
    return chosen


def complete(state: State, block: Block, lanes: Lanes, mask: Array) -> Array:
    """Return the lanes whose members are all here and, if the instruction needs it, all of their warpgroup."""
    here = find_together(state, lanes, mask)
    return here if block.unit == 32 else here & _detect_warpgroups(state, lanes)


def meet(state: State) -> bool:
    """Release lanes that wait at several places in the same instruction, as the manual allows: all members of their
    mask execute it with the same qualifiers and mask. Tell whether there were any."""
    kinds: dict[tuple[str, ...], list[Waiter]] = {}
    for pc, items in state.converging.items() if len(state.converging) > 1 else ():
        kind = _classify(state.blocks[pc])
        if kind is not None:
            kinds.setdefault(kind, []).extend(items)
    any_met = False
    for items in kinds.values():
        if len({item.at for item in items}) > 1:
            any_met |= _match_members(state, items)
    return any_met


def _classify(block: Block) -> tuple[str, ...] | None:
    """Return what lanes at several places must have in common, None if all of them must reach one place."""
    step = block.steps[0]
    instruction, plan = step.instruction, step.plan
    if plan is None or ".sync" not in instruction.modifiers or ".aligned" in instruction.modifiers:
        return None
    return instruction.opcode, *sorted(instruction.modifiers)


def _match_members(state: State, items: list[Waiter]) -> bool:
    shape, index = state.shape, np.concatenate([item.lanes.index for item in items])
    each = [read_members(state, state.blocks[item.at].steps[0], state.blocks[item.at], item.lanes) for item in items]
    masks = np.concatenate([mask for mask in each if mask is not None])
    warp, lane = shape.warp[index], np.int64(1) << shape.lane[index].astype(np.int64)
    _, which = np.unique(warp.astype(np.int64) << 32 | masks, return_inverse=True)
    here = np.zeros(which.max() + 1, np.int64)
    np.bitwise_or.at(here, which, lane)
    living = np.flatnonzero(state.alive)
    alive = _collect_bits(shape.warp[living], shape.lane[living], shape.warps * shape.ctas)
    free = (masks & alive[warp] & ~here[which]) == 0
    if not free.any():
        return False
    order = np.argsort(index)
    operands = zip(*(_read_sources(state, state.blocks[item.at], item.lanes) for item in items), strict=True)
    values = [np.concatenate(parts)[order][free[order]] for parts in operands]
    together = shape.select_index(index[order][free[order]])
    plan = state.blocks[items[0].at].steps[0].plan
    assert plan is not None
    warp_operation = operation(plan.match, plan.signature)
    assert warp_operation is not None
    assert warp_operation.function is not None
    result = warp_operation.function(state.machine, together, *values)
    wanted = np.zeros(shape.lanes, np.bool_)
    wanted[together.sel] = True
    state.machine.meetings.append(Meeting(together, result, wanted))
    for item in items:
        released, stay = item.lanes.split(wanted[item.lanes.sel])
        remaining = [one for one in state.converging[item.at] if one is not item]
        if stay is not None:
            remaining.append(Waiter(stay, item.pc, item.depth, item.at))
        state.converging[item.at] = remaining
        if not remaining:
            del state.converging[item.at]
        if released is not None:
            state.push(item.depth, item.at, released)
    return True


def _read_sources(state: State, block: Block, lanes: Lanes) -> list[Array]:
    """Return the operands of a block's first instruction in every lane."""
    step, operands = block.steps[0], Operands(state.program, block)
    assert step.plan is not None
    values: list[Array] = []
    for wanted, operand in zip(step.plan.signature, step.instruction.operands, strict=True):
        if wanted.access == "r":
            expression = operands.read(operand, wanted.type, step.scope)
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
    rest = lanes.hi % unit and (threads > 32 or lanes.hi < state.shape.lanes)
    return lanes.positions is None and not lanes.lo % unit and not rest


def read_members(state: State, step: Step, block: Block, lanes: Lanes) -> Array | None:
    """Return the member mask of a warp-wide instruction, None if it has none."""
    plan = step.plan
    assert plan is not None
    for wanted, operand in zip(plan.signature, step.instruction.operands, strict=True):
        if wanted.name == "membermask":
            return state.read_value(operand, step, block, lanes).astype(np.uint32)
    if any(m in (".aligned", ".sync") for m in step.instruction.modifiers):
        return np.full(lanes.n, 0xFFFFFFFF, np.uint32)
    return None


def find_together(state: State, lanes: Lanes, mask: Array, among: Lanes | None = None) -> Array:
    """Return the lanes whose members are all here (among these or `among`) or have exited."""
    warps = state.shape.warps * state.shape.ctas
    others = lanes if among is None else among
    here = _collect_bits(state.shape.warp[others.sel], state.shape.lane[others.sel], warps)
    living = np.flatnonzero(state.alive)
    alive = _collect_bits(state.shape.warp[living], state.shape.lane[living], warps)
    warp = state.shape.warp[lanes.sel]
    return (mask & alive[warp] & ~here[warp]) == 0


def release_warps(state: State) -> None:
    """Release lanes whose members all wait in a `bar.warp.sync`, whichever one it is."""
    items = state.warps_waiting
    here = state.shape.merge([item.lanes for item in items])
    kept: list[Waiter] = []
    released: list[tuple[Step, Lanes, Array]] = []
    for item in items:
        block = state.blocks[item.at]
        mask = read_members(state, block.steps[-1], block, item.lanes)
        assert mask is not None
        passing = find_together(state, item.lanes, mask, here)
        free, stay = item.lanes.split(passing)
        if free is not None:
            released.append((block.steps[-1], free, mask[passing]))
            state.push(item.depth, item.pc, free)
        if stay is not None:
            kept.append(Waiter(stay, item.pc, item.depth, item.at))
    state.warps_waiting = kept
    if released and state.sink is not None:
        state.sink.on_warp_barriers(released)


def _collect_bits(warp: Array, lane: Array, warps: int) -> Array:
    """Return a mask of lanes for each warp."""
    return np.bincount(warp, weights=(1 << lane.astype(np.int64)).astype(np.float64), minlength=warps).astype(np.uint32)
