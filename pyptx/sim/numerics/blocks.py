"""Dot products of 4-bit factors with block scales (kinds mxf4 and mxf4nvf4), bit for bit."""

from __future__ import annotations

import numpy as np

from pyptx.numbers import FORMATS
from pyptx.sim.numerics.arrays import F32, F64, I16, Mask, quiet
from pyptx.sim.numerics.dot import ZERO_EXPONENT, compute_addend_exponents, extract_exponent_fields, round_sums
from pyptx.sim.numerics.rounding import canonicalize_nan
from pyptx.sim.numerics.tensor_core import BLOCK_FRACTION, BLOCK_RUN

_LEAST = FORMATS["ue4m3"].least_exponent + 1
"""The exponent, as `frexp` returns it, of the smallest normal ue4m3."""


def block_dot(a: F32, b: F32, scale_a: F32, scale_b: F32, c: F32) -> F32:
    """Return a @ b + c. Each run of 16 products is summed exactly, then scaled and truncated; the runs are added last.

    A has the shape (..., M, K) and scales (..., M, blocks); B has (..., K, N) and (..., blocks, N).
    """
    depth = a.shape[-1]
    block = depth // scale_a.shape[-1]
    has_nan = _detect_nan(scale_a, -1)[..., :, None] | _detect_nan(scale_b, -2)[..., None, :]
    special: Mask = has_nan | ~np.isfinite(c)
    with quiet():
        top = np.where(special, np.int16(0), compute_addend_exponents(c, extract_exponent_fields(c), "f32"))
        runs: list[F64] = []
        for start in range(0, depth, BLOCK_RUN):
            a_scale, a_exponent = _split_scale(scale_a[..., :, start // block, None])
            b_scale, b_exponent = _split_scale(scale_b[..., None, start // block, :])
            run = np.matmul(a[..., start : start + BLOCK_RUN], b[..., start : start + BLOCK_RUN, :])
            exponent = a_exponent + b_exponent
            top = np.maximum(top, exponent)
            runs.append(np.ldexp(run.astype(np.float64) * a_scale * b_scale, exponent))
        threshold = top - np.int16(BLOCK_FRACTION)
        total = np.trunc(np.ldexp(c.astype(np.float64), -threshold))
        for run in runs:
            total += np.trunc(np.ldexp(run, -threshold))
        total = np.where(special, 0.0, np.ldexp(total, threshold))
        result = round_sums(total, int(threshold.min(initial=0)), "f32").astype(np.float32)
    return canonicalize_nan(np.where(special, np.where(has_nan, np.float32(np.nan), c), result))


def _detect_nan(x: F32, axis: int) -> Mask:
    return np.logical_or.reduce(np.isnan(x), axis=axis)


def _split_scale(scale: F32) -> tuple[F64, I16]:
    """Return the significand and exponent of unsigned scale factors; a zero has `ZERO_EXPONENT`."""
    values = np.abs(scale.astype(np.float64))
    fraction, exponent = np.frexp(np.where(np.isfinite(values), values, 1.0))
    # ue4m3 has subnormals; ue8m0 has neither subnormals nor fraction bits.
    shift = np.where((fraction != 0.5) & (exponent < _LEAST), exponent - _LEAST, 0)
    exponent = np.where(fraction == 0, ZERO_EXPONENT, exponent - 1 - shift)
    return np.ldexp(fraction, shift + 1), exponent.astype(np.int16)
