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
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.program.blocks import Block
from pyptx.sim.reports.graph import Hang, HangReport, explain
from pyptx.sim.rules import REMEDIES
from pyptx.sim.scheduling.apart import explain_waiting
from pyptx.sim.scheduling.convergence import read_members
from pyptx.sim.scheduling.known import Known, list_threads
from pyptx.sim.scheduling.polling import Poll, find_loop, find_polls
from pyptx.sim.scheduling.state import State
from pyptx.sim.state.barriers import Waiter as Held

_MOST_CTAS = 32
"""How many CTAs to search for a writer of the polled location."""


def make_deadlock(state: State) -> PtxError:
    """Return the error of a batch in which every live lane waits."""
    wrong = explain_waiting(state)
    if wrong is not None:
        return wrong
    report = explain_hang(state)
    finding = report.finding()
    assert finding is not None
    return Hang([finding.diagnostic()], report)


def make_livelock(state: State, parked: list[tuple[int, Lanes]]) -> PtxError:
    """Return the error of a batch whose running lanes change nothing: they poll, from these blocks on."""
    report = explain_hang(state, parked)
    loop = find_loop(state, parked[0][0])
    lines = [span.line for block in loop for step in block.steps if (span := opcode_span(step.instruction)) is not None]
    where = f"the loop at lines {min(lines)} to {max(lines)} never ends: nothing changes anymore" if lines else ""
    node = report.guilty
    if node is None:
        who = Known(state, []).who(list_threads(state, parked[0][1]))
        text = f"no progress: {who} runs forever; {where}"
        return Hang([rules.LIVELOCK.report(opcode_span(loop[0].steps[0].instruction), text)], report)
    who, place = node.waiting[0]
    doing = "polls" if node.kind == "memory" or "test_wait" in place.text else "waits for"
    text = f"no progress: {who} {doing} {node.what}: {node.missing}; {where}"
    diagnostic = rules.LIVELOCK.report(place.origin, text, help=REMEDIES[rules.LIVELOCK.code])
    return Hang([replace(diagnostic, details=tuple(report.summary()))], report)


def explain_hang(state: State, parked: Sequence[tuple[int, Lanes]] = ()) -> HangReport:
    """Return the wait-for graph of the first cluster whose lanes wait, or poll at these blocks."""
    blocked: list[tuple[str, Array, Lanes, Held | Poll]] = [*list_waits(state)]
    blocked += [(poll.kind, poll.key, poll.lanes, poll) for pc, ls in parked for poll in find_polls(state, pc, ls)]
    if not blocked:
        return HangReport([], None, [])
    size = state.clusters.size
    first = min(int(lanes.cta.min()) for _, _, lanes, _ in blocked) // size * size
    ctas = range(first, first + size)
    if any(kind == "memory" for kind, _, _, _ in blocked):
        ctas = range(min(state.shape.ctas, _MOST_CTAS))
    known = Known(state, list(ctas))
    waiting = [wait for kind, keys, lanes, held in blocked for wait in known.list_waits(kind, keys, lanes, held)]
    waiting.sort(key=lambda wait: wait.threads[0])
    return explain(waiting, known.list_exited(), known)


def list_waits(state: State) -> list[tuple[str, Array, Lanes, Held]]:
    """Return the waiting lanes, with the kind and the key of each awaited event."""
    places = state.machine.memory.mbarriers.places
    blocked: list[tuple[str, Array, Lanes, Held]] = [
        ("mbarrier", places[s.rows], s.waiting.lanes, s.waiting) for s in state.suspended
    ]
    for number, items in state.barriers.waiters.items():
        blocked += [("bar", np.full(item.lanes.n, number), item.lanes, item) for item in items]
    for item in state.clusters.waiters:
        blocked.append(("cluster", item.lanes.cta // state.clusters.size, item.lanes, item))
    for item in state.warps_waiting:
        block = state.blocks[item.at]
        blocked.append(("warp", _read_masks(state, block, block.steps[-1], item), item.lanes, item))
    if state.registers is not None:
        blocked += [("registers", item.lanes.cta, item.lanes, item) for item in state.registers.waiters]
    if state.machine.flight is not None:
        blocked += [("grid", np.zeros(item.lanes.n), item.lanes, item) for item in state.machine.flight.waiters]
    blocked += [("columns", item.lanes.cta, item.lanes, item) for item in state.columns]
    for group in state.converging.values():
        for item in group:
            block = state.blocks[item.at]
            kind = "warp" if block.unit == 32 else "warpgroup"
            blocked.append((kind, _read_masks(state, block, block.steps[0], item), item.lanes, item))
    return blocked


def _read_masks(state: State, block: Block, step: Step, item: Held) -> Array:
    mask = read_members(state, step, block, item.lanes)
    return np.full(item.lanes.n, 0xFFFFFFFF) if mask is None else mask.astype(np.int64)
