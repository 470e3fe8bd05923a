"""Sums of f16, bf16 and f32, rounded once, for reductions by bulk and tensor copies.

Sums are computed in float64, rounded to odd. `double.py` computes f64; `semantics` has the arithmetic on registers.
"""

from __future__ import annotations

from pyptx.sim.numerics.arrays import F32, F64, Array, quiet
from pyptx.sim.numerics.formats import widen
from pyptx.sim.numerics.rounding import canonicalize_nan, encode, flush, flush_half, round_to_odd, two_sum


def add(a: Array, b: Array, name: str = "f32", *, ftz: bool = False) -> Array:
    """Return a + b, rounded to nearest even; `ftz` flushes subnormal operands and sums to zeros of their sign."""
    if name == "f32":
        return _add_native(a, b, ftz)
    with quiet():
        total, error = two_sum(_widen(a, name, ftz), _widen(b, name, ftz))
        codes = encode(round_to_odd(total, error), name)
    return flush_half(codes, name) if ftz and name == "f16" else codes


def _widen(x: Array, name: str, ftz: bool) -> F64:
    return widen(flush_half(x, name) if ftz and name == "f16" else x, name)


def _add_native(a: F32, b: F32, ftz: bool) -> F32:
    """Add in float32: the CPU rounds to nearest even, subnormals included."""
    if ftz:
        a, b = flush(a), flush(b)
    with quiet():
        total: F32 = a + b
    return canonicalize_nan(flush(total) if ftz else total)
