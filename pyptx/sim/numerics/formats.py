"""Codes and values of the formats of `pyptx.numbers`, as arrays."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from pyptx.numbers import FORMATS, Format, decode_number
from pyptx.sim.numerics.arrays import F32, F64, Array, quiet

_TF32 = FORMATS["tf32"]
TF32_KEPT = np.uint32((_TF32.magnitude | _TF32.sign) << _TF32.shift)
"""A mask of the bits of an f32 that tf32 keeps."""
_BF16_SHIFT = np.uint32(FORMATS["f32"].bits - FORMATS["bf16"].bits)


def code_dtype(form: Format) -> np.dtype[Any]:
    """Return the unsigned integer that holds a code."""
    return np.dtype(f"u{max(form.width, 8) // 8}")


def encode_nan(name: str) -> int:
    """Return the code of the canonical NaN."""
    nan = FORMATS[name].nan
    assert nan is not None, name
    return nan


@cache
def value_table(name: str) -> F32:
    """Return the values of all 256 bytes; padding bits above the format's width are ignored, as on hardware."""
    result = np.array([decode_number(code, FORMATS[name]) for code in range(256)], np.float32)
    result.flags.writeable = False
    return result


def decode(codes: Array, name: str) -> F32 | F64:
    """Return the values of codes, exactly: f64 as f64, all others as f32.

    A tf32 operand may be any f32; the tensor core ignores its low bits.
    """
    match name:
        case "f64":
            return codes.view(np.float64)
        case "f32":
            return codes.view(np.float32)
        case "tf32":
            return (codes.view(np.uint32) & TF32_KEPT).view(np.float32)
        case "f16":
            with quiet():
                return codes.view(np.float16).astype(np.float32)
        case "bf16":
            return (codes.astype(np.uint32) << _BF16_SHIFT).view(np.float32)
        case _:
            return value_table(name)[codes.astype(np.uint8, copy=False)]


def widen(codes: Array, name: str) -> F64:
    """Return the values of codes as f64."""
    if name == "f16":
        # Twice as fast as through f32.
        return codes.view(np.float16).astype(np.float64)
    return decode(codes, name).astype(np.float64, copy=False)
