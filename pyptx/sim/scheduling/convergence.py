"""Warp-wide instructions: which lanes have all the others that they name, and who waits for whom (manual: .sync,
bar.warp.sync, wgmma)."""

from __future__ import annotations

import numpy as np

from pyptx.check.body import Step
from pyptx.sim.barriers import Waiting
from pyptx.sim.checks import barriers as told
from pyptx.sim.formats import Array
from pyptx.sim.lanes import Lanes
from pyptx.sim.program import Block
from pyptx.sim.scheduling.apart import diverged, ended, needs_all
from pyptx.sim.scheduling.state import State


def converge(state: State, block: Block, depth: int, lanes: Lanes) -> Lanes | None:
    """Return the lanes that may run a warp-wide instruction now; the others wait."""
    step = block.steps[0]
    if step.instruction.predicate is not None:
        chosen, others = lanes.split(state.guard(step, block, lanes))
        if others is not None:
            state.push(depth, block.pc + 1, others)
        if chosen is None:
            return None
        lanes = chosen
    waiting = state.converging.pop(block.pc, None)
    if waiting is not None:
        lanes = state.shape.merged([lanes, *(item.lanes for item in waiting)])
    if whole_warps(state, lanes, block.unit):
        unit = block.unit * state.shape.ctas
        here = lanes.positions is None and not lanes.lo % unit and not lanes.hi % unit
        if here or not (ended(state) and needs_all(block)):
            return lanes
    mask = members(state, step, block, lanes)
    if mask is None:
        return lanes
    chosen, others = lanes.split(complete(state, block, lanes, mask))
    if others is not None or block.unit == 32:
        # Of a warpgroup that is complete nobody can be elsewhere or have ended.
        wrong = diverged(state, block, depth, lanes)
        if wrong is not None:
            raise wrong
    if others is not None:
        state.converging[block.pc] = [Waiting(others, block.pc, depth, block.pc)]
    return chosen


def complete(state: State, block: Block, lanes: Lanes, mask: Array) -> Array:
    """Return the lanes whose members are all here, and all of their warpgroup where an instruction wants that."""
    here = together(state, lanes, mask)
    return here if block.unit == 32 else here & _warpgroups(state, lanes)


def _warpgroups(state: State, lanes: Lanes) -> Array:
    """Tell which lanes are here with all of their warpgroup."""
    group = state.shape.thread[lanes.sel] // 128 * state.shape.ctas + state.shape.cta[lanes.sel]
    return np.bincount(group)[group] == 128


def whole_warps(state: State, lanes: Lanes, threads: int = 32) -> bool:
    """Tell quickly that lanes are whole warps, or whole warpgroups; the last warp of a CTA may lack lanes."""
    if threads == 32 and lanes.n == state.live:
        return True
    unit = threads * state.shape.ctas
    rest = lanes.hi % unit and (threads > 32 or lanes.hi < state.shape.lanes)
    return lanes.positions is None and not lanes.lo % unit and not rest


def members(state: State, step: Step, block: Block, lanes: Lanes) -> Array | None:
    """Return the member mask of a warp-wide instruction, None for one without."""
    plan = step.plan
    assert plan is not None
    for wanted, given in zip(plan.signature, step.instruction.operands, strict=True):
        if wanted.name == "membermask":
            return state.value(given, step, block, lanes).astype(np.uint32)
    if any(m in (".aligned", ".sync") for m in step.instruction.modifiers):
        return np.full(lanes.n, 0xFFFFFFFF, np.uint32)
    return None


def together(state: State, lanes: Lanes, mask: Array, among: Lanes | None = None) -> Array:
    """Return the lanes whose members are all here (among these or others) or have left."""
    warps = state.shape.warps * state.shape.ctas
    others = lanes if among is None else among
    here = _bits(state.shape.warp[others.sel], state.shape.lane[others.sel], warps)
    living = np.flatnonzero(state.alive)
    alive = _bits(state.shape.warp[living], state.shape.lane[living], warps)
    warp = state.shape.warp[lanes.sel]
    return (mask & alive[warp] & ~here[warp]) == 0


def release_warps(state: State) -> None:
    """Let lanes go on whose members all wait in a bar.warp.sync, whichever one it is."""
    items = state.warps_waiting
    here = state.shape.merged([item.lanes for item in items])
    kept: list[Waiting] = []
    gone: list[tuple[Step, Lanes, Array]] = []
    for item in items:
        block = state.blocks[item.at]
        mask = members(state, block.steps[-1], block, item.lanes)
        assert mask is not None
        passing = together(state, item.lanes, mask, here)
        free, stay = item.lanes.split(passing)
        if free is not None:
            gone.append((block.steps[-1], free, mask[passing]))
            state.push(item.depth, item.pc, free)
        if stay is not None:
            kept.append(Waiting(stay, item.pc, item.depth, item.at))
    state.warps_waiting = kept
    if gone and state.machine.checks is not None:
        told.warp_barriers(state.machine.checks, gone)


def _bits(warp: Array, lane: Array, warps: int) -> Array:
    """Return which lanes of each warp are named, as a mask."""
    return np.bincount(warp, weights=(1 << lane.astype(np.int64)).astype(np.float64), minlength=warps).astype(np.uint32)
