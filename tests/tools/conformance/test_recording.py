"""Recordings of conformance, made on the simulated driver: what a folder keeps, and which cases are lost."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tools.conformance import __main__ as conformance
from tools.conformance import forms, launchers, recording, simulated
from tools.conformance.device import Device
from tools.conformance.launchers import Limits, Outcomes

DEVICE = Device("a device", "sm_90a")
SOME = ["--opcode", "addc", "--opcode", "vset", "--opcode", "selp", "--sample", "6"]


def list_cases(opcode: str = "add") -> list[forms.Case]:
    return [case for case in forms.cases(["integer"]) if case.opcode == opcode]


def launch(cases: list[forms.Case], limits: Limits) -> Outcomes:
    with launchers.open_launchers("h100", 0) as processes:
        return launchers.run(processes, cases, limits)


def test_a_recording_agrees_with_the_simulator(seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = [*SOME, "--seed", str(seed)]
    assert conformance.main(["--gpu", "--simulated", "h100", "--record", str(tmp_path), *options]) == 0
    assert "6 forms recorded in " in capsys.readouterr().out
    assert conformance.main(["--answers", str(tmp_path), *options]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("NVIDIA H100 80GB HBM3, sm_90, driver ")
    assert lines[0].endswith(", simulated")
    assert lines[-1].startswith("6 forms, 6 compared, ")
    options[-3] = "9"
    assert conformance.main(["--gpu", "--simulated", "h100", "--record", str(tmp_path), *options]) == 0
    assert "3 forms (listed" in (printed := capsys.readouterr().out)
    assert "9 forms recorded in " in printed


def test_a_case_that_faults_or_is_not_assembled_loses_no_other() -> None:
    first, second, third, fourth, *_ = list_cases()
    trap, wrong = replace(second, text="trap;"), replace(fourth, text="add.u128 q_b64_0, 1, 1;")
    outcomes = launch([first, trap, third, wrong], Limits())
    assert isinstance(outcomes[first], np.ndarray)
    assert isinstance(outcomes[third], np.ndarray)
    assert str(outcomes[trap]).startswith("cuLaunchKernel returned CUDA_ERROR_LAUNCH_FAILED")
    assert str(outcomes[wrong]).startswith("not assembled: ")


def test_a_case_that_hangs_loses_no_other() -> None:
    first, second, third, *_ = list_cases()
    endless = replace(second, text="AGAIN: add.u32 tid, tid, 1; bra AGAIN;")
    outcomes = launch([first, endless, third], Limits(launch=4, case=0))
    assert isinstance(outcomes[first], np.ndarray)
    assert isinstance(outcomes[third], np.ndarray)
    assert outcomes[endless] == "no answer within 4 s"


def test_nothing_is_launched_after_the_deadline() -> None:
    cases = list_cases()[:2]
    assert set(launch(cases, Limits(deadline=time.monotonic())).values()) == {"not run: no time or no GPU was left"}


def test_a_recording_keeps_results_for_their_operands(tmp_path: Path) -> None:
    cases = [*list_cases("addc"), *list_cases("add")[:3]]
    results, operands = dict[forms.Case, forms.Array](), dict[forms.Case, forms.Array]()
    for case, arguments, answer in simulated.run(cases, 3):
        assert not isinstance(answer, Exception)
        results[case], operands[case] = answer, arguments
    recording.save(recording.record(DEVICE, 3, results), tmp_path)
    copy = recording.load(tmp_path)
    assert (copy.device, copy.seed) == (DEVICE, 3)
    for case, answer in results.items():
        found = copy.find(case, operands[case])
        assert found is not None
        assert np.array_equal(found, answer)
    assert copy.find(cases[-1], simulated.draw_operands(cases[-1], 4)) is None


def test_a_folder_without_a_recording_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert conformance.main(["--answers", str(tmp_path)]) == 1
    assert " holds no recording: " in capsys.readouterr().err


def test_a_machine_without_a_gpu_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert conformance.main(["--gpu"]) == 1
    assert "no GPU to run on: " in capsys.readouterr().err
