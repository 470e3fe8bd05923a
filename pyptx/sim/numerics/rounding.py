"""Rounding a float64 once to a narrower format, in every direction that PTX knows.

A value that float64 cannot hold either comes *rounded to odd*: its last bit says that bits were lost below it, and
rounding such a number again to 51 bits or fewer is as good as rounding the exact value (Boldo and Melquiond, 2008).
"""

from __future__ import annotations

import numpy as np

from pyptx.sim.numerics.arrays import F32, F64, U32, U64, Array, Mask, quiet
from pyptx.sim.numerics.formats import FORMATS, Format

ROUNDINGS = ("rn", "rz", "rm", "rp", "rna", "rs")
"""To nearest even, toward zero, down, up, to nearest away from zero, stochastic."""

_ONE = np.uint64(1)
_FRACTION = np.uint64((1 << 52) - 1)
_HIDDEN = np.uint64(1 << 52)
_SIGN = np.uint64(1 << 63)


def to_odd(nearest: F64, error: F64) -> F64:
    """Round to odd what `nearest + error` stands for, `nearest` being the sum rounded to nearest."""
    lost = np.abs(error) > 0
    if not lost.any():
        return nearest
    bits = nearest.view(np.int64)
    down = lost & (np.signbit(error) != np.signbit(nearest))
    return ((bits - down) | lost).view(np.float64)


