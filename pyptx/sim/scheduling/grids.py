"""Explain why no grid of a stream can continue, starting with the first grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyptx.diagnostics import Diagnostic, PtxError
from pyptx.sim.reports.graph import Hang, HangReport
from pyptx.sim.scheduling.hang import make_deadlock, make_livelock
from pyptx.sim.scheduling.state import State


def make_stream_deadlock(states: Sequence[State], pending: Sequence[str]) -> PtxError:
    """Return the error of grids none of which can continue; `pending` ones wait for them to complete."""
    diagnostics: list[Diagnostic] = []
    report = HangReport([], None, [])
    for state in states:
        polling = [(abs(key[2]), lanes) for key, lanes in state.polling]
        error = make_livelock(state, polling) if polling else make_deadlock(state)
        diagnostics += error.diagnostics
        if isinstance(error, Hang):
            report = _join_reports(report, error.report)
    notes = [
        f"`{name}` has not started: a grid may start only after the grids that it waits for have completed"
        for name in pending
    ]
    diagnostics[0] = replace(diagnostics[0], notes=(*diagnostics[0].notes, *notes))
    return Hang(diagnostics, report)


def _join_reports(first: HangReport, second: HangReport) -> HangReport:
    """Return the wait-for graph of two grids, the second of which may wait for the first."""
    for node in second.nodes:
        if node.kind == "grid" and first.guilty is not None:
            node.waits_for = [first.guilty.what]
    return HangReport([*first.nodes, *second.nodes], first.guilty or second.guilty, first.cycle or second.cycle)
