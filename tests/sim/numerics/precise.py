"""Elementary functions to many digits with `decimal`: the reference for the approximate functions."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache

DIGITS = 120


@cache
def _pi() -> Decimal:
    """Return pi by Machin's formula."""
    return 4 * (4 * _arctan_inverse(5) - _arctan_inverse(239))


def _arctan_inverse(n: int) -> Decimal:
    total, power, k = Decimal(0), Decimal(1) / n, 0
    while abs(power) > Decimal(10) ** -(DIGITS + 5):
        total += power / (2 * k + 1) * (-1) ** k
        power /= n * n
        k += 1
    return total


def _sine(x: Decimal) -> Decimal:
    x = x.remainder_near(2 * _pi())
    total, term, k = Decimal(0), x, 1
    while abs(term) > Decimal(10) ** -(DIGITS - 5) * abs(x or 1):
        total += term
        term *= -x * x / ((k + 1) * (k + 2))
        k += 2
    return total


def _tangent(x: Decimal) -> Decimal:
    if abs(x) > 60:
        return Decimal(1).copy_sign(x) * (1 - (-2 * abs(x)).exp() * 2)
    exponential = (2 * x).exp()
    return (exponential - 1) / (exponential + 1)


_FUNCTIONS: dict[str, Callable[[Decimal], Decimal]] = {
    "ex2": lambda x: (x * Decimal(2).ln()).exp(),
    "lg2": lambda x: x.ln() / Decimal(2).ln(),
    "sin": _sine,
    "cos": lambda x: _sine(x + _pi() / 2),
    "tanh": _tangent,
    "sqrt": lambda x: x.sqrt(),
    "rsqrt": lambda x: 1 / x.sqrt(),
    "rcp": lambda x: 1 / x,
}


def evaluate(function: str, x: float) -> Fraction:
    """Return the function of x, to far more digits than any format holds."""
    with localcontext() as context:
        context.prec = DIGITS
        return Fraction(_FUNCTIONS[function](Decimal(x)))
