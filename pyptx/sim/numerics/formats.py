"""Number formats: the codes of each and the value of each code.

Manual: Alternate Floating-Point Data Formats, Fixed-point Data format.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from pyptx.sim.numerics.arrays import F32, F64, Array, quiet


@dataclass(frozen=True, slots=True)
class Format:
    """A binary floating-point format: sign, exponent, `mantissa` bits; codes below are without the sign."""

    name: str
    bits: int
    mantissa: int
    bias: int
    largest: int
    infinity: int | None = None
    nan: int | None = None
    signed: bool = True

    @property
    def least_exponent(self) -> int:
        """Exponent of the smallest normal number, which subnormals share."""
        return 1 - self.bias

    @property
    def sign(self) -> int:
        return 1 << (self.bits - 1) if self.signed else 0

    @property
    def dtype(self) -> np.dtype[Any]:
        """Unsigned integer that holds a code."""
        width = 8 if self.bits <= 8 else 16 if self.bits <= 16 else 32 if self.bits <= 32 else 64
        return np.dtype(f"u{width // 8}")

    @property
    def maximum(self) -> float:
        """Largest finite value."""
        exponent = max(self.largest >> self.mantissa, 1) - self.bias
        fraction = self.largest & ((1 << self.mantissa) - 1) | (1 << self.mantissa)
        return float(np.ldexp(float(fraction), exponent - self.mantissa))


F64_FORMAT = Format("f64", 64, 52, 1023, 0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000, 0x7FF8000000000000)
F32_FORMAT = Format("f32", 32, 23, 127, 0x7F7FFFFF, 0x7F800000, 0x7FFFFFFF)
F16_FORMAT = Format("f16", 16, 10, 15, 0x7BFF, 0x7C00, 0x7FFF)
BF16_FORMAT = Format("bf16", 16, 7, 127, 0x7F7F, 0x7F80, 0x7FFF)
TF32_FORMAT = Format("tf32", 19, 10, 127, 0x3FBFF, 0x3FC00, 0x3FFFF)
"""tf32 is an f32 whose low 13 bits are zero; its code here is the upper 19."""

FORMATS = {
    form.name: form
    for form in (
        F64_FORMAT,
        F32_FORMAT,
        F16_FORMAT,
        BF16_FORMAT,
        TF32_FORMAT,
        Format("e4m3", 8, 3, 7, 0x7E, None, 0x7F),
        Format("e5m2", 8, 2, 15, 0x7B, 0x7C, 0x7F),
        Format("e2m3", 6, 3, 1, 0x1F),
        Format("e3m2", 6, 2, 3, 0x1F),
        Format("e2m1", 4, 1, 1, 0x7),
        Format("ue4m3", 7, 3, 7, 0x7E, None, 0x7F, signed=False),
    )
}
"""ue8m0 and s2f6 are no such formats: all exponent, and fixed point."""

TF32_KEPT = np.uint32(0xFFFFE000)


@cache
def table(name: str) -> F32:
    """Return the values of all 256 bytes; bits above the format's are ignored, as the hardware's padding is."""
    codes = np.arange(256, dtype=np.int64)
    if name == "s2f6":
        values = codes.astype(np.int8) / 64.0
    elif name == "ue8m0":
        values = np.where(codes == 0xFF, np.nan, np.ldexp(1.0, np.minimum(codes, 254) - 127))
    else:
        values = _evaluate(codes, FORMATS[name])
    result = values.astype(np.float32)
    result.flags.writeable = False
    return result


def _evaluate(codes: Array, form: Format) -> F64:
    magnitude = codes & ((1 << (form.bits - form.signed)) - 1)
    exponent = magnitude >> form.mantissa
    fraction = magnitude & ((1 << form.mantissa) - 1)
    significand = np.where(exponent > 0, fraction | (1 << form.mantissa), fraction).astype(np.float64)
    values = np.ldexp(significand, np.maximum(exponent, 1) - form.bias - form.mantissa)
    if form.infinity is not None:
        values = np.where(magnitude == form.infinity, np.inf, values)
    if form.nan is not None:
        values = np.where(magnitude > (form.infinity or form.largest), np.nan, values)
    return np.where(codes & form.sign, -values, values)


def decode(codes: Array, name: str) -> F32 | F64:
    """Return the values of codes; f64 stays f64, everything else fits f32 exactly.

    A tf32 operand may hold any f32: the tensor core ignores its low 13 bits.
    """
    match name:
        case "f64" | "f32":
            return codes
        case "tf32":
            return (codes.view(np.uint32) & TF32_KEPT).view(np.float32)
        case "f16":
            with quiet():
                return codes.view(np.float16).astype(np.float32)
        case "bf16":
            return (codes.astype(np.uint32) << np.uint32(16)).view(np.float32)
        case _:
            return table(name)[codes.view(np.uint8)]
