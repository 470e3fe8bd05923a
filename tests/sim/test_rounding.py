"""Directed roundings where a zero has a sign."""

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
    made = fma32(*(np.array([v], np.float32) for v in (a, b, c)), "rm")
    assert made[0] == 0
    assert bool(np.signbit(made[0])) is negative
