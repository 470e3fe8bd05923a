"""Floating-point numbers as fractions, for the references of all floating-point families."""

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
    """A sign and a magnitude: a fraction, infinity, or None for NaN."""

    negative: bool
    size: Fraction | float | None

    @property
    def missing(self) -> bool:
        """Return whether this is a NaN."""
        return self.size is None

    @property
    def infinite(self) -> bool:
        """Return whether this is infinite."""
        return self.size == math.inf

    @property
    def value(self) -> Fraction:
        """The value of a finite number."""
        assert isinstance(self.size, Fraction)
        return -self.size if self.negative else self.size

    @property
    def rank(self) -> Fraction | float:
        """The value, which may be infinite, for comparisons."""
        assert self.size is not None
        return -self.size if self.negative else self.size


NAN = Number(False, None)
ZERO = Fraction(0)


def decode(bits: int, name: str, flush: bool = False) -> Number:
    """Return the number of a code; `flush` turns subnormal numbers into zeros of the same sign."""
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
    """Return the code of a number in a format; `flush` returns zero for numbers that are below the normal ones when
    they are rounded with an unbounded exponent: measured on Hopper, and computed by ptxas."""
    if number.size is None:
        return NAN_CODES.get(name, SHAPES[name][2])
    sign = number.negative << SIGN[name]
    if number.size == math.inf:
        result = sign | (SHAPES[name][2] if finite else BEYOND.get(name, NAN_CODES.get(name, SHAPES[name][2])))
    else:
        result = encode(number.value, name, rounding, satfinite=finite, zero_sign=number.negative)
    mantissa, bias, _ = SHAPES[name]
    if flush and number.size < Fraction(2) ** (2 - bias):
        unbounded = encode(number.value * Fraction(2) ** (bias - 1), name, rounding, zero_sign=number.negative)
        result = sign if unbounded & ~(1 << SIGN[name]) < bias << mantissa else result
    return result << 13 if name == "tf32" else result


def add(a: Number, b: Number, rounding: str) -> Number:
    """Return the exact sum."""
    if a.missing or b.missing or (a.infinite and b.infinite and a.negative != b.negative):
        return NAN
    if a.infinite or b.infinite:
        return a if a.infinite else b
    total = a.value + b.value
    if total == 0:
        negative = (a.negative and b.negative) or (a.negative != b.negative and rounding == "rm")
        are_zero = a.size == 0 and b.size == 0
        return Number(negative if are_zero or rounding == "rm" else False, ZERO)
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
    """Return the number with the opposite sign."""
    return Number(not a.negative, a.size)


def clamp_to_one(a: Number) -> Number:
    """Return the result of `.sat`: clamped to [0, 1], and +0 for NaN."""
    if a.missing or a.negative or a.size == 0:
        return Number(False, ZERO)
    assert a.size is not None
    return Number(False, Fraction(1) if a.size > 1 else a.size)


def rectify(a: Number) -> Number:
    """Return the result of `.relu`: zero for a negative number."""
    return a if a.missing or not a.negative else Number(False, ZERO)
