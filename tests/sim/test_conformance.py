"""A sample of the forms that work on registers, against their scalar references."""

from __future__ import annotations

import pytest

from tools.conformance import __main__ as conformance
from tools.conformance import forms, simulated
from tools.conformance.agreement import compare
from tools.conformance.references import FAMILIES, reference


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


def test_every_reference_is_of_a_form() -> None:
    assert {opcode for family in FAMILIES for opcode in family} <= {case.opcode for case in forms.cases()}
