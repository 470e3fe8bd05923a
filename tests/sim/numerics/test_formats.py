"""Codes and values of the small formats: every code, every rounding, against rationals and ml_dtypes."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from pyptx.numbers import FORMATS
from pyptx.sim.numerics.formats import code_dtype, decode, value_table
from pyptx.sim.numerics.rounding import encode, encode_exact, round_to_format
from tests.sim.numerics import exact

_ML_DTYPES = {
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m1": ml_dtypes.float4_e2m1fn,
    "ue8m0": ml_dtypes.float8_e8m0fnu,
}
SMALL = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1")


@pytest.mark.parametrize("name", sorted(_ML_DTYPES))
def test_every_code_has_the_value_that_ml_dtypes_gives(name: str) -> None:
    bits = 8 if name == "ue8m0" else FORMATS[name].bits
    codes = np.arange(1 << bits, dtype=np.uint8)
    np.testing.assert_array_equal(decode(codes, name), codes.view(_ML_DTYPES[name]).astype(np.float32))


@pytest.mark.parametrize(("name", "dtype"), [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)])
def test_every_16_bit_code_has_the_value_that_numpy_gives(name: str, dtype: type) -> None:
    codes = np.arange(1 << 16, dtype=np.uint16)
    np.testing.assert_array_equal(decode(codes, name), codes.view(dtype).astype(np.float32))


def test_s2f6_is_a_byte_in_sixty_fourths() -> None:
    assert value_table("s2f6")[0x7F] == 127 / 64
    assert value_table("s2f6")[0x80] == -2.0


def near_codes(name: str) -> NDArray[np.float64]:
    """Return every value, every tie, their closest neighbors, and values past the range."""
    finite = np.unique(decode(np.arange(FORMATS[name].largest + 1, dtype=np.uint8), name).astype(np.float64))
    middle = (finite[1:] + finite[:-1]) / 2
    points = np.concatenate([finite, middle, finite[-1] + np.diff(finite)[-1] * np.array([0.25, 0.5, 0.75, 1, 9])])
    points = np.concatenate([points, np.nextafter(points, np.inf), np.nextafter(points, -np.inf), [1e-300, 1e300]])
    return np.concatenate([points, -points])


@pytest.mark.parametrize("rounding", ["rn", "rz", "rm", "rp", "rna"])
@pytest.mark.parametrize("satfinite", [False, True])
@pytest.mark.parametrize("name", SMALL)
def test_rounding_at_every_code_and_tie(name: str, satfinite: bool, rounding: str) -> None:
    points = near_codes(name)
    expected = [
        exact.encode(Fraction(x), name, rounding, satfinite=satfinite, zero_sign=bool(np.signbit(x)))
        for x in points.tolist()
    ]
    np.testing.assert_array_equal(encode(points, name, rounding, satfinite=satfinite), expected)


@pytest.mark.parametrize("name", SMALL)
def test_rounding_every_f16_to_nearest_agrees_with_ml_dtypes(name: str) -> None:
    values = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    values = values[np.isfinite(values)]
    expected = values.astype(np.float64).astype(_ML_DTYPES[name])
    in_range = np.abs(values.astype(np.float64)) <= FORMATS[name].maximum
    ours = encode(values.astype(np.float64), name, satfinite=True)
    np.testing.assert_array_equal(ours[in_range], expected.view(np.uint8)[in_range])
    assert {code & ~FORMATS[name].sign for code in ours[~in_range].tolist()} == {FORMATS[name].largest}


@pytest.mark.parametrize("name", ["f32", "f16", "bf16", "tf32"])
@pytest.mark.parametrize("rounding", ["rn", "rz", "rm", "rp", "rna"])
def test_rounding_doubles_to_wider_formats(name: str, rounding: str) -> None:
    generator = np.random.default_rng(1)
    form = FORMATS[name]
    codes = generator.integers(0, form.largest + 2, 700)
    low = np.array([_from_code(int(code), name) for code in codes])
    high = np.array([_from_code(int(code) + 1, name) for code in codes])
    points = np.concatenate([low, (low + high) / 2, low * 0.7 + high * 0.3])
    points = np.concatenate([points, np.nextafter(points, 1e308), -points])
    expected = np.array([exact.encode(Fraction(x), name, rounding) for x in points.tolist()], np.uint32)
    expected |= (np.signbit(points) << exact.SIGN[name]).astype(np.uint32)
    ours = encode(points, name, rounding)
    if name in ("f32", "tf32"):
        ours = ours.view(np.uint32) >> (13 if name == "tf32" else 0)
    np.testing.assert_array_equal(ours, expected)


def _from_code(code: int, name: str) -> float:
    mantissa, bias, _ = exact.SHAPES[name]
    exponent, fraction = code >> mantissa, code & ((1 << mantissa) - 1)
    significand = fraction + (1 << mantissa if exponent else 0)
    return float(Fraction(significand) * Fraction(2) ** (max(exponent, 1) - bias - mantissa))


def test_special_values_and_modifiers() -> None:
    values = np.array([np.nan, np.inf, -np.inf, -3.0, -0.0])
    np.testing.assert_array_equal(encode(values, "f16"), [0x7FFF, 0x7C00, 0xFC00, 0xC200, 0x8000])
    np.testing.assert_array_equal(encode(values, "f16", satfinite=True), [0x7FFF, 0x7BFF, 0xFBFF, 0xC200, 0x8000])
    np.testing.assert_array_equal(encode(values, "bf16", relu=True), [0x7FFF, 0x7F80, 0, 0, 0])
    np.testing.assert_array_equal(encode(values, "e4m3", satfinite=True), [0x7F, 0x7E, 0xFE, 0xC4, 0x80])
    np.testing.assert_array_equal(encode(values, "e2m1", satfinite=True), [0x7, 0x7, 0xF, 0xD, 0x8])
    bits = encode(values, "f32", relu=True).view(np.uint32)
    np.testing.assert_array_equal(bits, [0x7FFFFFFF, 0x7F800000, 0, 0, 0])
    assert encode(values, "tf32").view(np.uint32)[0] == 0x7FFFFFFF


@pytest.mark.parametrize(("name", "bits"), [("f16", 13), ("bf16", 16), ("e4m3", 16), ("e2m1", 8)])
def test_stochastic_rounding_goes_up_as_often_as_the_fraction_says(name: str, bits: int) -> None:
    random = np.arange(1 << bits, dtype=np.uint64)
    for fraction in (0.0, 0.25, 0.5, 0.8125):
        value = 1.0 + fraction * 2.0 ** -FORMATS[name].mantissa
        codes = encode(np.full(random.shape, value), name, "rs", noise=random / (1 << bits), satfinite=True)
        ups = int((codes != encode(np.array([1.0]), name)[0]).sum())
        assert ups == fraction * (1 << bits)


@pytest.mark.parametrize("name", ["f16", "bf16", "e4m3", "e5m2", "e2m3", "e3m2", "e2m1"])
def test_a_value_of_a_format_has_its_code_back_without_rounding(name: str) -> None:
    form = FORMATS[name]
    codes = np.arange(1 << form.bits, dtype=code_dtype(form))
    with np.errstate(invalid="ignore"):
        values = decode(codes, name).astype(np.float64)
        encoding = encode_exact(values, name)
    number = ~np.isnan(values)
    np.testing.assert_array_equal(encoding[number], codes[number])
    np.testing.assert_array_equal(encoding, encode(values, name))


def _around_the_largest(name: str) -> NDArray[np.float64]:
    """Return the largest number, half a step and a step past it, their neighbors, and numbers far beyond."""
    form = FORMATS[name]
    largest = form.maximum
    step = largest - _from_code(form.largest - 1, name)
    points = largest + step * np.array([-1, -0.5, 0, 0.25, 0.5, 0.75, 1, 1.5, 2])
    points = np.concatenate([points, np.nextafter(points, 0), np.nextafter(points, np.inf), [largest * 4, 1e300]])
    return np.concatenate([points, -points])


@pytest.mark.parametrize("satfinite", [False, True])
@pytest.mark.parametrize("rounding", ["rn", "rz", "rm", "rp", "rna"])
@pytest.mark.parametrize("name", ["f32", "tf32", "f16", "bf16", *SMALL])
def test_rounding_past_the_range(name: str, rounding: str, satfinite: bool) -> None:
    """Values and codes agree with each other and with fractions."""
    points = _around_the_largest(name)
    expected = [exact.encode(Fraction(x), name, rounding, satfinite=satfinite) for x in points.tolist()]
    codes = encode(points, name, rounding, satfinite=satfinite)
    if name in ("f32", "tf32"):
        codes = codes.view(np.uint32) >> np.uint32(13 if name == "tf32" else 0)
    assert codes.tolist() == expected
    with np.errstate(all="ignore"):
        values = round_to_format(points, name, rounding, satfinite=satfinite)
    beyond = exact.BEYOND.get(name, 0x7F if name == "e4m3" else -1)
    for value, code in zip(values.tolist(), expected, strict=True):
        magnitude = code & ~FORMATS[name].sign
        past = np.nan if name == "e4m3" else np.inf
        size = past if magnitude == beyond else _from_code(magnitude, name)
        assert np.array_equal(value, -size if code & FORMATS[name].sign else size, equal_nan=True)


@pytest.mark.parametrize("name", ["f32", "f16", "e5m2", "e2m1"])
def test_away_from_zero_means_at_half_and_not_just_below(name: str) -> None:
    unit = _from_code(1, name)
    below = np.nextafter(unit / 2, 0)
    assert round_to_format(np.array([unit / 2, below, -unit / 2, -below]), name, "rna").tolist() == [unit, 0, -unit, 0]
