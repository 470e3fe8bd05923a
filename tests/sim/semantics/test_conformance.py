"""A sample of the forms that work on registers, against their scalar references."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tools.conformance import __main__ as conformance
from tools.conformance import forms, simulated
from tools.conformance.agreement import compare
from tools.conformance.memory_forms import memory_cases
from tools.conformance.references import FAMILIES, WARPS, has_reference, reference
from tools.conformance.references.bounded import judge


def test_a_sample_agrees(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert conformance.main(["--sample", "150", "--seed", str(seed)]) == 0, capsys.readouterr().out


def test_a_wrong_result_is_seen() -> None:
    case = next(case for case in forms.cases(["integer"]) if case.text.startswith("add.s32 "))
    ((_, operands, results),) = simulated.run([case], 0)
    assert not isinstance(results, Exception)
    wanted = reference(case, operands)
    assert compare(case, operands, results, wanted).differing == 0
    results[0, 7, 0] ^= 1
    found = compare(case, operands, results, wanted)
    assert found.differing == 1
    assert hex(int(operands[0, 7, 0])) in found.example


def test_a_failure_is_seen() -> None:
    case = next(case for case in forms.cases(["integer"]) if case.text.startswith("add.s32 "))
    found = compare(case, simulated.given(case, 0), KeyError("a table"), None)
    assert found.differing == found.tuples
    assert "KeyError" in found.example


def test_every_reference_is_of_a_form_and_every_form_has_one() -> None:
    tried = [*forms.cases(), *memory_cases()]
    assert {opcode for family in (*FAMILIES, WARPS) for opcode in family} <= {case.opcode for case in tried}
    assert [case.text for case in tried if not has_reference(case)] == []


def test_a_result_beyond_the_bound_is_seen() -> None:
    case = next(case for case in forms.cases(["floating_point"]) if case.text.startswith("ex2.approx.f32 "))
    ((_, operands, results),) = simulated.run([case], 0)
    assert not isinstance(results, Exception)
    right = judge(case, operands, results)
    assert right is not None
    assert all(right)
    number = next(n for n, bits in enumerate(results[0, :, 0].tolist()) if 0x3F800000 < bits < 0x7F000000)
    results[0, number, 0] += 4
    wrong = judge(case, operands, results)
    assert wrong is not None
    assert [n for n, within in enumerate(wrong) if not within] == [number]


def test_an_element_of_a_product_is_seen() -> None:
    case = next(case for case in forms.cases(["mma"]) if "m16n8k16.row.col.f32.f16.f16.f32" in case.text)
    ((_, operands, results),) = simulated.run([case], 0)
    assert not isinstance(results, Exception)
    wanted = reference(case, operands)
    assert wanted is not None
    assert compare(case, operands, results, wanted).differing == 0
    number = next(n for n, bits in enumerate(wanted[2, :, 0].tolist()) if 0 < bits < 0x7F000000)
    results[2, number, 0] += 1
    assert compare(case, operands, results, wanted).differing == 1


def test_a_python_without_packages_is_told_which() -> None:
    command = [sys.executable, "-S", "-m", "tools.conformance.needs"]
    done = subprocess.run(command, cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install numpy" in done.stderr
