"""Dot products summed quickly (`precision="float32"`): matrix products that BLAS does alone."""

from __future__ import annotations

import numpy as np

from pyptx.sim.numerics.arrays import F32, Array, quiet
from pyptx.sim.numerics.rounding import canonical

_ALONE, _LARGE = 1 << 18, 1 << 22


def fast_dot(a: F32, b: F32, c: F32, output: str = "f32") -> F32:
    """Return a @ b + c summed in float32, which products of 12 bits and fewer enter exactly."""
    with quiet():
        result: F32 = multiplied(a, b)
        result += c
        if output == "f16":
            result = result.astype(np.float16).astype(np.float32)
    return canonical(result)


def multiplied(a: Array, b: Array, out: Array | None = None) -> Array:
    """Return a @ b. Middling products go to BLAS in parts that it does not share among threads: on a busy machine they
    wait for each other a hundred times longer than they work."""
    rows, depth = a.shape[-2:]
    size, parts = rows * depth * b.shape[-1], 1
    while size // parts > _ALONE and size <= _LARGE and not rows % (2 * parts):
        parts *= 2
    if parts == 1:
        return np.matmul(a, b, out=out)
    within = None if out is None else out.reshape(*out.shape[:-2], parts, rows // parts, out.shape[-1])
    result = np.matmul(a.reshape(*a.shape[:-2], parts, rows // parts, depth), b[..., None, :, :], out=within)
    return result.reshape(*result.shape[:-3], rows, b.shape[-1]) if out is None else out
