"""Approximate instructions give the exact result rounded to nearest, which lies within every bound of the manual."""

from __future__ import annotations

import numpy as np
import pytest

from pyptx.sim.engines.copies.plans import make_fill
from pyptx.sim.numerics.formats import decode
from pyptx.tensormap import ElementType, Fill, TensorMap
from tests.sim.lanes import Array, compute
from tests.sim.numerics import exact, precise

RANGES = {
    "ex2": (-149.0, 127.9),
    "lg2": (0.0, 3e38),
    "sin": (-320.0, 320.0),
    "cos": (-320.0, 320.0),
    "tanh": (-12.0, 12.0),
    "sqrt": (0.0, 3e38),
    "rsqrt": (0.0, 3e38),
    "rcp": (-3e38, 3e38),
}


def apply_instruction(instruction: str, *operands: Array) -> Array:
    """Return the result of an instruction on these operands."""
    inputs = dict(zip("ab", operands, strict=False))
    code = f"{instruction} %d, {', '.join(f'%{name}' for name in inputs)};"
    return compute(code, inputs, {"d": operands[0].dtype})["d"]


@pytest.mark.parametrize("function", RANGES)
def test_f32_is_correctly_rounded(function: str, seed: int) -> None:
    low, high = RANGES[function]
    generator = np.random.default_rng(seed)
    if high > 1e30:
        x = 2.0 ** generator.uniform(-140, 127, 250) * (generator.choice([-1, 1], 250) if low < 0 else 1)
    else:
        x = np.concatenate([generator.uniform(low, high, 150), generator.uniform(-1, 1, 100)])
    x = x.astype(np.float32)
    got = apply_instruction(f"{function}.approx.f32", x).view(np.uint32).tolist()
    expected = [exact.encode(precise.evaluate(function, value), "f32", "rn") for value in x.tolist()]
    assert got == expected


@pytest.mark.parametrize(("function", "name"), [("tanh", "f16"), ("tanh", "bf16"), ("ex2", "f16")])
def test_halves_are_correctly_rounded(function: str, name: str) -> None:
    codes = np.arange(0x2000, 0x4A00, 97, dtype=np.uint16)
    codes = np.concatenate([codes, codes | 0x8000])
    values = decode(codes, name).tolist()
    expected = [exact.encode(precise.evaluate(function, value), name, "rn") for value in values]
    assert apply_instruction(f"{function}.approx.{name}", codes).tolist() == expected


INF, NAN = np.inf, np.nan


@pytest.mark.parametrize(
    ("function", "source", "results"),
    [
        ("rcp", [-INF, -0.0, 0.0, INF, NAN], [-0.0, -INF, INF, 0.0, NAN]),
        ("sqrt", [-INF, -1.0, -0.0, 0.0, INF, NAN], [NAN, NAN, -0.0, 0.0, INF, NAN]),
        ("rsqrt", [-INF, -1.0, -0.0, 0.0, INF, NAN], [NAN, NAN, -INF, INF, 0.0, NAN]),
        ("sin", [-INF, -0.0, 0.0, INF, NAN], [NAN, -0.0, 0.0, NAN, NAN]),
        ("cos", [-INF, -0.0, 0.0, INF, NAN], [NAN, 1.0, 1.0, NAN, NAN]),
        ("lg2", [-INF, -1.0, -0.0, 0.0, INF, NAN], [NAN, NAN, -INF, -INF, INF, NAN]),
        ("ex2", [-INF, -0.0, 0.0, INF, NAN], [0.0, 1.0, 1.0, INF, NAN]),
        ("tanh", [-INF, -0.0, 0.0, INF, NAN], [-1.0, -0.0, 0.0, 1.0, NAN]),
    ],
)
def test_corner_cases_of_the_manual(function: str, source: list[float], results: list[float]) -> None:
    got = apply_instruction(f"{function}.approx.f32", np.array(source, np.float32))
    expected = np.array(results, np.float32)
    np.testing.assert_array_equal(got, expected)
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got)[number], np.signbit(expected)[number])


def test_division_loses_quotients_whose_reciprocal_is_subnormal() -> None:
    a = np.array([1.0, -1.0, INF, 3.0], np.float32)
    b = np.array([2.0**127, 2.0**127, 2.0**127, 2.0**126], np.float32)
    expected = np.array([0.0, -0.0, NAN, 3 * 2.0**-126], np.float32)
    got = apply_instruction("div.approx.f32", a, b)
    np.testing.assert_array_equal(got, expected)
    assert np.signbit(got).tolist()[:2] == [False, True]


def test_gross_f64_reciprocals_have_an_empty_lower_word() -> None:
    x = np.array([3.0, -0.0, 1e-310, INF, NAN])
    for function, expected in (("rcp", 1 / 3), ("rsqrt", 3**-0.5)):
        got = apply_instruction(f"{function}.approx.ftz.f64", x)
        bits = got.view(np.uint64)
        assert not np.any(bits & np.uint64(0xFFFFFFFF))
        assert abs(got[0] / expected - 1) < 2.0**-20
        assert got.tolist()[1:4] == [-INF, INF, 0.0]
        assert bits[4] == 0x7FFFFFFF00000000


def test_bf16_power_of_two_flushes() -> None:
    codes = np.array([0x0001, 0x8001, 0xC2FE, 0xFF80, 0x3F80], np.uint16)
    assert apply_instruction("ex2.approx.ftz.bf16", codes).tolist() == [0x3F80, 0x3F80, 0, 0, 0x4000]


@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_what_tensor_copies_fill_in_adds_nothing(name: str) -> None:
    code_of_one = {"f16": 0x3C00, "bf16": 0x3F80}[name]
    tensor = TensorMap(ElementType[name.upper()], 0, (8,), (), (8,), fill=Fill.NAN)
    fill = int.from_bytes(make_fill(tensor, 2), "little")
    a, b, c = (
        np.array(codes, np.uint16)
        for codes in ([fill, code_of_one, code_of_one], [code_of_one, fill, code_of_one], [code_of_one, code_of_one, 0])
    )
    assert compute(f"fma.rn.oob.{name} %d, %a, %b, %c;", {"a": a, "b": b, "c": c}, {"d": np.uint16})["d"].tolist() == [
        0, 0, code_of_one,
    ]  # fmt: skip
    pair = {n: x.astype(np.uint32) | np.uint32(code_of_one << 16) for n, x in zip("abc", (a, b, c), strict=True)}
    result = compute(f"fma.rn.oob.{name}x2 %d, %a, %b, %c;", pair, {"d": np.uint32})["d"]
    assert (result & np.uint32(0xFFFF)).tolist() == [0, 0, code_of_one]
    assert set((result >> np.uint32(16)).tolist()) == {code_of_one + (1 << (10 if name == "f16" else 7))}
