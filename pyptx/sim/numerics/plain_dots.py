"""Dot products that are exact or round every term: integers, single bits, f64, four terms in f32."""

from __future__ import annotations

import numpy as np

from pyptx.sim.numerics import double
from pyptx.sim.numerics.arrays import F32, F64, Array, quiet
from pyptx.sim.numerics.rounding import canonicalize_nan, round_to_odd, two_sum

_S32 = np.iinfo(np.int32)


def double_dot(a: F64, b: F64, c: F64, rounding: str = "rn") -> F64:
    """Return a @ b + c as a chain of fused multiply-adds along K."""
    for k in range(a.shape[-1]):
        a_terms, b_terms, c = np.broadcast_arrays(a[..., :, k, None], b[..., None, k, :], c)
        c = double.fma(a_terms, b_terms, c, rounding)
    return c


def scalar_dot(a: Array, b: Array, c: F32, output: str) -> F32:
    """Return a @ b + c of four f16 products in f32, as in the code of ptxas since sm_80: products one by one, the
    addend last. For an f16 result, pairs of products are added to the addend, and the sum is rounded at the end."""
    terms = [(a[..., :, k, None].astype(np.float64), b[..., None, k, :].astype(np.float64)) for k in range(4)]
    groups = [terms[:2], terms[2:]] if output == "f16" else [terms]
    total = c.astype(np.float32)
    with quiet():
        for group in groups:
            # A pair starts with a product; a chain starts with an addition to zero, which loses the sign of -0.
            result: F32 = np.full_like(total, -0.0 if output == "f16" else 0.0)
            for x, y in group:
                result = round_to_odd(*two_sum(x * y, result.astype(np.float64))).astype(np.float32)
            total = total + result
        return canonicalize_nan(total.astype(np.float16).astype(np.float32) if output == "f16" else total)


def integer_dot(a: Array, b: Array, c: Array, *, satfinite: bool = False) -> Array:
    """Return a @ b + c of integers in 32 bits, wrapping or saturating."""
    total = np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.int64) + c
    return np.clip(total, _S32.min, _S32.max).astype(np.int32) if satfinite else total.astype(np.int32)


def binary_dot(a: Array, b: Array, c: Array, operation: str) -> Array:
    """Return the population count of `and` or `xor` of each row of A and column of B, plus C. Elements are 0 or 1."""
    x, y = a.astype(np.float32), b.astype(np.float32)
    counts = np.matmul(x, y)
    if operation == "xor":
        counts = x.sum(-1)[..., :, None] + y.sum(-2)[..., None, :] - 2 * counts
    return (counts.astype(np.int64) + c).astype(np.int32)
