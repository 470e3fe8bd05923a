"""Compares an output with what it should be."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyptx.diagnostics import Rule
from pyptx.dsl.trace import fail
from pyptx.numbers import FORMATS, Format, Kind
from pyptx.runtime.arrays import Array

_MOST_SHOWN, _SMALL = 3, 16


def check_tolerances(rule: Rule, rtol: object, atol: object) -> None:
    """Refuse tolerances other than finite numbers of at least 0."""
    for name, value in (("rtol", rtol), ("atol", atol)):
        if value is not None and not (
            isinstance(value, int | float | np.floating | np.integer) and 0 <= value < np.inf
        ):
            text = f"{name}: expected a finite number of at least 0, found {value!r}"
            fail(rule, text, help=f"omit {name}= for the default")


def compare(name: str, result: Array, expected: Array, rtol: float | None, atol: float | None) -> str:
    """Return what differs between an output and its reference, or nothing."""
    if result.shape != expected.shape:
        raise TypeError(f"`{name}`: the reference has shape {expected.shape}, expected {result.shape}")
    if np.iscomplexobj(expected):
        raise TypeError(f"`{name}`: the reference has complex numbers, expected {result.dtype}")
    form = find_format(result.dtype)
    if form.kind is Kind.INTEGER:
        differs, bound = result != expected, "exactly"
    else:
        relative = _choose_tolerance(form) if rtol is None else rtol
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


def find_format(dtype: np.dtype[Any]) -> Format:
    """Return the number format of the elements of an array."""
    return next(form for form in FORMATS.values() if dtype.name in form.arrays)


def _choose_tolerance(form: Format) -> float:
    """Return two units in the last place of numbers next to 1. One for small formats: two would make 0 and 1 equal in
    e2m1. None for powers of two, whose last place is the number itself."""
    units = 0 if form.kind is not Kind.FLOAT else 1 if form.bits < _SMALL else 2
    return float(units * 2.0**-form.mantissa)
