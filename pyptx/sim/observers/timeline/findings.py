"""Where a run's hazards are on its timeline: a line of the PTX, and the time at which a warp was there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pyptx.diagnostics import Diagnostic, Origin, PythonFrame
from pyptx.sim.hazards import Finding
from pyptx.sim.observers.timeline.records import RunRecord
from pyptx.sim.reports.findings import Agent, Cta


@dataclass(frozen=True, slots=True)
class Spot:
    """A line and, if its warp is recorded, a track and a time; -1 and 0 if not."""

    line: int
    track: int
    time: int


def locate_findings(record: RunRecord, findings: Sequence[Finding]) -> list[tuple[Spot, Spot | None]]:
    """Return the place of each finding, and its other place."""
    text = record.source.split("\n")
    return [
        (
            _set_time(
                record,
                finding,
                _locate_agent(record, text, finding.place.origin, finding.place.text, finding.agent),
            ),
            _locate_agent(record, text, finding.other.origin, finding.other.text, finding.other_agent)
            if finding.other is not None
            else None,
        )
        for finding in findings
    ]


def locate_stop(record: RunRecord, diagnostic: Diagnostic) -> Spot:
    """Return where an error ended the run: at the warp that is stuck there, if any."""
    lines = _list_lines(record, diagnostic.origin)
    open_waits = [wait for wait in record.waits if not wait.is_over and wait.line in lines]
    if open_waits:
        return Spot(open_waits[0].line, open_waits[0].track, open_waits[0].start)
    text = record.source.split("\n")
    matches = [
        line for line in lines if any(word in text[line - 1] for word in re.findall("`([^`]+)`", diagnostic.message))
    ]
    return Spot((matches or lines or [0])[0], -1, 0)


def _set_time(record: RunRecord, finding: Finding, spot: Spot) -> Spot:
    """Return a spot with the time of the finding, if known."""
    moment = record.moments.get(id(finding))
    return spot if moment is None else Spot(spot.line, moment.track, moment.time)


def _locate_agent(
    record: RunRecord, text: Sequence[str], origin: Origin | None, opcode: str, agent: Agent | None
) -> Spot:
    line = _resolve_line(record, text, origin, opcode)
    if agent is None or not line:
        return Spot(line, -1, 0)
    numbers = {int(Cta.from_ctaid(cta, record.grid)): index for index, cta in enumerate(record.ctas)}
    name, cta = f"warp {agent.warp}", numbers.get(agent.cta, -1)
    tracks = [index for index, track in enumerate(record.tracks) if (track.cta, track.name) == (cta, name)]
    for run in record.runs:
        if run.track in tracks and run.lines[0] <= line <= run.lines[1]:
            inside = (line - run.lines[0]) / max(1, run.lines[1] - run.lines[0])
            return Spot(line, run.track, run.start + int(inside * (run.end - run.start - 1)))
    return Spot(line, tracks[0] if tracks else -1, 0)


def _resolve_line(record: RunRecord, text: Sequence[str], origin: Origin | None, opcode: str) -> int:
    """Return the PTX line of a place: of several, the one with the instruction."""
    lines = _list_lines(record, origin)
    matches = [number for number in lines if isinstance(origin, PythonFrame) and opcode and opcode in text[number - 1]]
    return (matches or lines or [0])[0]


def _list_lines(record: RunRecord, origin: Origin | None) -> list[int]:
    """Return the PTX lines of a place. A Python line may have several."""
    if isinstance(origin, PythonFrame):
        return [line.number for line in record.lines if line.python == (origin.file, origin.line)]
    return [] if origin is None else [origin.line]
