"""The approximate functions: the exact result rounded to nearest, which lies within every bound the manual gives.

Manual: ex2, lg2, sin, cos, tanh, rsqrt, rcp, sqrt and div with .approx. Hardware returns other numbers within the same
bounds. Values are computed in float64, good to about 2**-52, and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pyptx.sim.numerics.arithmetic import finish, wide
from pyptx.sim.numerics.arrays import F32, F64, Array, quiet
from pyptx.sim.numerics.rounding import flush

_FUNCTIONS: dict[str, Callable[[F64], F64]] = {
    "ex2": np.exp2,
    "lg2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "rcp": lambda x: 1.0 / x,
}

_HIGH = np.uint64(0xFFFFFFFF00000000)
_NAN_F64 = np.uint64(0x7FFFFFFF00000000)
_LEAST_NORMAL_F64 = 2.0**-1022


def approximate(function: str, x: Array, name: str = "f32", *, ftz: bool = False) -> Array:
    """Return the function of every number, rounded to nearest."""
    with quiet():
        return finish(_FUNCTIONS[function](wide(x, name, ftz)), name, ftz=ftz)


def ex2_bf16(x: Array) -> Array:
    """Return 2**x of bf16, subnormals flushed: the one instruction of bf16 with .ftz."""
    small = (x & np.uint16(0x7F80)) == 0
    result = approximate("ex2", np.where(small, x & np.uint16(0x8000), x), "bf16")
    return np.where((result & np.uint16(0x7F80)) == 0, result & np.uint16(0x8000), result)


def div_approx(a: F32, b: F32, *, ftz: bool = False) -> F32:
    """Return a / b; where 1 / b would be subnormal the quotient is zero, or NaN of an infinite a."""
    if ftz:
        a, b = flush(a), flush(b)
    with quiet():
        result = wide(a, "f32") / wide(b, "f32")
        size = np.abs(b)
        lost = (size > 2.0**126) & np.isfinite(b)
        result = np.where(lost, np.where(np.isfinite(a), np.copysign(0.0, result), np.nan), result)
    return finish(result, "f32", ftz=ftz)


def rcp_f64(x: F64) -> F64:
    """Return the gross reciprocal of f64 (`rcp.approx.ftz.f64`): upper words only."""
    return _upper_word(x, lambda v: 1.0 / v)


def rsqrt_f64(x: F64, *, ftz: bool = False) -> F64:
    """Return 1 / sqrt(x) of f64; with `ftz`, of upper words only."""
    if not ftz:
        with quiet():
            return 1.0 / np.sqrt(x)
    return _upper_word(x, lambda v: 1.0 / np.sqrt(v))


def _upper_word(x: F64, function: Callable[[F64], F64]) -> F64:
    with quiet():
        operand = _flush_f64((x.view(np.uint64) & _HIGH).view(np.float64))
        result = _flush_f64(function(operand))
        rounded = (result.view(np.uint64) + np.uint64(1 << 31)) & _HIGH
        kept = np.where(np.isfinite(result), rounded, result.view(np.uint64))
        return np.where(np.isnan(result), _NAN_F64, kept).view(np.float64)


def _flush_f64(x: F64) -> F64:
    return np.where(np.abs(x) < _LEAST_NORMAL_F64, np.copysign(0.0, x), x)
