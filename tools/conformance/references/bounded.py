"""Approximations: the manual bounds their error and does not specify their bits. A function judges a result.

Where the manual gives no bound, it is inferred and marked as such: a bound for `.f64`, which the manual calls gross,
and for `.ftz` near the smallest normal number. Outside the range of the bound, every number is accepted.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial
from math import inf

from tests.sim.numerics import precise
from tests.sim.numerics.exact import SIGN
from tools.conformance.forms import Array, Case
from tools.conformance.references import floats as f
from tools.conformance.references.floating_point import lanes_of

Within = Callable[..., bool]
"""Takes the bits of the inputs and of the result."""
_TURN = Fraction(6283185307179586, 10**15)
_NO_BOUND = Fraction(10) ** 400
_LIMITS = {"ex2": 1100, "tanh": 200}
"""Operands of a larger magnitude have the same result as infinity."""
_ONE = f.Number(False, Fraction(1))
_ULPS = {("ex2", "f32"): 2, ("rcp", "f32"): 1, ("rsqrt", "f64"): 2}
"""Errors in units of the last place; the one of rsqrt.approx.f64 is inferred."""
_RELATIVE = {
    ("tanh", "f32"): 2.0**-11, ("sqrt", "f32"): 2.0**-23, ("rsqrt", "f32"): 2.0**-22.9, ("ex2", "f16"): 2.0**-9.9,
    ("ex2", "bf16"): 2.0**-7, ("lg2", "f32"): 2.0**-22,
}  # fmt: skip
_GROSS = Fraction(1, 1 << 19)
"""The relative error of an f64 of which only the upper word counts: inferred."""
_ABSOLUTE = {("tanh", "f16"): 2.0**-10.987, ("tanh", "bf16"): 2.0**-8}
_TWO_UNITS = 1 + Fraction(1, 1 << 22)
"""A quotient may be two units too small, and is flushed after that."""
_KNOWN = ("ex2", "lg2", "sin", "cos", "tanh", "rcp", "rsqrt", "sqrt")


def judge(case: Case, operands: Array, results: Array) -> list[bool] | None:
    """Return for every tuple whether its result is within the bound, or None if the form is not an approximation."""
    within = within_of(case)
    if within is None:
        return None
    columns = [operands[position, :, 0].tolist() for position in range(len(case.inputs))]
    return [within(*row) for row in zip(*columns, results[0, :, 0].tolist(), strict=True)]


def within_of(case: Case) -> Within | None:
    """Return the function that judges a case. Before PTX 1.4 these functions have no modifiers and flush."""
    modifiers = case.modifiers
    old = case.target.arch < 20 and modifiers == ("f32",)
    if modifiers[0] not in ("approx", "full") and not old and (case.opcode, *modifiers) != ("rsqrt", "f64"):
        return None
    name, count = lanes_of(modifiers[-1])
    flush = "ftz" in modifiers or old
    if case.opcode == "div":
        return _quotient("full" in modifiers, flush)
    if case.opcode not in _KNOWN:
        return None
    if name == "f64" and flush:
        return partial(_gross, case.opcode)
    width = f.WIDTHS[name]
    mask = (1 << width) - 1

    def within(a: int, d: int) -> bool:
        return all(
            _is_within(case.opcode, name, flush, a >> n * width & mask, d >> n * width & mask) for n in range(count)
        )

    return within


def _is_within(function: str, name: str, flush: bool, a: int, d: int) -> bool:
    x, result = f.decode(a, name, flush), f.decode(d, name)
    special = _special(function, x)
    if special is not None:
        return result.missing if special.missing else d == f.code(special, name)
    exact = _evaluate(function, x.value)
    if exact is None or result.missing:
        return exact is None and d == f.code(_limit(function, x), name)
    if flush and d in (0, 1 << SIGN[name]) and abs(exact) < _least_normal(name):
        return True
    if (function, name) in _ULPS:
        return abs(_rank(f.code(_number(exact), name), name) - _rank(d, name)) <= _ULPS[function, name]
    if result.infinite:
        return d == f.code(_number(exact), name)
    return abs(result.value - exact) <= _find_tolerance(function, name, x.value, exact)


def _find_tolerance(function: str, name: str, x: Fraction, exact: Fraction) -> Fraction:
    """Return the error that the manual allows; a subnormal result may be off by its unit whatever its size."""
    if function in ("sin", "cos"):
        size = abs(x)
        return Fraction(2.0**-20.5 if size <= _TURN else 2.0**-14.7) if size <= 50 * _TURN else _NO_BOUND
    if function == "lg2" and Fraction(1, 2) < x < 2:
        return Fraction(1, 1 << 22)
    if (function, name) in _ABSOLUTE:
        return Fraction(_ABSOLUTE[function, name])
    unit = _least_normal(name) / (1 << f.SHAPES[name][0])
    return max(abs(exact) * Fraction(_RELATIVE[function, name]), unit)


def _least_normal(name: str) -> Fraction:
    return Fraction(2) ** (1 - f.SHAPES[name][1])


def _number(value: Fraction) -> f.Number:
    return f.Number(value < 0, abs(value))


def _rank(code: int, name: str) -> int:
    """Return an integer such that neighboring codes have neighboring integers."""
    size = code & ((1 << SIGN[name]) - 1)
    return -size if code >> SIGN[name] else size


@lru_cache(maxsize=16384)
def _evaluate(function: str, x: Fraction) -> Fraction | None:
    """Return the function of a number, or None where only its limit matters."""
    if abs(x) > _LIMITS.get(function, inf):
        return None
    return precise.evaluate(function, float(x))


def _limit(function: str, x: f.Number) -> f.Number:
    if function == "tanh":
        return f.Number(x.negative, Fraction(1))
    return f.Number(False, f.ZERO if x.negative else inf)


def _special(function: str, x: f.Number) -> f.Number | None:
    """Return the result for an operand that the manual lists by name, or None for others."""
    if x.missing or (function in ("sqrt", "rsqrt", "lg2") and x.negative and x.size):
        return f.NAN
    if x.infinite:
        return {
            "rcp": f.Number(x.negative, f.ZERO), "rsqrt": f.Number(False, f.ZERO), "sin": f.NAN, "cos": f.NAN,
            "ex2": f.Number(False, f.ZERO if x.negative else inf), "tanh": f.Number(x.negative, Fraction(1)),
        }.get(function, x)  # fmt: skip
    if not x.size:
        return {
            "rcp": f.Number(x.negative, inf), "rsqrt": f.Number(x.negative, inf), "lg2": f.Number(True, inf),
            "cos": _ONE, "ex2": _ONE,
        }.get(function, x)  # fmt: skip
    return None


def _gross(function: str, a: int, d: int) -> bool:
    """Judge rcp and rsqrt on the upper word of an f64; the lower word of the result is zero."""
    x, result = f.decode(a >> 32 << 32, "f64", flush=True), f.decode(d, "f64")
    special = _special(function, x)
    if special is not None:
        return result.missing if special.missing else d == f.code(special, "f64")
    exact = precise.evaluate(function, float(x.value))
    if result.size == 0:
        return abs(exact) < _least_normal("f64") * 2
    return not d & 0xFFFFFFFF and not result.missing and abs(result.value - exact) <= abs(exact) * _GROSS


def _quotient(full: bool, flush: bool) -> Within:
    """Judge div.full, within 2 ulp everywhere, and div.approx: zero, or NaN for infinity, beyond 2**126."""

    def within(a: int, b: int, d: int) -> bool:
        x, y, result = f.decode(a, "f32", flush), f.decode(b, "f32", flush), f.decode(d, "f32")
        exact = f.divide(x, y)
        if not full and not y.missing and not y.infinite and y.size:
            size = abs(y.value)
            if size > Fraction(2) ** 126:
                exact = f.NAN if x.missing or x.infinite else f.Number(exact.negative, f.ZERO)
            elif size < _least_normal("f32"):
                return True
        if exact.missing or result.missing:
            return exact.missing and result.missing
        if flush and result.size == 0 and not exact.infinite and abs(exact.value) < _least_normal("f32") * _TWO_UNITS:
            return result.negative == exact.negative
        nearest = f.code(exact, "f32")
        if exact.infinite or not exact.size:
            return d == nearest
        return result.negative == exact.negative and abs(_rank(nearest, "f32") - _rank(d, "f32")) <= 2

    return within
