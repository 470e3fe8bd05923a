"""Lanes that an aligned instruction misses: those of its warps or warpgroups that can no longer reach it.

Late lanes do not count: they diverged before the instruction and will join the others there. Neither do lanes that only
exit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pyptx.check.body import Step
from pyptx.diagnostics import PtxError, format_count
from pyptx.isa.traits import Trait
from pyptx.sim import rules
from pyptx.sim.base.events import Place
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.program.blocks import Block
from pyptx.sim.reports.findings import Agent, Cta, Finding
from pyptx.sim.scheduling.awaited_events import find_next_step, make_place
from pyptx.sim.scheduling.reach import Reach
from pyptx.sim.scheduling.state import State
from pyptx.sim.state.barriers import Waiter

_MATRICES = frozenset((Trait.MULTIPLIES, Trait.REARRANGES))


@dataclass(frozen=True, slots=True)
class Part:
    """Absent lanes and their place; `place` is None for lanes whose guard is false."""

    index: Array
    place: Place | None


def find_absent(
    state: State,
    block: Block,
    depth: int,
    lanes: Lanes,
    unit: int = 32,
    include_exited: bool = False,
    step: Step | None = None,
) -> list[Part]:
    """Return the live lanes of the same warps (of `unit` threads) that cannot reach the instruction at which these
    lanes are: the last of the block, or `step`. `include_exited` adds exited lanes."""
    shape = state.shape
    group = shape.thread // unit * shape.ctas + shape.cta
    missing = np.isin(group, np.unique(group[lanes.sel]))
    missing[lanes.sel] = False
    guard = block.pc + 1 if (step or block.steps[-1]).instruction.predicate is not None else -1
    parts: list[Part] = []
    dead_lanes = np.flatnonzero(missing & ~state.alive & include_exited)
    for pc in sorted({int(pc) for pc in state.exit_blocks[dead_lanes]}):
        exit_block = state.blocks[pc]
        parts.append(
            Part(dead_lanes[state.exit_blocks[dead_lanes] == pc], make_place(exit_block, exit_block.steps[-1]))
        )
    missing &= state.alive
    warps = shape.warp[lanes.sel]
    for candidate_pc, candidate_depth, candidates, is_runnable in _iterate_positions(state) if missing.any() else ():
        part = candidates.subset(missing[candidates.sel])
        unreachable = (
            None
            if part is None
            else _find_unreachable(
                state, candidate_pc, candidate_depth, part, is_runnable, block.pc, depth, lanes, warps
            )
        )
        if unreachable is not None:
            step_there = find_next_step(state, candidate_pc)
            place = None if candidate_pc == guard else make_place(state.blocks[candidate_pc], step_there)
            parts.append(Part(unreachable.index, place))
    return parts


def explain_divergence(state: State, block: Block, depth: int, lanes: Lanes) -> PtxError | None:
    """Return the error of lanes at an instruction that whole warps or warpgroups execute together, if others cannot
    reach it: the behavior is undefined, so nothing can be computed."""
    if Trait.ALIGNED not in block.steps[0].traits:
        return None
    shape = state.shape
    parts = find_absent(state, block, depth, lanes, block.unit, needs_all(block), block.steps[0])
    warps = shape.warp[lanes.sel]
    near = next((part for part in parts if np.isin(shape.warp[part.index], warps).any()), None)
    if parts:
        return PtxError([make_finding(state, make_place(block), lanes, near or parts[0]).diagnostic()])
    if needs_all(block) and int(shape.thread[lanes.sel].max()) >= shape.threads // block.unit * block.unit:
        rule = rules.DIVERGENT if block.unit == 32 else rules.WARPGROUP
        short = Finding(
            rule,
            make_place(block),
            make_agent(state, int(lanes.index[-1])),
            f"the CTA has {format_count('thread', shape.threads)}",
        )
        return PtxError([short.diagnostic()])
    return None


def explain_waiting(state: State) -> PtxError | None:
    """Return the error of lanes that wait for the rest of their warps although nothing can run, if there are any."""
    if state.sink is not None:
        state.sink.on_stuck()
    for pc, items in state.converging.items():
        for item in items:
            error = explain_divergence(state, state.blocks[pc], item.depth, item.lanes)
            if error is not None:
                return error
    return None


def needs_all(block: Block) -> bool:
    """Tell whether an instruction is undefined in warps with exited threads: matrix products and moves."""
    return block.unit > 32 or not _MATRICES.isdisjoint(block.steps[0].traits)


def may_be_incomplete(state: State) -> bool:
    """Tell whether some warp may lack lanes, because they exited or the block has none."""
    return state.live < state.shape.lanes or state.shape.threads % 32 != 0


def make_finding(state: State, place: Place, lanes: Lanes, part: Part) -> Finding:
    """Return the finding of lanes at an aligned instruction and of the part that is absent."""
    shape = state.shape
    near = np.isin(shape.warp[lanes.sel], shape.warp[part.index])
    rule = rules.DIVERGENT if near.any() else rules.WARPGROUP
    reporters = near if near.any() else np.isin(shape.cta[lanes.sel], shape.cta[part.index])
    present_lane = int(lanes.index[reporters][0])
    absent_lanes = part.index[shape.warp[part.index] == shape.warp[present_lane]] if near.any() else part.index
    have, do = ("has", "does") if len(absent_lanes) == 1 and not near.any() else ("have", "do")
    doing = (
        f"{have} ended"
        if not state.alive[absent_lanes[0]]
        else f"{have} a false guard"
        if part.place is None
        else f"{do} not execute this instruction"
    )
    mask = int((np.int64(1) << shape.lane[absent_lanes].astype(np.int64)).sum())
    message = (
        f"lanes 0x{mask:08x} {doing}"
        if near.any()
        else f"{format_count('thread', len(absent_lanes))} of the warpgroup {doing}"
    )
    other_agent = None if part.place is None else make_agent(state, int(absent_lanes[0]))
    return Finding(
        rule,
        place,
        make_agent(state, present_lane),
        message,
        part.place,
        other_agent,
        count=len(np.unique(shape.warp[part.index])),
    )


def make_agent(state: State, lane: int) -> Agent:
    """Name a lane of a batch by its CTA, warp and lane."""
    shape, ctaid = state.shape, state.machine.ctaid[:, state.shape.cta[lane]]
    return Agent(Cta.from_ctaid(ctaid, state.machine.launch.grid), int(shape.thread[lane]) // 32, int(shape.lane[lane]))


def _iterate_positions(state: State) -> Iterator[tuple[int, int, Lanes, bool]]:
    """Yield the positions of lanes that do not run now: block, call depth, lanes, and whether they could run."""
    for key, sets in state.ready.items():
        for lanes in sets:
            yield abs(key[2]), -key[1], lanes, True
    for key, lanes in state.polling:
        yield abs(key[2]), -key[1], lanes, False
    waiters: list[Waiter] = [item.waiter for item in state.mbarrier_waits]
    for items in (*state.barriers.waiters.values(), *state.converging.values()):
        waiters += items
    waiters += [*state.clusters.waiters, *state.warps_waiting, *state.columns]
    if state.registers is not None:
        waiters += state.registers.waiters
    for item in waiters:
        yield item.block, item.depth, item.lanes, False


def _find_unreachable(
    state: State,
    part_pc: int,
    part_depth: int,
    part: Lanes,
    is_runnable: bool,
    pc: int,
    depth: int,
    lanes: Lanes,
    warps: Array,
) -> Lanes | None:
    """Return the lanes of a part that cannot reach the others. Only lanes of their `warps` run in order: another warp
    of the warpgroup may be several loop iterations behind."""
    if state.reach is None:
        state.reach = Reach(state.program)
    reach = state.reach
    if part_depth == 0 and reach.only_exits(part_pc):
        return None
    level = min(part_depth, depth)
    targets = {pc} if depth == level else {int(p) - 1 for p in np.unique(state.returns[level][lanes.sel])}
    starts = np.full(part.n, part_pc) if part_depth == level else state.returns[level][part.sel]
    is_absent, blocks = np.zeros(part.n, np.bool_), state.blocks
    in_order = is_runnable & np.isin(state.shape.warp[part.sel], warps)
    cases: list[tuple[int, bool]] = sorted(set(zip(starts.tolist(), in_order.tolist(), strict=True)))
    for start, start_in_order in cases:
        near = [target for target in targets if blocks[target].code is blocks[start].code]
        if near and not any(reach.precedes(start, target, start_in_order) for target in near):
            is_absent |= (starts == start) & (in_order == start_in_order)
    return part.subset(is_absent)
