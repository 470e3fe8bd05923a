"""The trace: required keys of the trace event format, arrows inside slices, names, hazards."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from pyptx.diagnostics import Span
from pyptx.sim import rules
from pyptx.sim.hazards import Finding, Place
from pyptx.sim.observers.timeline.page import make_payload
from pyptx.sim.observers.timeline.perfetto import make_trace
from pyptx.sim.observers.timeline.records import Cause, Line, Run, RunRecord, Track, Transfer, Wait
from pyptx.sim.reports.findings import Agent
from tests.sim.observers.timeline.runs import BULK, HAND_OVER, timeline

REQUIRED = {
    "M": {"name", "pid", "tid", "args"}, "X": {"name", "cat", "ts", "dur", "pid", "tid", "args"},
    "s": {"name", "cat", "id", "ts", "pid", "tid"}, "f": {"name", "cat", "id", "ts", "pid", "tid", "bp"},
    "i": {"name", "ts", "pid", "tid", "s"},
}  # fmt: skip


def check(trace: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Check a trace against the format, and return its events by phase."""
    events: dict[str, list[dict[str, Any]]] = {}
    for event in trace["traceEvents"]:
        assert event["ph"] in REQUIRED
        assert REQUIRED[event["ph"]] <= set(event), event
        assert all(isinstance(event[key], int) for key in ("ts", "dur", "pid", "tid") if key in event)
        events.setdefault(event["ph"], []).append(event)
    by_thread: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for event in events["X"]:
        assert event["dur"] > 0
        by_thread.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["ts"] + event["dur"]))
    for slices in by_thread.values():
        slices.sort()
        assert all(first[1] <= second[0] for first, second in itertools.pairwise(slices)), "slices overlap"
    for event in (*events.get("s", ()), *events.get("f", ())):
        slices = by_thread[event["pid"], event["tid"]]
        assert any(start <= event["ts"] < end for start, end in slices), f"an arrow outside of slices: {event}"
    assert [e["id"] for e in events.get("s", ())] == [e["id"] for e in events.get("f", ())]
    return events


@pytest.mark.parametrize("text", [HAND_OVER, BULK], ids=["hand over", "bulk"])
@pytest.mark.parametrize("schedule", ["eager", "lazy"])
def test_the_trace_follows_the_format(text: str, schedule: str) -> None:
    events = check(json.loads(json.dumps(timeline(text, 64, schedule=schedule).perfetto())))
    names = {e["args"]["name"] for e in events["M"] if e["name"] == "thread_name"}
    assert {"warp 0", "warp 1"} <= names
    assert any("not timing" in e["args"]["name"] for e in events["M"] if e["name"] == "process_name")


def test_an_arrow_leads_from_the_arrival_to_the_wait_it_released() -> None:
    events = check(timeline(HAND_OVER, 64).perfetto())
    wait = next(e for e in events["X"] if e["name"] == "wait full[1]")
    arrive = next(e for e in events["s"] if e["name"] == "full[1]")
    land = next(e for e in events["f"] if e["id"] == arrive["id"])
    assert (land["tid"], land["ts"]) == (wait["tid"], wait["ts"] + wait["dur"] - 1)
    assert arrive["tid"] != wait["tid"]
    assert arrive["ts"] == 9


def test_a_trace_is_saved_by_its_name(tmp_path: Path) -> None:
    record = timeline(BULK, 64)
    record.save(tmp_path / "run.json")
    assert json.loads((tmp_path / "run.json").read_text())["otherData"]["kernel"] == "k"
    with pytest.raises(ValueError, match=r"\.html or \.json"):
        record.save(tmp_path / "run.txt")


@pytest.mark.parametrize(
    ("grid", "names"),
    [(2, ["0", "1"]), ((1, 2), ["(0, 0, 0)", "(0, 1, 0)"])],
    ids=["one dimension", "two dimensions"],
)
def test_ctas_are_called_as_in_findings(grid: int | tuple[int, int], names: list[str]) -> None:
    record = timeline(HAND_OVER, 64, grid=grid)
    messages = [e["args"]["name"] for e in check(record.perfetto())["M"] if e["name"] == "process_name"]
    assert messages == [f"CTA {name}: logical steps, not timing" for name in names]
    assert make_payload(record.recorded, [], {}, [])["ctas"] == names


