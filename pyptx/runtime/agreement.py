"""Compares an output with what it should be."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyptx.numbers import FORMATS, Kind
from pyptx.runtime.arrays import Array

_MOST_SHOWN = 3


def compare(name: str, result: Array, expected: Array, rtol: float | None, atol: float | None) -> str:
    """Return what differs between an output and its reference, or nothing."""
    if result.shape != expected.shape:
        raise TypeError(f"`{name}`: the reference has shape {expected.shape}, expected {result.shape}")
    if result.dtype.kind in "iub":
        differs, bound = result != expected, "exactly"
    else:
        relative = 2 * _find_last_place(result.dtype) if rtol is None else rtol
        absolute = 0.0 if atol is None else atol
        result, expected = result.astype(np.float64), expected.astype(np.float64)
        agrees = np.isclose(result, expected, rtol=relative, atol=absolute, equal_nan=True)
        differs, bound = ~agrees, f"within rtol={relative:g}, atol={absolute:g}"
    count = int(np.count_nonzero(differs))
    if not count:
        return ""
    places = np.argwhere(differs)[:_MOST_SHOWN]
    examples = "; ".join(
        f"[{', '.join(map(str, place))}] is {result[tuple(place)]}, expected {expected[tuple(place)]}"
        for place in places.tolist()
    )
    return f"`{name}`: {count} of {result.size} elements differ from the reference, compared {bound}: {examples}"


def _find_last_place(dtype: np.dtype[Any]) -> float:
    """Return the value of the last place of numbers next to 1."""
    formats = (form for form in FORMATS.values() if form.kind is Kind.FLOAT and dtype.name in form.arrays)
    return float(2.0 ** -next(formats).mantissa)
