"""Correct rounding of f32 and f64 arithmetic in every mode, from exact error terms. Nothing here knows an instruction.

An f64 value with its error folded into the last bit (round to odd) rounds once more without harm to 50 bits or fewer:
that is how sums and fused products reach f32, f16 and bf16 with a single rounding.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from pyptx.sim.formats import Array, Value

_SPLIT = 134217729.0
"""2^27 + 1, which cuts a double into halves of 26 bits (Veltkamp)."""


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return a sum and its exact error."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Return a product and its exact error, for f64 values away from overflow and underflow."""
    p = a * b
    x, y = a * _SPLIT, b * _SPLIT
    a1, b1 = x - (x - a), y - (y - b)
    a0, b0 = a - a1, b - b1
    return p, ((a1 * b1 - p) + a1 * b0 + a0 * b1) + a0 * b0


def odd(s: Array, error: Array) -> Array:
    """Return an f64 sum rounded to odd: where the error is not zero, the last bit is 1."""
    bits = s.view(np.int64)
    inexact = (error != 0) & np.isfinite(s) & ((bits & 1) == 0)
    if not inexact.any():
        return s
    away = (error > 0) == (s > 0)
    return np.where(inexact, bits + np.where(away, 1, -1), bits).view(np.float64)


def exact_sum(a: Array, b: Array, mode: str) -> Array:
    """Return an f64 sum rounded to odd; rounded down, the zero that opposite numbers leave is negative."""
    total = odd(*two_sum(a, b))
    return total if mode != "rm" else np.where((total == 0) & (np.signbit(a) | np.signbit(b)), -0.0, total)


def to_f32(x: Array, mode: str) -> Array:
    """Round f64 values to f32."""
    near = x.astype(np.float32)
    if mode == "rn":
        return near
    return directed(near, x - near.astype(np.float64), mode)


def directed(near: Array, error: Array, mode: str) -> Array:
    """Return the value rounded in a direction, from the one rounded to nearest and the sign of what it lacks."""
    if mode == "rn":
        return near
    down = error < 0
    up = error > 0
    zero, infinity = near.dtype.type(0), near.dtype.type(np.inf)
    if mode == "rz":
        return np.where((down & (near > 0)) | (up & (near < 0)), np.nextafter(near, zero), near)
    if mode == "rm":
        return np.where(down, np.nextafter(near, -infinity), near)
    return np.where(up, np.nextafter(near, infinity), near)


def add32(a: Array, b: Array, mode: str) -> Array:
    """Add f32 values."""
    if mode == "rn":
        return a + b
    x, y = a.astype(np.float64), b.astype(np.float64)
    return _signed_zero(to_f32(odd(*two_sum(x, y)), mode), a, b, mode)


def _signed_zero(made: Array, a: Array, b: Array, mode: str) -> Array:
    """An exact zero of opposite summands is -0 when rounding down."""
    if mode != "rm":
        return made
    return np.where((a + b == 0) & (np.signbit(a) | np.signbit(b)), -np.abs(made), made)


def mul32(a: Array, b: Array, mode: str) -> Array:
    """Multiply f32 values."""
    return a * b if mode == "rn" else to_f32(a.astype(np.float64) * b.astype(np.float64), mode)


def fma32(a: Array, b: Array, c: Array, mode: str) -> Array:
    """Multiply and add f32 values with one rounding. The f64 sum is rounded twice where it ends in a tie of f32, or is
    subnormal there; those lanes are repaired."""
    x = np.multiply(a, b, dtype=np.float64)
    z = c.astype(np.float64)
    s = x + z
    if mode != "rn":
        return _signed_zero(to_f32(odd(*two_sum(x, z)), mode), x, z, mode)
    made = s.astype(np.float32)
    if not s.ndim:
        return odd(*two_sum(x, z)).astype(np.float32)
    tie = s.view(np.uint32)[::2] & np.uint32(0x1FFFFFFF)
    doubtful = tie == np.uint32(0x10000000)
    tiny = made.view(np.uint32) << np.uint32(1)
    tiny -= np.uint32(1)
    doubtful |= tiny < np.uint32(0x00FFFFFF)
    if doubtful.any():
        at = np.flatnonzero(doubtful)
        p, q = np.broadcast_to(x, s.shape)[at], np.broadcast_to(z, s.shape)[at]
        made[at] = odd(*two_sum(p, q)).astype(np.float32)
    return made


def div32(a: Array, b: Array, mode: str) -> Array:
    """Divide f32 values: the f64 quotient never lies so near to a tie or a value that rounding twice would show."""
    return to_f32(a.astype(np.float64) / b.astype(np.float64), mode)


def sqrt32(a: Array, mode: str) -> Array:
    """Return the square root of f32 values."""
    return to_f32(np.sqrt(a.astype(np.float64)), mode)


def add64(a: Array, b: Array, mode: str) -> Array:
    """Add f64 values."""
    if mode == "rn":
        return a + b
    s, error = two_sum(a, b)
    return _signed_zero(_bounded(directed(s, error, mode), s, (a, b), mode), a, b, mode)


def mul64(a: Array, b: Array, mode: str) -> Array:
    """Multiply f64 values."""
    return a * b if mode == "rn" else fma64(a, b, np.where(np.signbit(a) == np.signbit(b), 0.0, -0.0), mode)


