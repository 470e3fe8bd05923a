"""The dependent launch after its predecessor, which may still run, and with loads before it waits."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

from examples.parts.example import Example, find_example
from pyptx import PtxError, sim
from tools.examples.runs import ORDERS, choose_checks, list_surprises

EXAMPLE = find_example("patterns/dependent_launch")
WAIT = "        ptx.griddepcontrol.wait()\n"


def move_wait(tmp_path: Path, *, after: str = "") -> Example:
    """Return the example without its wait, or with the wait after another line."""
    source = EXAMPLE.path.read_text("utf-8")
    assert source.count(WAIT) == 1
    assert not after or source.count(after) == 1
    source = source.replace(WAIT, "")
    file = tmp_path / "broken.py"
    file.write_text(source.replace(after, after + WAIT) if after else source, "utf-8")
    example = runpy.run_path(str(file))["EXAMPLE"]
    assert isinstance(example, Example)
    return example


def run_twice(example: Example, schedule: str, seed: int) -> tuple[list[sim.Result], np.ndarray, np.ndarray]:
    """Scale rows, and the result again in a launch that may overlap; return its result and what it should be."""
    x, w = EXAMPLE.draw_inputs(EXAMPLE.runs[1])
    once, twice, kernel = np.zeros_like(x), np.zeros_like(x), example.make()
    launches = [kernel.stream_launch(x, w, out=once), kernel.stream_launch(once, w, out=twice, programmatic=True)]
    return sim.stream(launches, schedule=schedule, seed=seed), twice, x * w * w


@pytest.mark.parametrize(("schedule", "seed"), ORDERS)
def test_a_launch_may_start_before_its_predecessor_has_ended(schedule: str, seed: int) -> None:
    results, actual, desired = run_twice(EXAMPLE, schedule, seed)
    assert [result.hazards for result in results] == [[], []]
    np.testing.assert_array_equal(actual, desired)


def test_without_its_wait_it_reads_what_its_predecessor_writes(tmp_path: Path) -> None:
    broken = move_wait(tmp_path)
    with pytest.raises(PtxError, match="PTX0906"):
        run_twice(broken, "eager", 0)


@pytest.mark.parametrize(("schedule", "seed"), ORDERS[:3])
def test_the_audit_finds_accesses_before_the_wait(schedule: str, seed: int, tmp_path: Path) -> None:
    late = move_wait(tmp_path, after="        ptx.st(f32, ptx.addr(py, row), values)\n")
    outcome = late.simulate(late.runs[0], schedule=schedule, seed=seed, check=choose_checks(schedule))
    outcome.verify()
    surprises = list_surprises(late.runs[0], schedule, outcome.report.hazards)
    assert [re.findall(r"PTX\d+", surprise)[0] for surprise in surprises] == ["PTX0929"] * 2
