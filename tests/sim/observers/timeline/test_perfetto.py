"""The trace: required keys of the trace event format, arrows inside slices, names, hazards."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from pyptx.sim.observers.timeline.page import make_payload
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
