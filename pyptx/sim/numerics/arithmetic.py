"""Sums of f16, bf16 and f32, rounded once, as bulk copies and tensor copies reduce them.

The work is done in float64, where sums of these formats are rounded to odd. Double precision is in `double.py`; what
instructions on registers compute is in `semantics`.
"""

from __future__ import annotations

from pyptx.sim.numerics.arrays import F32, F64, Array, quiet
from pyptx.sim.numerics.formats import widen
from pyptx.sim.numerics.rounding import canonical, encode, flush, flush_half, to_odd, two_sum


def add(a: Array, b: Array, name: str = "f32", *, ftz: bool = False) -> Array:
    """Return a + b, rounded to nearest even; with `ftz`, subnormal operands and sums are zeros of their sign."""
    if name == "f32":
        return _add_native(a, b, ftz)
    with quiet():
        total, error = two_sum(_widen(a, name, ftz), _widen(b, name, ftz))
        rounded_sum = encode(to_odd(total, error), name)
    return flush_half(rounded_sum, name) if ftz and name == "f16" else rounded_sum


def _widen(x: Array, name: str, ftz: bool) -> F64:
    return widen(flush_half(x, name) if ftz and name == "f16" else x, name)


def _add_native(a: F32, b: F32, ftz: bool) -> F32:
    """Compute in float32: the processor rounds to nearest even, subnormals included."""
    if ftz:
        a, b = flush(a), flush(b)
    with quiet():
        total: F32 = a + b
    return canonical(flush(total) if ftz else total)
