"""Floating-point instructions against exact fractions."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false
# References are lambdas of any number of Python integers or fractions.

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from tests.sim.exact import BF16, F16, F32, F64, as_float
from tests.sim.lanes import Array, compute, floats

Exact = Callable[..., Fraction]
FORMATS = {"f32": (np.float32, F32), "f64": (np.float64, F64)}
SUM: Exact = lambda a, b: a + b  # noqa: E731
PRODUCT: Exact = lambda a, b: a * b  # noqa: E731
QUOTIENT: Exact = lambda a, b: a / b  # noqa: E731
FUSED: Exact = lambda a, b, c: a * b + c  # noqa: E731


def _assert_same(got: Array, want: list[float | None]) -> None:
    """Compare the lanes that have a reference."""
    wrong = [
        (index, x, y) for index, (x, y) in enumerate(zip(got.tolist(), want, strict=True)) if y is not None and x != y
    ]
    assert not wrong, wrong[:3]


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize(
    ("op", "exact"),
    [("add", SUM), ("mul", PRODUCT), ("div", QUOTIENT), ("fma", FUSED)],
    ids=["add", "mul", "div", "fma"],
)
def test_rounding(op: str, exact: Exact, kind: str, mode: str) -> None:
    dtype, limits = FORMATS[kind]
    count = 3 if op == "fma" else 2
    inputs = {n: floats(dtype, seed=s) for s, n in enumerate("abc"[:count])}
    if op == "fma":
        with np.errstate(all="ignore"):
            inputs["c"][::3] = -(inputs["a"][::3] * inputs["b"][::3])
    operands = ", ".join(f"%{n}" for n in inputs)
    got = compute(f"{op}.{mode}.{kind} %d, {operands};", inputs, {"d": dtype})["d"]
    want: list[float | None] = []
    for row in zip(*[v.tolist() for v in inputs.values()], strict=True):
        usable = all(map(math.isfinite, row)) and not (op == "div" and row[1] == 0)
        value = exact(*map(Fraction, row)) if usable else Fraction(0)
        want.append(as_float(value, *limits, mode) if usable and value != 0 else None)
    assert sum(w is not None for w in want) > 700
    _assert_same(got, want)


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_square_roots(kind: str, mode: str) -> None:
    dtype, limits = FORMATS[kind]
    a = np.abs(floats(dtype))
    got = compute(f"sqrt.{mode}.{kind} %d, %a;", {"a": a}, {"d": dtype})["d"]
    for x, y in zip(a.tolist(), got.tolist(), strict=True):
        if not math.isfinite(x) or x == 0:
            continue
        root = Fraction(math.isqrt(int(Fraction(x) * 4**1200)), 2**1200)
        sticky = root if root * root == Fraction(x) else root + Fraction(1, 2**1201)
        assert y == as_float(sticky, *limits, mode), x


def test_ftz_and_sat() -> None:
    tiny = np.array([1e-40, -1e-40, 2e-38, 1.5, -2.0, np.nan], np.float32)
    factor = np.array([1.0, 1.0, 0.25, 1.0, 1.0, 1.0], np.float32)
    code = "mul.ftz.f32 %d, %a, %b;\nmul.sat.f32 %e, %a, %b;\nmul.f32 %f, %a, %b;"
    got = compute(code, {"a": tiny, "b": factor}, dict.fromkeys("def", np.float32))
    assert got["d"].tolist()[:5] == [0.0, 0.0, 0.0, 1.5, -2.0]
    assert np.signbit(got["d"][1])
    assert got["e"].tolist() == [tiny[0].item(), 0.0, np.float32(5e-39).item(), 1.0, 0.0, 0.0]
    assert got["f"][0] == tiny[0]


def test_ftz_flushes_what_is_below_the_normal_numbers_with_an_unbounded_exponent() -> None:
    """Rounded to the unit of subnormal numbers, each result but the last would be the smallest normal number."""
    codes = {
        "a": [0x26CA54C5, 0x3F7FFFFF, 0x3F7FFFFF, 0x82282F48],
        "b": [0x1921F3CC, 0x00800000, 0x80800000, 0x10CD2F26],
    }
    inputs = {name: np.array(values, np.uint32) for name, values in codes.items()}
    inputs["c"] = np.array([0, 0, 0, 0x00800000], np.uint32)
    code = "mul.ftz.f32 %d, %a, %b;\nfma.rn.ftz.f32 %e, %a, %b, %c;\nfma.rn.f32 %f, %a, %b, %c;"
    got = compute(code, inputs, dict.fromkeys("def", np.uint32))
    assert got["d"].tolist() == [0, 0, 0x80000000, 0x80000000]
    assert got["e"].tolist() == [0, 0, 0x80000000, 0x00800000]
    assert got["f"].tolist() == [0x00800000, 0x00800000, 0x80800000, 0x00800000]


def test_ftz_of_quotients_and_conversions_rounded_up() -> None:
    inputs = {"a": np.array([0x7E800001, 0x7E800000], np.uint32), "b": 2.0**-126 * np.array([1 - 2.0**-30, 1])}
    code = "rcp.rp.ftz.f32 %d, %a;\nrcp.rp.f32 %e, %a;\ncvt.rz.ftz.f32.f64 %f, %b;\ncvt.rn.ftz.f32.f64 %g, %b;"
    got = compute(code, inputs, dict.fromkeys("defg", np.uint32))
    assert [int(got[name][0]) for name in "defg"] == [0, 0x00800000, 0, 0x00800000]
    assert [int(got[name][1]) for name in "defg"] == [0x00800000] * 4
    inputs = {"a": np.array([0x00FFFFFF, 0x01000000], np.uint32), "b": np.array([0x40000000] * 2, np.uint32)}
    got = compute("div.rn.ftz.f32 %d, %a, %b;\ndiv.rn.f32 %e, %a, %b;", inputs, dict.fromkeys("de", np.uint32))
    assert [got[name].tolist() for name in "de"] == [[0, 0x00800000], [0x00800000] * 2]


def test_ftz_of_halves_flushes_before_it_rounds_to_subnormal_numbers() -> None:
    inputs = {"a": np.array([0x3BFF, 0x3C00], np.uint16), "b": np.array([0x0400, 0x0400], np.uint16)}
    got = compute("mul.ftz.f16 %d, %a, %b;\nmul.f16 %e, %a, %b;", inputs, dict.fromkeys("de", np.uint16))
    assert got["d"].tolist() == [0, 0x0400]
    assert got["e"].tolist() == [0x0400, 0x0400]


def test_a_directed_fma_of_bf16_is_what_the_code_of_ptxas_computes() -> None:
    codes = {"a": 0x4324, "b": 0xE707, "c": 0xBEBA}
    inputs = {name: np.array([code], np.uint16) for name, code in codes.items()}
    got = compute("fma.rz.relu.bf16 %d, %a, %b, %c;", inputs, {"d": np.uint16})["d"]
    halves = [float(array.view(np.float16)[0]) for array in inputs.values()]
    assert got.view(np.float16)[0] == np.float16(halves[0] * halves[1] + halves[2])
    pairs = {name: array.astype(np.uint32) | array.astype(np.uint32) << 16 for name, array in inputs.items()}
    both = compute(
        "fma.rz.bf16x2 %d, %a, %b, %c;\nfma.rn.bf16x2 %e, %a, %b, %c;", pairs, dict.fromkeys("de", np.uint32)
    )
    assert both["d"][0] == both["e"][0]


def test_rcp_approx_ftz_f64_reads_a_nan_of_the_lower_word_as_infinity() -> None:
    inputs = {"a": np.array([0x7FF0000000000001, 0xFFF0000000000001, 0x7FF0000100000000], np.uint64)}
    got = compute("rcp.approx.ftz.f64 %d, %a;", inputs, {"d": np.uint64})["d"]
    assert got.tolist() == [0, 1 << 63, 0x7FFFFFFF00000000]


def test_min_and_max_of_zeros_and_nan() -> None:
    a = np.array([0.0, -0.0, np.nan, 1.0, np.nan], np.float32)
    b = np.array([-0.0, 0.0, 1.0, np.nan, np.nan], np.float32)
    code = "min.f32 %d, %a, %b;\nmax.f32 %e, %a, %b;\nmax.NaN.f32 %f, %a, %b;"
    got = compute(code, {"a": a, "b": b}, dict.fromkeys("def", np.float32))
    assert got["d"].view(np.uint32).tolist() == [0x80000000, 0x80000000, 0x3F800000, 0x3F800000, 0x7FFFFFFF]
    assert got["e"].view(np.uint32).tolist() == [0, 0, 0x3F800000, 0x3F800000, 0x7FFFFFFF]
    assert got["f"].view(np.uint32).tolist()[2:] == [0x7FFFFFFF] * 3


@pytest.mark.parametrize(
    ("op", "function"),
    [
        ("ex2.approx.f32", np.exp2), ("lg2.approx.f32", np.log2), ("sin.approx.f32", np.sin),
        ("cos.approx.f32", np.cos), ("tanh.approx.f32", np.tanh),
        ("rcp.approx.f32", np.reciprocal), ("rsqrt.approx.f32", lambda x: 1 / np.sqrt(x)),
        ("sqrt.approx.f32", np.sqrt),
    ],
)  # fmt: skip
def test_approximate_functions_are_correctly_rounded(op: str, function: Callable[[Array], Array]) -> None:
    a = np.abs(np.random.default_rng(1).standard_normal(1000)).astype(np.float32) + np.float32(0.1)
    got = compute(f"{op} %d, %a;", {"a": a}, {"d": np.float32})["d"]
    want = function(a.astype(np.longdouble)).astype(np.float32)
    assert (np.abs(got.view(np.int32) - want.view(np.int32)) <= 1).all()
    assert (got == want).mean() > 0.999


def test_ptx_before_1_4_flushes_without_saying_so() -> None:
    a = np.array([1e-40, -1e-40, 4.0], np.float32)
    got = compute("sqrt.f32 %d, %a;", {"a": a}, {"d": np.float32}, target="sm_13", version="1.3")["d"]
    assert got.tolist() == [0.0, 0.0, 2.0]


@pytest.mark.parametrize(("kind", "limits"), [("f16", F16), ("bf16", BF16)])
@pytest.mark.parametrize(
    ("op", "exact"), [("add", SUM), ("mul", PRODUCT), ("fma.rn", FUSED)], ids=["add", "mul", "fma"]
)
def test_halves(op: str, exact: Exact, kind: str, limits: tuple[int, int, float]) -> None:
    rng = np.random.default_rng(3)
    names = "abc"[: 3 if op == "fma.rn" else 2]
    bits = {n: rng.integers(0, 1 << 16, 1500, np.uint16) for n in names}
    got = compute(f"{op}.{kind} %d, {', '.join('%' + n for n in names)};", bits, {"d": np.uint16})["d"]
    values = [_decode_bits(v, kind).tolist() for v in bits.values()]
    decoded_values = _decode_bits(got, kind).tolist()
    count = 0
    for index, row in enumerate(zip(*values, strict=True)):
        if all(map(math.isfinite, row)):
            value = exact(*map(Fraction, row))
            assert decoded_values[index] == as_float(value, *limits, "rn") if value else decoded_values[index] == 0, row
            count += 1
    assert count > 1000


def _decode_bits(bits: Array, kind: str) -> Array:
    if kind == "f16":
        return bits.view(np.float16).astype(np.float64)
    with np.errstate(invalid="ignore"):
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def test_pairs_are_two_halves() -> None:
    rng = np.random.default_rng(4)
    a, b = rng.standard_normal((2, 2000)).astype(np.float16)
    pair = compute("add.f16x2 %d, %a, %b;", {"a": a.view(np.uint32), "b": b.view(np.uint32)}, {"d": np.uint32})["d"]
    np.testing.assert_array_equal(pair.view(np.float16), a + b)


def test_pairs_of_f32() -> None:
    a, b, c = np.random.default_rng(5).standard_normal((3, 400)).astype(np.float32)
    inputs = {n: v.view(np.uint64) for n, v in zip("abc", (a, b, c), strict=True)}
    got = compute("fma.rn.f32x2 %d, %a, %b, %c;", inputs, {"d": np.uint64})["d"].view(np.float32)
    want = compute("fma.rn.f32 %d, %a, %b, %c;", {"a": a, "b": b, "c": c}, {"d": np.float32})["d"]
    np.testing.assert_array_equal(got, want)


def test_relu_of_a_pair_out_of_bounds_leaves_no_negative_zero() -> None:
    a, b, c = (np.array([bits], np.uint32) for bits in (0x80007FF7, 0x3C003C00, 0x80003C00))
    got = compute("fma.rn.oob.relu.f16x2 %d, %a, %b, %c;", {"a": a, "b": b, "c": c}, {"d": np.uint32})["d"]
    assert got.tolist() == [0]


def test_mixed_sum_rounds_once() -> None:
    a = np.array([1.0], np.float16).view(np.uint16)
    c = np.array([2.0**-24 + 2.0**-40], np.float32)
    got = compute("add.rn.f32.f16 %d, %a, %c;", {"a": a, "c": c}, {"d": np.float32})["d"]
    assert got[0] == np.float32(1 + 2.0**-23)


def test_fma_of_f32_rounds_once() -> None:
    """The exact sum lies just below a tie of f32; rounding it to f64 first makes it the tie."""
    a = np.array([2.0**-12, 2.0**-75, 2.0**-75], np.float32) * np.float32(1 + 2.0**-23)
    b = np.array([2.0**-12, 2.0**-75, 2.0**-75], np.float32) * np.float32(1 - 2.0**-23)
    c = np.array([1 + 2.0**-23, 2.0**-149, 2.0**-126 - 2.0**-149], np.float32)
    got = compute("fma.rn.f32 %d, %a, %b, %c;", {"a": a, "b": b, "c": c}, {"d": np.float32})["d"]
    assert got.tolist() == c.tolist()
