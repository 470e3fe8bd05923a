"""add, mul, fma, div and sqrt of f64 in every rounding mode.

Manual: Floating-Point Instructions. Operands are scaled to the middle of the range. The result is the nearest float64
and the sign of its residual, which are scaled back with a single rounding.
"""

from __future__ import annotations

import numpy as np

from pyptx.numbers import FORMATS
from pyptx.sim.numerics.arrays import F64, I64, Array, Mask, quiet
from pyptx.sim.numerics.rounding import round_directed, round_to_odd, two_sum

_SPLIT = 2.0**27 + 1.0
_FAR = 300
"""If operands are further apart than this many powers of two, only the smaller one's sign matters."""
_DOUBLE = FORMATS["f64"]
_MAXIMUM = np.float64(_DOUBLE.maximum)
_SMALLEST = _DOUBLE.least_exponent - _DOUBLE.mantissa
"""The exponent of the smallest subnormal number."""


def add(a: F64, b: F64, rounding: str = "rn") -> F64:
    """Return a + b."""
    with quiet():
        if rounding == "rn":
            return a + b
        # The larger one first: less the smaller one, a sum near the largest number could overflow.
        is_ordered = np.abs(a) >= np.abs(b)
        total, error = two_sum(np.where(is_ordered, a, b), np.where(is_ordered, b, a))
        result = round_directed(total, error, rounding)
        result = np.where(np.isinf(total) & np.isfinite(a) & np.isfinite(b), _handle_overflow(total, rounding), result)
    return _fix_zero_sign(result, a, b, rounding)


def mul(a: F64, b: F64, rounding: str = "rn") -> F64:
    """Return a * b."""
    with quiet():
        if rounding == "rn":
            return a * b
        (x, ex), (y, ey) = _normalize(a), _normalize(b)
        product, error = _two_product(x, y)
        return _keep_special(_round(product, error, ex + ey, rounding), a * b, _is_ordinary(a) & _is_ordinary(b))


def div(a: F64, b: F64, rounding: str = "rn") -> F64:
    """Return a / b."""
    with quiet():
        if rounding == "rn":
            return a / b
        (x, ex), (y, ey) = _normalize(a), _normalize(b)
        quotient = x / y
        high, low = _two_product(quotient, y)
        residual = ((x - high) - low) * np.sign(y)
        return _keep_special(_round(quotient, residual, ex - ey, rounding), a / b, _is_ordinary(a) & _is_ordinary(b))


