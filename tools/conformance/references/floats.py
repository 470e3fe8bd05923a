"""Floating-point numbers as fractions: what the references of all floating-point families share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from tests.sim.numerics.exact import BEYOND, SHAPES, SIGN, encode

NAN_CODES = {
    "f64": 0x7FFFFFFFFFFFFFFF, "f32": 0x7FFFFFFF, "f16": 0x7FFF, "bf16": 0x7FFF, "tf32": 0x7FFFFFFF, "e4m3": 0x7F,
    "e5m2": 0x7F,
}  # fmt: skip
WIDTHS = {"f64": 64, "f32": 32, "f16": 16, "bf16": 16, "tf32": 32}
ROUNDINGS = ("rn", "rz", "rm", "rp", "rna")


@dataclass(frozen=True, slots=True)
class Number:
    """A sign and a size; a size of infinity is one, no size at all is no number."""

    negative: bool
    size: Fraction | float | None

    @property
    def missing(self) -> bool:
        """Tell whether this is no number."""
        return self.size is None

    @property
    def infinite(self) -> bool:
        """Tell whether this is infinite."""
        return self.size == math.inf

    @property
    def value(self) -> Fraction:
        """The value of a finite number."""
        assert isinstance(self.size, Fraction)
        return -self.size if self.negative else self.size

    @property
    def rank(self) -> Fraction | float:
        """The value, infinite ones included, for comparisons."""
        assert self.size is not None
        return -self.size if self.negative else self.size


NAN = Number(False, None)
ZERO = Fraction(0)


def decode(bits: int, name: str, flush: bool = False) -> Number:
    """Return the number of a code; `flush` makes subnormal ones zeros of their sign."""
    mantissa, bias, _ = SHAPES[name]
    if name == "tf32":
        bits >>= 13
    negative = bool(bits >> SIGN[name] & 1)
    exponent = bits >> mantissa & ((1 << SIGN[name] - mantissa) - 1)
    fraction = bits & ((1 << mantissa) - 1)
    top = (1 << SIGN[name] - mantissa) - 1
    if name == "e4m3" and exponent == top and fraction == 7:
        return Number(negative, None)
    if name in BEYOND and exponent == top:
        return Number(negative, None if fraction else math.inf)
    if not exponent:
        return Number(negative, ZERO if flush else Fraction(fraction) * Fraction(2) ** (1 - bias - mantissa))
    return Number(negative, Fraction(fraction + (1 << mantissa)) * Fraction(2) ** (exponent - bias - mantissa))


def code(number: Number, name: str, rounding: str = "rn", *, flush: bool = False, finite: bool = False) -> int:
    """Return the code of a number in a format."""
    if number.size is None:
        return NAN_CODES.get(name, SHAPES[name][2])
    sign = number.negative << SIGN[name]
    if number.size == math.inf:
        made = sign | (SHAPES[name][2] if finite else BEYOND.get(name, NAN_CODES.get(name, SHAPES[name][2])))
    else:
        made = encode(number.value, name, rounding, satfinite=finite, zero_sign=number.negative)
    mantissa = SHAPES[name][0]
    if flush and not made >> mantissa & ((1 << SIGN[name] - mantissa) - 1):
        made = sign
    return made << 13 if name == "tf32" else made


def add(a: Number, b: Number, rounding: str) -> Number:
    """Return the exact sum."""
    if a.missing or b.missing or (a.infinite and b.infinite and a.negative != b.negative):
        return NAN
    if a.infinite or b.infinite:
        return a if a.infinite else b
    total = a.value + b.value
    if total == 0:
        negative = (a.negative and b.negative) or (a.negative != b.negative and rounding == "rm")
        both = a.size == 0 and b.size == 0
        return Number(negative if both or rounding == "rm" else False, ZERO)
    return Number(total < 0, abs(total))


def multiply(a: Number, b: Number) -> Number:
    """Return the exact product."""
    if a.missing or b.missing or (a.infinite and b.size == 0) or (b.infinite and a.size == 0):
        return NAN
    negative = a.negative != b.negative
    if a.infinite or b.infinite:
        return Number(negative, math.inf)
    assert isinstance(a.size, Fraction)
    assert isinstance(b.size, Fraction)
    return Number(negative, a.size * b.size)


def divide(a: Number, b: Number) -> Number:
    """Return the exact quotient."""
    if a.missing or b.missing or (a.infinite and b.infinite) or (a.size == 0 and b.size == 0):
        return NAN
    negative = a.negative != b.negative
    if a.infinite or b.size == 0:
        return Number(negative, math.inf)
    if b.infinite:
        return Number(negative, ZERO)
    return Number(negative, abs(a.value / b.value))


def negate(a: Number) -> Number:
    """Return the number of the other sign."""
    return Number(not a.negative, a.size)


def clamp_to_one(a: Number) -> Number:
    """Return what `.sat` makes of a result: 0 to 1, and +0 for no number."""
    if a.missing or a.negative or a.size == 0:
        return Number(False, ZERO)
    assert a.size is not None
    return Number(False, Fraction(1) if a.size > 1 else a.size)


def rectified(a: Number) -> Number:
    """Return what `.relu` makes of a result: no negative one."""
    return a if a.missing or not a.negative else Number(False, ZERO)
