"""Formats of one byte or less: packed arithmetic, stochastic rounding, scales and fixed point. Manual: cvt, cvt.pack,
and the alternate floating-point instructions.

Where the manual has only a figure (the random bits of `.rs`) or is silent (results that are subnormal under `.rs`, the
power of two for a negative number, the half of a byte that holds e2m1p4, the sign of a NaN), the rule here is inferred,
and no hardware has confirmed it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from tests.sim.numerics.exact import SHAPES, SIGN, binade
from tools.conformance.forms import Case
from tools.conformance.references import floats as f
from tools.conformance.references.words import Builder, Scalar, clamp, read

_LEAST = {name: 1 - bias for name, (_, bias, _) in SHAPES.items()}
_FULL = {"e2m1": 4, "f16": 16, "bf16": 16}
"""Bits of an element of a packed register, where they are not eight."""


def element(bits: int, name: str) -> f.Number:
    """Return the number of an element."""
    if name == "ue8m0":
        return f.NAN if bits == 0xFF else f.Number(False, Fraction(2) ** (bits - 127))
    if name == "s2f6":
        value = read(bits, "s8")
        return f.Number(value < 0, Fraction(abs(value), 64))
    name = name.removesuffix("p4")
    return f.decode(bits & ((2 << SIGN[name]) - 1), name)


def _elements(bits: int, kind: str) -> list[f.Number]:
    name, _, count = kind.rpartition("x")
    width = _FULL.get(name, 8)
    return [element(bits >> n * width & ((1 << width) - 1), name) for n in range(int(count))]


def _join_codes(codes: list[int], name: str) -> int:
    return sum(code << n * _FULL.get(name, 8) for n, code in enumerate(codes))


def _narrow(number: f.Number, name: str, modifiers: tuple[str, ...]) -> int:
    number = f.rectify(number) if "relu" in modifiers else number
    code = f.code(number, name, finite="satfinite" in modifiers)
    return 0x7F if name == "e4m3" and code & 0x7F == 0x7F else code


def arithmetic(function: Callable[..., f.Number]) -> Builder:
    """Return the builder of an operation on four elements at a time, rounded once to the first type."""

    def build(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
        types = [m for m in modifiers if m.endswith("x4")]
        if not types:
            return None
        result = types[0]
        operands = types[1:] if case.opcode == "mul" else [*types[1:], result]

        def whole(*words: int) -> int:
            columns = [_elements(bits, kind) for bits, kind in zip(words, operands, strict=True)]
            numbers = [function(*elements) for elements in zip(*columns, strict=True)]
            return _join_codes([_narrow(number, result[:-2], modifiers) for number in numbers], result[:-2])

        return whole

    return build


def _sum(a: f.Number, c: f.Number) -> f.Number:
    return f.add(a, c, "rn")


def _difference(a: f.Number, c: f.Number) -> f.Number:
    return f.add(a, f.negate(c), "rn")


def _fuse(a: f.Number, b: f.Number, c: f.Number) -> f.Number:
    return f.add(f.multiply(a, b), c, "rn")


def _stochastic(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
    name, _, count = modifiers[-2].rpartition("x")
    finite = "satfinite" in modifiers

    def convert(bits: int, noise: Fraction) -> int:
        number = f.decode(bits, "f32")
        number = f.rectify(number) if "relu" in modifiers else number
        if number.missing or number.infinite or not number.size:
            return f.code(number, name, finite=finite)
        assert isinstance(number.size, Fraction)
        unit = Fraction(2) ** (max(binade(number.size), _LEAST[name]) - SHAPES[name][0])
        size = math.floor(number.size / unit + noise) * unit
        return f.code(f.Number(number.negative, size), name, finite=finite)

    def whole(*words: int) -> int:
        *values, random = words
        return _join_codes(
            [convert(bits, _noise(random, n, int(count), name)) for n, bits in enumerate(reversed(values))], name
        )

    return whole


def _noise(random: int, position: int, count: int, name: str) -> Fraction:
    """Return the random fraction of a unit for one element, starting with the lowest."""
    if count == 2:
        bits = 13 if name == "f16" else 16
        return Fraction(random >> 16 * position & ((1 << bits) - 1), 1 << bits)
    if name == "e2m1":
        shift = 8 * (position // 2)
        return Fraction((random >> shift & 0xFF) | (random >> 16 + shift & 0xFF) << 8, 1 << 16)
    return Fraction(random >> 16 * (position // 2) & 0xFFFF, 1 << 16)


def _to_power(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
    most = 0xFE if "satfinite" in modifiers else 0xFF

    def convert(number: f.Number) -> int:
        if number.missing:
            return 0xFF
        if number.infinite:
            return most
        if not number.size:
            return 0
        assert isinstance(number.size, Fraction)
        power = binade(number.size)
        power += "rp" in modifiers and number.size != Fraction(2) ** power
        return min(max(power + 127, 0), most)

    def whole(*words: int) -> int:
        return _join_codes([convert(number) for number in _read_pair(words, modifiers[-1])], "ue8m0")

    return whole


def _read_pair(words: tuple[int, ...], kind: str) -> list[f.Number]:
    """Return the two numbers of a conversion, the one for the lower half first."""
    if kind == "f32":
        return [f.decode(bits, "f32") for bits in (words[1], words[0])]
    return _elements(words[0], kind)


def _to_fixed(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
    has_scale, count = any(m.startswith("scaled") for m in modifiers), 2 if modifiers[-1] == "f32" else 1

    def convert(number: f.Number, scale: f.Number | None) -> int:
        number = number if scale is None else f.divide(number, scale)
        if number.missing:
            return 0x7F
        if number.infinite:
            value = -128 if number.negative else 127
        else:
            value = round(number.value * 64) if "rn" in modifiers else math.trunc(number.value * 64)
        value = clamp(value, "s8")
        return (max(value, 0) if "relu" in modifiers else value) & 0xFF

    def whole(*words: int) -> int:
        scales = _elements(words[count], "ue8m0x2") if has_scale else [None, None]
        return _join_codes(
            [convert(n, s) for n, s in zip(_read_pair(words, modifiers[-1]), scales, strict=True)], "s2f6"
        )

    return whole


def _from_packed(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
    """Return a conversion to bf16x2, with or without a scale for each element."""

    def whole(a: int, scale: int | None = None) -> int:
        numbers = _elements(a, modifiers[-1])
        if scale is not None:
            numbers = [f.multiply(n, s) for n, s in zip(numbers, _elements(scale, "ue8m0x2"), strict=True)]
        return _join_codes([_narrow(number, "bf16", modifiers) for number in numbers], "bf16")

    return whole


def _pack(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
    kind = modifiers[2]
    bits = int(kind[1:])

    def whole(a: int, b: int, c: int = 0) -> int:
        high, low = (clamp(read(v, "s32"), kind) & ((1 << bits) - 1) for v in (a, b))
        return (low | high << bits | c << 2 * bits) & 0xFFFFFFFF

    return whole


def _cvt(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
    if modifiers[0] == "pack":
        return _pack(modifiers, case)
    if modifiers[0] == "rs":
        return _stochastic(modifiers, case)
    result, source = modifiers[-2], modifiers[-1]
    if result == "ue8m0x2":
        return _to_power(modifiers, case)
    if result == "s2f6x2":
        return _to_fixed(modifiers, case)
    if result == "bf16x2" and source != "f32":
        return _from_packed(modifiers, case)
    return None


BUILDERS: dict[str, Builder] = {
    "add": arithmetic(_sum),
    "sub": arithmetic(_difference),
    "mul": arithmetic(f.multiply),
    "fma": arithmetic(_fuse),
    "cvt": _cvt,
}
