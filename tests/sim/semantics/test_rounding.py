"""Directed roundings that determine the sign of a zero."""

from __future__ import annotations

import numpy as np
import pytest

from pyptx.sim.semantics.rounding import fma32


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
