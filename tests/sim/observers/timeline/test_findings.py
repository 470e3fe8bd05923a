"""Where findings and stops are on a timeline: their lines, tracks and times."""

from __future__ import annotations

import pytest

from pyptx.diagnostics import Diagnostic, Origin, PythonFrame, Severity, Span
from pyptx.sim import rules
from pyptx.sim.hazards import Finding, Place
from pyptx.sim.observers.timeline.findings import Spot, locate_findings, locate_stop
from pyptx.sim.observers.timeline.records import Cause, Line, Run, RunRecord, Track, Wait
from pyptx.sim.reports.findings import Agent
from tests.sim.observers.timeline.runs import find_track, timeline

PYTHON, ELSEWHERE = (PythonFrame.of_definition(function.__code__) for function in (find_track, timeline))


def make_record() -> RunRecord:
    record = RunRecord("k", (2, 1, 1), (64, 1, 1), (1, 1, 1), "lazy", "a\nb\nld\nst\nex\nret", [(0, 0, 0), (1, 0, 0)])
    record.tracks = [Track(cta, f"warp {warp}", False) for cta in (0, 1) for warp in (0, 1)]
    record.runs = [
        Run(2, 0, 2, "", (1, 2), 32, 2), Run(3, 1, 3, "", (1, 2), 32, 2), Run(3, 4, 14, "", (3, 5), 32, 9),
    ]  # fmt: skip
    record.lines = [
        Line(number, 1, 32, 0, (PYTHON.file, PYTHON.line + (0 if number in (2, 4) else 1))) for number in range(1, 6)
    ]
    return record


@pytest.mark.parametrize(
    ("origin", "text", "agent", "spot"),
    [
        (Span(1, 1), "a", Agent(1, 1, 3), Spot(1, 3, 1)),
        (Span(2, 1), "b", Agent(1, 1, 3), Spot(2, 3, 2)),
        (Span(3, 1), "ld", Agent(1, 1, 3), Spot(3, 3, 4)),
        (Span(4, 1), "st", Agent(1, 1, 3), Spot(4, 3, 8)),
        (Span(5, 1), "ex", Agent(1, 1, 3), Spot(5, 3, 13)),
        (Span(6, 1), "ret", Agent(1, 1, 3), Spot(6, 3, 0)),
        (Span(1, 1), "a", Agent(0, 1, 3), Spot(1, 1, 0)),
        (Span(1, 1), "a", Agent(7, 1, 3), Spot(1, -1, 0)),
        (Span(1, 1), "a", None, Spot(1, -1, 0)),
        (PYTHON, "st", Agent(1, 1, 3), Spot(4, 3, 8)),
        (PYTHON, "b", Agent(1, 1, 3), Spot(2, 3, 2)),
        (PYTHON, "other", Agent(1, 0, 3), Spot(2, 2, 1)),
        (ELSEWHERE, "st", Agent(1, 1, 3), Spot(0, -1, 0)),
        (None, "", Agent(1, 1, 3), Spot(0, -1, 0)),
    ],
)
def test_a_finding_stands_where_its_warp_ran_the_line(
    origin: Origin | None, text: str, agent: Agent | None, spot: Spot
) -> None:
    record, place, far = make_record(), Place(origin, text), Place(Span(2, 1), "b")
    alone = Finding(rules.DIVERGENT, place, agent, "what")
    later = Finding(rules.DIVERGENT, far, Agent(1, 0, 0), "what", place, agent)
    timed = Finding(rules.DIVERGENT, place, agent, "what", far, Agent(1, 0, 0))
    record.moments[id(timed)] = Cause(0, 6)
    near = Spot(2, 2, 1)
    assert locate_findings(record, [alone, later, timed]) == [(spot, None), (near, spot), (Spot(spot.line, 0, 6), near)]


def test_a_stop_stands_at_the_first_warp_that_still_waits_there() -> None:
    record, stop = make_record(), Diagnostic(Severity.ERROR, "PTX0900", Span(3, 1), "nothing can run")
    assert locate_stop(record, stop) == Spot(3, -1, 0)
    record.waits = [
        Wait(0, 1, 5, "full", 0, 3, Cause(1, 4)), Wait(1, 2, 6, "full", 0, 2, None, False),
        Wait(2, 3, 7, "full", 0, 3, None, False), Wait(3, 4, 8, "full", 0, 3, None, False),
    ]  # fmt: skip
    assert locate_stop(record, stop) == Spot(3, 2, 3)
