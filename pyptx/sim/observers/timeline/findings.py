"""Where a run's hazards are on its timeline: a line of the PTX, and the time at which a warp was there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pyptx.diagnostics import Diagnostic, Origin, PythonFrame
from pyptx.sim.hazards import Finding
from pyptx.sim.observers.timeline.records import Recorded
from pyptx.sim.reports.findings import Agent, Cta


@dataclass(frozen=True, slots=True)
class Spot:
    """A line and, if its warp is recorded, a track and a time; -1 and 0 if not."""

    line: int
    track: int
    time: int


def locate_findings(recorded: Recorded, findings: Sequence[Finding]) -> list[tuple[Spot, Spot | None]]:
    """Return the place of each finding, and its other place."""
    text = recorded.source.split("\n")
    return [
        (
            _set_time(
                recorded,
                finding,
                _locate_agent(recorded, text, finding.place.origin, finding.place.text, finding.agent),
            ),
            _locate_agent(recorded, text, finding.other.origin, finding.other.text, finding.other_agent)
            if finding.other is not None
            else None,
        )
        for finding in findings
    ]


def locate_stop(recorded: Recorded, diagnostic: Diagnostic) -> Spot:
    """Return where an error ended the run: at the warp that is stuck there, if any."""
    lines = _list_lines(recorded, diagnostic.origin)
    stuck = [wait for wait in recorded.waits if not wait.released and wait.line in lines]
    if stuck:
        return Spot(stuck[0].line, stuck[0].track, stuck[0].start)
    text = recorded.source.split("\n")
    named = [
        line for line in lines if any(word in text[line - 1] for word in re.findall("`([^`]+)`", diagnostic.message))
    ]
    return Spot((named or lines or [0])[0], -1, 0)


def _set_time(recorded: Recorded, finding: Finding, spot: Spot) -> Spot:
    """Return a spot with the time of the finding, if known."""
    moment = recorded.moments.get(id(finding))
    return spot if moment is None else Spot(spot.line, moment.track, moment.time)


def _locate_agent(
    recorded: Recorded, text: Sequence[str], origin: Origin | None, opcode: str, agent: Agent | None
) -> Spot:
    line = _resolve_line(recorded, text, origin, opcode)
    if agent is None or not line:
        return Spot(line, -1, 0)
    numbers = {int(Cta.at(cta, recorded.grid)): at for at, cta in enumerate(recorded.ctas)}
    name, cta = f"warp {agent.warp}", numbers.get(agent.cta, -1)
    tracks = [at for at, track in enumerate(recorded.tracks) if (track.cta, track.name) == (cta, name)]
    for run in recorded.runs:
        if run.track in tracks and run.lines[0] <= line <= run.lines[1]:
            inside = (line - run.lines[0]) / max(1, run.lines[1] - run.lines[0])
            return Spot(line, run.track, run.start + int(inside * (run.end - run.start - 1)))
    return Spot(line, tracks[0] if tracks else -1, 0)


def _resolve_line(recorded: Recorded, text: Sequence[str], origin: Origin | None, opcode: str) -> int:
    """Return the PTX line of a place: of several, the one with the instruction."""
    there = _list_lines(recorded, origin)
    named = [number for number in there if isinstance(origin, PythonFrame) and opcode and opcode in text[number - 1]]
    return (named or there or [0])[0]


def _list_lines(recorded: Recorded, origin: Origin | None) -> list[int]:
    """Return the PTX lines of a place. A Python line may have several."""
    if isinstance(origin, PythonFrame):
        return [line.number for line in recorded.lines if line.python == (origin.file, origin.line)]
    return [] if origin is None else [origin.line]
