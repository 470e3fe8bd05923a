"""The memory-bound kernels are right for the other type of their template parameter, too."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from examples.parts.example import HALF, Run, find_example
from pyptx.types import PtxType, bf16, f32

CASES = [
    ("any/softmax", bf16, 1e-30), ("any/rmsnorm", bf16, 1e-5), ("any/layernorm", f32, 1e-5), ("any/swiglu", f32, 1e-5),
    ("any/swiglu_backward", f32, 1e-5), ("any/rmsnorm_backward", f32, 1e-5), ("any/column_sums", f32, 1e-5),
]  # fmt: skip


@pytest.mark.parametrize("n", [8, 1001, 17000])
@pytest.mark.parametrize(("name", "dtype", "atol"), CASES, ids=[f"{case[0]}-{case[1].name}" for case in CASES])
def test_a_kernel_is_right_for_its_other_type(name: str, dtype: PtxType, atol: float, n: int) -> None:
    example = find_example(name)
    variant = replace(example, make=partial(example.make, dtype=dtype))
    variant.simulate(Run({"m": 2, "n": n}, HALF if dtype == bf16 else 1e-5, atol)).verify()


@pytest.mark.parametrize("half", [1, 3, 64])
def test_rotary_is_right_for_its_other_type(half: int) -> None:
    example = find_example("any/rotary")
    x, *tables = example.draw_inputs(Run({"h": 5, "s": 70, "d": 2 * half, "half": half}))
    inputs = (x.astype(np.float32), *tables)
    np.testing.assert_allclose(example.make(dtype=f32)(*inputs), example.reference(*inputs), 1e-5, 1e-6)


def test_rotary_with_the_sine_negated_is_its_own_inverse() -> None:
    example = find_example("any/rotary")
    x, cos, sin = example.draw_inputs(Run({"h": 2, "s": 9, "d": 32, "half": 16}))
    rotate = example.make(dtype=f32)
    y = rotate(rotate(x.astype(np.float32), cos, sin), cos, -sin)
    np.testing.assert_allclose(y, x.astype(np.float32), 1e-6, 1e-6)


def test_rotary_refuses_tables_of_another_dimension() -> None:
    with pytest.raises(ValueError, match="the tables must have half of the 64 columns of a head; found 64"):
        find_example("any/rotary").make().grid(h=1, s=1, d=64, half=64)