def sqrt(a: F64, rounding: str = "rn") -> F64:
    """Return the square root."""
    with quiet():
        if rounding == "rn":
            return np.sqrt(a)
        x, exponent = _normalize(a)
        odd = exponent & 1
        x, exponent = np.ldexp(x, odd), exponent - odd
        root = np.sqrt(x)
        high, low = _two_product(root, root)
        return _keep_special(
            _round(root, (x - high) - low, exponent // 2, rounding), np.sqrt(a), _is_ordinary(a) & (a > 0)
        )


def fma(a: F64, b: F64, c: F64, rounding: str = "rn") -> F64:
    """Return a * b + c, rounded once."""
    with quiet():
        factors = np.isfinite(a) & np.isfinite(b)
        # A product that overflows float64 is still finite: an infinite addend wins.
        plain = np.where(factors & np.isinf(c), c, a * b + c)
        ordinary = factors & np.isfinite(c)
        if rounding == "rn" and bool(np.all(_is_moderate(a * b) & _is_moderate(a) & _is_moderate(b) & _is_moderate(c))):
            total, _ = _sum_product(*_two_product(a, b), c)
            # An exact zero may come from zeros, whose signs decide.
            return np.where(total == 0, a * b + c, total)
        (x, ex), (y, ey), (z, ez) = _normalize(a), _normalize(b), _normalize(c)
        high, low = _two_product(x, y)
        product_exponent = np.where(high == 0, -5000, ex + ey)
        addend_exponent = np.where(z == 0, -5000, ez)
        exponent = np.maximum(product_exponent, addend_exponent)
        down = np.maximum(product_exponent - exponent, -_FAR)
        total, residual = _sum_product(
            np.ldexp(high, down), np.ldexp(low, down), np.ldexp(z, np.maximum(addend_exponent - exponent, -_FAR))
        )
        result = _round(total, residual, exponent, rounding)
    # For an exact zero, the signs of the two terms decide: `plain` may have underflowed.
    zero = ordinary & (total == 0)
    same_sign = (np.signbit(a) ^ np.signbit(b)) == np.signbit(c)
    signed = np.where(same_sign, np.copysign(0.0, c), -0.0 if rounding == "rm" else 0.0)
    return np.where(zero, signed, np.where(ordinary, result, plain))


def _is_moderate(x: F64) -> Mask:
    size = np.abs(x)
    return (size == 0) | ((size > 2.0**-900) & (size < 2.0**900))


def _is_ordinary(x: F64) -> Mask:
    return np.isfinite(x) & (x != 0)


def _keep_special(result: F64, plain: F64, ordinary: Mask) -> F64:
    return np.where(ordinary, result, plain)


def _normalize(x: F64) -> tuple[F64, I64]:
    fraction, exponent = np.frexp(x)
    return fraction, exponent.astype(np.int64)


def _two_product(a: F64, b: F64) -> tuple[F64, F64]:
    """Return the rounded product and its error (Dekker, with Veltkamp's splitting)."""
    product = a * b
    t = _SPLIT * a
    a_high = t - (t - a)
    a_low = a - a_high
    t = _SPLIT * b
    b_high = t - (t - b)
    b_low = b - b_high
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error


def _sum_product(high: F64, low: F64, c: F64) -> tuple[F64, F64]:
    """Return high + low + c rounded to nearest, and a number with the sign of the residual.

    Boldo and Melquiond's fused multiply-add: the tail is rounded to odd before the last addition.
    """
    part, part_error = two_sum(c, low)
    total, total_error = two_sum(high, part)
    tail, tail_error = two_sum(part_error, total_error)
    result, residual = two_sum(total, round_to_odd(tail, tail_error))
    return result, np.where(residual != 0, residual, tail_error)


def _handle_overflow(x: F64, rounding: str) -> F64:
    """Return the result for a finite value that overflows."""
    match rounding:
        case "rz":
            return np.copysign(_MAXIMUM, x)
        case "rm":
            return np.where(x > 0, _MAXIMUM, x)
        case "rp":
            return np.where(x < 0, -_MAXIMUM, x)
        case _:
            return x


def _round(nearest: F64, residual: F64, exponent: I64, rounding: str) -> F64:
    """Return (nearest + residual) * 2**exponent, rounded once. Only the sign of the residual counts; it is at most
    half an ulp."""
    _, position = np.frexp(nearest)
    power = position + exponent
    inside = np.clip(exponent, -5000, 5000).astype(np.int32)
    result = _scale(round_directed(nearest, residual, rounding), inside)
    result = np.where(
        np.isinf(result) | (power > _DOUBLE.bias + 1), _handle_overflow(np.copysign(np.inf, nearest), rounding), result
    )
    low = power <= _DOUBLE.least_exponent + 1
    return np.where(low, _round_subnormal(nearest, residual, inside, rounding), result) if low.any() else result


def _scale(x: F64, exponent: Array) -> F64:
    half = exponent // 2
    return np.ldexp(np.ldexp(x, half), exponent - half)


def _round_subnormal(nearest: F64, residual: F64, exponent: Array, rounding: str) -> F64:
    # After cancellation, a large exponent does not mean a large number.
    units = np.ldexp(nearest, np.clip(exponent - _SMALLEST, -_FAR, 4 * _FAR).astype(np.int32))
    integer_units = np.rint(units)
    remainder = units - integer_units
    side = np.where(remainder != 0, np.sign(remainder), np.sign(residual))
    match rounding:
        case "rz":
            step = np.where(side * units < 0, side, 0.0)
        case "rm":
            step = np.where(side < 0, -1.0, 0.0)
        case "rp":
            step = np.where(side > 0, 1.0, 0.0)
        case _:
            step = np.where(
                (np.abs(remainder) == 0.5) & (np.sign(residual) == np.sign(remainder)), np.sign(remainder), 0.0
            )
    return np.copysign(np.ldexp(np.abs(integer_units + step), _SMALLEST), nearest)


def _fix_zero_sign(result: F64, a: F64, b: F64, rounding: str) -> F64:
    if rounding != "rm":
        return result
    return np.where((result == 0) & (np.signbit(a) | np.signbit(b)), -0.0, result)
