"""Draws operands that reveal mistakes: the boundaries of a type, their neighbors, and random bits of all exponents."""

from __future__ import annotations

import numpy as np

from pyptx.numbers import FORMATS, encode, is_float, split_packed
from pyptx.types import from_name
from tools.conformance.edges import place_edges
from tools.conformance.forms import Array, Case, Column


def _list_special(name: str, values: tuple[float, ...] = ()) -> tuple[int, ...]:
    """Return the codes around zero, the smallest normal number, one and infinity, NaN, and those of some values."""
    form = FORMATS[name]
    smallest, infinity = 1 << form.mantissa, form.exponent_mask
    codes = [0, 1, smallest - 1, smallest, form.one - 1, form.one, form.one + 1, form.largest, infinity]
    codes += [form.sign, form.sign | 1, form.sign | infinity, form.magnitude, infinity | smallest >> 1]
    return (*codes, *(code for value in values if (code := encode(value, form)) is not None))


_ENDS_OF_INTEGERS = (2.0**31, -(2.0**31), 0.5, 1.5, 2.5)
_SPECIAL = {
    "f16": _list_special("f16"), "bf16": _list_special("bf16"), "f32": _list_special("f32", _ENDS_OF_INTEGERS),
    "f64": _list_special("f64", _ENDS_OF_INTEGERS),
}  # fmt: skip


def draw(case: Case, count: int, seed: int) -> list[Array]:
    """Return `count` operand tuples: one array of Python-sized words (`u8`, or two columns of 128 bits) per input."""
    rng = np.random.default_rng(seed)
    if case.opcode == "mma":
        return [_of_matrix(case, column, count, rng) for column in case.inputs]
    columns = [column_of(column, count, rng) for column in case.inputs]
    if "cas" in case.modifiers:
        # Half of the comparisons are true.
        columns[1][::2] = columns[0][::2]
    place_edges(case, columns, seed)
    for column, values in zip(case.inputs, columns, strict=True):
        if case.opcode in ("div", "rem") and column.name == "b" and from_name(column.type or "u32").kind in "us":
            values[values == 0] = 3
    return columns


def column_of(column: Column, count: int, rng: np.random.Generator) -> Array:
    """Return random operands of one register; metadata and selectors of sparse and scaled products are legal."""
    bits = from_name(column.kind).bits
    if column.name == "meta":
        nibbles = rng.choice(np.array([0x4, 0xE], np.uint64), (count, 8))
        return np.bitwise_or.reduce(nibbles << np.arange(0, 32, 4, dtype=np.uint64), axis=1)
    if column.name in ("which_a", "which_b"):
        return np.zeros(count, np.uint64)
    if bits == 1:
        return rng.integers(0, 2, count, np.uint64)
    if bits == 128:
        return rng.integers(0, 1 << 64, (count, 2), np.uint64, endpoint=False)
    lane = split_packed(column.type or "")[0]
    if lane in _SPECIAL and bits > from_name(lane).bits:
        width = from_name(lane).bits
        parts = [_numbers(lane, width, count, rng) << np.uint64(n * width) for n in range(bits // width)]
        return np.bitwise_or.reduce(parts)
    return _numbers(lane, bits, count, rng)


_INDICES = (0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110)
"""The pairs of positions in a chunk of a sparse row; with tf32 only the first and the last are meaningful."""


def _of_matrix(case: Case, column: Column, count: int, rng: np.random.Generator) -> Array:
    """Return operands of a product. Floats are mostly finite, since otherwise every sum would be NaN; every other warp
    has exponents near that of 1.0, since otherwise every sum would have only one significant term."""
    kinds = case.modifiers[case.modifiers.index(next(m for m in case.modifiers if m[0] == "m" and "n8k" in m)) :]
    names = [m for m in kinds if m in FORMATS]
    if column.name == "meta":
        indices = (0b0100, 0b1110) if names[1] == "tf32" else _INDICES
        nibbles = rng.choice(np.array(indices, np.uint64), (count, 8))
        return np.bitwise_or.reduce(nibbles << np.arange(0, 32, 4, dtype=np.uint64), axis=1)
    if column.name.startswith("scale"):
        low, high = (0, 0x7F) if "ue4m3" in kinds else (118, 138)
        parts = rng.integers(low, high, (count, 4), np.uint64)
        return np.bitwise_or.reduce(parts << np.arange(0, 32, 8, dtype=np.uint64), axis=1)
    if column.name not in ("a", "b", "c"):
        return column_of(column, count, rng)
    name = names[{"a": 1, "b": 2, "c": 3}[column.name]]
    whole = rng.integers(0, 1 << 64, count, np.uint64, endpoint=False) & np.uint64(
        (1 << from_name(column.kind).bits) - 1
    )
    form = FORMATS[name]
    if not is_float(name) or form.width < 8:
        fours = "mxf4" in case.text
        padding = {"e2m1": 0 if fours else 0xC3C3C3C3, "e2m3": 0xC0C0C0C0, "e3m2": 0xC0C0C0C0}.get(name, 0)
        return whole & np.uint64(0xFFFFFFFFFFFFFFFF ^ padding)
    width = form.width
    near = np.arange(count) // 32 % 2 == 0
    words = np.zeros(count, np.uint64)
    for part in range(from_name(column.kind).bits // width):
        bits = whole >> np.uint64(part * width) & np.uint64((1 << width) - 1)
        words |= _mostly_finite(bits, name, near, rng) << np.uint64(part * width)
    return words


def _mostly_finite(bits: Array, name: str, near: Array, rng: np.random.Generator) -> Array:
    """Return codes, few of them not finite; where `near` is true, exponents are close to that of 1.0."""
    form = FORMATS[name]
    width, fraction, bias = form.width, form.mantissa + form.shift, form.bias
    top = form.exponent_mask >> form.mantissa
    exponent = (bits >> np.uint64(fraction) & np.uint64(top)).astype(np.int64)
    spread = min(bias - 1, 6)
    exponent = np.where(near, bias + rng.integers(-spread, spread + 1, len(bits)), exponent)
    exponent = np.where((exponent == top) & (rng.integers(0, 8, len(bits)) > 0), bias, exponent)
    word = bits & np.uint64((1 << width) - 1 ^ top << fraction) | exponent.astype(np.uint64) << np.uint64(fraction)
    return word >> np.uint64(form.shift) << np.uint64(form.shift)


def _numbers(lane: str, bits: int, count: int, rng: np.random.Generator) -> Array:
    """Return numbers of a type: a quarter boundaries, a quarter small, the rest random bits or random exponents."""
    full = np.uint64((1 << bits) - 1)
    arbitrary = rng.integers(0, 1 << 64, count, np.uint64, endpoint=False) & full
    edges = [(1 << k) + d for k in range(bits) for d in (-1, 0, 1)] + [(1 << bits) - 1 - d for d in range(3)]
    special = np.array([v & int(full) for v in _SPECIAL.get(lane, tuple(edges))], np.uint64)
    near = rng.integers(0, 300, count, np.uint64)
    if lane in _SPECIAL:
        exponent, code_of_one = FORMATS[lane].mantissa, FORMATS[lane].one
        spread = rng.integers(-(8 << exponent), 8 << exponent, count)
        near = (np.uint64(code_of_one) + spread.astype(np.uint64)) & full
        near |= rng.integers(0, 2, count, np.uint64) << np.uint64(bits - 1)
    choice = rng.integers(0, 4, count)
    return np.select([choice == 0, choice == 1], [rng.choice(special, count), near], arbitrary)
