"""Conversions against exact fractions and the definitions of the narrow formats."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.sim.exact import BF16, F16, F32, as_float, round_to_precision
from tests.sim.lanes import Array, compute, floats, integers

ROUND = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize(("kind", "limits"), [("f16", F16), ("bf16", BF16)])
def test_f32_to_halves(kind: str, limits: tuple[int, int, float], mode: str) -> None:
    a = _spread(kind)
    got = _decode_bits(compute(f"cvt.{mode}.{kind}.f32 %d, %a;", {"a": a}, {"d": np.uint16})["d"], kind)
    for x, y in zip(a.tolist(), got.tolist(), strict=True):
        if math.isfinite(x) and x:
            assert y == as_float(Fraction(x), *limits, mode), x


def _spread(kind: str) -> Array:
    rng = np.random.default_rng(7)
    low, high = (-30, 18) if kind == "f16" else (-140, 127)
    spread = rng.standard_normal(2000) * np.exp2(rng.integers(low, high, 2000).astype(np.float64))
    with np.errstate(all="ignore"):
        values = spread.astype(np.float32)
    ties = ((rng.integers(0, 4096, 500) * 2 + 1) / 4096).astype(np.float32)
    return np.concatenate([values, ties, floats(np.float32, 200)])


def _decode_bits(bits: Array, kind: str) -> Array:
    if kind == "f16":
        return bits.view(np.float16).astype(np.float64)
    with np.errstate(invalid="ignore"):
        return bits.view(ml_dtypes.bfloat16).astype(np.float64)


@pytest.mark.parametrize("whole", ROUND)
@pytest.mark.parametrize("target", ["s32", "u32", "s64", "u64", "s16", "u8"])
def test_floats_to_integers_clamp(target: str, whole: str) -> None:
    a = np.concatenate([floats(np.float32), (np.random.default_rng(2).standard_normal(500) * 1000).astype(np.float32)])
    bits, signed = int(target[1:]), target[0] == "s"
    register = f"{'i' if signed else 'u'}{max(2, bits // 8)}"
    got = compute(f"cvt.{whole}.{target}.f32 %d, %a;", {"a": a}, {"d": np.dtype(register)})["d"]
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    for x, y in zip(a.tolist(), got.tolist(), strict=True):
        if math.isnan(x):
            assert y == (0 if bits < 64 else (low if signed else 1 << 63)), x
        else:
            want = (high if x > 0 else low) if math.isinf(x) else min(max(ROUND[whole](Fraction(x)), low), high)
            assert y == want, x


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("source", ["s64", "u64", "s32"])
def test_integers_to_f32(source: str, mode: str) -> None:
    dtype: Any = {"s64": np.int64, "u64": np.uint64, "s32": np.int32}[source]
    a = integers(dtype)
    got = compute(f"cvt.{mode}.f32.{source} %d, %a;", {"a": a}, {"d": np.float32})["d"]
    want = [float(round_to_precision(Fraction(x), *F32[:2], mode)) for x in a.tolist()]
    assert got.tolist() == want


def test_integer_widths() -> None:
    a = integers(np.int32)
    code = "cvt.s8.s32 %d, %a;\ncvt.sat.u8.s32 %e, %a;\ncvt.s64.s32 %f, %a;\ncvt.u64.u32 %g, %a;"
    outputs = {"d": np.int32, "e": np.int32, "f": np.int64, "g": np.uint64}
    got = compute(code, {"a": a}, outputs)
    np.testing.assert_array_equal(got["d"], a.astype(np.int8).astype(np.int32))
    np.testing.assert_array_equal(got["e"], np.clip(a, 0, 255))
    np.testing.assert_array_equal(got["f"], a.astype(np.int64))
    np.testing.assert_array_equal(got["g"], a.astype(np.uint32).astype(np.uint64))


def test_a_guarded_conversion_extends_the_sign_too() -> None:
    a = integers(np.int32)
    code = "setp.gt.s32 %p1, %a, 0;\nmov.b32 %d, 7;\n@%p1 cvt.s8.s32 %d, %a;"
    got = compute(code, {"a": a}, {"d": np.int32})["d"]
    np.testing.assert_array_equal(got, np.where(a > 0, a.astype(np.int8).astype(np.int32), 7))


NARROW = {
    "e4m3x2": (ml_dtypes.float8_e4m3fn, 448.0),
    "e5m2x2": (ml_dtypes.float8_e5m2, 57344.0),
    "e2m3x2": (ml_dtypes.float6_e2m3fn, 7.5),
    "e3m2x2": (ml_dtypes.float6_e3m2fn, 28.0),
}


@pytest.mark.parametrize("kind", NARROW)
def test_pairs_of_narrow_floats(kind: str) -> None:
    dtype, greatest = NARROW[kind]
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal((2, 1000)) * np.exp2(rng.integers(-12, 6, (2, 1000)))).astype(np.float32)
    code = f"cvt.rn.satfinite.{kind}.f32 %d, %a, %b;\ncvt.rn.f16x2.{kind} %e, %d;"
    got = compute(code, {"a": a, "b": b}, {"d": np.uint16, "e": np.uint32})
    parts = got["d"].view(np.uint8).reshape(-1, 2)
    for values, part, half in ((b, parts[:, 0], 0), (a, parts[:, 1], 1)):
        want = np.clip(values, -greatest, greatest).astype(dtype)
        np.testing.assert_array_equal(part.view(dtype).astype(np.float32), want.astype(np.float32))
        np.testing.assert_array_equal(got["e"].view(np.float16).reshape(-1, 2)[:, half], want.astype(np.float16))


def test_pairs_of_four_bits() -> None:
    a = np.array([0.0, 0.25, 0.75, 1.25, 2.5, 5.0, 100.0, -3.5], np.float32)
    code = ".reg .b8 %x;\ncvt.rn.satfinite.e2m1x2.f32 %x, %a, %a;\ncvt.u32.u8 %d, %x;"
    got = compute(code, {"a": a}, {"d": np.uint32})["d"]
    assert [int(v) & 15 for v in got] == [0, 0, 2, 2, 4, 6, 7, 14]
    assert all(int(v) >> 4 == int(v) & 15 for v in got)


def test_scale_exponents() -> None:
    a = np.array([1.0, 1.5, 3.0, 2.0**-126], np.float32)
    code = "cvt.rz.satfinite.ue8m0x2.f32 %d, %a, %a;\ncvt.rp.satfinite.ue8m0x2.f32 %e, %a, %a;"
    got = compute(code, {"a": a}, {"d": np.uint16, "e": np.uint16})
    assert [int(v) & 255 for v in got["d"]] == [127, 127, 128, 1]
    assert [int(v) & 255 for v in got["e"]] == [127, 128, 129, 1]


def test_a_scale_beyond_the_largest_is_no_number_unless_it_saturates() -> None:
    a = np.array([np.finfo(np.float32).max, np.inf, 2.0**127], np.float32)
    code = "cvt.rp.ue8m0x2.f32 %d, %a, %a;\ncvt.rp.satfinite.ue8m0x2.f32 %e, %a, %a;"
    got = compute(code, {"a": a}, {"d": np.uint16, "e": np.uint16})
    assert [int(v) for v in got["d"]] == [0xFFFF, 0xFFFF, 0xFEFE]
    assert [int(v) for v in got["e"]] == [0xFEFE, 0xFEFE, 0xFEFE]


def test_tf32_rounds_away_from_ties() -> None:
    a = np.array([1 + 2.0**-11, 1 + 3 * 2.0**-11, -1 - 2.0**-11, 1 + 2.0**-12], np.float32)
    got = compute("cvt.rna.tf32.f32 %d, %a;", {"a": a}, {"d": np.float32})["d"]
    assert got.tolist() == [1 + 2.0**-10, 1 + 2.0**-9, -1 - 2.0**-10, 1.0]


def test_scaled_fixed_point() -> None:
    """Each number is divided by its own scale factor, the first one's in the upper bits, and rounded once."""
    a, b = np.array([1.0, -3.25, 0.3, 100.0], np.float32), np.array([2.0, 0.5, -7.0, 0.01], np.float32)
    scale = np.array([0x807E, 0x7F7F, 0x8281, 0x7D78], np.uint16)
    code = "cvt.rn.satfinite.scaled::n2::ue8m0.s2f6x2.f32 %d, %a, %b, %c;"
    got = compute(code, {"a": a, "b": b, "c": scale}, {"d": np.uint16}, version="9.1", target="sm_100a")["d"]
    for values, shift in ((a, 8), (b, 0)):
        factors = 2.0 ** ((scale >> shift & 255).astype(np.float64) - 127)
        expected = np.clip(np.rint(values / factors * 64), -128, 127).astype(np.int8)
        np.testing.assert_array_equal((got >> shift).astype(np.uint8).view(np.int8), expected)


@pytest.mark.parametrize(("rbits", "expected"), [(0, 0x2222), (0x00FF00FF, 0x2233), (0xFF00FF00, 0x3322), (-1, 0x3333)])
def test_pairs_of_four_elements_share_their_random_bits(rbits: int, expected: int) -> None:
    """1.25 is half way between 1, code 2, and 1.5, code 3; the first operand is the highest element."""
    inputs = {"a": np.full(1, 1.25, np.float32), "r": np.array([rbits], np.int64).astype(np.uint32)}
    code = "cvt.rs.satfinite.e2m1x4.f32 %d, {%a, %a, %a, %a}, %r;"
    assert compute(code, inputs, {"d": np.uint16})["d"].tolist() == [expected]


def test_ftz_has_no_effect_where_the_result_is_f16() -> None:
    inputs = {"a": np.array([1, 0x80000001], np.uint32)}
    got = compute("cvt.rp.ftz.f16.f32 %d, %a;\ncvt.rm.ftz.f16.f32 %e, %a;", inputs, dict.fromkeys("de", np.uint16))
    assert (got["d"].tolist(), got["e"].tolist()) == ([1, 0x8000], [0, 0x8001])
