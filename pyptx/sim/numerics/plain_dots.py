"""Dot products that round nothing, or every term: integers, single bits, double precision, four terms in f32."""

from __future__ import annotations

import numpy as np

from pyptx.sim.numerics import double
from pyptx.sim.numerics.arrays import F32, F64, Array, quiet
from pyptx.sim.numerics.rounding import canonical, to_odd, two_sum

_S32 = np.iinfo(np.int32)


def double_dot(a: F64, b: F64, c: F64) -> F64:
    """Return a @ b + c as a chain of fused multiply-adds in the order of K."""
    for k in range(a.shape[-1]):
        left, right, c = np.broadcast_arrays(a[..., :, k, None], b[..., None, k, :], c)
        c = double.fma(left, right, c)
    return c


def scalar_dot(a: Array, b: Array, c: F32, output: str) -> F32:
    """Return a @ b + c of four f16 products as ptxas has threads compute it in f32 since sm_80: one after the other,
    the addend last; for an f16 result in pairs, each added to the addend, and rounded to f16 in the end."""
    terms = [(a[..., :, k, None].astype(np.float64), b[..., None, k, :].astype(np.float64)) for k in range(4)]
    groups = [terms[:2], terms[2:]] if output == "f16" else [terms]
    total = c.astype(np.float32)
    with quiet():
        for group in groups:
            # A pair begins with a product, a chain with an addition to zero, which loses the sign of -0.
            result: F32 = np.full_like(total, -0.0 if output == "f16" else 0.0)
            for x, y in group:
                result = to_odd(*two_sum(x * y, result.astype(np.float64))).astype(np.float32)
            total = total + result
        return canonical(total.astype(np.float16).astype(np.float32) if output == "f16" else total)


def integer_dot(a: Array, b: Array, c: Array, *, satfinite: bool = False) -> Array:
    """Return a @ b + c of integers in 32 bits, wrapping or held at the ends of the range."""
    total = np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.int64) + c
    return np.clip(total, _S32.min, _S32.max).astype(np.int32) if satfinite else total.astype(np.int32)


def binary_dot(a: Array, b: Array, c: Array, operation: str) -> Array:
    """Return the population counts of `and` or `xor` of rows of A and columns of B, plus C. Bits are 0 and 1."""
    x, y = a.astype(np.float32), b.astype(np.float32)
    both = np.matmul(x, y)
    if operation == "xor":
        both = x.sum(-1)[..., :, None] + y.sum(-2)[..., None, :] - 2 * both
    return (both.astype(np.int64) + c).astype(np.int32)
