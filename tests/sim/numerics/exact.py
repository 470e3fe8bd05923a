"""Rounding of rational numbers to a binary format without NumPy: the reference for the simulator."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

SHAPES = {
    "f64": (52, 1023, 0x7FEFFFFFFFFFFFFF),
    "f32": (23, 127, 0x7F7FFFFF),
    "f16": (10, 15, 0x7BFF),
    "bf16": (7, 127, 0x7F7F),
    "tf32": (10, 127, 0x3FBFF),
    "e4m3": (3, 7, 0x7E),
    "e5m2": (2, 15, 0x7B),
    "e2m3": (3, 1, 0x1F),
    "e3m2": (2, 3, 0x1F),
    "e2m1": (1, 1, 0x07),
}
"""Mantissa bits, bias, largest finite code."""

BEYOND = {"f64": 0x7FF0000000000000, "f32": 0x7F800000, "f16": 0x7C00, "bf16": 0x7F80, "tf32": 0x3FC00, "e5m2": 0x7C}
SIGN = {"f64": 63, "f32": 31, "f16": 15, "bf16": 15, "tf32": 18, "e4m3": 7, "e5m2": 7, "e2m3": 5, "e3m2": 5, "e2m1": 3}


def binade(x: Fraction) -> int:
    """Return the exponent of the power of two at or below a positive x."""
    exponent = x.numerator.bit_length() - x.denominator.bit_length()
    return exponent if x >= Fraction(2) ** exponent else exponent - 1


def round_units(x: Fraction, rounding: str, negative: bool) -> int:
    """Return the integer next to a magnitude x, rounded in the direction of the signed number."""
    low = x.numerator // x.denominator
    remainder = x - low
    if remainder == 0:
        return low
    up = {
        "rn": remainder > Fraction(1, 2) or (remainder == Fraction(1, 2) and low % 2 == 1),
        "rna": remainder >= Fraction(1, 2),
        "rz": False,
        "rm": negative,
        "rp": not negative,
    }[rounding]
    return low + up


def encode(x: Fraction, name: str, rounding: str, *, satfinite: bool = False, zero_sign: bool = False) -> int:
    """Return the code of x; `zero_sign` is the sign of a zero."""
    mantissa, bias, largest = SHAPES[name]
    negative = x < 0 or (x == 0 and zero_sign)
    sign = negative << SIGN[name]
    size = abs(x)
    if size == 0:
        return sign
    exponent = max(binade(size), 1 - bias)
    units = round_units(size / Fraction(2) ** (exponent - mantissa), rounding, negative)
    code = units + ((exponent + bias - 1) << mantissa)
    if code <= largest:
        return sign | code
    rounds_up = rounding in ("rn", "rna") or (rounding == "rm" and negative) or (rounding == "rp" and not negative)
    return sign | (largest if satfinite or not rounds_up else BEYOND.get(name, 0x7F if name == "e4m3" else largest))


def round_root(x: Fraction, name: str, rounding: str) -> int:
    """Return the code of the square root of a positive x, by integer square root."""
    shift = 400
    shifted_value = x * Fraction(4) ** shift * Fraction(4) ** 1100
    root = isqrt(shifted_value.numerator // shifted_value.denominator)
    exact = Fraction(root) ** 2 == shifted_value
    return encode(Fraction(2 * root + (not exact), 2) / Fraction(2) ** (shift + 1100), name, rounding)
