"""Conversions between integers and floating-point numbers, and between formats.

Manual: Data Movement and Conversion Instructions: cvt.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pyptx.sim.numerics.arithmetic import finish, wide
from pyptx.sim.numerics.arrays import F64, Array, quiet
from pyptx.sim.numerics.formats import FORMATS
from pyptx.sim.numerics.rounding import encode, flush, to_odd, two_sum

_TO_WHOLE: dict[str, Callable[[F64], F64]] = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
_TOWARD = {"rz": 0.0, "rm": -np.inf, "rp": np.inf}


def to_integer(x: Array, name: str, dtype: np.dtype[Any], rounding: str = "rzi", *, ftz: bool = False) -> Array:
    """Return integers, held within the type's range.

    NaN becomes 0, but the upper bit alone if 64 bits are on either side.
    """
    bounds = np.iinfo(dtype)
    with quiet():
        whole = _TO_WHOLE[rounding](wide(x, name, ftz))
        low, high = float(bounds.min), float(bounds.max)
        inside = (whole >= low) & (whole < high)
        result = np.where(inside, whole, 0.0).astype(dtype)
    result = np.where(whole >= high, dtype.type(bounds.max), np.where(whole <= low, dtype.type(bounds.min), result))
    of_nan = np.uint64(1 << (bounds.bits - 1)) if name == "f64" or bounds.bits == 64 else np.uint64(0)
    return np.where(np.isnan(whole), of_nan.astype(dtype), result).astype(dtype)


def to_whole(x: Array, name: str, rounding: str, *, ftz: bool = False, sat: bool = False) -> Array:
    """Round numbers to whole ones of the same format; zeros keep the sign."""
    if name == "f64":
        whole = _TO_WHOLE[rounding](x)
        return np.where(whole > 0, np.minimum(whole, 1.0), 0.0) if sat else whole
    return finish(_TO_WHOLE[rounding](wide(x, name, ftz)), name, ftz=ftz, sat=sat)


def from_integer(x: Array, name: str, rounding: str = "rn", *, sat: bool = False) -> Array:
    """Return integers of any width as numbers, rounded once."""
    if x.dtype.itemsize < 8:
        exact = x.astype(np.float64)
        return _saturated(exact, sat) if name == "f64" else finish(exact, name, rounding, sat=sat)
    high = (x >> x.dtype.type(32)).astype(np.float64) * 2.0**32
    low = (x & x.dtype.type(0xFFFFFFFF)).astype(np.float64)
    nearest, error = two_sum(high, low)
    if name != "f64":
        return finish(to_odd(nearest, error), name, rounding, sat=sat)
    if rounding != "rn":
        beyond = {"rz": error * np.sign(nearest) < 0, "rm": error < 0, "rp": error > 0}[rounding]
        nearest = np.where(beyond, np.nextafter(nearest, _TOWARD[rounding]), nearest)
    return _saturated(nearest, sat)


def _saturated(x: F64, sat: bool) -> F64:
    return np.where(x > 0, np.minimum(x, 1.0), 0.0) if sat else x


def convert(
    x: Array,
    source: str,
    target: str,
    rounding: str = "rn",
    *,
    ftz: bool = False,
    sat: bool = False,
    relu: bool = False,
    satfinite: bool = False,
) -> Array:
    """Return floating-point numbers in another format (the 8-bit formats and smaller too), rounded once."""
    values = wide(x, source, ftz and source == "f32")
    if sat:
        values = np.where(values > 0, np.minimum(values, 1.0), 0.0)
    result = encode(values, target, rounding, satfinite=satfinite and target in FORMATS, relu=relu)
    return flush(result) if ftz and target == "f32" else result
