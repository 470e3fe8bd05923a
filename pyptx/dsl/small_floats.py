"""Encodes numbers in 8-bit and smaller floating-point formats, which NumPy and `struct` do not support."""

from __future__ import annotations

import math
from typing import NamedTuple


class Format(NamedTuple):
    """A format with a sign, `exponent` and `mantissa` bits. `largest` encodes the greatest finite number; `infinity`
    and `nan` encode those values, or are None."""

    exponent: int
    mantissa: int
    largest: int
    infinity: int | None = None
    nan: int | None = None
    signed: bool = True

    @property
    def bias(self) -> int:
        """The exponent bias."""
        return (1 << self.exponent - 1) - 1


FORMATS = {
    "e4m3": Format(4, 3, 0x7E, nan=0x7F),
    "ue4m3": Format(4, 3, 0x7E, nan=0x7F, signed=False),
    "e5m2": Format(5, 2, 0x7B, infinity=0x7C, nan=0x7F),
    "e3m2": Format(3, 2, 0x1F),
    "e2m3": Format(2, 3, 0x1F),
    "e2m1": Format(2, 1, 0x07),
}


POWERS = "ue8m0"
"""The format of scale factors: only an exponent, with 255 for NaN."""
_POWER_BIAS, _POWER_NAN = 127, 255
NAMES = frozenset((*FORMATS, POWERS))


def bits_of(value: float, name: str) -> int | None:
    """Return the bits of a number, rounded to nearest even, or None if the format cannot hold it."""
    if name != POWERS:
        return _encode(value, FORMATS[name])
    if math.isnan(value):
        return _POWER_NAN
    if value <= 0 or math.isinf(value):
        return None
    mantissa, exponent = math.frexp(value)
    # A power of two has the mantissa 0.5; between two powers there is no agreed nearest one.
    bits = exponent - 1 + _POWER_BIAS
    return bits if mantissa == 0.5 and 0 <= bits < _POWER_NAN else None


def number_of(bits: int, name: str) -> float:
    """Return the finite number that the bits encode."""
    return math.ldexp(1.0, bits - _POWER_BIAS) if name == POWERS else _decode(bits, FORMATS[name])


def bounds(name: str) -> tuple[float, float]:
    """Return the least and the greatest finite number."""
    if name == POWERS:
        return number_of(0, name), number_of(_POWER_NAN - 1, name)
    kind = FORMATS[name]
    most = _decode(kind.largest, kind)
    return (-most if kind.signed else 0.0), most


def _encode(value: float, kind: Format) -> int | None:
    if math.isnan(value):
        return kind.nan
    sign = 1 << kind.exponent + kind.mantissa if math.copysign(1.0, value) < 0 else 0
    if sign and not kind.signed:
        return None
    if math.isinf(value):
        return None if kind.infinity is None else sign | kind.infinity
    if value == 0:
        return sign
    exponent = max(math.frexp(abs(value))[1] - 1, 1 - kind.bias)
    steps = round(math.ldexp(abs(value), kind.mantissa - exponent))
    # The step from the largest mantissa carries into the exponent, as bits do; a subnormal has exponent bits 0.
    bits = (exponent + kind.bias - 1 << kind.mantissa) + steps
    return sign | bits if bits <= kind.largest else None


def _decode(bits: int, kind: Format) -> float:
    magnitude = bits & (1 << kind.exponent + kind.mantissa) - 1
    exponent, mantissa = magnitude >> kind.mantissa, magnitude & (1 << kind.mantissa) - 1
    if exponent:
        mantissa |= 1 << kind.mantissa
    made = math.ldexp(mantissa, max(exponent, 1) - kind.bias - kind.mantissa)
    return -made if bits != magnitude else made
