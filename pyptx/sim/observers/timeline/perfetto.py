"""The record in Chrome's trace event format, for Perfetto and chrome://tracing: a process per CTA, a thread per warp
and per row of an engine, and arrows from the cause of a wait's end to the wait."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyptx.sim.hazards import Finding
from pyptx.sim.observers.timeline.findings import locate_findings
from pyptx.sim.observers.timeline.packing import pack_rows
from pyptx.sim.observers.timeline.records import UNIT, Recorded

Event = dict[str, Any]
_ROWS = 64
"""The most rows of a track."""


def make_trace(recorded: Recorded, findings: Sequence[Finding] = ()) -> dict[str, Any]:
    """Return the trace; a step of logical time is shown as a microsecond."""
    rows, heights = pack_rows(recorded.transfers)
    events = [
        *_name_tracks(recorded, heights),
        *_draw_runs(recorded),
        *_draw_waits(recorded),
        *_draw_transfers(recorded, rows),
    ]
    events += [*_draw_arrows(recorded, rows), *_draw_hazards(recorded, findings)]
    about = {"kernel": recorded.kernel, "schedule": recorded.schedule, "unit": UNIT, "ctas_left_out": recorded.left_out}
    return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": about}


def _locate(recorded: Recorded, track: int, row: int = 0) -> Event:
    return {"pid": recorded.tracks[track].cta + 1, "tid": track * _ROWS + min(row, _ROWS - 1) + 1}


def _name_tracks(recorded: Recorded, heights: dict[int, int]) -> Iterator[Event]:
    for at, cta in enumerate(recorded.names):
        name = f"CTA {cta}: logical steps, not timing"
        yield {"ph": "M", "name": "process_name", "pid": at + 1, "tid": 0, "args": {"name": name}}
        yield {"ph": "M", "name": "process_sort_index", "pid": at + 1, "tid": 0, "args": {"sort_index": at}}
    for at, track in enumerate(recorded.tracks):
        for row in range(min(heights.get(at, 1), _ROWS)):
            place = _locate(recorded, at, row)
            yield {"ph": "M", "name": "thread_name", **place, "args": {"name": track.name}}
            order = at * _ROWS + row + (1 << 20 if track.engine else 0)
            yield {"ph": "M", "name": "thread_sort_index", **place, "args": {"sort_index": order}}


def _make_slice(name: str, category: str, start: int, end: int, place: Event, **args: Any) -> Event:
    return {"ph": "X", "name": name, "cat": category, "ts": start, "dur": end - start, **place, "args": args}


def _draw_runs(recorded: Recorded) -> Iterator[Event]:
    python = {line.number: f"{line.python[0]}:{line.python[1]}" for line in recorded.lines if line.python}
    for run in recorded.runs:
        first, last = run.lines
        yield _make_slice(
            run.label, "run", run.start, run.end, _locate(recorded, run.track), ptx_lines=f"{first}-{last}",
            python=python.get(first, ""), lanes=run.lanes, instructions=run.steps,
        )  # fmt: skip


def _draw_waits(recorded: Recorded) -> Iterator[Event]:
    for wait in recorded.waits:
        place = _locate(recorded, wait.track)
        yield _make_slice(
            f"wait {wait.barrier}", "wait", wait.start, wait.end, place, barrier=wait.barrier, phase=wait.phase,
            ptx_line=wait.line, released=wait.released,
        )  # fmt: skip


def _draw_transfers(recorded: Recorded, rows: Sequence[int]) -> Iterator[Event]:
    for item, row in zip(recorded.transfers, rows, strict=True):
        about = {"bytes": item.bytes, "flops": item.flops, "barrier": item.barrier, "ptx_line": item.line}
        shown = {name: value for name, value in about.items() if value}
        issuer = recorded.tracks[item.issuer].name
        yield _make_slice(
            item.what, "engine", item.start, item.end, _locate(recorded, item.track, row), **shown, issued_by=issuer,
            operations=item.count, waited_for=item.observed,
        )  # fmt: skip


def _draw_arrows(recorded: Recorded, rows: Sequence[int]) -> Iterator[Event]:
    row_of = {(item.track, item.start): row for item, row in zip(recorded.transfers, rows, strict=True)}
    for number, wait in enumerate(recorded.waits):
        if wait.cause is None:
            continue
        start = _locate(recorded, wait.cause.track, row_of.get((wait.cause.track, wait.cause.time), 0))
        shared = {"cat": "release", "name": wait.barrier, "id": number + 1}
        yield {"ph": "s", "ts": wait.cause.time, **start, **shared}
        yield {"ph": "f", "bp": "e", "ts": wait.end - 1, **_locate(recorded, wait.track), **shared}


def _draw_hazards(recorded: Recorded, findings: Sequence[Finding]) -> Iterator[Event]:
    for finding, (spot, _) in zip(findings, locate_findings(recorded, findings), strict=True):
        if spot.track >= 0:
            args = {"message": str(finding.diagnostic()), "ptx_line": spot.line}
            name = f"{finding.rule.code} {finding.rule.title}"
            place = _locate(recorded, spot.track)
            yield {"ph": "i", "s": "t", "cat": "hazard", "name": name, "ts": spot.time, **place, "args": args}
