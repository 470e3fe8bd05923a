"""Single roundings against rationals: sums of every format, products, quotients and roots of f64 in every direction."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pyptx.sim.numerics import arithmetic, double
from pyptx.sim.numerics.formats import decode
from tests.sim.numerics import exact, samples

DIRECTIONS = ["rn", "rz", "rm", "rp"]
COUNT = 1200
LARGEST = np.finfo(np.float64).max
Array = NDArray[Any]


def fuse(a: Fraction, b: Fraction, c: Fraction) -> Fraction:
    return a * b + c


def quotient(a: Fraction, b: Fraction) -> Fraction:
    return a / b


TERMS: dict[str, Callable[..., Fraction]] = {
    "add": operator.add,
    "mul": operator.mul,
    "div": quotient,
    "fma": fuse,
}
ARITY = {"fma": 3}


def operands(name: str, count: int, seed: int) -> list[Array]:
    """Return `count` operand arrays: half with any exponent, half close together."""
    arrays: list[Array] = []
    for place in range(count):
        if name in ("f16", "bf16"):
            arrays.append(samples.codes16(COUNT, seed + place, 0x7C00 if name == "f16" else 0x7F80))
        else:
            draw = samples.floats32 if name == "f32" else samples.floats64
            arrays.append(
                np.concatenate([draw(COUNT // 2, seed + place), draw(COUNT // 2, seed + 9 + place, narrow=True)])
            )
    return arrays


def bits_of(x: Array, name: str) -> list[int]:
    return x.view({"f32": np.uint32, "f64": np.uint64}.get(name, np.uint16)).tolist()


def zero_is_negative(operation: str, values: tuple[float, ...], rounding: str) -> bool:
    signs = [bool(np.signbit(value)) for value in values]
    if operation in ("mul", "div"):
        return signs[0] != signs[1]
    left = signs[0] != signs[1] if operation == "fma" else signs[0]
    return left if left == signs[-1] else rounding == "rm"


def check(operation: str, name: str, rounding: str, source: list[Array], got: Array) -> None:
    """Compare every result whose operands are finite."""
    columns = [decode(x, name).astype(np.float64).tolist() for x in source]
    count = 0
    for values, code in zip(zip(*columns, strict=True), bits_of(got, name), strict=True):
        if operation == "div" and values[-1] == 0:
            continue
        value = TERMS[operation](*map(Fraction, values))
        expected = exact.encode(value, name, rounding, zero_sign=zero_is_negative(operation, values, rounding))
        assert code == expected, (
            operation,
            name,
            rounding,
            [value.hex() for value in values],
            hex(code),
            hex(expected),
        )
        count += 1
    assert count >= 1000


@pytest.mark.parametrize("rounding", DIRECTIONS)
@pytest.mark.parametrize("operation", ["add", "mul", "fma", "div"])
def test_f64(operation: str, rounding: str) -> None:
    values = operands("f64", ARITY.get(operation, 2), 23)
    check(operation, "f64", rounding, values, getattr(double, operation)(*values, rounding))


@pytest.mark.parametrize("name", ["f16", "bf16", "f32"])
def test_sums_of_narrow_numbers(name: str) -> None:
    a, b = operands(name, 2, 31)
    check("add", name, "rn", [a, b], arithmetic.add(a, b, name))


@pytest.mark.parametrize("tight", [False, True])
@pytest.mark.parametrize("rounding", DIRECTIONS)
def test_f64_fma_with_cancellation_and_small_results(rounding: str, tight: bool) -> None:
    a, b = samples.floats64(COUNT, 3, narrow=True), samples.floats64(COUNT, 4, narrow=True)
    c = -(a * b)
    if tight:
        scale = 2.0 ** np.random.default_rng(8).integers(-540, -470, COUNT)
        a, b = a * scale, b * scale
        c = np.nextafter(-(a * b), 0) * np.random.default_rng(9).choice([1.0, 0.5, 0.0, -1.0], COUNT)
    check("fma", "f64", rounding, [a, b, c], double.fma(a, b, c, rounding))


@pytest.mark.parametrize("rounding", DIRECTIONS)
def test_f64_sums_near_the_largest_number(rounding: str) -> None:
    """The sum is finite, but not always the difference of the sum and one of the operands."""
    random = np.random.default_rng(7)
    small = random.uniform(2.0**1017, 2.0**1018, COUNT) * random.choice([-1, 1], COUNT)
    large = -np.sign(small) * LARGEST
    values = [np.concatenate([small, large]), np.concatenate([large, small])]
    check("add", "f64", rounding, values, double.add(values[0], values[1], rounding))


@pytest.mark.parametrize("rounding", DIRECTIONS)
def test_f64_fma_of_zeros_and_ones(rounding: str) -> None:
    """Zeros that come from zeros have a sign of their own, and numbers of moderate size take a shorter way."""
    columns = zip(*itertools.product([0.0, -0.0, 1.0, -1.0, 0.5], repeat=3), strict=True)
    a, b, c = (np.array(column * 8) for column in columns)
    check("fma", "f64", rounding, [a, b, c], double.fma(a, b, c, rounding))


@pytest.mark.parametrize("rounding", DIRECTIONS)
def test_roots(rounding: str) -> None:
    (x,) = operands("f64", 1, 47)
    x = np.abs(x)[:500]
    x = x[x > 0]
    squares = (np.arange(1, 60, dtype=x.dtype) ** 2) * 0.25
    x = np.concatenate([x, squares, np.nextafter(squares, 0.0)])
    expected = [exact.round_root(Fraction(value), "f64", rounding) for value in x.tolist()]
    assert bits_of(double.sqrt(x, rounding), "f64") == expected


@pytest.mark.parametrize("rounding", DIRECTIONS)
def test_results_of_infinities_zeros_and_nan(rounding: str) -> None:
    special = np.array([0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan])
    a, b = (x.ravel() for x in np.meshgrid(special, special))
    with np.errstate(all="ignore"):
        plain = {"add": a + b, "mul": a * b, "div": a / b, "fma": a * b + a}
    for operation, expected in plain.items():
        got = getattr(double, operation)(*([a, b, a] if operation == "fma" else [a, b]), rounding)
        special_result = ~np.isfinite(expected)
        np.testing.assert_array_equal(got[special_result], expected[special_result])


def test_sums_that_are_no_number_are_canonical() -> None:
    nan = np.array([0xFF800001, 0x7FC00000, 0xFFFFFFFF], np.uint32).view(np.float32)
    assert bits_of(arithmetic.add(nan, nan), "f32") == [0x7FFFFFFF] * 3
    half = np.array([0xFC01], np.uint16)
    assert bits_of(arithmetic.add(half, half, "f16"), "f16") == [0x7FFF]


def test_subnormal_operands_and_sums_are_flushed() -> None:
    small = np.array([2.0**-130, -(2.0**-130), 2.0**-126, 1.5 * 2.0**-126], np.float32)
    second = np.array([0, -0.0, 0, -(2.0**-126)], np.float32)
    assert bits_of(arithmetic.add(small, second, ftz=True), "f32") == [0, 0x80000000, 0x00800000, 0]
    assert bits_of(arithmetic.add(small, second), "f32")[3] == 0x00400000
    halves, addends = np.array([0x0001, 0x83FF, 0xC000], np.uint16), np.array([0, 0x8000, 0], np.uint16)
    assert bits_of(arithmetic.add(halves, addends, "f16", ftz=True), "f16") == [0, 0x8000, 0xC000]


@pytest.mark.parametrize("rounding", DIRECTIONS)
def test_a_product_past_the_range_is_less_than_infinity(rounding: str) -> None:
    a, b, c = np.array([-1e30, 1e30, np.inf]), np.full(3, 1.7e308), np.array([np.inf, -np.inf, -np.inf])
    got = double.fma(a, b, c, rounding)
    assert got[:2].tolist() == [np.inf, -np.inf]
    assert np.isnan(got[2])
