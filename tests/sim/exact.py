"""An independent reference for rounding: exact fractions, the two neighbors in a format, and a choice between them."""

from __future__ import annotations

import math
from fractions import Fraction


def round_to_precision(x: Fraction, precision: int, least: int, mode: str) -> Fraction:
    """Round a fraction to `precision` bits, with a minimum exponent of `least` and no maximum."""
    if x == 0:
        return x
    size = abs(x)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    unit = Fraction(2) ** (max(exponent, least) - precision + 1)
    steps = x / unit
    low = math.floor(steps)
    remainder = steps - low
    if remainder == 0:
        return x
    match mode:
        case "rz":
            choice = low if x > 0 else low + 1
        case "rm":
            choice = low
        case "rp":
            choice = low + 1
        case "rna":
            up = remainder > Fraction(1, 2) or (remainder == Fraction(1, 2) and x > 0)
            choice = low + 1 if up else low
        case _:
            up = remainder > Fraction(1, 2) or (remainder == Fraction(1, 2) and low % 2 == 1)
            choice = low + 1 if up else low
    return choice * unit


def as_float(x: Fraction, precision: int, least: int, greatest: float, mode: str) -> float:
    """Round to a format with infinities: values out of range become infinite or the largest value, by the mode."""
    rounded_value = round_to_precision(x, precision, least, mode)
    if abs(rounded_value) <= Fraction(greatest):
        return float(rounded_value)
    inward = mode == "rz" or (mode == "rm" and x > 0) or (mode == "rp" and x < 0)
    limit = greatest if inward else math.inf
    return limit if x > 0 else -limit


F32 = (24, -126, 3.4028234663852886e38)
F64 = (53, -1022, 1.7976931348623157e308)
F16 = (11, -14, 65504.0)
BF16 = (8, -126, 3.3895313892515355e38)
