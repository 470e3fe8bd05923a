"""Fast dot products (`precision="float32"`), computed by BLAS."""

from __future__ import annotations

import numpy as np

from pyptx.sim.numerics.arrays import F32, Array, quiet
from pyptx.sim.numerics.rounding import canonicalize_nan

_ALONE, _LARGE = 1 << 18, 1 << 22


def fast_dot(a: F32, b: F32, c: F32, output: str = "f32") -> F32:
    """Return a @ b + c summed in float32; products of significands of at most 12 bits are exact."""
    with quiet():
        result: F32 = multiply(a, b)
        result += c
        if output == "f16":
            result = result.astype(np.float16).astype(np.float32)
    return canonicalize_nan(result)


def multiply(a: Array, b: Array, out: Array | None = None) -> Array:
    """Return a @ b. Products of medium size go to BLAS in parts that run on one thread: on a busy machine, its threads
    wait for one another a hundred times longer than they compute."""
    rows, depth = a.shape[-2:]
    size, parts = rows * depth * b.shape[-1], 1
    while size // parts > _ALONE and size <= _LARGE and not rows % (2 * parts):
        parts *= 2
    if parts == 1:
        return np.matmul(a, b, out=out)
    out_parts = None if out is None else out.reshape(*out.shape[:-2], parts, rows // parts, out.shape[-1])
    result = np.matmul(a.reshape(*a.shape[:-2], parts, rows // parts, depth), b[..., None, :, :], out=out_parts)
    return result.reshape(*result.shape[:-3], rows, b.shape[-1]) if out is None else out
