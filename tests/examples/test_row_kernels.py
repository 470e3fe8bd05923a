"""The memory-bound kernels are right for the other type of their template parameter, too."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from examples.parts.example import HALF, Run, find_example
from pyptx.types import PtxType, bf16, f32

CASES = [
    ("any/softmax", bf16, 1e-30), ("any/rmsnorm", bf16, 1e-5), ("any/layernorm", f32, 1e-5), ("any/swiglu", f32, 1e-5),
]  # fmt: skip


@pytest.mark.parametrize("n", [8, 1001, 17000])
@pytest.mark.parametrize(("name", "dtype", "atol"), CASES, ids=[f"{case[0]}-{case[1].name}" for case in CASES])
def test_a_kernel_is_right_for_its_other_type(name: str, dtype: PtxType, atol: float, n: int) -> None:
    example = find_example(name)
    variant = replace(example, make=partial(example.make, dtype=dtype))
    variant.simulate(Run({"m": 2, "n": n}, HALF if dtype == bf16 else 1e-5, atol)).verify()
