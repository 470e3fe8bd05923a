"""Minimum and maximum against their definition."""

from __future__ import annotations

import numpy as np
import pytest

from pyptx.sim.numerics.extremes import maximum, minimum
from pyptx.sim.numerics.rounding import encode


@pytest.mark.parametrize("name", ["f16", "bf16", "f32", "f64"])
def test_extremes_against_their_definition(name: str) -> None:
    dtype = {"f32": np.float32, "f64": np.float64}.get(name)
    values = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 2.5, 1e-40]
    table = np.array(values, dtype) if dtype else encode(np.array(values), name)
    x, y = (grid.ravel() for grid in np.meshgrid(table, table))
    a, b = (np.repeat(values, len(values)), np.tile(values, len(values)))[::-1]
    for function, pick in ((minimum, min), (maximum, max)):
        got = function(x, y, name=name)
        strict = function(x, y, name=name, nan=True)
        for index, (left, right) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
            numbers = [v for v in (left, right) if v == v]
            want = pick(numbers, key=lambda v: (v, -int(np.signbit(v)))) if numbers else np.nan
            assert _is_same(got[index], table[_index(values, want)]), (left, right)
            want = want if len(numbers) == 2 else np.nan
            assert _is_same(strict[index], table[_index(values, want)]), (left, right)


def _index(values: list[float], x: float) -> int:
    return next(i for i, v in enumerate(values) if (v == x and np.signbit(v) == np.signbit(x)) or (v != v and x != x))


def _is_same(x: np.generic, y: np.generic) -> bool:
    is_equal = bool(x == y) and bool(np.signbit(x) == np.signbit(y)) if x.dtype.kind == "f" else bool(x == y)
    return is_equal or (x.dtype.kind == "f" and bool(np.isnan(x)) and bool(np.isnan(y)))


def test_extremes_of_magnitudes_and_three() -> None:
    a, b, c = (np.array([v], np.float32) for v in (-3.0, 2.0, 5.0))
    assert minimum(a, b, abs=True, xorsign=True).tolist() == [-2.0]
    assert maximum(a, -b, abs=True, xorsign=True).tolist() == [3.0]
    assert maximum(a, b, c).tolist() == [5.0]
    assert minimum(a, b, c, abs=True).tolist() == [2.0]
    nan = np.array([np.nan], np.float32)
    assert minimum(a, nan, c).tolist() == [-3.0]
    assert minimum(a, nan, c, nan=True).view(np.uint32).tolist() == [0x7FFFFFFF]
    assert minimum(nan, nan, b).tolist() == [2.0]
    tiny = np.array([-1e-40], np.float32)
    assert np.signbit(minimum(tiny, b, ftz=True)).tolist() == [True]
    assert minimum(tiny, b, ftz=True).tolist() == [0.0]
