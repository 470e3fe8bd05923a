"""Correct rounding of f32 arithmetic in every mode, from exact error terms. Nothing here knows an instruction.

An f64 value with its error folded into the last bit (round to odd) rounds once more without harm to 50 bits or fewer:
that is how sums and fused products reach f32, f16 and bf16 with a single rounding.
"""

from __future__ import annotations

import numpy as np

from pyptx.sim.base.formats import Array
from pyptx.sim.numerics.rounding import round_to_odd, to_f32, two_sum


def sum_exactly(a: Array, b: Array, mode: str) -> Array:
    """Return an f64 sum rounded to odd; rounded down, the zero that opposite numbers leave is negative."""
    total = round_to_odd(*two_sum(a, b))
    return total if mode != "rm" else np.where((total == 0) & (np.signbit(a) | np.signbit(b)), -0.0, total)


def add32(a: Array, b: Array, mode: str) -> Array:
    """Add f32 values."""
    if mode == "rn":
        return a + b
    x, y = a.astype(np.float64), b.astype(np.float64)
    return _sign_zero(to_f32(round_to_odd(*two_sum(x, y)), mode), a, b, mode)


def _sign_zero(result: Array, a: Array, b: Array, mode: str) -> Array:
    """Return a sum in which an exact zero of opposite summands is -0 when rounding down."""
    if mode != "rm":
        return result
    return np.where((a + b == 0) & (np.signbit(a) | np.signbit(b)), -np.abs(result), result)


def mul32(a: Array, b: Array, mode: str) -> Array:
    """Multiply f32 values."""
    return a * b if mode == "rn" else to_f32(a.astype(np.float64) * b.astype(np.float64), mode)


def fma32(a: Array, b: Array, c: Array, mode: str) -> Array:
    """Multiply and add f32 values with one rounding. Rounding the f64 sum to f32 would round twice if it is a tie of
    f32, subnormal in f32, or becomes the smallest normal number: recompute those lanes."""
    x = np.multiply(a, b, dtype=np.float64)
    z = c.astype(np.float64)
    s = x + z
    if mode != "rn":
        return _sign_zero(to_f32(round_to_odd(*two_sum(x, z)), mode), x, z, mode)
    result = s.astype(np.float32)
    if not s.ndim:
        return round_to_odd(*two_sum(x, z)).astype(np.float32)
    tie = s.view(np.uint32)[::2] & np.uint32(0x1FFFFFFF)
    doubtful = tie == np.uint32(0x10000000)
    tiny = result.view(np.uint32) << np.uint32(1)
    tiny -= np.uint32(1)
    doubtful |= tiny <= np.uint32(0x00FFFFFF)
    if doubtful.any():
        positions = np.flatnonzero(doubtful)
        p, q = np.broadcast_to(x, s.shape)[positions], np.broadcast_to(z, s.shape)[positions]
        result[positions] = round_to_odd(*two_sum(p, q)).astype(np.float32)
    return result


def div32(a: Array, b: Array, mode: str) -> Array:
    """Divide f32 values: the f64 quotient is never so close to a tie or a value that rounding twice matters."""
    return to_f32(a.astype(np.float64) / b.astype(np.float64), mode)


def sqrt32(a: Array, mode: str) -> Array:
    """Return the square root of f32 values."""
    return to_f32(np.sqrt(a.astype(np.float64)), mode)


def saturate(x: Array) -> Array:
    """Clamp to 0 … 1; NaN becomes 0."""
    unity = x.dtype.type(1)
    return np.where(x > 0, np.minimum(x, unity), x.dtype.type(0))
