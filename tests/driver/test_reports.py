"""Reports of launches, and what a baseline knows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pyptx.driver.reports import Baseline, format_report, list_new, read_records

RACE = {
    "severity": "error", "code": "PTX0901", "file": None, "line": 12, "col": 3, "length": 5, "message": "a <race>",
    "notes": ["first by lane 0"], "help": "use a barrier", "source": "kernels.py:7, by standard.py:3",
}  # fmt: skip
FAULT = {**RACE, "code": "PTX1110", "line": 3, "source": "", "help": None, "message": "out of bounds"}
LAUNCH = {
    "kernel": "sum", "grid": [1, 1, 1], "block": [32, 1, 1], "cluster": [1, 1, 1], "shared": 0, "place": "main.py:20",
    "instructions": 10, "seconds": 0.5, "diagnostics": [RACE, FAULT],
}  # fmt: skip
LAUNCHES = [LAUNCH, {**LAUNCH, "diagnostics": [RACE]}, {**LAUNCH, "diagnostics": []}]


def test_launches_end_with_their_record_or_are_cut(tmp_path: Path) -> None:
    first, second = ({**LAUNCH, "kernel": name} for name in ("first", "second"))
    memory = {**LAUNCH, "grid": None}
    lines = [{"begins": [first]}, {"begins": [second]}, second, {"begins": [first, second]}, memory]
    (tmp_path / "1.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    cut = [{**launch, "is_cut": True} for launch in (first, second)]
    assert read_records(tmp_path) == ([cut[0], second, memory, *cut], 0)


def test_records_of_all_processes_are_read(tmp_path: Path) -> None:
    (tmp_path / "2.jsonl").write_text(json.dumps(LAUNCH) + "\n", "utf-8")
    (tmp_path / "1.jsonl").write_text(f"{json.dumps(LAUNCHES[1])}\n{json.dumps(LAUNCHES[2])}\n", "utf-8")
    assert read_records(tmp_path) == ([*LAUNCHES[1:], LAUNCH], 0)


def test_a_record_that_was_being_written_is_left_out(tmp_path: Path) -> None:
    text = json.dumps(LAUNCH)
    (tmp_path / "1.jsonl").write_text(f"{text}\n{text[: len(text) // 2]}", "utf-8")
    (tmp_path / "2.jsonl").write_text("", "utf-8")
    assert read_records(tmp_path) == ([LAUNCH], 1)


def test_a_finding_is_new_once() -> None:
    assert list_new(LAUNCHES, None) == [RACE, FAULT]


@pytest.mark.parametrize(
    ("change", "is_known"),
    [
        ({}, True), ({"line": 40}, True), ({"message": "other bytes"}, True), ({"source": "kernels.py:8"}, False),
        ({"code": "PTX0902"}, False), ({"source": "", "line": 12}, False),
    ],
)  # fmt: skip
def test_a_finding_is_known_by_code_kernel_and_source_line(change: dict[str, Any], is_known: bool) -> None:
    baseline = Baseline({"launches": LAUNCHES})
    assert baseline.knows(LAUNCH, {**RACE, **change}) == is_known
    assert not baseline.knows({**LAUNCH, "kernel": "product"}, {**RACE, **change})


def test_without_source_the_line_of_the_ptx_counts() -> None:
    baseline = Baseline({"launches": LAUNCHES})
    assert baseline.knows(LAUNCH, FAULT)
    assert not baseline.knows(LAUNCH, {**FAULT, "line": 4})


def test_findings_are_accepted_by_pattern() -> None:
    baseline = Baseline({"accepted": [{"code": "PTX0901", "kernel": "s?m", "reason": "it is meant"}]})
    assert list_new(LAUNCHES, baseline) == [FAULT]
    assert list_new([{**LAUNCH, "kernel": "sums"}], baseline) == [RACE, FAULT]
    assert list_new(LAUNCHES, Baseline({"accepted": [{"code": "PTX0901", "reason": "everywhere"}]})) == [FAULT]


@pytest.mark.parametrize(
    ("compiler", "is_known"), [("NVIDIA NVVM Compiler, V13.4.92", True), ("LLVM NVPTX Back-End", False), ("", False)]
)
def test_findings_are_accepted_by_compiler(compiler: str, is_known: bool) -> None:
    baseline = Baseline({"accepted": [{"code": "PTX0901", "compiler": "NVIDIA*", "reason": "it is meant"}]})
    assert baseline.knows({**LAUNCH, "compiler": compiler}, RACE) == is_known
    assert not baseline.knows(LAUNCH, RACE)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"), ("[]", "not a report"), ("{}", "not a report"),
        ('{"accepted": [{"code": "PTX0901"}]}', "needs a `code` and a `reason`"),
        ('{"accepted": {}}', "`accepted` is not a list"),
        ('{"accepted": ["PTX0901"]}', 'is an object, found "PTX0901"'),
        ('{"accepted": [{"code": "PTX0901", "reason": "x", "kernels": "a*"}]}', "has no `kernels`; it has code"),
        ('{"accepted": [{"code": "PTX0901", "reason": 1}]}', "`reason` of an accepted finding is a string, found 1"),
        ('{"launches": [{}]}', "`launches` does not come from"), ('{"launches": [1]}', "`launches` does not come"),
    ],
)  # fmt: skip
def test_other_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "baseline.json").write_text(text, "utf-8")
    with pytest.raises(ValueError, match=message):
        Baseline.read(tmp_path / "baseline.json")


def test_a_report_serves_as_a_baseline(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text(format_report(".json", "h100", LAUNCHES, None), "utf-8")
    assert list_new(LAUNCHES, Baseline.read(tmp_path / "report.json")) == []


def test_sarif_places_findings_in_the_source() -> None:
    baseline = Baseline({"accepted": [{"code": "PTX1110", "reason": "known"}]})
    document = json.loads(format_report(".sarif", "h100", LAUNCHES, baseline))
    (run,) = document["runs"]
    race, fault = run["results"]
    assert document["version"] == "2.1.0"
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["PTX0901", "PTX1110"]
    assert race["message"]["text"] == "a <race>\nfirst by lane 0\nhelp: use a barrier"
    assert [(item["ruleId"], item["level"], item["baselineState"]) for item in (race, fault)] == [
        ("PTX0901", "error", "new"), ("PTX1110", "error", "unchanged"),
    ]  # fmt: skip
    places = [item["locations"][0]["physicalLocation"] for item in (race, fault)]
    assert [(place["artifactLocation"]["uri"], place["region"]["startLine"]) for place in places] == [
        ("kernels.py", 7), ("main.py", 20),
    ]  # fmt: skip
    assert race["locations"][0]["logicalLocations"] == [{"name": "sum", "kind": "function"}]
    assert race["stacks"] == []


def test_reports_show_the_calls_that_led_to_a_launch() -> None:
    launches = [{**LAUNCH, "stack": ["calls.py:3", "main.py:20"]}]
    (run,) = json.loads(format_report(".sarif", "h100", launches, None))["runs"]
    ((stack,),) = [result["stacks"] for result in run["results"][:1]]
    places = [frame["location"]["physicalLocation"] for frame in stack["frames"]]
    assert [(place["artifactLocation"]["uri"], place["region"]["startLine"]) for place in places] == [
        ("calls.py", 3), ("main.py", 20),
    ]  # fmt: skip
    assert "<td>calls.py:3, by main.py:20</td>" in format_report(".html", "h100", launches, None)


def test_the_page_shows_every_launch_and_escapes_texts() -> None:
    page = format_report(".html", "h100", LAUNCHES, Baseline({"accepted": [{"code": "PTX1110", "reason": "known"}]}))
    assert page.count("<td>main.py:20</td>") == 3
    assert re.findall(r"<tr><td>(\d+)</td>", page) == [str(number) for number in range(1, len(LAUNCHES) + 1)]
    assert "a &lt;race&gt;" in page
    assert "<race>" not in page
    assert page.count('<pre class="error">') == 2
    assert page.count('<pre class="error known">') == 1
    assert "<script" not in page
