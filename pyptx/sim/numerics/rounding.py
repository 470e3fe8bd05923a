"""Rounding a float64 once to a narrower format, in every rounding mode of PTX.

A value that float64 cannot hold is *rounded to odd*: its last bit says that bits below it were lost. Rounding it again,
to 51 bits or fewer, equals rounding the exact value (Boldo and Melquiond, 2008).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pyptx import numbers
from pyptx.numbers import FORMATS, Format
from pyptx.sim.numerics.arrays import F32, F64, Array, quiet
from pyptx.sim.numerics.formats import code_dtype, encode_nan

ROUNDINGS = (*numbers.ROUNDINGS, "rs")
"""The last is stochastic."""
_SINGLE = FORMATS["f32"]
_EXPONENT, _SIGN = np.uint32(_SINGLE.exponent_mask), np.uint32(_SINGLE.sign)
_NAN = np.uint32(encode_nan("f32"))
_LEAST = np.uint32(1 << _SINGLE.mantissa)
SCALE = 64
"""The exponent of the factor between results and scaled results."""
_SCALED_LEAST = np.float32(2.0 ** (SCALE + _SINGLE.least_exponent))


def round_to_odd(nearest: F64, error: F64) -> F64:
    """Return nearest + error rounded to odd; `nearest` is that sum rounded to nearest."""
    is_inexact = np.abs(error) > 0
    if not is_inexact.any():
        return nearest
    bits = nearest.view(np.int64)
    down = is_inexact & (np.signbit(error) != np.signbit(nearest))
    return ((bits - down) | is_inexact).view(np.float64)


def two_sum(a: F64, b: F64) -> tuple[F64, F64]:
    """Return the rounded sum and its exact error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def flush(x: F32) -> F32:
    """Flush subnormals to zeros of their sign (`.ftz`)."""
    bits = x.view(np.uint32)
    small = (bits & _EXPONENT) == 0
    return np.where(small, bits & _SIGN, bits).view(np.float32) if small.any() else x


def flush_result(x: F32, compute_scaled: Callable[[], F32]) -> F32:
    """Flush rounded results that are below the normal numbers when they are rounded with an unbounded exponent: those
    next to the smallest normal number are rounded up to it where subnormals are kept. `compute_scaled` returns the
    results times 2**SCALE; it is seldom called."""
    bits = x.view(np.uint32)
    size = bits & ~_SIGN
    small = size <= _LEAST
    if not small.any():
        return x
    is_least = size == _LEAST
    if is_least.any():
        small = small & (~is_least | (np.abs(compute_scaled()) < _SCALED_LEAST))
    return np.where(small, bits & _SIGN, bits).view(np.float32)


def flush_half(codes: Array, name: str) -> Array:
    """Flush subnormal f16 or bf16 to zeros of their sign."""
    form = FORMATS[name]
    return np.where((codes & np.uint16(form.exponent_mask)) == 0, codes & np.uint16(form.sign), codes)


def round_directed(near: Array, error: Array, rounding: str) -> Array:
    """Round in a direction, from the value rounded to nearest and the sign of its error."""
    if rounding == "rn":
        return near
    down, up = error < 0, error > 0
    zero, infinity = near.dtype.type(0), near.dtype.type(np.inf)
    if rounding == "rz":
        return np.where((down & (near > 0)) | (up & (near < 0)), np.nextafter(near, zero), near)
    if rounding == "rm":
        return np.where(down, np.nextafter(near, -infinity), near)
    return np.where(up, np.nextafter(near, infinity), near)


def to_f32(x: Array, rounding: str) -> F32:
    """Round f64 values to f32 in a rounding mode of f32 arithmetic."""
    near = x.astype(np.float32)
    return near if rounding == "rn" else round_directed(near, x - near.astype(np.float64), rounding)


