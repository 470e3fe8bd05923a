"""Integers to numbers and back, formats to formats, packs."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor, trunc

import numpy as np
import pytest

from pyptx.sim.numerics import packing
from pyptx.sim.numerics.convert import convert, from_integer, to_integer, to_whole
from pyptx.sim.numerics.extremes import maximum, minimum
from tests.sim.numerics import exact, samples

WHOLE = {"rni": round, "rzi": trunc, "rmi": floor, "rpi": ceil}


@pytest.mark.parametrize("rounding", WHOLE)
@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
@pytest.mark.parametrize("name", ["f32", "f64"])
def test_to_integer(name: str, dtype: str, rounding: str) -> None:
    bounds = np.iinfo(dtype)
    near = np.array([0, 0.5, 1.5, 2.5, -0.5, -1.5, bounds.max, bounds.min, float(bounds.max) + 1, 1e30, -1e30])
    draw = samples.floats32 if name == "f32" else samples.floats64
    x = np.concatenate([near.astype("f4" if name == "f32" else "f8"), draw(500, 1), draw(600, 2, narrow=True)])
    wanted = [min(max(WHOLE[rounding](Fraction(value)), bounds.min), bounds.max) for value in x.tolist()]
    assert to_integer(x, name, np.dtype(dtype), rounding).tolist() == wanted


def test_nan_and_infinities_to_integers() -> None:
    x = np.array([np.nan, np.inf, -np.inf])
    assert to_integer(x.astype("f4"), "f32", np.dtype("i4")).tolist() == [0, 2**31 - 1, -(2**31)]
    assert to_integer(x.astype("f4"), "f32", np.dtype("u8")).tolist() == [2**63, 2**64 - 1, 0]
    assert to_integer(x, "f64", np.dtype("i4")).tolist() == [-(2**31), 2**31 - 1, -(2**31)]
    assert to_integer(x, "f64", np.dtype("u4")).tolist() == [2**31, 2**32 - 1, 0]
    small = np.array([2.0**-140], np.float32)
    assert to_integer(small, "f32", np.dtype("i4"), "rpi", ftz=True).tolist() == [0]


@pytest.mark.parametrize("rounding", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "u4", "i8", "u8"])
@pytest.mark.parametrize("name", ["f16", "bf16", "f32", "f64"])
def test_from_integer(name: str, dtype: str, rounding: str) -> None:
    bounds = np.iinfo(dtype)
    generator = np.random.default_rng(3)
    x = generator.integers(bounds.min, bounds.max, 600, dtype=dtype, endpoint=True)
    x = np.concatenate(
        [x >> x.dtype.type(generator.integers(0, bounds.bits)), x, np.array([bounds.min, bounds.max, 0, 1], dtype)]
    )
    got = from_integer(x, name, rounding)
    got = got.view({"f32": np.uint32, "f64": np.uint64}.get(name, np.uint16))
    assert got.tolist() == [exact.encode(Fraction(value), name, rounding) for value in x.tolist()]


def test_whole_numbers_keep_the_sign_of_zero() -> None:
    x = np.array([-0.3, 2.5, -7.5, 0.5], np.float32)
    np.testing.assert_array_equal(to_whole(x, "f32", "rni"), np.array([-0.0, 2, -8, 0], np.float32))
    assert np.signbit(to_whole(x, "f32", "rni")).tolist() == [True, False, True, False]
    assert to_whole(np.array([0xB8CD], np.uint16), "f16", "rzi").tolist() == [0x8000]


def test_between_formats() -> None:
    x = np.array([1.00048828125, 1e10, -70000.0, 2.0**-130, np.nan], np.float32)
    assert convert(x, "f32", "f16").tolist() == [0x3C00, 0x7C00, 0xFC00, 0, 0x7FFF]
    assert convert(x, "f32", "f16", satfinite=True, relu=True).tolist() == [0x3C00, 0x7BFF, 0, 0, 0x7FFF]
    assert convert(x, "f32", "tf32", "rna").view(np.uint32).tolist()[0] == 0x3F802000
    assert convert(x, "f32", "f64", ftz=True).tolist()[3] == 0.0
    assert convert(x, "f32", "f32", sat=True).tolist() == [1, 1, 0, 2.0**-130, 0]
    assert convert(np.array([2.0**-140]), "f64", "f32", ftz=True).tolist() == [0.0]
    half = np.array([0x3C01, 0x7C00], np.uint16)
    assert convert(half, "f16", "bf16").tolist() == [0x3F80, 0x7F80]


def test_packs_have_the_first_operand_on_top() -> None:
    one, two = np.array([1.0]), np.array([2.0])
    assert packing.pack([one, two], "e4m3", satfinite=True).tolist() == [0x3840]
    assert packing.pack([one, two], "e2m1", satfinite=True).tolist() == [0x24]
    assert packing.pack([one, two], "e2m3", satfinite=True).tolist() == [0x0810]
    assert packing.pack([one, two], "bf16").tolist() == [0x3F804000]
    assert packing.pack([one, two], "ue8m0", "rz").tolist() == [0x7F80]
    assert packing.pack([one, -two], "s2f6").tolist() == [0x4080]
    assert packing.pack([one, two, one, two], "e2m1").tolist() == [0x2424]
    high, low = packing.unpack(np.array([0x24], np.uint8), "e2m1", 2)
    assert (high.tolist(), low.tolist()) == ([1.0], [2.0])
    scale = np.array([0x807E], np.uint16)
    assert [x.tolist() for x in packing.rescale_down([one, two], scale)] == [[0.5], [4.0]]
    assert [x.tolist() for x in packing.rescale_up([one, two], scale)] == [[2.0], [1.0]]


def test_stochastic_packs_take_their_own_bits() -> None:
    near = np.array([1.0 + 2.0**-11])
    bits = np.array([0x1000_0FFF], np.uint32)
    assert packing.pack_stochastic([near, near], "f16", bits).tolist() == [0x3C01_3C00]
    quarter = np.array([1.125])
    bits = np.array([0xC0_BF_BF_C0], np.uint32)
    assert packing.pack_stochastic([quarter] * 4, "e2m1", bits, satfinite=True).tolist() == [0x3223]


@pytest.mark.parametrize("name", ["f16", "bf16", "f32", "f64"])
def test_extremes_against_their_definition(name: str) -> None:
    dtype = {"f32": np.float32, "f64": np.float64}.get(name)
    values = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 2.5, 1e-40]
    table = np.array(values, dtype) if dtype else convert(np.array(values, np.float32), "f32", name)
    x, y = (grid.ravel() for grid in np.meshgrid(table, table))
    a, b = (np.repeat(values, len(values)), np.tile(values, len(values)))[::-1]
    for function, pick in ((minimum, min), (maximum, max)):
        got = function(x, y, name=name)
        strict = function(x, y, name=name, nan=True)
        for index, (left, right) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
            ordered = [v for v in (left, right) if v == v]
            want = pick(ordered, key=lambda v: (v, -int(np.signbit(v)))) if ordered else np.nan
            assert _same(got[index], table[_index(values, want)]), (left, right)
            want = want if len(ordered) == 2 else np.nan
            assert _same(strict[index], table[_index(values, want)]), (left, right)


def _index(values: list[float], x: float) -> int:
    return next(i for i, v in enumerate(values) if (v == x and np.signbit(v) == np.signbit(x)) or (v != v and x != x))


def _same(x: np.generic, y: np.generic) -> bool:
    same = bool(x == y) and bool(np.signbit(x) == np.signbit(y)) if x.dtype.kind == "f" else bool(x == y)
    return same or (x.dtype.kind == "f" and bool(np.isnan(x)) and bool(np.isnan(y)))


def test_extremes_of_magnitudes_and_three() -> None:
    a, b, c = (np.array([v], np.float32) for v in (-3.0, 2.0, 5.0))
    assert minimum(a, b, abs=True, xorsign=True).tolist() == [-2.0]
    assert maximum(a, -b, abs=True, xorsign=True).tolist() == [3.0]
    assert maximum(a, b, c).tolist() == [5.0]
    assert minimum(a, b, c, abs=True).tolist() == [2.0]
    nan = np.array([np.nan], np.float32)
    assert minimum(a, nan, c).tolist() == [-3.0]
    assert minimum(a, nan, c, nan=True).view(np.uint32).tolist() == [0x7FFFFFFF]
    assert minimum(nan, nan, b).tolist() == [2.0]
    tiny = np.array([-1e-40], np.float32)
    assert np.signbit(minimum(tiny, b, ftz=True)).tolist() == [True]
    assert minimum(tiny, b, ftz=True).tolist() == [0.0]
