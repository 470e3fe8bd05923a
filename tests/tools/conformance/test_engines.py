"""Recording the engines' answers on the simulated driver, comparing them, and what a broken engine looks like."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyptx.sim.base.formats import Array
from pyptx.sim.engines import copies
from pyptx.sim.engines.copies import movement
from pyptx.sim.engines.copies.plans import Copy
from pyptx.sim.numerics import products
from pyptx.sim.numerics.tensor_core import Rule
from pyptx.tensormap import ElementType
from tools.conformance.engines import simulated
from tools.conformance.engines.__main__ import main
from tools.conformance.engines.answers import Answer, read_answers, write_answers
from tools.conformance.engines.cases import Case
from tools.conformance.engines.comparison import check_digest, find_differences
from tools.conformance.engines.digests import KNOWN, read_digests, read_known_differences
from tools.conformance.engines.selection import select_cases

CASES = {case.name: case for case in select_cases()}


def find(prefix: str, count: int) -> list[Case]:
    return [case for name, case in CASES.items() if name.startswith(prefix)][:count]


def test_a_recording_survives_faults_and_hangs_and_agrees(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    families = ["--family", "words", "--family", "failure"]
    assert main(["--simulated", "h100", "--record", str(tmp_path), "--jobs", "2", "--patience", "4", *families]) == 0
    assert "13 of 13 cases" in capsys.readouterr().out
    _, answers = read_answers(tmp_path)
    assert answers["failure/fault"].error
    assert answers["failure/hang"].error
    assert not answers["failure/after"].error
    assert main(["--answers", str(tmp_path), "--family", "words"]) == 0
    assert "words: 8 cases, 0 differences" in capsys.readouterr().out


def test_answers_are_the_same_when_they_are_read_back(tmp_path: Path) -> None:
    answers = [simulated.run(case, 3, 4096) for case in find("words", 2) + find("map", 4)]
    write_answers(tmp_path, answers, "here")
    assert read_answers(tmp_path) == ("here", {answer.name: answer for answer in answers})
    assert [Answer.from_json(answer.to_json()) for answer in answers] == answers


def differ(cases: list[Case], monkeypatch: pytest.MonkeyPatch, target: object, name: str, broken: object) -> list[str]:
    """Return the cases whose answers differ after a function of the simulator has been replaced."""
    answers = [simulated.run(case, 0, 4096) for case in cases]
    assert not [answer.error for answer in answers if answer.error]
    assert not [*_compare(cases, answers)]
    monkeypatch.setattr(target, name, broken)
    return [*_compare(cases, answers)]


def _compare(cases: list[Case], answers: list[Answer]) -> list[str]:
    return [d.name for case, answer in zip(cases, answers, strict=True) for d in find_differences(case, answer, 0)]


def test_a_wrong_fill_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    load = movement.load

    def broken(copy: Copy, *memories: Any) -> None:
        load(replace(copy, fill=b"\1" * len(copy.fill)), *memories)

    assert len(differ(find("load/tile/2d", 12), monkeypatch, copies, "load", broken)) >= 4


def test_a_wrong_reduction_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(operation: str, old: Array, new: Array, element: ElementType) -> Array:
        return new

    assert differ(find("reduce/min/u32", 3), monkeypatch, movement, "combine", broken)


def test_a_wrong_sum_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(instruction: str, sm: int, name: str, accumulator: str, *, sparse: bool) -> Rule:
        return Rule(24, 16, accumulator)

    cases = find("wgmma/f32_f16_f16_n8_ss", 6)
    assert differ(cases, monkeypatch, products, "select_rule", broken)


def test_an_answer_to_other_inputs_is_stale() -> None:
    (case,) = find("barrier/0", 1)
    answer = replace(simulated.run(case, 0), key="other")
    (difference,) = find_differences(case, answer, 0)
    assert "record it again" in difference.about


def test_a_refusal_of_the_driver_alone_is_a_difference() -> None:
    (case,) = find("map/0", 1)
    answer = simulated.run(case, 0, 4096)
    opposite = replace(answer, error="" if answer.error else "refused: 1", map=b"")
    assert [difference.name for difference in find_differences(case, opposite, 0)] == ["map/0"]


@pytest.mark.parametrize(
    "family", sorted({case.family for case in CASES.values()} - {"map", "atoms", "probe", "im2col"})
)
def test_every_family_runs_on_the_simulator(family: str) -> None:
    cases = [case for case in CASES.values() if case.family == family]
    changes = 0
    for case in cases[:: max(1, len(cases) // 6)]:
        answer = simulated.run(case, 0)
        assert not answer.error
        changes += answer.data != case.make_inputs(0).out
    assert changes


def test_inputs_do_not_depend_on_the_version_of_numpy_or_python() -> None:
    keys = [simulated.run(CASES[name], 0).key for name in ("load/tile/3d/7", "reduce/add/f16/2d/wide")]
    assert keys == ["0c13b6229d37fd1f", "c7d1ba7bc9295208"]


def test_the_simulator_answers_as_an_h200_did(seed: int) -> None:
    """A sample of the record; `python -m tools.conformance.engines` compares all of it in half a minute."""
    about, digests = read_digests()
    assert about.startswith("NVIDIA H200")
    assert len(digests) == len(CASES)
    assert len(read_known_differences()) == len(KNOWN.read_text().splitlines())
    assert {*digests} <= {*CASES}
    names = random.Random(seed).sample(sorted(digests), 400)
    differing = {name for name in names for _ in check_digest(CASES[name], digests[name])}
    assert differing == {*read_known_differences()} & {*names}


def test_completed_loads_report_completion() -> None:
    for case in find("load/tile/3d", 5):
        data = np.frombuffer(simulated.run(case, 0).data, "u4")
        assert data[4096] == 1