def round_to_format(
    x: Array, name: str, rounding: str = "rn", *, satfinite: bool = False, noise: Array | None = None
) -> F64:
    """Round f64 values once to a format, as f64. Overflow becomes infinity, NaN in a format without infinity, or the
    largest number in a format without both or with `satfinite`. `noise` is the random bits of `rs`, from 0 to 1."""
    form = FORMATS[name]
    exponent = np.maximum(np.frexp(np.where(np.isfinite(x), x, 0.0))[1] - 1, form.least_exponent) - form.mantissa
    units = np.ldexp(x, -exponent)
    match rounding:
        case "rn":
            integer_units = np.rint(units)
        case "rna":
            size = np.abs(units)
            integer_units = np.floor(size)
            integer_units = np.copysign(integer_units + (size - integer_units >= 0.5), units)
        case "rz":
            integer_units = np.trunc(units)
        case "rs":
            assert noise is not None
            integer_units = np.copysign(np.floor(np.abs(units) + noise), units)
        case "rm":
            integer_units = np.floor(units)
        case "rp":
            integer_units = np.ceil(units)
        case _:
            raise ValueError(f"rounding {rounding!r}: expected one of {', '.join(ROUNDINGS)}")
    result, largest = np.copysign(np.ldexp(integer_units, exponent), x), form.maximum
    over = np.abs(result) > largest
    return (
        np.where(over, np.copysign(_resolve_overflow(x, form, rounding, satfinite), x), result)
        if over.any()
        else result
    )


def _resolve_overflow(x: Array, form: Format, rounding: str, satfinite: bool) -> Array | float:
    """Return the magnitude of a result that overflows."""
    if satfinite or form.infinity is form.nan is None:
        return form.maximum
    inward = (rounding == "rz") | ((rounding == "rm") & (x > 0)) | ((rounding == "rp") & (x < 0))
    return np.where(inward & np.isfinite(x), form.maximum, np.nan if form.infinity is None else np.inf)


def encode(
    x: F64, name: str, rounding: str = "rn", *, satfinite: bool = False, relu: bool = False, noise: Array | None = None
) -> Array:
    """Return the codes of `x`, rounded once; f32, tf32 and f64 are returned as floats."""
    if relu:
        x = np.where((x > 0) | np.isnan(x), x, 0.0)
    with quiet():
        if name == "f64":
            return x
        if name == "f32" and rounding == "rn" and not satfinite:
            return canonicalize_nan(x.astype(np.float32))
        nearest = round_to_format(x, name, rounding, satfinite=satfinite, noise=noise)
        code = encode_exact(nearest, name)
        if FORMATS[name].infinity is None and not satfinite:
            # A NaN that replaces a number that overflows keeps its sign.
            code = np.where(np.isnan(nearest) & (x < 0), code | code.dtype.type(FORMATS[name].sign), code)
    return code.view(np.float32) if name in ("f32", "tf32") else code


def encode_exact(x: Array, name: str) -> Array:
    """Return the codes of f64 values that a format holds exactly. NaN becomes the canonical one, or the largest number
    in a format without NaN."""
    if name in ("f32", "tf32"):
        return canonicalize_nan(x.astype(np.float32)).view(np.uint32)
    form = FORMATS[name]
    nan = np.isnan(x)
    if name == "f16":
        code = x.astype(np.float16).view(np.uint16)
    elif name == "bf16":
        code = (x.astype(np.float32).view(np.uint32) >> np.uint32(_SINGLE.bits - form.bits)).astype(np.uint16)
    else:
        code = _encode_short(x, form)
    if nan.any():
        code = np.where(nan, code_dtype(form).type(form.largest if form.nan is None else form.nan), code)
    return code


def _encode_short(x: F64, form: Format) -> Array:
    """Return the codes of numbers in a format of at most 8 bits, from the bits of f32."""
    bits = x.astype(np.float32).view(np.uint32)
    magnitude = bits & np.uint32(_SINGLE.magnitude)
    below = np.ldexp(1.0, form.least_exponent)
    shift = np.uint32(_SINGLE.mantissa - form.mantissa)
    rebias = np.uint32((_SINGLE.bias - form.bias) << form.mantissa)
    with quiet():
        code = np.where(
            np.abs(x) < below,
            np.abs(x) * np.ldexp(1.0, form.mantissa - form.least_exponent),
            (magnitude >> shift) - rebias,
        ).astype(np.uint8)
    if form.infinity is not None:
        code = np.where(magnitude == _EXPONENT, np.uint8(form.infinity), code)
    return code | ((bits >> np.uint32(_SINGLE.bits - 1)) * np.uint32(form.sign)).astype(np.uint8)


def canonicalize_nan(x: F32) -> F32:
    """Replace every NaN by the canonical one of f32, in place."""
    nan = x != x
    if nan.any():
        np.putmask(x.view(np.uint32), nan, _NAN)
    return x
