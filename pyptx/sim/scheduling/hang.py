"""Explain why nothing runs: collect the waits of a batch for the wait-for graph of `reports.graph`.

Covers the first cluster in which lanes wait, or the first CTAs whose lanes poll memory. Threads are numbered by CTA,
with the 32 of a warp in sequence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pyptx.check.body import Step
from pyptx.diagnostics import PtxError
from pyptx.ir import opcode_span
from pyptx.sim import rules
from pyptx.sim.base.events import Place
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.program.blocks import Block, tests_mbarrier
from pyptx.sim.reports.graph import Hang, HangReport, choose_verb, explain
from pyptx.sim.rules import REMEDIES
from pyptx.sim.scheduling.absent_lanes import explain_waiting
from pyptx.sim.scheduling.awaited_events import BatchKnowledge, list_threads
from pyptx.sim.scheduling.convergence import read_members
from pyptx.sim.scheduling.polling import Poll, find_loop, find_polls
from pyptx.sim.scheduling.state import State
from pyptx.sim.state.barriers import Waiter as LaneWait

_MOST_CTAS = 32
"""How many CTAs to search for a writer of the polled location."""


def make_deadlock(state: State) -> PtxError:
    """Return the error of a batch in which every live lane waits."""
    wrong = explain_waiting(state)
    if wrong is not None:
        return wrong
    report = explain_hang(state)
    finding = report.make_finding()
    assert finding is not None
    return Hang([finding.diagnostic()], report)


def make_livelock(state: State, polling: list[tuple[int, Lanes]]) -> PtxError:
    """Return the error of a batch whose running lanes change nothing: they poll in loops that begin at these blocks."""
    report = explain_hang(state, polling)
    loop = find_loop(state, polling[0][0])
    lines = [span.line for block in loop for step in block.steps if (span := opcode_span(step.instruction)) is not None]
    extent = f"lines {min(lines)} to {max(lines)}" if len(set(lines)) > 1 else f"line {lines[0]}" if lines else ""
    loop_text = f"the loop at {extent} never ends: nothing changes anymore" if lines else ""
    node = report.guilty
    if node is None:
        agents = BatchKnowledge(state, []).name_threads(list_threads(state, polling[0][1]))
        text = f"no progress: {agents} {choose_verb(agents, 'runs', 'run')} forever; {loop_text}"
        return Hang([rules.LIVELOCK.report(opcode_span(loop[0].steps[0].instruction), text)], report)
    agents, place = node.waiters[0]
    is_poll = node.kind == "memory" or place in _list_tests(state, polling)
    verbs = ("polls", "poll") if is_poll else ("waits for", "wait for")
    text = f"no progress: {agents} {choose_verb(agents, *verbs)} {node.what}: {node.missing}; {loop_text}"
    diagnostic = rules.LIVELOCK.report(place.origin, text, help=REMEDIES[rules.LIVELOCK.code])
    return Hang([replace(diagnostic, details=tuple(report.summarize()))], report)


def _list_tests(state: State, polling: list[tuple[int, Lanes]]) -> list[Place]:
    """Return the places in these loops that test an mbarrier without suspending lanes."""
    steps = [
        step for pc, _ in polling for block in find_loop(state, pc) for step in block.steps if tests_mbarrier(step)
    ]
    return [Place(opcode_span(step.instruction), step.instruction.full_opcode) for step in steps]


def explain_hang(state: State, polling: Sequence[tuple[int, Lanes]] = ()) -> HangReport:
    """Return the wait-for graph of the first cluster whose lanes wait, or poll at these blocks."""
    waits_by_kind: list[tuple[str, Array, Lanes, LaneWait | Poll]] = [*list_waits(state)]
    waits_by_kind += [
        (poll.kind, poll.key, poll.lanes, poll) for pc, ls in polling for poll in find_polls(state, pc, ls)
    ]
    if not waits_by_kind:
        return HangReport([], None, [])
    size = state.clusters.size
    first = min(int(lanes.cta.min()) for _, _, lanes, _ in waits_by_kind) // size * size
    ctas = range(first, first + size)
    if any(kind == "memory" for kind, _, _, _ in waits_by_kind):
        ctas = range(min(state.shape.ctas, _MOST_CTAS))
    knowledge = BatchKnowledge(state, list(ctas))
    waits = [
        wait
        for kind, keys, lanes, lane_wait in waits_by_kind
        for wait in knowledge.list_waits(kind, keys, lanes, lane_wait)
    ]
    waits.sort(key=lambda wait: wait.threads[0])
    return explain(waits, knowledge.list_exited(), knowledge)


def list_waits(state: State) -> list[tuple[str, Array, Lanes, LaneWait]]:
    """Return the waiting lanes, with the kind and the key of each awaited event."""
    places = state.machine.memory.mbarriers.places
    waits: list[tuple[str, Array, Lanes, LaneWait]] = [
        ("mbarrier", places[s.rows], s.waiter.lanes, s.waiter) for s in state.mbarrier_waits
    ]
    for number, items in state.barriers.waiters.items():
        waits += [("bar", np.full(item.lanes.n, number), item.lanes, item) for item in items]
    for item in state.clusters.waiters:
        waits.append(("cluster", item.lanes.cta // state.clusters.size, item.lanes, item))
    for item in state.warps_waiting:
        block = state.blocks[item.block]
        waits.append(("warp", _read_masks(state, block, block.steps[-1], item), item.lanes, item))
    if state.registers is not None:
        waits += [("registers", item.lanes.cta, item.lanes, item) for item in state.registers.waiters]
    if state.machine.flight is not None:
        waits += [("grid", np.zeros(item.lanes.n), item.lanes, item) for item in state.machine.flight.waiters]
    waits += [("columns", item.lanes.cta, item.lanes, item) for item in state.columns]
    for group in state.converging.values():
        for item in group:
            block = state.blocks[item.block]
            kind = "warp" if block.unit == 32 else "warpgroup"
            waits.append((kind, _read_masks(state, block, block.steps[0], item), item.lanes, item))
    return waits


def _read_masks(state: State, block: Block, step: Step, item: LaneWait) -> Array:
    return read_members(state, step, block, item.lanes).astype(np.int64)
