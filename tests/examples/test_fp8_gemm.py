"""The fp8 GEMM promotes its sums often enough: what the tensor cores cut off is small next to the rounding to bf16."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from examples.parts.example import Run, find_example, widen


def test_the_error_is_that_of_rounding_to_bf16() -> None:
    example = find_example("hopper/fp8_gemm")
    run = Run({"m": 64, "n": 128, "k": 4096, "kb": 32, "nb": 1, "sms": 2})
    inputs = example.draw_inputs(run)
    (expected,) = example.compute(run, inputs)
    assert expected is not None
    result = example.make().simulate(*inputs, sms=2, precision="hardware", check="none").outputs["c"]
    rounded = expected.astype(ml_dtypes.bfloat16)
    error, rounding = (np.sqrt(np.mean((widen(values) - expected) ** 2)) for values in (result, rounded))
    assert error < 1.02 * rounding