def fma64(a: Array, b: Array, c: Array, mode: str) -> Array:
    """Multiply and add f64 values with one rounding (Boldo and Melquiond); extreme exponents are done in fractions."""
    u, u_error = two_product(a, b)
    t, t_error = two_sum(c, u_error)
    v, v_error = two_sum(u, t)
    made, error = two_sum(v, odd(*two_sum(t_error, v_error)))
    made = directed(made, error, mode)
    plain = a * b + c
    finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    size = np.frexp(a)[1] + np.frexp(b)[1]
    extreme = finite & (a != 0) & (b != 0) & (
        (size > 1000) | (size < -900) | (np.abs(a) > 1e290) | (np.abs(b) > 1e290) | (np.abs(c) > 1e300)
    )  # fmt: skip
    made = np.where(finite & (a != 0) & (b != 0), made, plain)
    made = np.where((made == 0) & finite & ((a == 0) | (b == 0)), _signed_zero(plain, a * b, c, mode), made)
    made = np.where((made == 0) & finite & (a != 0) & (b != 0) & (mode == "rm"), -np.abs(made), made)
    if extreme.any():
        made = np.array(made)
        x, y, z = (np.broadcast_to(v, made.shape) for v in (a, b, c))
        for at in np.argwhere(np.broadcast_to(extreme, made.shape)):
            i = tuple(at)
            made[i] = exactly(
                Fraction(float(x[i])) * Fraction(float(y[i])) + Fraction(float(z[i])),
                mode,
                float(plain[i]) if plain.ndim else 0.0,
            )
    return made


def exactly(x: Fraction, mode: str, zero: float = 0.0) -> float:
    """Round an exact number to f64."""
    if x == 0:
        return zero if mode != "rm" else -abs(zero)
    try:
        near = x.numerator / x.denominator
    except OverflowError:
        near = float("inf") if x > 0 else float("-inf")
    most = float(np.finfo(np.float64).max)
    if near in (float("inf"), float("-inf")):
        away = mode == "rn" or (mode == "rp" and x > 0) or (mode == "rm" and x < 0)
        return near if away else (most if x > 0 else -most)
    lacks = x - Fraction(near)
    return _stepped(near, (lacks > 0) - (lacks < 0), mode)


def _stepped(near: float, error: int, mode: str) -> float:
    return float(directed(np.array(near), np.array(float(error)), mode))


def _quotient(x: Fraction, y: Fraction) -> Fraction:
    return x / y


def div64(a: Array, b: Array, mode: str) -> Array:
    """Divide f64 values: directed rounding looks at the sign of the exact remainder."""
    q = a / b
    if mode == "rn":
        return q
    p, error = two_product(q, b)
    remainder = (a - p) - error
    made = directed(q, np.copysign(remainder, remainder * np.sign(b)), mode)
    return _by_fractions(made, q, _moderate(a) & _moderate(b) & _moderate(q), mode, _quotient, a, b)


def sqrt64(a: Array, mode: str) -> Array:
    """Return the square root of f64 values: directed rounding looks at the sign of the exact remainder."""
    root = np.sqrt(a)
    if mode == "rn":
        return root
    p, error = two_product(root, root)
    return _by_fractions(directed(root, (a - p) - error, mode), root, _moderate(a), mode, None, a)


def _moderate(x: Array) -> Array:
    """Say where products and remainders neither overflow nor lose bits below the smallest subnormal."""
    size = np.abs(x)
    return (size > 1e-140) & (size < 1e140)


def _by_fractions(made: Array, near: Array, sure: Array, mode: str, exact: Value, *operands: Array) -> Array:
    """Round in a direction, where the remainder is not sure, by comparing each result with the exact one."""
    whole = [np.broadcast_to(o, near.shape) for o in operands]
    made = np.where(sure, made, near)
    for at in np.argwhere(~sure):
        i = tuple(at)
        values = [float(w[i]) for w in whole]
        x = float(near[i])
        special = not all(map(np.isfinite, values)) or np.isnan(x) or (len(values) > 1 and values[1] == 0)
        if special or values[0] == 0:
            continue
        if exact is None:
            error = Fraction(values[0]) - Fraction(x) ** 2
            made[i] = _stepped(x, (error > 0) - (error < 0), mode)
        else:
            made[i] = exactly(exact(*[Fraction(v) for v in values]), mode, x)
    return made


def _bounded(made: Array, near: Array, operands: tuple[Array, ...], mode: str) -> Array:
    """Where nearest overflowed, directed rounding toward zero gives the greatest finite value."""
    over = np.isinf(near)
    for operand in operands:
        over = over & np.isfinite(operand)
    if not over.any():
        return made
    most = np.finfo(near.dtype).max
    inward = over & ((mode == "rz") | ((mode == "rm") & (near > 0)) | ((mode == "rp") & (near < 0)))
    return np.where(inward, np.copysign(most, near), np.where(over, near, made))


def flush32(x: Array) -> Array:
    """Replace subnormal f32 values by zeros of their sign."""
    bits = x.view(np.uint32)
    small = (bits & np.uint32(0x7F800000)) == 0
    return np.where(small, bits & np.uint32(0x80000000), bits).view(np.float32) if small.any() else x


def saturate(x: Array) -> Array:
    """Clamp to 0 … 1; NaN becomes 0."""
    one = x.dtype.type(1)
    return np.where(x > 0, np.minimum(x, one), x.dtype.type(0))
