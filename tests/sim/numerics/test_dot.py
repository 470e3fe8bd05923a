"""Tensor-core sums, bit for bit, against rationals summed term by term."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pyptx.numbers import FORMATS
from pyptx.sim.numerics import dot as dots
from pyptx.sim.numerics import plain_dots
from pyptx.sim.numerics.blocks import block_dot
from pyptx.sim.numerics.fast_dot import fast_dot, multiply
from pyptx.sim.numerics.formats import code_dtype, decode, value_table
from pyptx.sim.numerics.maxplus import find_greatest_sum, prepare_summands
from pyptx.sim.numerics.rounding import encode
from pyptx.sim.numerics.tensor_core import Rule, select_rule
from tests.sim.numerics import exact, slow_dot

F32 = NDArray[np.float32]
SIDE = 8


def sum_terms(a: list[float], b: list[float], c: float, rule: Rule, name: str = "tf32") -> float:
    """Return one result of a rule."""
    x, y = np.array([a], np.float32), np.array(b, np.float32)[:, None]
    factors = dots.prepare_operand(x, name), dots.prepare_operand(y, name)
    return float(dots.dot(*factors, np.array([[c]], np.float32), rule)[0, 0])


def test_zeros_bound_exponents_less_in_wgmma() -> None:
    """As on an H200: zero factors cut off no bits of products, and a zero addend those below 2**-158."""
    wgmma, mma = select_rule("wgmma", 90, "tf32"), select_rule("mma", 90, "tf32")
    below_normal = [2.0**-60, -(2.0**-76)], [2.0**-70, 2.0**-76]
    assert sum_terms(*below_normal, 0.0, wgmma) == 2.0**-130 - 2.0**-149
    assert sum_terms(*below_normal, 0.0, mma) == 2.0**-130
    far_below_normal = [2.0**-70, -(2.0**-79)], [2.0**-72, 2.0**-79]
    assert sum_terms(*far_below_normal, 0.0, wgmma) == 2.0**-142 - 2.0**-149
    assert sum_terms(far_below_normal[0], [2.0**-72, 2.0**-80], 0.0, wgmma) == 2.0**-142
    beside_zero = [0.0, 2.0**-60], [2.0**126, 2.0**-20]
    assert sum_terms(*beside_zero, 0.0, wgmma) == 2.0**-80
    assert sum_terms(*beside_zero, 0.0, mma) == 0.0


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_half_that_rounds_to_zero_has_no_sign(sign: float) -> None:
    rule = select_rule("wgmma", 90, "f16", "f16")
    result = sum_terms([sign * 2.0**-14], [2.0**-14], 0.0, rule, "f16")
    assert (result, np.signbit(result)) == (0.0, False)


def draw(generator: np.random.Generator, shape: tuple[int, ...], name: str, spread: str) -> F32:
    """Return decoded factors: every code, or normal numbers with some zeros and subnormals."""
    form = FORMATS[name]
    if spread == "codes":
        magnitude = generator.integers(0, form.largest + 1, shape)
        codes = magnitude | (generator.integers(0, 2, shape) * form.sign)
    else:
        scale = 2.0 ** generator.integers(-6, 4, shape) if spread == "wide" else 1.0
        values = generator.standard_normal(shape) * scale * (generator.random(shape) > 0.1)
        codes = encode(values, name, satfinite=True)
        if name == "tf32":
            return decode(codes, name).astype(np.float32)
    if name == "tf32":
        return (codes.astype(np.uint32) << 13).view(np.float32)
    return decode(codes.astype(code_dtype(form)), name).astype(np.float32)


def addend(generator: np.random.Generator, output: str, spread: str) -> F32:
    c = (generator.standard_normal((SIDE, SIDE)) * 2.0 ** generator.integers(-12, 6, (SIDE, SIDE))).astype(np.float32)
    if spread == "codes" and output != "f16":
        bits = generator.integers(0, 0x7F000000, (SIDE, SIDE)) | (generator.integers(0, 2, (SIDE, SIDE)) << 31)
        c = bits.astype(np.uint32).view(np.float32)
    return c.astype(np.float16).astype(np.float32) if output == "f16" else c


def reference(a: F32, b: F32, c: F32, names: tuple[str, str], rule: Rule) -> F32:
    rows, columns = a.tolist(), b.T.tolist()
    result = [
        [
            slow_dot.chain(row, column, float(c[i, j]), names, rule.fraction, rule.step, rule.output)
            for j, column in enumerate(columns)
        ]
        for i, row in enumerate(rows)
    ]
    return np.array(result, np.float32)


CASES = [
    ("mma", 70, "f16", "f16", "f32"),
    ("mma", 75, "f16", "f16", "f32"),
    ("mma", 75, "f16", "f16", "f16"),
    ("mma", 80, "f16", "f16", "f16"),
    ("mma", 80, "bf16", "bf16", "f32"),
    ("mma", 86, "tf32", "tf32", "f32"),
    ("mma", 89, "e4m3", "e5m2", "f32"),
    ("mma", 89, "e5m2", "e4m3", "f16"),
    ("mma", 90, "bf16", "bf16", "f32"),
    ("wgmma", 90, "f16", "f16", "f16"),
    ("wgmma", 90, "bf16", "bf16", "f32"),
    ("wgmma", 90, "tf32", "tf32", "f32"),
    ("wgmma", 90, "e4m3", "e4m3", "f32"),
    ("wgmma", 90, "e5m2", "e5m2", "f16"),
    ("tcgen05", 100, "f16", "f16", "f32"),
    ("tcgen05", 100, "e4m3", "e2m1", "f32"),
    ("tcgen05", 103, "e3m2", "e2m3", "f32"),
    ("mma", 120, "e5m2", "e2m3", "f32"),
]


@pytest.mark.parametrize("spread", ["codes", "normal", "wide"])
@pytest.mark.parametrize(("instruction", "sm", "left", "right", "output"), CASES)
def test_hardware_precision(instruction: str, sm: int, left: str, right: str, output: str, spread: str) -> None:
    generator = np.random.default_rng(CASES.index((instruction, sm, left, right, output)) + 100 * len(spread))
    rule = select_rule(instruction, sm, left, output)
    depth = 3 * rule.step
    a = draw(generator, (SIDE, depth), left, spread)
    b = draw(generator, (depth, SIDE), right, spread)
    c = addend(generator, output, spread)
    got = dots.dot(dots.prepare_operand(a, left), dots.prepare_operand(b, right), c, rule)
    np.testing.assert_array_equal(got, reference(a, b, c, (left, right), rule))


@pytest.mark.parametrize(
    ("instruction", "sm", "left", "right", "output"), [case for case in CASES if case[-1] == "f16"]
)
def test_a_subnormal_f16_addend_is_cut_at_its_own_bits(
    instruction: str, sm: int, left: str, right: str, output: str
) -> None:
    """A zero counts with the exponent of the smallest normal number, and bits below the threshold are lost."""
    generator = np.random.default_rng(sm)
    rule = select_rule(instruction, sm, left, output)
    cut = 0
    for power in (-8, -5, -2, 1, 4):
        a, b = draw(generator, (SIDE, rule.step), left, "normal"), draw(generator, (rule.step, SIDE), right, "normal")
        a[:, 1], b[1] = a[:, 0], -b[0]
        a[:, 2:], b[2:] = a[:, 2:] * 2.0**-8, b[2:] * 2.0**-8
        a[:, :2], b[:2] = a[:, :2] * 2.0 ** (power / 2), b[:2] * 2.0 ** (power - power / 2)
        a, b = (decode(encode(x.astype(np.float64), name), name).astype("f4") for x, name in ((a, left), (b, right)))
        codes = generator.integers(1, 0x400, (SIDE, SIDE)) | generator.integers(0, 2, (SIDE, SIDE)) << 15
        c = codes.astype(np.uint16).view(np.float16).astype(np.float32)
        got = dots.dot(dots.prepare_operand(a, left), dots.prepare_operand(b, right), c, rule)
        np.testing.assert_array_equal(got, reference(a, b, c, (left, right), rule))
        cut += int((got != (a.astype("f8") @ b + c).astype("f2")).sum())
    assert cut


def test_both_ways_of_summing_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(4)
    rule = select_rule("wgmma", 90, "bf16")
    a, b = (dots.prepare_operand(draw(generator, shape, "bf16", "normal"), "bf16") for shape in ((64, 64), (64, 64)))
    c = np.zeros((64, 64), np.float32)
    monkeypatch.setattr(dots, "_DENSE", 2.0)
    separate = dots.dot(a, b, c, rule)
    monkeypatch.setattr(dots, "_DENSE", -1.0)
    np.testing.assert_array_equal(dots.dot(a, b, c, rule), separate)


@pytest.mark.parametrize(
    ("instruction", "sm", "left", "right", "output"), [case for case in CASES if "e2m" not in str(case)]
)
def test_one_bit_below_the_fraction_is_dropped(instruction: str, sm: int, left: str, right: str, output: str) -> None:
    """1 - 1 leaves the other product: 1.5 units at the lowest bit become 1."""
    rule = select_rule(instruction, sm, left, output)
    low = -(rule.fraction // 2)
    a = np.zeros((1, rule.step), np.float32)
    b = np.zeros((rule.step, 1), np.float32)
    a[0, :3], b[:3, 0] = (1.0, 1.0, 1.5 * 2.0**low), (1.0, -1.0, 2.0 ** (-rule.fraction - low))
    got = dots.dot(dots.prepare_operand(a, left), dots.prepare_operand(b, right), np.zeros((1, 1), np.float32), rule)
    assert got[0, 0] == np.float32(np.float16(2.0**-rule.fraction) if output == "f16" else 2.0**-rule.fraction)


@pytest.mark.parametrize(("name", "factor", "small"), [("f16", 2.0**15, 2.0**-30), ("bf16", 2.0**120, 2.0**-30)])
def test_a_zero_counts_as_the_smallest_normal_f32(name: str, factor: float, small: float) -> None:
    rule = select_rule("mma", 90, name)
    a, b = np.zeros((1, 16), np.float32), np.full((16, 1), factor, np.float32)
    c = np.array([[small * (1 + 2.0**-23)]], np.float32)
    got = dots.dot(dots.prepare_operand(a, name), dots.prepare_operand(b, name), c, rule)
    np.testing.assert_array_equal(got, reference(a, b, c, (name, name), rule))
    assert (got == c).all() == (name == "f16")


def test_few_thresholds_and_many_lossy_sums() -> None:
    """A tenth of the columns loses bits, all at two thresholds, in more sums than A has rows for each of them."""
    generator = np.random.default_rng(5)
    how = select_rule("wgmma", 90, "bf16")
    a = generator.integers(-8, 9, (4, 16)).astype(np.float32)
    b = generator.integers(-8, 9, (16, 200)).astype(np.float32)
    b[0, ::10], b[1, ::10] = 2.0**13 * np.resize([1, 2], 20), 2.0**-14 * generator.integers(1, 9, 20)
    a[:, 0], a[:, 1] = [1, -1, 1, 3], [1, 3, -1, -5]
    c = generator.integers(-99, 99, (4, 200)).astype(np.float32)
    got = dots.dot(dots.prepare_operand(a, "bf16"), dots.prepare_operand(b, "bf16"), c, how)
    want = reference(a, b, c, ("bf16", "bf16"), how)
    np.testing.assert_array_equal(got, want)
    assert (got != a.astype(np.float64) @ b + c).any()


def test_leading_dimensions_are_independent() -> None:
    generator = np.random.default_rng(6)
    rule = select_rule("mma", 80, "f16")
    a = draw(generator, (2, 3, SIDE, 16), "f16", "normal")
    b = draw(generator, (3, 16, SIDE), "f16", "normal")
    c = np.zeros((2, 3, SIDE, SIDE), np.float32)
    got = dots.dot(dots.prepare_operand(a, "f16"), dots.prepare_operand(b, "f16"), c, rule)
    for i in range(2):
        for j in range(3):
            np.testing.assert_array_equal(got[i, j], reference(a[i, j], b[j], c[i, j], ("f16", "f16"), rule))


def test_infinities_and_nan() -> None:
    rule = select_rule("mma", 90, "f16")
    a = np.zeros((3, 16), np.float32)
    b = np.ones((16, 2), np.float32)
    a[0, 3], a[1, :2], a[2, 5] = np.inf, (np.inf, -np.inf), 2.0
    b[5, 1] = 0.5
    c = np.array([[0, -np.inf], [0, 0], [1, -np.inf]], np.float32)
    got = dots.dot(dots.prepare_operand(a, "f16"), dots.prepare_operand(b, "f16"), c, rule)
    np.testing.assert_array_equal(got, np.array([[np.inf, np.nan], [np.nan, np.nan], [3, -np.inf]], np.float32))
    assert got.view(np.uint32)[1, 0] == 0x7FFFFFFF


def test_results_past_the_range_become_infinite_and_stay() -> None:
    rule = select_rule("wgmma", 90, "bf16")
    a = np.full((1, 32), 2.0**100, np.float32)
    b = np.full((32, 1), 2.0**30, np.float32)
    b[16:] *= -1
    got = dots.dot(dots.prepare_operand(a, "bf16"), dots.prepare_operand(b, "bf16"), np.zeros((1, 1), np.float32), rule)
    assert got.tolist() == [[np.inf]]


def test_scaled_factors_shift_every_exponent() -> None:
    generator = np.random.default_rng(8)
    rule = select_rule("tcgen05", 100, "e4m3")
    a, b = draw(generator, (SIDE, 64), "e4m3", "codes"), draw(generator, (64, SIDE), "e2m1", "codes")
    powers_a, powers_b = (generator.integers(-8, 8, shape).astype(np.int16) for shape in ((SIDE, 2), (2, SIDE)))
    c = addend(generator, "f32", "normal")
    left = dots.prepare_operand(a, "e4m3", np.repeat(powers_a, 32, axis=1))
    right = dots.prepare_operand(b, "e2m1", np.repeat(powers_b, 32, axis=0))
    got = dots.dot(left, right, c, rule)
    for i in range(SIDE):
        for j in range(SIDE):
            scales = (powers_a[i] + powers_b[:, j]).tolist()
            row, column = a[i].tolist(), b[:, j].tolist()
            assert got[i, j] == slow_dot.chain(row, column, float(c[i, j]), ("e4m3", "e2m1"), 25, 32, "f32", scales)


@pytest.mark.parametrize(("scale", "blocks", "least"), [("ue4m3", 4, -6), ("ue8m0", 2, -127), ("ue8m0", 4, -127)])
def test_block_scaled_four_bit_products(scale: str, blocks: int, least: int) -> None:
    generator = np.random.default_rng(blocks)
    a, b = draw(generator, (SIDE, 64), "e2m1", "codes"), draw(generator, (64, SIDE), "e2m1", "codes")
    low, high = (0, 0x7F) if scale == "ue4m3" else (110, 145)
    scale_a = value_table(scale)[generator.integers(low, high, (SIDE, blocks))]
    scale_b = value_table(scale)[generator.integers(low, high, (blocks, SIDE))]
    c = addend(generator, "f32", "wide")
    got = block_dot(a, b, scale_a, scale_b, c)
    for i in range(SIDE):
        for j in range(SIDE):
            arguments = a[i].tolist(), b[:, j].tolist(), scale_a[i].tolist(), scale_b[:, j].tolist(), float(c[i, j])
            assert got[i, j] == slow_dot.block(*arguments, least)
    scale_a[0, 0] = scale_b[1, 2] = np.nan
    expected = np.zeros((SIDE, SIDE), bool)
    expected[0], expected[:, 2] = True, True
    assert np.array_equal(np.isnan(block_dot(a, b, scale_a, scale_b, c)), expected)


def test_integers_wrap_or_saturate() -> None:
    generator = np.random.default_rng(9)
    a, b = generator.integers(-128, 128, (4, 64)), generator.integers(0, 256, (64, 4))
    c = np.full((4, 4), 2**31 - 5, np.int32)
    whole = a @ b + c.astype(np.int64)
    np.testing.assert_array_equal(plain_dots.integer_dot(a, b, c), whole.astype(np.int32))
    np.testing.assert_array_equal(plain_dots.integer_dot(a, b, c, satfinite=True), whole.clip(-(2**31), 2**31 - 1))
    assert (whole > 2**31 - 1).any()


@pytest.mark.parametrize("operation", ["and", "xor"])
def test_single_bits(operation: str) -> None:
    generator = np.random.default_rng(10)
    a, b = generator.integers(0, 2, (5, 256)), generator.integers(0, 2, (256, 6))
    c = generator.integers(-9, 9, (5, 6)).astype(np.int32)
    pairs = (a[:, :, None] & b[None]) if operation == "and" else (a[:, :, None] ^ b[None])
    np.testing.assert_array_equal(plain_dots.binary_dot(a, b, c, operation), pairs.sum(1) + c)


def test_double_precision_is_a_chain_of_fused_multiply_adds() -> None:
    generator = np.random.default_rng(11)
    a, b, c = (generator.standard_normal((4, 4)) for _ in range(3))
    got = plain_dots.double_dot(a, b, c)
    for i in range(4):
        for j in range(4):
            value = float(c[i, j])
            for k in range(4):
                total = Fraction(float(a[i, k])) * Fraction(float(b[k, j])) + Fraction(value)
                value = float(np.array(exact.encode(total, "f64", "rn"), np.uint64).view(np.float64))
            assert got[i, j] == value


def test_fast_precision_is_near() -> None:
    generator = np.random.default_rng(12)
    a, b = draw(generator, (32, 64), "bf16", "normal"), draw(generator, (64, 32), "bf16", "normal")
    c = np.zeros((32, 32), np.float32)
    exact_product = a.astype(np.float64) @ b.astype(np.float64)
    hardware = dots.dot(
        dots.prepare_operand(a, "bf16"), dots.prepare_operand(b, "bf16"), c, select_rule("wgmma", 90, "bf16")
    )
    np.testing.assert_allclose(fast_dot(a, b, c), exact_product, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(hardware, exact_product, rtol=1e-4, atol=1e-5)
    half = fast_dot(a, b, c, "f16")
    np.testing.assert_array_equal(half, half.astype(np.float16))


@pytest.mark.parametrize("spread", [3, 40, 200, 8000])
@pytest.mark.parametrize("depth", [4, 16, 64])
def test_greatest_sums(depth: int, spread: int) -> None:
    generator = np.random.default_rng(depth + spread)
    x = generator.integers(-spread, spread, (2, 9, depth)).astype(np.int16)
    y = generator.integers(-spread, spread, (2, depth, 7)).astype(np.int16)
    expected: NDArray[Any] = (x[..., :, :, None] + y[..., None, :, :]).max(axis=-2)
    np.testing.assert_array_equal(find_greatest_sum(*prepare_summands(x, y, depth), depth, "test"), expected)
    enough = int(np.median(expected))
    got = find_greatest_sum(*prepare_summands(x, y, depth, enough), depth, "test", loose=True)
    assert (got >= expected).all()
    if spread < 200:
        np.testing.assert_array_equal(got[expected > enough], expected[expected > enough])


@pytest.mark.parametrize("shape", [(1, 128, 16, 256), (3, 96, 64, 64), (2, 8, 8, 8), (1, 512, 512, 64)])
def test_products_in_parts_are_products(shape: tuple[int, int, int, int]) -> None:
    batch, m, k, n = shape
    generator = np.random.default_rng(5)
    a, b = generator.integers(-9, 9, (batch, m, k)).astype("f4"), generator.integers(-9, 9, (batch, n, k)).astype("f4")
    columns = b.swapaxes(-1, -2)
    output = np.empty((batch, m, n), "f4")
    assert multiply(a, columns, output) is output
    expected = np.einsum("bmk,bnk->bmn", a.astype("i8"), b.astype("i8"))
    np.testing.assert_array_equal(output, expected)
    np.testing.assert_array_equal(multiply(a, columns), expected)
