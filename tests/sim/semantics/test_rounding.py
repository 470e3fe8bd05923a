"""Directed roundings that determine the sign of a zero; ties that a lost addend decides."""

from __future__ import annotations

import numpy as np
import pytest

from pyptx.sim.semantics.rounding import fma32
from tests.sim.lanes import compute


@pytest.mark.parametrize(
    ("a", "b", "c", "negative"),
    [
        (1.5777218e-30, 1.9721523e-31, -0.0, False),
        (1.0, 1.0, -1.0, True),
        (1.0, 0.0, -0.0, True),
        (1.0, 0.0, 0.0, False),
    ],
)
def test_fma_rounded_down_gives_negative_zero_only_where_the_sum_is_zero(
    a: float, b: float, c: float, negative: bool
) -> None:
    x, y, z = np.array([[a], [b], [c]], np.float32)
    result = fma32(x, y, z, "rm")
    assert result[0] == 0
    assert bool(np.signbit(result[0])) is negative


@pytest.mark.parametrize(("c", "expected"), [(2.0**-60, 1 + 2.0**-11 + 2.0**-23), (-(2.0**-60), 1 + 2.0**-11)])
def test_fma_of_constants_rounds_once(c: float, expected: float) -> None:
    """The product is a tie of f32; f64 loses the addend, which decides."""
    a, addend = (int(np.float32(value).view(np.uint32)) for value in (1 + 2.0**-12, c))
    code = f"fma.rn.f32 %d, 0f{a:08X}, 0f{a:08X}, 0f{addend:08X};\nfma.rn.f32 %e, %a, 0f{a:08X}, 0f{addend:08X};"
    inputs = {"a": np.full(3, 1 + 2.0**-12, np.float32)}
    found = compute(code, inputs, {"d": np.float32, "e": np.float32})
    assert found["d"].tolist() == found["e"].tolist() == [expected] * 3