def two_sum(a: F64, b: F64) -> tuple[F64, F64]:
    """Return the rounded sum and its error, exactly."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def flush(x: F32) -> F32:
    """Replace subnormals by zeros of their sign (`.ftz`)."""
    bits = x.view(np.uint32)
    small = (bits & np.uint32(0x7F800000)) == 0
    return np.where(small, bits & np.uint32(0x80000000), bits).view(np.float32) if small.any() else x


def flush_half(codes: Array) -> Array:
    """Replace subnormal f16 by zeros of their sign."""
    return np.where((codes & np.uint16(0x7C00)) == 0, codes & np.uint16(0x8000), codes)


def encode(
    x: F64,
    name: str,
    rounding: str = "rn",
    *,
    satfinite: bool = False,
    relu: bool = False,
    random: U64 | None = None,
    random_bits: int = 0,
) -> Array:
    """Return the codes of `x` rounded once (f32, tf32: floats).

    NaN becomes the format's canonical one, or its largest number if it has none. `satfinite` holds infinities and what
    overflows at the largest number. `random` gives `random_bits` bits a number for `rs`: they are added to the first
    bits that are cut off.
    """
    if name == "f64":
        return _finish_f64(x, relu)
    if name == "f32" and rounding == "rn" and not satfinite:
        return _nearest_f32(x, relu)
    form = FORMATS[name]
    if relu:
        x = np.where(x > 0, x, np.where(np.isnan(x), x, 0.0))
    bits = np.ascontiguousarray(x, dtype=np.float64).view(np.uint64)
    negative = bits >= _SIGN
    magnitude = bits & ~_SIGN
    code = _round_magnitude(magnitude, form, rounding, negative, random, random_bits)
    code = _limit(code, magnitude, form, rounding, negative, satfinite)
    nan = magnitude > np.uint64(0x7FF0000000000000)
    code = np.where(nan, np.uint64(form.largest if form.nan is None else form.nan), code)
    code = np.where(negative & ~nan, code | np.uint64(form.sign), code)
    return _stored(code, form, nan)


def held(x: F64, name: str) -> Array:
    """Return the codes of numbers that a format narrower than f32 holds exactly; NaN as in `encode`."""
    form = FORMATS[name]
    nan = np.isnan(x)
    if name == "f16":
        code = x.astype(np.float16).view(np.uint16)
    elif name == "bf16":
        code = (x.astype(np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    else:
        code = _short(x, form)
    if nan.any():
        code = np.where(nan, form.dtype.type(form.largest if form.nan is None else form.nan), code)
    return code


def _short(x: F64, form: Format) -> Array:
    """Return the codes of numbers in at most 8 bits, from the bits of f32."""
    bits = x.astype(np.float32).view(np.uint32)
    magnitude = bits & np.uint32(0x7FFFFFFF)
    below = np.ldexp(1.0, form.least_exponent)
    shift, rebias = np.uint32(23 - form.mantissa), np.uint32((127 - form.bias) << form.mantissa)
    with quiet():
        code = np.where(
            np.abs(x) < below,
            np.abs(x) * np.ldexp(1.0, form.mantissa - form.least_exponent),
            (magnitude >> shift) - rebias,
        ).astype(np.uint8)
    if form.infinity is not None:
        code = np.where(magnitude == np.uint32(0x7F800000), np.uint8(form.infinity), code)
    return code | ((bits >> np.uint32(31)) * np.uint32(form.sign)).astype(np.uint8)


def _stored(code: U64, form: Format, nan: Mask) -> Array:
    if form.name == "f32":
        return code.astype(np.uint32).view(np.float32)
    if form.name == "tf32":
        wide: U32 = code.astype(np.uint32) << np.uint32(13)
        return np.where(nan, np.uint32(0x7FFFFFFF), wide).view(np.float32)
    return code.astype(form.dtype)


def _finish_f64(x: F64, relu: bool) -> F64:
    return np.where(x > 0, x, np.where(np.isnan(x), x, 0.0)) if relu else x


def _nearest_f32(x: F64, relu: bool) -> F32:
    with quiet():
        result = x.astype(np.float32)
    if relu:
        result = np.where(result > 0, result, np.where(np.isnan(result), result, np.float32(0)))
    return canonical(result)


def canonical(x: F32) -> F32:
    """Give every NaN the code that single precision produces, in place."""
    nan = x != x
    if nan.any():
        np.putmask(x.view(np.uint32), nan, np.uint32(0x7FFFFFFF))
    return x


def _round_magnitude(
    magnitude: U64, form: Format, rounding: str, negative: Mask, random: U64 | None, random_bits: int
) -> U64:
    biased = (magnitude >> np.uint64(52)).astype(np.int64)
    significand = (magnitude & _FRACTION) | np.where(biased > 0, _HIDDEN, np.uint64(0))
    exponent = biased - 1023 - form.least_exponent
    shift = (52 - form.mantissa + np.clip(-exponent, 0, 54)).clip(0, 60).astype(np.uint64)
    kept = significand >> shift
    rest = significand & ((_ONE << shift) - _ONE)
    match rounding:
        case "rn":
            half = _ONE << (shift - _ONE)
            up = (rest > half) | ((rest == half) & (kept & _ONE == _ONE))
        case "rna":
            up = rest >= (_ONE << (shift - _ONE))
        case "rz":
            up = np.zeros_like(negative)
        case "rm":
            up = negative & (rest != 0)
        case "rp":
            up = ~negative & (rest != 0)
        case "rs":
            assert random is not None
            first = rest >> (shift - np.uint64(random_bits))
            up = first + random >= np.uint64(1 << random_bits)
        case _:
            raise ValueError(f"rounding {rounding!r}: expected one of {', '.join(ROUNDINGS)}")
    steps = np.clip(exponent, 0, None).astype(np.uint64) << np.uint64(form.mantissa)
    return kept + steps + up


def _limit(code: U64, magnitude: U64, form: Format, rounding: str, negative: Mask, satfinite: bool) -> U64:
    """Apply what happens past the largest number."""
    over = code > np.uint64(form.largest)
    if satfinite:
        return np.where(over, np.uint64(form.largest), code)
    beyond = form.largest if form.infinity is form.nan is None else form.infinity or form.nan
    assert beyond is not None
    infinite = magnitude >= np.uint64(0x7FF0000000000000)
    match rounding:
        case "rz":
            stays = over & ~infinite
        case "rm":
            stays = over & ~infinite & ~negative
        case "rp":
            stays = over & ~infinite & negative
        case _:
            stays = np.zeros_like(over)
    return np.where(stays, np.uint64(form.largest), np.where(over, np.uint64(beyond), code))
