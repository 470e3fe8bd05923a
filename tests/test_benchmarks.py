"""Comparison of a benchmark run with the committed ratios. No test here measures a time."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from benchmarks import baseline
from benchmarks.__main__ import judge, update
from benchmarks.baseline import FACTOR, Ratio
from benchmarks.catalog import list_ratio_names
from benchmarks.ratios import Times, interleave

COMMITTED = {"a: x / y": Ratio(2.0, 1.0), "a: y / z": Ratio(0.1, 0.1)}


def scale_first(median: float, best: float) -> dict[str, Ratio]:
    """Return the committed ratios, with the first one scaled by these factors."""
    first = COMMITTED["a: x / y"]
    return COMMITTED | {"a: x / y": Ratio(first.median * median, first.best * best)}


@pytest.mark.parametrize(
    ("median", "best", "names"),
    [
        (1, 1, []),
        (FACTOR * 1.01, FACTOR * 1.01, ["a: x / y"]),
        (FACTOR * 9, FACTOR * 0.99, []),  # one slow half of the rounds
        (FACTOR * 0.99, FACTOR * 9, []),  # one lucky round of the peer
        (0.01, 0.01, []),
    ],
)
def test_a_ratio_is_worse_when_its_median_and_its_best_both_grow(median: float, best: float, names: list[str]) -> None:
    assert baseline.find_worse(COMMITTED, scale_first(median, best)) == names


def test_a_new_ratio_and_one_that_was_not_measured_are_not_worse() -> None:
    assert baseline.find_worse(COMMITTED, {"b: new": Ratio(1e9, 1e9)}) == []
    assert "not in the baseline" in baseline.format_row("b: new", None, Ratio(1e9, 1e9))


def test_a_line_shows_both_ratios_and_their_quotient() -> None:
    line = baseline.format_row("a: x / y", Ratio(2, 1), Ratio(5, 3))
    assert line.split()[-5:] == ["5", "2", "x", "2.50", "WORSE"]


def test_only_a_worse_ratio_makes_the_run_fail(capsys: pytest.CaptureFixture[str]) -> None:
    assert judge(COMMITTED, scale_first(FACTOR * 0.9, FACTOR * 0.9) | {"b: new": Ratio(9, 9)}) == 0
    assert judge(COMMITTED, scale_first(FACTOR * 1.1, FACTOR * 1.1)) == 1
    assert "a: x / y: expected a ratio of at most" in capsys.readouterr().err


def test_a_rewritten_baseline_reads_back_and_holds_only_ratios(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    baseline.write(COMMITTED, path)
    assert baseline.read(path) == COMMITTED
    assert set(json.loads(path.read_text("utf-8"))) == {"date", "commit", "machine", "python", "ratios"}


def test_the_baseline_names_exactly_what_the_benchmarks_measure() -> None:
    assert set(baseline.read()) == list_ratio_names()


def test_a_run_that_cannot_measure_every_benchmark_keeps_the_baseline(capsys: pytest.CaptureFixture[str]) -> None:
    before = baseline.read()
    assert update(before, COMMITTED) == 2
    assert baseline.read() == before
    assert "sim_peers was not measured" in capsys.readouterr().err


def test_ours_and_its_peer_run_equally_often_and_by_turns() -> None:
    runs: list[str] = []
    rounds = interleave(
        lambda: runs.append("ours"), lambda: runs.append("peer"), confirm=lambda: runs.append("confirm")
    )
    assert runs == ["ours", "confirm", "peer", "ours", "peer"]
    runs.clear()
    for _ in range(2):
        rounds()
    assert runs.count("ours") == runs.count("peer")
    order = [name for name, previous in zip(runs, [None, *runs], strict=False) if name != previous]
    assert order == ["ours", "peer", "ours"]


def test_the_median_is_that_of_the_rounds_and_the_best_that_of_the_times() -> None:
    times = Times(ours=(2.0, 30.0, 4.0), peer=(1.0, 10.0, 4.0))
    assert (times.median, times.best) == (2.0, 2.0)
    assert Times((2.0, 30.0), (4.0, 1.0)).best == 2.0


def test_the_page_on_launches_shows_the_committed_ratios() -> None:
    page = (Path(__file__).parents[1] / "docs" / "launching.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| (.+ / .+) \| ([\d.]+) \|$", page, re.MULTILINE))
    committed = {name: ratio for name, ratio in baseline.read().items() if name.startswith("launch: ")}
    assert rows == {name.removeprefix("launch: "): f"{ratio.median:.2g}" for name, ratio in committed.items()}
