"""add, sub, mul, fma, div, rcp, sqrt of f16, bf16, f32, f64 and mixed precision, rounded once in any direction.

Manual: Floating-Point, Half Precision, Mixed Precision and Alternate Floating-Point Instructions. The work is done in
float64, where products of these formats are exact and sums are rounded to odd; quotients and roots of 24-bit numbers
cannot come closer to a tie than float64 sees. The work for double precision is in `double.py`.
"""

from __future__ import annotations

import numpy as np

from pyptx.sim.numerics import double
from pyptx.sim.numerics.arrays import F32, F64, Array, Mask, quiet
from pyptx.sim.numerics.formats import decode
from pyptx.sim.numerics.rounding import canonical, encode, flush, flush_half, to_odd, two_sum

_TIE_BITS = np.uint64(0x1FFFFFFF)
_TIE = np.uint64(0x10000000)
_LEAST_NORMAL = 2.0**-126


def wide(x: Array, name: str, ftz: bool = False) -> F64:
    """Return the operand in float64, its subnormals flushed if asked."""
    if ftz and name == "f32":
        x = flush(x)
    elif ftz and name == "f16":
        x = flush_half(x)
    with quiet():
        return decode(x, name).astype(np.float64)


def exact_sum(a: F64, b: F64, rounding: str = "rn") -> F64:
    """Return a + b rounded to odd. An exact zero of unlike signs is negative only when rounding down."""
    with quiet():
        total, error = two_sum(a, b)
        result = to_odd(total, error)
    if rounding == "rm":
        return np.where((result == 0) & (np.signbit(a) | np.signbit(b)), -0.0, result)
    return result


def finish(
    x: F64,
    name: str,
    rounding: str = "rn",
    *,
    ftz: bool = False,
    sat: bool = False,
    relu: bool = False,
    satfinite: bool = False,
) -> Array:
    """Round to the format, then flush, then saturate."""
    if sat:
        x = np.where(x > 0, np.minimum(x, 1.0), 0.0)
    result = encode(x, name, rounding, relu=relu, satfinite=satfinite)
    if ftz and name == "f32":
        return flush(result)
    if ftz and name == "f16":
        return flush_half(result)
    return result


def add(a: Array, b: Array, name: str = "f32", rounding: str = "rn", *, ftz: bool = False, sat: bool = False) -> Array:
    """Return a + b."""
    if name == "f64":
        return double.add(a, b, rounding)
    if name == "f32" and rounding == "rn":
        return _native(np.add, a, b, ftz=ftz, sat=sat)
    return finish(exact_sum(wide(a, name, ftz), wide(b, name, ftz), rounding), name, rounding, ftz=ftz, sat=sat)


def sub(a: Array, b: Array, name: str = "f32", rounding: str = "rn", *, ftz: bool = False, sat: bool = False) -> Array:
    """Return a - b."""
    if name == "f64":
        return double.add(a, -b, rounding)
    if name == "f32" and rounding == "rn":
        return _native(np.subtract, a, b, ftz=ftz, sat=sat)
    return finish(exact_sum(wide(a, name, ftz), -wide(b, name, ftz), rounding), name, rounding, ftz=ftz, sat=sat)


def mul(a: Array, b: Array, name: str = "f32", rounding: str = "rn", *, ftz: bool = False, sat: bool = False) -> Array:
    """Return a * b."""
    if name == "f64":
        return double.mul(a, b, rounding)
    if name == "f32" and rounding == "rn":
        return _native(np.multiply, a, b, ftz=ftz, sat=sat)
    with quiet():
        product = wide(a, name, ftz) * wide(b, name, ftz)
    return finish(product, name, rounding, ftz=ftz, sat=sat)


