"""Number formats: values and codes against NumPy, `ml_dtypes` and fractions, in every rounding direction."""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from itertools import pairwise
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pyptx import types
from pyptx.numbers import (
    FORMATS,
    ROUNDINGS,
    Kind,
    Overflow,
    compute_type_bits,
    decode_number,
    encode,
    is_float,
    split_packed,
)
from tests.sim.numerics import exact

DTYPES: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
    "e2m1": ml_dtypes.float4_e2m1fn, "e2m3": ml_dtypes.float6_e2m3fn, "e3m2": ml_dtypes.float6_e3m2fn,
    "ue8m0": ml_dtypes.float8_e8m0fnu,
}  # fmt: skip
SMALL = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1")


def codes(name: str) -> np.ndarray[Any, Any]:
    """Return all codes of a format."""
    bits = FORMATS[name].bits
    return np.arange(1 << bits, dtype=np.uint16 if bits > 8 else np.uint8)


@pytest.mark.parametrize("name", DTYPES)
def test_every_code_has_the_value_that_the_array_library_gives(name: str) -> None:
    with np.errstate(invalid="ignore"):
        expected = codes(name).view(DTYPES[name]).astype(np.float64)
    np.testing.assert_array_equal([decode_number(code, FORMATS[name]) for code in codes(name).tolist()], expected)


@pytest.mark.parametrize("name", SMALL)
def test_every_number_has_its_own_code_and_those_between_round_to_even(name: str) -> None:
    form = FORMATS[name]
    values = codes(name).view(DTYPES[name]).astype(np.float64)
    finite = sorted({float(x) for x in values if math.isfinite(x)})
    between = [(a + b) / 2 for a, b in pairwise(finite)]
    for value in [*finite, -0.0, *between, *(x * 1.001 for x in between)]:
        assert encode(value, form) == int(np.array(value, np.float64).astype(DTYPES[name]).view(np.uint8)), value
    assert (form.minimum, form.maximum) == (finite[0], finite[-1])
    assert encode(finite[-1] * 1.5, form) is None


@pytest.mark.parametrize("name", sorted(exact.SHAPES))
def test_rounding_in_every_direction_is_that_of_fractions(name: str) -> None:
    form = FORMATS[name]
    random = np.random.default_rng(1)
    below = [0, 1, form.largest, form.largest - 1, (1 << form.mantissa) - 1, (form.bias or 1) << form.mantissa]
    below += random.integers(0, form.largest, 100, np.uint64).tolist()
    values = [Fraction(decode_number(code, form)) for code in below]
    steps = [
        Fraction(decode_number(code + 1, form)) - v
        for code, v in zip(below, values, strict=True)
        if code < form.largest
    ]
    points = [v + s * Fraction(part, 4) for v, s in zip(values, [*steps, steps[0]], strict=False) for part in range(4)]
    points += [Fraction(form.maximum) + s for s in steps] + [Fraction(form.maximum) * 100]
    for point in [*points, *(-point for point in points if point)]:
        for rounding in ROUNDINGS:
            for overflow in (Overflow.SATURATE, Overflow.SPECIAL):
                expected = exact.encode(point, name, rounding, satfinite=overflow is Overflow.SATURATE)
                assert encode(point, form, rounding, overflow) == expected, (point, rounding, overflow)


@pytest.mark.parametrize(
    ("name", "float_code", "code"), [("f16", "<e", "<H"), ("f32", "<f", "<I"), ("f64", "<d", "<Q")]
)
def test_special_values_have_the_bits_that_python_packs(name: str, float_code: str, code: str) -> None:
    form = FORMATS[name]
    for value in (0.0, -0.0, math.inf, -math.inf, math.nan, math.copysign(math.nan, -1), 0.1, -5e-324):
        assert encode(value, form) == struct.unpack(code, struct.pack(float_code, value))[0], value
    assert [encode(value, FORMATS["e4m3"]) for value in (math.inf, math.nan)] == [None, 0x7F]
    assert [encode(value, FORMATS["e2m1"]) for value in (math.inf, math.nan)] == [None, None]
    assert encode(-math.inf, FORMATS["e2m1"], overflow=Overflow.SATURATE) == 0xF
    assert encode(-math.inf, FORMATS["e4m3"], overflow=Overflow.SPECIAL) == 0xFF


def test_scale_factors_are_powers_of_two() -> None:
    form = FORMATS["ue8m0"]
    assert [encode(value, form) for value in (0.25, 2.0**127, 2.0**-127, math.nan)] == [125, 254, 0, 255]
    assert [encode(value, form) for value in (0.0, -1.0, 3.0, 2.0**128, 2.0**-128, math.inf)] == [None] * 6
    assert [encode(3.0, form, rounding) for rounding in ("rz", "rp", "rna")] == [128, 129, None]
    assert encode(2.0**-128, form, "rp") is None
    assert encode(-0.5, FORMATS["ue4m3"]) is None


def test_integers_and_fixed_point_are_twos_complement() -> None:
    assert [decode_number(code, FORMATS["s8"]) for code in (0x7F, 0x80, 0x1FF)] == [127, -128, -1]
    assert [decode_number(code, FORMATS["s2f6"]) for code in (0x7F, 0x80)] == [127 / 64, -2]
    assert [decode_number(code, FORMATS["u4"]) for code in (7, 15, 16)] == [7, 15, 0]


def test_every_type_but_predicates_and_handles_has_a_format() -> None:
    remainder = {t.name for t in types.ALL if split_packed(t.name)[0] not in FORMATS}
    assert remainder == {"pred", "texref", "samplerref", "surfref"}
    assert [compute_type_bits(name) for name in ("e2m1x2", "e2m1p4x4", "e2m3x2", "tf32", "ue4m3", "f32x2")] == [
        8, 32, 16, 32, 8, 64,
    ]  # fmt: skip
    assert not any(is_float(name) for name in ("s2f6", "ue8m0", "f16x2", "b32", "pred"))


def test_numpy_has_every_dtype_that_a_row_names() -> None:
    library: Any = ml_dtypes
    for form in FORMATS.values():
        for name in form.arrays:
            dtype = np.dtype(getattr(library, name, name))
            assert dtype.itemsize == max(form.width, 8) // 8
            if form.kind is Kind.FLOAT and form.width <= 16:
                assert float(library.finfo(dtype).max) == form.maximum


@pytest.mark.parametrize("name", ["bf16", "f16", "f32", "tf32", "ue8m0"])
@pytest.mark.parametrize("number", [Fraction(1, 3), Fraction(5, 7), Fraction(10**6, 49), Fraction(1, 3 << 13)])
def test_numbers_without_a_binary_expansion_round_to_a_neighbor(name: str, number: Fraction) -> None:
    form = FORMATS[name]
    below, above = encode(number, form, "rm"), encode(number, form, "rp")
    assert below is not None
    assert above is not None
    assert above == below + 1
    assert decode_number(below, form) < number < decode_number(above, form)