def test_all_events_of_a_small_record() -> None:
    record = RunRecord("k", (2, 1, 1), (32, 1, 1), (1, 1, 1), "lazy", "a\nb\nld\nd", [(0, 0, 0), (1, 0, 0)], 3)
    record.tracks = [Track(0, "warp 0", False), Track(1, "warp 0", False), Track(1, "TMA loads", True)]
    record.runs = [Run(0, 0, 4, "start", (1, 4), 32, 4), Run(1, 2, 8, "loop", (2, 3), 16, 12)]
    record.waits = [Wait(0, 4, 9, "full", 2, 3, Cause(2, 5)), Wait(1, 8, 10, "done", 0, 4, None, False)]
    record.transfers = [
        Transfer(2, 3, 7, "load", 2, 1, bytes=64, barrier="full", count=2),
        Transfer(2, 5, 9, "load", 2, 1, flops=8, has_wait=False),
        Transfer(2, 7, 8, "store", 3, 1),
    ]
    record.lines = [Line(1, 1, 32, 0, None), Line(2, 1, 16, 0, ("/a.py", 5))]
    finding = Finding(rules.DIVERGENT, Place(Span(3, 1), "ld"), Agent(1, 0, 5), "what")
    first, second, loads, below = ({"pid": pid, "tid": tid} for pid, tid in ((1, 1), (2, 65), (2, 129), (2, 130)))

    def name(place: dict[str, int], what: str, **args: Any) -> dict[str, Any]:
        return {"ph": "M", "name": what, **place, "args": args}

    def draw(place: dict[str, int], kind: str, text: str, start: int, steps: int, **args: Any) -> dict[str, Any]:
        return {"ph": "X", "name": text, "cat": kind, "ts": start, "dur": steps, **place, "args": args}

    names = [
        event
        for n in (0, 1)
        for event in (
            name({"pid": n + 1, "tid": 0}, "process_name", name=f"CTA {n}: logical steps, not timing"),
            name({"pid": n + 1, "tid": 0}, "process_sort_index", sort_index=n),
        )
    ]
    orders = ((first, "warp 0", 0), (second, "warp 0", 64), (loads, "TMA loads", 128 + 2**20),
              (below, "TMA loads", 129 + 2**20))  # fmt: skip
    for place, text, order in orders:
        names += [name(place, "thread_name", name=text), name(place, "thread_sort_index", sort_index=order)]
    assert make_trace(record, [finding])["traceEvents"] == [
        *names,
        draw(first, "run", "start", 0, 4, ptx_lines="1-4", python="", lanes=32, instructions=4),
        draw(second, "run", "loop", 2, 6, ptx_lines="2-3", python="/a.py:5", lanes=16, instructions=12),
        draw(first, "wait", "wait full", 4, 5, barrier="full", phase=2, ptx_line=3, released=True),
        draw(second, "wait", "wait done", 8, 2, barrier="done", phase=0, ptx_line=4, released=False),
        draw(loads, "engine", "load", 3, 4, bytes=64, barrier="full", ptx_line=2, issued_by="warp 0", operations=2,
             waited_for=True),
        draw(below, "engine", "load", 5, 4, flops=8, ptx_line=2, issued_by="warp 0", operations=1, waited_for=False),
        draw(loads, "engine", "store", 7, 1, ptx_line=3, issued_by="warp 0", operations=1, waited_for=True),
        {"ph": "s", "ts": 5, **below, "cat": "release", "name": "full", "id": 1},
        {"ph": "f", "bp": "e", "ts": 8, **first, "cat": "release", "name": "full", "id": 1},
        {"ph": "i", "s": "t", "cat": "hazard", "name": "PTX0960 aligned instruction in a divergent warp", "ts": 7,
         **second, "args": {"message": str(finding.diagnostic()), "ptx_line": 3}},
    ]  # fmt: skip


def test_a_track_has_at_most_64_rows() -> None:
    record = RunRecord("k", (1, 1, 1), (32, 1, 1), (1, 1, 1), "lazy", "", [(0, 0, 0)])
    record.tracks = [Track(0, "warp 0", False), Track(0, "TMA loads", True)]
    record.transfers = [Transfer(1, 0, 9, "load", 1, 0) for _ in range(70)]
    events = make_trace(record)["traceEvents"]
    rows = [event["tid"] for event in events if event["ph"] == "X"]
    assert rows == [*range(65, 129), *[128] * 6]
    assert [event["tid"] for event in events if event["name"] == "thread_name"] == [1, *range(65, 129)]
