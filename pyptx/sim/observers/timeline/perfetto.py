"""The record in Chrome's trace event format, for Perfetto and chrome://tracing: a process per CTA, a thread per warp
and per row of an engine, and arrows from the cause of a wait's end to the wait."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyptx.sim.hazards import Finding
from pyptx.sim.observers.timeline.findings import locate_findings
from pyptx.sim.observers.timeline.packing import pack_rows
from pyptx.sim.observers.timeline.records import UNIT, RunRecord

Event = dict[str, Any]
_ROWS = 64
"""The most rows of a track."""


def make_trace(record: RunRecord, findings: Sequence[Finding] = ()) -> dict[str, Any]:
    """Return the trace; a step of logical time is shown as a microsecond."""
    rows, heights = pack_rows(record.transfers)
    events = [
        *_name_tracks(record, heights),
        *_draw_runs(record),
        *_draw_waits(record),
        *_draw_transfers(record, rows),
    ]
    events += [*_draw_arrows(record, rows), *_draw_hazards(record, findings)]
    about = {"kernel": record.kernel, "schedule": record.schedule, "unit": UNIT, "ctas_left_out": record.ctas_left_out}
    return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": about}


def _locate(record: RunRecord, track: int, row: int = 0) -> Event:
    return {"pid": record.tracks[track].cta + 1, "tid": track * _ROWS + min(row, _ROWS - 1) + 1}


def _name_tracks(record: RunRecord, heights: dict[int, int]) -> Iterator[Event]:
    for index, cta in enumerate(record.names):
        name = f"CTA {cta}: logical steps, not timing"
        yield {"ph": "M", "name": "process_name", "pid": index + 1, "tid": 0, "args": {"name": name}}
        yield {"ph": "M", "name": "process_sort_index", "pid": index + 1, "tid": 0, "args": {"sort_index": index}}
    for index, track in enumerate(record.tracks):
        for row in range(min(heights.get(index, 1), _ROWS)):
            place = _locate(record, index, row)
            yield {"ph": "M", "name": "thread_name", **place, "args": {"name": track.name}}
            order = index * _ROWS + row + (1 << 20 if track.engine else 0)
            yield {"ph": "M", "name": "thread_sort_index", **place, "args": {"sort_index": order}}


def _make_slice(name: str, category: str, start: int, end: int, place: Event, **args: Any) -> Event:
    return {"ph": "X", "name": name, "cat": category, "ts": start, "dur": end - start, **place, "args": args}


def _draw_runs(record: RunRecord) -> Iterator[Event]:
    python = {line.number: f"{line.python[0]}:{line.python[1]}" for line in record.lines if line.python}
    for run in record.runs:
        first, last = run.lines
        yield _make_slice(
            run.label, "run", run.start, run.end, _locate(record, run.track), ptx_lines=f"{first}-{last}",
            python=python.get(first, ""), lanes=run.lanes, instructions=run.steps,
        )  # fmt: skip


def _draw_waits(record: RunRecord) -> Iterator[Event]:
    for wait in record.waits:
        place = _locate(record, wait.track)
        yield _make_slice(
            f"wait {wait.barrier}", "wait", wait.start, wait.end, place, barrier=wait.barrier, phase=wait.phase,
            ptx_line=wait.line, released=wait.is_over,
        )  # fmt: skip


def _draw_transfers(record: RunRecord, rows: Sequence[int]) -> Iterator[Event]:
    for item, row in zip(record.transfers, rows, strict=True):
        about = {"bytes": item.bytes, "flops": item.flops, "barrier": item.barrier, "ptx_line": item.line}
        details = {name: value for name, value in about.items() if value}
        issuer = record.tracks[item.issuer].name
        yield _make_slice(
            item.label, "engine", item.start, item.end, _locate(record, item.track, row), **details, issued_by=issuer,
            operations=item.count, waited_for=item.has_wait,
        )  # fmt: skip


def _draw_arrows(record: RunRecord, rows: Sequence[int]) -> Iterator[Event]:
    row_of = {(item.track, item.start): row for item, row in zip(record.transfers, rows, strict=True)}
    for number, wait in enumerate(record.waits):
        if wait.cause is None:
            continue
        start = _locate(record, wait.cause.track, row_of.get((wait.cause.track, wait.cause.time), 0))
        shared = {"cat": "release", "name": wait.barrier, "id": number + 1}
        yield {"ph": "s", "ts": wait.cause.time, **start, **shared}
        yield {"ph": "f", "bp": "e", "ts": wait.end - 1, **_locate(record, wait.track), **shared}


def _draw_hazards(record: RunRecord, findings: Sequence[Finding]) -> Iterator[Event]:
    for finding, (spot, _) in zip(findings, locate_findings(record, findings), strict=True):
        if spot.track >= 0:
            args = {"message": str(finding.diagnostic()), "ptx_line": spot.line}
            name = f"{finding.rule.code} {finding.rule.title}"
            place = _locate(record, spot.track)
            yield {"ph": "i", "s": "t", "cat": "hazard", "name": name, "ts": spot.time, **place, "args": args}
