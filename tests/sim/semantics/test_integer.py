"""Integer instructions against Python's integers."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false
# References are lambdas of any number of Python integers or fractions.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.sim.lanes import Array, compute, integers

Reference = Callable[..., int]


def _dtype(kind: str) -> np.dtype[Any]:
    return np.dtype(f"{'i' if kind[0] == 's' else 'u'}{int(kind[1:]) // 8}")


def _wrap(values: list[int], dtype: np.dtype[Any]) -> Array:
    bits = 8 * dtype.itemsize
    return np.array([v & ((1 << bits) - 1) for v in values], f"u{dtype.itemsize}").view(dtype)


def _check(spelling: str, kinds: str, result: str, reference: Reference) -> None:
    """Run an instruction on operands of these types and compare every lane."""
    names = "abce"[: len(kinds.split())]
    inputs = {n: integers(_dtype(k), seed=i) for i, (n, k) in enumerate(zip(names, kinds.split(), strict=True))}
    operands = ", ".join(f"%{n}" for n in names)
    got = compute(f"{spelling} %d, {operands};", inputs, {"d": _dtype(result)})["d"]
    want = _wrap([reference(*[int(v) for v in row]) for row in zip(*inputs.values(), strict=True)], _dtype(result))
    np.testing.assert_array_equal(got, want)


def _divide(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _clamp(x: int, bits: int, signed: bool = True) -> int:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return min(max(x, low), high)


TYPES = ("u16", "s16", "u32", "s32", "u64", "s64")


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(
    ("op", "reference"),
    [
        ("add", lambda a, b: a + b), ("sub", lambda a, b: a - b), ("mul.lo", lambda a, b: a * b), ("min", min),
        ("max", max), ("div", lambda a, b: _divide(a, b) if b else -1),
        ("rem", lambda a, b: a - _divide(a, b) * b if b else a),
    ],
)  # fmt: skip
def test_binary(op: str, reference: Reference, kind: str) -> None:
    _check(f"{op}.{kind}", f"{kind} {kind}", kind, reference)


@pytest.mark.parametrize("kind", TYPES)
def test_high_halves_and_sums(kind: str) -> None:
    bits = int(kind[1:])
    _check(f"mul.hi.{kind}", f"{kind} {kind}", kind, lambda a, b: (a * b) >> bits)
    _check(f"mad.hi.{kind}", f"{kind} {kind} {kind}", kind, lambda a, b, c: ((a * b) >> bits) + c)
    _check(f"mad.lo.{kind}", f"{kind} {kind} {kind}", kind, lambda a, b, c: a * b + c)
    _check(f"sad.{kind}", f"{kind} {kind} {kind}", kind, lambda a, b, c: c + abs(a - b))


@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32"])
def test_wide_products(kind: str) -> None:
    double = f"{kind[0]}{2 * int(kind[1:])}"
    _check(f"mul.wide.{kind}", f"{kind} {kind}", double, lambda a, b: a * b)
    _check(f"mad.wide.{kind}", f"{kind} {kind} {double}", double, lambda a, b, c: a * b + c)


@pytest.mark.parametrize("kind", ["s16", "s32", "s64"])
def test_abs_and_neg(kind: str) -> None:
    _check(f"abs.{kind}", kind, kind, lambda a: abs(a))
    _check(f"neg.{kind}", kind, kind, lambda a: -a)


def test_saturation() -> None:
    _check("add.sat.s32", "s32 s32", "s32", lambda a, b: _clamp(a + b, 32))
    _check("sub.sat.s32", "s32 s32", "s32", lambda a, b: _clamp(a - b, 32))
    _check("mad.hi.sat.s32", "s32 s32 s32", "s32", lambda a, b, c: _clamp((a * b >> 32) + c, 32))


def _parts(x: int, bits: int, signed: bool = False) -> list[int]:
    fields = [(x >> index) & ((1 << bits) - 1) for index in range(0, 32, bits)]
    return [p - (1 << bits) if signed and p >> (bits - 1) else p for p in fields]


def _join(parts: list[int], bits: int) -> int:
    return sum((p & ((1 << bits) - 1)) << index * bits for index, p in enumerate(parts))


def test_packed() -> None:
    _check(
        "add.u16x2",
        "u32 u32",
        "u32",
        lambda a, b: _join([x + y for x, y in zip(_parts(a, 16), _parts(b, 16), strict=True)], 16),
    )
    _check("max.s16x2", "u32 u32", "u32", lambda a, b: _join(
        [max(x, y) for x, y in zip(_parts(a, 16, True), _parts(b, 16, True), strict=True)], 16))  # fmt: skip
    _check("min.relu.s16x2", "u32 u32", "u32", lambda a, b: _join(
        [max(0, min(x, y)) for x, y in zip(_parts(a, 16, True), _parts(b, 16, True), strict=True)], 16))  # fmt: skip


@pytest.mark.parametrize("bits", [32, 64])
def test_counting(bits: int) -> None:
    kind, mask = f"u{bits}", (1 << bits) - 1
    _check(f"popc.b{bits}", kind, "u32", int.bit_count)
    _check(f"clz.b{bits}", kind, "u32", lambda a: bits - a.bit_length())
    _check(f"brev.b{bits}", kind, kind, lambda a: int(f"{a:0{bits}b}"[::-1], 2))
    _check(f"bfind.u{bits}", kind, "u32", lambda a: a.bit_length() - 1)
    _check(f"bfind.s{bits}", f"s{bits}", "u32", lambda a: (a if a >= 0 else ~a).bit_length() - 1)
    _check(f"bfind.shiftamt.u{bits}", kind, "u32", lambda a: bits - a.bit_length() if a else -1)
    _check(
        f"bfe.u{bits}", f"{kind} u32 u32", kind, lambda a, b, c: (a >> _place(b, bits)) & ((1 << _place(c, bits)) - 1)
    )
    _check(f"bfi.b{bits}", f"{kind} {kind} u32 u32", kind,
           lambda a, b, c, d: _insert(a, b, _place(c, bits), _place(d, bits), mask))  # fmt: skip


def _place(x: int, bits: int) -> int:
    """Return a position or length of a field; ptxas reduces those of 32-bit fields only."""
    return x & 255 if bits == 32 else min(x, 64)


def _insert(a: int, b: int, start: int, length: int, mask: int) -> int:
    field = (((1 << length) - 1) << start) & mask
    return (b & ~field) | ((a << start) & field)


@pytest.mark.parametrize("bits", [32, 64])
def test_bfe_extends_the_sign_of_the_field(bits: int) -> None:
    def reference(a: int, b: int, c: int) -> int:
        start, length = _place(b, bits), _place(c, bits)
        sign = a >> min(start + length - 1, bits - 1) & 1 if length else 0
        bits_of_result = [
            (a >> start + index & 1) if index < length and start + index < bits else sign for index in range(bits)
        ]
        return sum(bit << index for index, bit in enumerate(bits_of_result))

    _check(f"bfe.s{bits}", f"s{bits} u32 u32", f"s{bits}", reference)


def test_dot_products() -> None:
    _check("dp4a.s32.u32", "u32 u32 s32", "s32", lambda a, b, c: c + sum(
        x * y for x, y in zip(_parts(a, 8, True), _parts(b, 8), strict=True)))  # fmt: skip
    _check(
        "dp4a.u32.u32",
        "u32 u32 u32",
        "u32",
        lambda a, b, c: c + sum(x * y for x, y in zip(_parts(a, 8), _parts(b, 8), strict=True)),
    )
    _check("dp2a.hi.s32.s32", "u32 u32 s32", "s32", lambda a, b, c: c + sum(
        x * y for x, y in zip(_parts(a, 16, True), _parts(b, 8, True)[2:], strict=True)))  # fmt: skip


def test_24_bits() -> None:
    def low(x: int) -> int:
        return (x & 0xFFFFFF) - (1 << 24 if x >> 23 & 1 else 0)

    _check("mul24.lo.s32", "s32 s32", "s32", lambda a, b: low(a) * low(b))
    _check("mul24.hi.s32", "s32 s32", "s32", lambda a, b: low(a) * low(b) >> 16)
    _check("mad24.lo.u32", "u32 u32 u32", "u32", lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF) + c)


def test_masks_and_extensions() -> None:
    def mask(a: int, b: int) -> int:
        return ((1 << min(b, 32)) - 1) << min(a, 32)

    _check("bmsk.clamp.b32", "u32 u32", "u32", mask)
    _check("bmsk.wrap.b32", "u32 u32", "u32", lambda a, b: mask(a & 31, b & 31))
    _check("szext.wrap.u32", "u32 u32", "u32", lambda a, b: a & ((1 << (b & 31)) - 1))


def test_carry_chain_of_128_bits() -> None:
    a, b, c, e = (integers(np.uint64, seed=s) for s in range(4))
    code = "add.cc.u64 %d, %a, %c;\naddc.u64 %f, %b, %e;\nsub.cc.u64 %g, %a, %c;\nsubc.u64 %h, %b, %e;"
    got = compute(code, {"a": a, "b": b, "c": c, "e": e}, dict.fromkeys("dfgh", np.uint64))
    for index in range(len(a)):
        x, y = int(a[index]) | int(b[index]) << 64, int(c[index]) | int(e[index]) << 64
        assert int(got["d"][index]) | int(got["f"][index]) << 64 == (x + y) % (1 << 128)
        assert int(got["g"][index]) | int(got["h"][index]) << 64 == (x - y) % (1 << 128)


def test_carry_less_product() -> None:
    def product(a: int, b: int) -> int:
        word = 0
        for index in range(64):
            word ^= (a << index) if b >> index & 1 else 0
        return word

    inputs = {n: integers(np.uint64, seed=s) for s, n in enumerate("abc")}
    code = "clmad.lo.u64 %d, %a, %b, %c;\nclmad.hi.u64 %e, %a, %b, %c;"
    got = compute(code, inputs, {"d": np.uint64, "e": np.uint64}, version="9.3")
    for a, b, c, d, e in zip(*inputs.values(), got["d"], got["e"], strict=True):
        whole = product(int(a), int(b))
        assert (int(d), int(e)) == ((whole & (1 << 64) - 1) ^ int(c), (whole >> 64) ^ int(c))


def test_a_carry_passes_through_a_word_of_ones() -> None:
    all_ones = np.array([0xFFFFFFFF], np.uint32)
    unit, zero = np.array([1], np.uint32), np.array([0], np.uint32)
    code = "add.cc.u32 %d, %a, %b;\naddc.cc.u32 %e, %a, %c;\naddc.u32 %f, %c, %c;\n"
    code += "sub.cc.u32 %g, %c, %b;\nsubc.cc.u32 %h, %c, %c;\nsubc.u32 %i, %b, %c;"
    got = compute(code, {"a": all_ones, "b": unit, "c": zero}, dict.fromkeys("defghi", np.uint32))
    assert [int(got[n][0]) for n in "defghi"] == [0, 0, 1, 0xFFFFFFFF, 0xFFFFFFFF, 0]


def test_the_flag_of_a_difference_is_the_carry_of_a_sum_with_the_complement() -> None:
    inputs = {
        "a": np.array([5, 7], np.uint32),
        "b": np.array([7, 5], np.uint32),
        "c": np.array([0, 0xFFFFFFFF], np.uint32),
    }
    code = "sub.cc.u32 %d, %a, %b;\naddc.u32 %e, 0, 0;\nadd.cc.u32 %f, %c, 1;\nsubc.u32 %g, %a, 1;"
    got = compute(code, inputs, dict.fromkeys("defg", np.uint32))
    assert got["e"].tolist() == [0, 1]
    assert got["g"].tolist() == [3, 6]


def test_the_upper_half_of_a_product_of_16_bits_with_a_carry_is_above_32_bits() -> None:
    inputs = {"a": np.array([0xFFFF], np.uint16), "b": np.array([0x7FFF], np.uint16)}
    code = "madc.hi.u16 %d, %a, %b, %a;\nmadc.hi.s16 %e, %a, %b, %a;"
    got = compute(code, inputs, dict.fromkeys("de", np.uint16))
    assert [int(got[n][0]) for n in "de"] == [0xFFFF, 0xFFFE]


def test_madc_hi_sat_does_not_saturate_in_the_code_of_ptxas() -> None:
    codes = {"a": 0xA37B5B32, "b": 0x7796B838, "c": 0x98FD5308}
    inputs = {name: np.array([code], np.uint32) for name, code in codes.items()}
    got = compute("add.cc.u32 %d, %a, 0;\nmadc.hi.sat.s32 %d, %a, %b, %c;", inputs, {"d": np.uint32})["d"]
    assert got.tolist() == [0x6DC53220]


def test_fns_beyond_its_ranges_is_what_the_code_of_ptxas_finds() -> None:
    bases, offsets = [32, 40, 0xFFFFFFFF, 40, 1, 31], [1, 0, -1, -1, -(1 << 31), 2]
    inputs = {"a": np.full(6, 0xFFFFFFFF, np.uint32), "b": np.array(bases, np.uint32), "c": np.array(offsets, np.int32)}
    got = compute("fns.b32 %d, %a, %b, %c;", inputs, {"d": np.uint32})["d"]
    assert got.tolist() == [0xFFFFFFFF] * 4 + [0, 0xFFFFFFFF]
