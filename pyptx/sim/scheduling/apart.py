"""Lanes that an aligned instruction finds elsewhere: those of its warps or warpgroups that cannot come to it any more.

Lanes that are late are none: what parted them lies before the instruction, and they will join the others there. Nor
are lanes that do nothing more than end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pyptx.check.body import Step
from pyptx.diagnostics import PtxError
from pyptx.isa.traits import Trait
from pyptx.sim import rules
from pyptx.sim.base.events import Place
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.program.blocks import Block
from pyptx.sim.reports.findings import Agent, Cta, Finding
from pyptx.sim.scheduling.known import place_of
from pyptx.sim.scheduling.reach import Reach
from pyptx.sim.scheduling.state import State
from pyptx.sim.state.barriers import Waiting

_MATRICES = frozenset((Trait.MULTIPLIES, Trait.REARRANGES))


@dataclass(frozen=True, slots=True)
class Part:
    """Lanes elsewhere, and where they are; `place` is None for those that the guard lets pass by, or that are not."""

    index: Array
    place: Place | None


def elsewhere(
    state: State, block: Block, depth: int, lanes: Lanes, unit: int = 32, whole: bool = False, step: Step | None = None
) -> list[Part]:
    """Return the living lanes of these lanes' warps (of `unit` threads) that cannot come to an instruction of a block
    where these are, the last one unless given; with `whole` those that have ended too."""
    shape = state.shape
    group = shape.thread // unit * shape.ctas + shape.cta
    missing = np.isin(group, np.unique(group[lanes.sel]))
    missing[lanes.sel] = False
    guard = block.pc + 1 if (step or block.steps[-1]).instruction.predicate is not None else -1
    parts: list[Part] = []
    gone = np.flatnonzero(missing & ~state.alive & whole)
    for pc in sorted({int(pc) for pc in state.left[gone]}):
        left = state.blocks[pc]
        parts.append(Part(gone[state.left[gone] == pc], place_of(left, left.steps[-1])))
    missing &= state.alive
    warps = shape.warp[lanes.sel]
    for at, deep, waiting, runs in _iterate_positions(state) if missing.any() else ():
        part = waiting.subset(missing[waiting.sel])
        lost = None if part is None else _find_lost(state, at, deep, part, runs, block.pc, depth, lanes, warps)
        if lost is not None:
            steps = state.blocks[at].steps or state.blocks[at + 1].steps
            place = None if at == guard else place_of(state.blocks[at], steps[0])
            parts.append(Part(lost.index, place))
    return parts


def diverged(state: State, block: Block, depth: int, lanes: Lanes) -> PtxError | None:
    """Return what is wrong where lanes have come to an instruction that whole warps or warpgroups execute as one, and
    others cannot come: hardware does something undefined, and nothing can be computed."""
    if Trait.ALIGNED not in block.steps[0].traits:
        return None
    shape = state.shape
    parts = elsewhere(state, block, depth, lanes, block.unit, needs_all(block), block.steps[0])
    warps = shape.warp[lanes.sel]
    near = next((part for part in parts if np.isin(shape.warp[part.index], warps).any()), None)
    if parts:
        return PtxError([finding(state, place_of(block), lanes, near or parts[0]).diagnostic()])
    if needs_all(block) and int(shape.thread[lanes.sel].max()) >= shape.threads // block.unit * block.unit:
        rule = rules.DIVERGENT if block.unit == 32 else rules.WARPGROUP
        short = Finding(
            rule, place_of(block), agent(state, int(lanes.index[-1])), f"the CTA has {shape.threads} threads"
        )
        return PtxError([short.diagnostic()])
    return None


def overdue(state: State) -> PtxError | None:
    """Return why lanes that wait for the rest of their warps wait in vain when nothing can run, if that is so."""
    if state.sink is not None:
        state.sink.on_stuck()
    for pc, items in state.converging.items():
        for item in items:
            wrong = diverged(state, state.blocks[pc], item.depth, item.lanes)
            if wrong is not None:
                return wrong
    return None


def needs_all(block: Block) -> bool:
    """Tell whether an instruction is undefined in warps of which threads have ended: products and moves of matrices."""
    return block.unit > 32 or not _MATRICES.isdisjoint(block.steps[0].traits)


def ended(state: State) -> bool:
    """Tell whether there may be warps that are not whole any more, or never were."""
    return state.live < state.shape.lanes or state.shape.threads % 32 != 0


def finding(state: State, place: Place, lanes: Lanes, part: Part) -> Finding:
    """Return the finding of lanes at an aligned instruction and a part that is elsewhere."""
    shape = state.shape
    near = np.isin(shape.warp[lanes.sel], shape.warp[part.index])
    rule = rules.DIVERGENT if near.any() else rules.WARPGROUP
    mine = near if near.any() else np.isin(shape.cta[lanes.sel], shape.cta[part.index])
    here = int(lanes.index[mine][0])
    there = part.index[shape.warp[part.index] == shape.warp[here]] if near.any() else part.index
    doing = (
        "have ended"
        if not state.alive[there[0]]
        else "have a false guard"
        if part.place is None
        else "do not execute this instruction"
    )
    mask = int((np.int64(1) << shape.lane[there].astype(np.int64)).sum())
    what = f"lanes 0x{mask:08x} {doing}" if near.any() else f"{len(there)} threads of the warpgroup {doing}"
    other = None if part.place is None else agent(state, int(there[0]))
    return Finding(
        rule, place, agent(state, here), what, part.place, other, count=len(np.unique(shape.warp[part.index]))
    )


def agent(state: State, lane: int) -> Agent:
    """Return a lane of a batch in the program's terms."""
    shape, ctaid = state.shape, state.machine.ctaid[:, state.shape.cta[lane]]
    return Agent(Cta.at(ctaid, state.machine.launch.grid), int(shape.thread[lane]) // 32, int(shape.lane[lane]))


def _iterate_positions(state: State) -> Iterator[tuple[int, int, Lanes, bool]]:
    """Yield where lanes are that do not run now: the block, the depth of calls, the lanes, and whether they could."""
    for key, sets in state.ready.items():
        for lanes in sets:
            yield abs(key[2]), -key[1], lanes, True
    for key, lanes in state.parked:
        yield abs(key[2]), -key[1], lanes, False
    held: list[Waiting] = [item.waiting for item in state.suspended]
    for items in (*state.barriers.waiting.values(), *state.converging.values()):
        held += items
    held += [*state.clusters.waiting, *state.warps_waiting, *state.columns]
    if state.registers is not None:
        held += state.registers.waiting
    for item in held:
        yield item.at, item.depth, item.lanes, False


def _find_lost(
    state: State, at: int, deep: int, part: Lanes, runs: bool, pc: int, depth: int, lanes: Lanes, warps: Array
) -> Lanes | None:
    """Return which lanes at a block, in calls of some depth, cannot come to where others are. Only in the warps of
    those, `warps`, do lanes keep an order: other warps of a warpgroup may be rounds of a loop behind."""
    if state.reach is None:
        state.reach = Reach(state.program)
    reach = state.reach
    if deep == 0 and reach.ends(at):
        return None
    level = min(deep, depth)
    targets = {pc} if depth == level else {int(p) - 1 for p in np.unique(state.returns[level][lanes.sel])}
    starts = np.full(part.n, at) if deep == level else state.returns[level][part.sel]
    lost, blocks = np.zeros(part.n, np.bool_), state.blocks
    ordered = runs & np.isin(state.shape.warp[part.sel], warps)
    each: list[tuple[int, bool]] = sorted(set(zip(starts.tolist(), ordered.tolist(), strict=True)))
    for start, first in each:
        near = [target for target in targets if blocks[target].code is blocks[start].code]
        if near and not any(reach.before(start, target, first) for target in near):
            lost |= (starts == start) & (ordered == first)
    return part.subset(lost)
