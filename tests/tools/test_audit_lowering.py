"""The audit of matrix products' machine code: correct on samples, and it detects code that differs from the model."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache

import pytest

from tools.audit_lowering import Form, Operation, all_cases, lower_cases, mismatch, model, signature

CHOSEN = (
    "mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e5m2.f32",
    "mma.sync.aligned.m16n8k32.row.col.f16.e5m2.e5m2.f16",
    "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.f32.e4m3.e4m3.f32",
    "mma.sync.aligned.m8n8k4.col.row.f16.f16.f16.f16",
    "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32",
    "wmma.mma.sync.aligned.row.col.m16n16k8.f32.tf32.tf32.f32",
    "wmma.mma.sync.aligned.row.col.m16n16k16.f16.f32",
)


@cache
def _compile_samples() -> dict[str, tuple[Form, list[Operation]]]:
    """Return the machine code of products that sm_90 has no instruction for."""
    cases = [case for case in all_cases("sm_90", ("mma", "wmma")) if case.text.split(" ")[0] in CHOSEN]
    return {case.text.split(" ")[0]: (Form.of(case), operations) for case, operations in lower_cases(cases)}


@pytest.mark.parametrize("name", CHOSEN)
def test_products_that_hopper_makes_of_other_instructions(name: str) -> None:
    assert mismatch(*_compile_samples()[name]) is None


@pytest.mark.parametrize(("target", "section"), [("sm_75", "mma"), ("sm_90a", "wgmma"), ("sm_120a", "mma")])
def test_a_sample(target: str, section: str, seed: int) -> None:
    cases = random.Random(seed).sample(all_cases(target, (section,)), 4)
    mismatches = [(case.text, mismatch(Form.of(case), operations)) for case, operations in lower_cases(cases)]
    assert [why for _, why in mismatches] == [None] * len(cases), mismatches


@pytest.mark.parametrize(
    ("name", "change", "why"),
    [
        (CHOSEN[0], {"sm": 89}, "expected steps of 16 elements of K"),
        (CHOSEN[1], {"types": ("f32", "e5m2", "e5m2", "f32")}, "and C added by FADD"),
        (CHOSEN[4], {"sm": 75}, "expected matrix instructions"),
        (CHOSEN[5], {"instruction": "mma"}, "expected steps of 8 elements of K"),
        (CHOSEN[5], {"shape": (16, 8, 8)}, "expected matrix instructions that span"),
        (CHOSEN[6], {"types": ("f16", "f16", "f16", "f16")}, "expected matrix instructions alone"),
    ],
)
def test_machine_code_that_is_not_the_model_is_reported(name: str, change: dict[str, object], why: str) -> None:
    form, operations = _compile_samples()[name]
    assert why in str(mismatch(replace(form, **change), operations))


def test_what_is_printed() -> None:
    form, operations = _compile_samples()[CHOSEN[0]]
    assert signature(operations) == "6×F2FP.UNPACK + 2×HMMA.1688.F32 + 4×FADD"
    assert model(form) == "unpacked: 25 bits, steps of 8, f32"
