"""A sample of the forms that work on registers, against their scalar references."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
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


@cache
def _cases_of(section: str, arch: str) -> dict[str, forms.Case]:
    return {case.text.partition(" ")[0]: case for case in forms.cases([section], arch)}


@pytest.mark.parametrize(
    ("section", "spelling"),
    [("conversion", f"cvt.{spelling}") for spelling in (
        "rs.relu.f16x2.f32", "rs.satfinite.bf16x2.f32", "rs.relu.satfinite.e4m3x4.f32", "rs.satfinite.e3m2x4.f32",
        "rs.satfinite.e2m1x4.f32", "rn.relu.satfinite.f16x2.f32", "rz.relu.bf16x2.f32", "rn.relu.bf16.f32",
        "rn.satfinite.relu.e4m3x2.f16x2", "rn.satfinite.e2m1x2.bf16x2", "rn.relu.f16x2.e5m2x2",
        "rn.satfinite.relu.scaled::n2::ue8m0.bf16x2.e4m3x2", "rn.scaled::n2::ue8m0.bf16x2.s2f6x2",
        "rn.relu.bf16x2.e2m1x2", "rn.satfinite.relu.s2f6x2.f32", "rn.satfinite.scaled::n2::ue8m0.s2f6x2.bf16x2",
        "rp.satfinite.ue8m0x2.bf16x2", "pack.sat.s16.s32", "pack.sat.u2.s32.b32", "pack.sat.s4.s32.b32",
        "pack.sat.s8.s32.b32",
    )] + [("floating_point", f"sub.{mode}.f64") for mode in ("rn", "rz", "rm", "rp")]
    + [("mma", f"mma.sync.aligned.m8n8k4.{spelling}") for spelling in (
        "row.col.f32.f16.f16.f32", "col.row.f32.f16.f16.f16", "row.row.f16.f16.f16.f16", "col.col.f16.f16.f16.f16",
    )],
)  # fmt: skip
def test_rare_forms_agree_with_every_seed(section: str, spelling: str, seed: int) -> None:
    """A sample seldom has one of these forms, each of which takes a way of its own."""
    case = _cases_of(section, "sm_70" if section == "mma" else "sm_90a")[spelling]
    ((_, operands, results),) = simulated.run([case], seed)
    wanted = reference(case, operands)
    agreement = compare(case, operands, results, wanted)
    assert agreement.differing == 0, agreement.example


def test_a_wrong_result_is_seen() -> None:
    case = next(case for case in forms.cases(["integer"]) if case.text.startswith("add.s32 "))
    ((_, operands, results),) = simulated.run([case], 0)
    assert not isinstance(results, Exception)
    expected = reference(case, operands)
    assert compare(case, operands, results, expected).differing == 0
    results[0, 7, 0] ^= 1
    agreement = compare(case, operands, results, expected)
    assert agreement.differing == 1
    assert hex(int(operands[0, 7, 0])) in agreement.example


def test_a_failure_is_seen() -> None:
    case = next(case for case in forms.cases(["integer"]) if case.text.startswith("add.s32 "))
    output = compare(case, simulated.draw_operands(case, 0), KeyError("a table"), None)
    assert output.differing == output.tuples
    assert "KeyError" in output.example


def test_every_reference_is_of_a_form_and_every_form_has_one() -> None:
    all_cases = [*forms.cases(), *memory_cases()]
    assert {opcode for family in (*FAMILIES, WARPS) for opcode in family} <= {case.opcode for case in all_cases}
    assert [case.text for case in all_cases if not has_reference(case)] == []


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
    expected = reference(case, operands)
    assert expected is not None
    assert compare(case, operands, results, expected).differing == 0
    number = next(n for n, bits in enumerate(expected[2, :, 0].tolist()) if 0 < bits < 0x7F000000)
    results[2, number, 0] += 1
    assert compare(case, operands, results, expected).differing == 1


def test_a_python_without_packages_is_told_which() -> None:
    command = [sys.executable, "-S", "-m", "tools.conformance.needs"]
    process = subprocess.run(command, cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False)
    assert process.returncode == 1
    assert "pip install numpy" in process.stderr
