"""Single roundings of sums, products, quotients and roots, against rationals: every form and direction."""

from __future__ import annotations

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
Array = NDArray[Any]


def fused(a: Fraction, b: Fraction, c: Fraction) -> Fraction:
    return a * b + c


def quotient(a: Fraction, b: Fraction) -> Fraction:
    return a / b


def reciprocal(a: Fraction) -> Fraction:
    return 1 / a


TERMS: dict[str, Callable[..., Fraction]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": quotient,
    "fma": fused,
    "rcp": reciprocal,
}
ARITY = {"fma": 3, "rcp": 1, "sqrt": 1}


def operands(name: str, count: int, seed: int) -> list[Array]:
    """Return `count` operand arrays: half of any exponent, half close together."""
    made: list[Array] = []
    for place in range(count):
        if name in ("f16", "bf16"):
            made.append(samples.codes16(COUNT, seed + place, 0x7C00 if name == "f16" else 0x7F80))
        else:
            draw = samples.floats32 if name == "f32" else samples.floats64
            made.append(
                np.concatenate([draw(COUNT // 2, seed + place), draw(COUNT // 2, seed + 9 + place, narrow=True)])
            )
    return made


def bits_of(x: Array, name: str) -> list[int]:
    return x.view({"f32": np.uint32, "f64": np.uint64}.get(name, np.uint16)).tolist()


def zero_is_negative(operation: str, values: tuple[float, ...], rounding: str) -> bool:
    signs = [bool(np.signbit(value)) for value in values]
    if operation in ("mul", "div"):
        return signs[0] != signs[1]
    if operation == "rcp":
        return signs[0]
    left = signs[0] != signs[1] if operation == "fma" else signs[0]
    right = signs[-1] != (operation == "sub")
    return left if left == right else rounding == "rm"


def check(operation: str, name: str, rounding: str, given: list[Array], got: Array) -> None:
    """Compare every result whose operands make sense for rationals."""
    columns = [decode(x, name).astype(np.float64).tolist() for x in given]
    compared = 0
    for values, code in zip(zip(*columns, strict=True), bits_of(got, name), strict=True):
        if operation in ("div", "rcp") and values[-1] == 0:
            continue
        value = TERMS[operation](*map(Fraction, values))
        wanted = exact.encode(value, name, rounding, zero_sign=zero_is_negative(operation, values, rounding))
        assert code == wanted, (operation, name, rounding, [value.hex() for value in values], hex(code), hex(wanted))
        compared += 1
    assert compared >= 1000


@pytest.mark.parametrize("rounding", DIRECTIONS)
@pytest.mark.parametrize("operation", ["add", "sub", "mul", "fma", "div", "rcp"])
def test_f32(operation: str, rounding: str) -> None:
    given = operands("f32", ARITY.get(operation, 2), 11)
    check(operation, "f32", rounding, given, getattr(arithmetic, operation)(*given, "f32", rounding))


@pytest.mark.parametrize("rounding", DIRECTIONS)
@pytest.mark.parametrize("operation", ["add", "sub", "mul", "fma", "div", "rcp"])
def test_f64(operation: str, rounding: str) -> None:
    given = operands("f64", ARITY.get(operation, 2), 23)
    check(operation, "f64", rounding, given, getattr(arithmetic, operation)(*given, "f64", rounding))


@pytest.mark.parametrize("name", ["f16", "bf16"])
@pytest.mark.parametrize("operation", ["add", "sub", "mul", "fma"])
def test_halves(operation: str, name: str) -> None:
    given = operands(name, ARITY.get(operation, 2), 31)
    for rounding in DIRECTIONS if operation == "fma" and name == "bf16" else ["rn"]:
        check(operation, name, rounding, given, getattr(arithmetic, operation)(*given, name, rounding))


def test_fma_where_rounding_twice_goes_wrong() -> None:
    """The product and the addend make a float64 tie that a third, tiny part decides."""
    count = 2000
    generator = np.random.default_rng(5)
    a = (1 + generator.integers(0, 1 << 23, count) * 2.0**-23).astype(np.float32)
    b = (1 + generator.integers(0, 1 << 23, count) * 2.0**-23).astype(np.float32)
    nearest = (a.astype(np.float64) * b).astype(np.float32)
    c = (np.spacing(nearest) * 2.0 ** generator.integers(20, 32, count)).astype(np.float32)
    c *= generator.choice([-1, 1], count).astype(np.float32)
    check("fma", "f32", "rn", [a, b, c], arithmetic.fma(a, b, c))
    tiny = (generator.integers(1, 1 << 22, count) * 2.0**-149).astype(np.float32)
    check("fma", "f32", "rn", [a, b * np.float32(2.0**-140), tiny], arithmetic.fma(a, b * np.float32(2.0**-140), tiny))


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
@pytest.mark.parametrize("name", ["f32", "f64"])
def test_roots(name: str, rounding: str) -> None:
    (x,) = operands(name, 1, 47)
    x = np.abs(x)[:500]
    x = x[x > 0]
    squares = (np.arange(1, 60, dtype=x.dtype) ** 2) * np.dtype(x.dtype).type(0.25)
    x = np.concatenate([x, squares, np.nextafter(squares, np.dtype(x.dtype).type(0))])
    got = arithmetic.sqrt(x, name, rounding)
    wanted = [exact.round_root(Fraction(value), name, rounding) for value in x.astype(np.float64).tolist()]
    assert bits_of(got, name) == wanted


@pytest.mark.parametrize("rounding", DIRECTIONS)
def test_results_of_infinities_zeros_and_nan(rounding: str) -> None:
    special = np.array([0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan])
    a, b = (x.ravel() for x in np.meshgrid(special, special))
    with np.errstate(all="ignore"):
        plain = {"add": a + b, "mul": a * b, "div": a / b, "fma": a * b + a}
    for operation, wanted in plain.items():
        third = [a] if operation == "fma" else []
        for module, dtype in ((arithmetic, np.float32), (double, np.float64)):
            given = [x.astype(dtype) for x in (a, b, *third)]
            name = ["f32"] if module is arithmetic else []
            got = getattr(module, operation)(*given, *name, rounding)
            special_result = ~np.isfinite(wanted)
            np.testing.assert_array_equal(got[special_result], wanted[special_result])


def test_single_precision_gives_one_nan() -> None:
    nan = np.array([0xFF800001, 0x7FC00000, 0xFFFFFFFF], np.uint32).view(np.float32)
    for result in (arithmetic.add(nan, nan), arithmetic.fma(nan, nan, nan), arithmetic.mul(nan, nan, "f32", "rz")):
        assert bits_of(result, "f32") == [0x7FFFFFFF] * 3
    half = np.array([0xFC01], np.uint16)
    assert bits_of(arithmetic.add(half, half, "f16"), "f16") == [0x7FFF]


def test_flushing_and_saturation() -> None:
    small = np.array([2.0**-130, -(2.0**-130), 2.0**-126, -(2.0**-126)], np.float32)
    one = np.ones(4, np.float32)
    flushed = arithmetic.mul(small, one, ftz=True)
    assert bits_of(flushed, "f32") == [0, 0x80000000, 0x00800000, 0x80800000]
    assert bits_of(arithmetic.mul(small[2:], one[2:] / 2, ftz=True), "f32") == [0, 0x80000000]
    assert bits_of(arithmetic.fma(small, one, one * 0, ftz=True), "f32") == [0, 0, 0x00800000, 0x80800000]
    x = np.array([-1.0, 0.25, 7.0, np.nan], np.float32)
    np.testing.assert_array_equal(arithmetic.add(x, x, sat=True), np.array([0, 0.5, 1, 0], np.float32))
    np.testing.assert_array_equal(arithmetic.fma(x, one, x, rounding="rp", sat=True), np.array([0, 0.5, 1, 0], "f4"))
    half = np.array([0x0001, 0x83FF, 0xC000, 0x7FFF], np.uint16)
    unit, zero = np.full(4, 0x3C00, np.uint16), np.zeros(4, np.uint16)
    assert bits_of(arithmetic.fma(half, unit, zero, "f16", ftz=True), "f16") == [0, 0, 0xC000, 0x7FFF]
    assert bits_of(arithmetic.fma(half, unit, zero, "f16", relu=True), "f16") == [1, 0, 0, 0x7FFF]
    assert bits_of(arithmetic.fma(half, unit, zero, "f16", oob=True), "f16") == [1, 0x83FF, 0xC000, 0]


@pytest.mark.parametrize("rounding", DIRECTIONS)
def test_mixed_precision(rounding: str) -> None:
    a, b, c = samples.codes16(COUNT, 1, 0x7F80), samples.codes16(COUNT, 2, 0x7F80), samples.floats32(COUNT, 3)
    got = arithmetic.mixed_fma(a, b, "bf16", c, rounding)
    wide = [decode(x, "bf16") for x in (a, b)]
    check("fma", "f32", rounding, [*wide, c], got)
    check("add", "f32", rounding, [wide[0], c], arithmetic.mixed_add(a, "bf16", c, rounding))
    check("sub", "f32", rounding, [wide[0], c], arithmetic.mixed_add(a, "bf16", c, rounding, negate=True))


@pytest.mark.parametrize("rounding", DIRECTIONS)
def test_a_product_past_the_range_is_less_than_infinity(rounding: str) -> None:
    a, b, c = np.array([-1e30, 1e30, np.inf]), np.full(3, 1.7e308), np.array([np.inf, -np.inf, -np.inf])
    got = double.fma(a, b, c, rounding)
    assert got[:2].tolist() == [np.inf, -np.inf]
    assert np.isnan(got[2])