def fma(
    a: Array,
    b: Array,
    c: Array,
    name: str = "f32",
    rounding: str = "rn",
    *,
    ftz: bool = False,
    sat: bool = False,
    relu: bool = False,
    oob: bool = False,
) -> Array:
    """Return a * b + c, rounded once. With `oob`, the result is +0 where an operand is the out-of-bounds NaN."""
    if name == "f64":
        return double.fma(a, b, c, rounding)
    if name == "f32" and rounding == "rn":
        return _fma_f32(a, b, c, ftz, sat)
    with quiet():
        product = wide(a, name, ftz) * wide(b, name, ftz)
    total = exact_sum(product, wide(c, name, ftz), rounding)
    if oob:
        total = np.where(is_oob(a) | is_oob(b) | is_oob(c), 0.0, total)
    return finish(total, name, rounding, ftz=ftz, sat=sat, relu=relu)


OOB_NAN = 0x7FFF
"""The 16-bit NaN that a tensor copy fills in, seen as f16 or bf16."""


def is_oob(codes: Array) -> Mask:
    """Tell which codes are the NaN that tensor copies fill in beyond the tensor."""
    return codes == np.uint16(OOB_NAN)


def div(a: Array, b: Array, name: str = "f32", rounding: str = "rn", *, ftz: bool = False) -> Array:
    """Return a / b."""
    if name == "f64":
        return double.div(a, b, rounding)
    if name == "f32" and rounding == "rn":
        return _native(np.divide, a, b, ftz=ftz, sat=False)
    with quiet():
        quotient = wide(a, name, ftz) / wide(b, name, ftz)
    return finish(quotient, name, rounding, ftz=ftz)


def rcp(a: Array, name: str = "f32", rounding: str = "rn", *, ftz: bool = False) -> Array:
    """Return 1 / a."""
    if name == "f64":
        return double.div(np.ones_like(a), a, rounding)
    with quiet():
        return finish(1.0 / wide(a, name, ftz), name, rounding, ftz=ftz)


def sqrt(a: Array, name: str = "f32", rounding: str = "rn", *, ftz: bool = False) -> Array:
    """Return the square root."""
    if name == "f64":
        return double.sqrt(a, rounding)
    with quiet():
        return finish(np.sqrt(wide(a, name, ftz)), name, rounding, ftz=ftz)


def mixed_add(a: Array, a_name: str, c: F32, rounding: str = "rn", *, negate: bool = False, sat: bool = False) -> F32:
    """Return a + c, or a - c, in f32 with `a` in f16 or bf16."""
    other = wide(c, "f32")
    return finish(exact_sum(wide(a, a_name), -other if negate else other, rounding), "f32", rounding, sat=sat)


def mixed_fma(a: Array, b: Array, name: str, c: F32, rounding: str = "rn", *, sat: bool = False) -> F32:
    """Return a * b + c in f32 with `a` and `b` in f16 or bf16."""
    with quiet():
        product = wide(a, name) * wide(b, name)
    return finish(exact_sum(product, wide(c, "f32"), rounding), "f32", rounding, sat=sat)


def _native(operation: np.ufunc, a: F32, b: F32, *, ftz: bool, sat: bool) -> F32:
    """Compute in float32: the processor rounds to nearest even, subnormals included."""
    if ftz:
        a, b = flush(a), flush(b)
    with quiet():
        result: F32 = operation(a, b)
    return _settle(result, ftz, sat)


def _settle(result: F32, ftz: bool, sat: bool) -> F32:
    if ftz:
        result = flush(result)
    if sat:
        return np.where(result > 0, np.minimum(result, np.float32(1)), np.float32(0))
    return canonical(result)


def _fma_f32(a: F32, b: F32, c: F32, ftz: bool, sat: bool) -> F32:
    """Round the float64 sum, and mend the lanes where rounding twice could matter: ties and subnormal results."""
    if ftz:
        a, b, c = flush(a), flush(b), flush(c)
    with quiet():
        product = np.multiply(a, b, dtype=np.float64)
        total = product + c
        result = total.astype(np.float32)
        small = np.abs(result) < _LEAST_NORMAL
        doubtful = ((total.view(np.uint64) & _TIE_BITS) == _TIE) | (small & (total != 0))
        if doubtful.any():
            addend = np.broadcast_to(c, total.shape)[doubtful].astype(np.float64)
            result[doubtful] = exact_sum(product[doubtful], addend).astype(np.float32)
    return _settle(result, ftz, sat)
