"""Matrix products of a warp, as the tensor cores of the target sum them (`precision="hardware"`).

The positions of elements come from `pyptx.isa.fragments`, which tests/isa checks against the manual. The number of
products per step and the width of the sum come from `pyptx.sim.numerics.tensor_core`; its docstring cites the
measurements, and lists the formats that are inferred from related ones. The sums themselves are those of
tests/sim/numerics/slow_dot, term by term, in exact floats and integers for speed.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import inf, isfinite, ldexp, nan

from pyptx.isa import fragments
from pyptx.isa.fragments import Fragment
from pyptx.sim.numerics.tensor_core import BLOCK_FRACTION, BLOCK_RUN, Lowering, Rule, select_lowering, select_rule
from pyptx.types import from_name
from tests.sim.numerics import exact, slow_dot
from tools.conformance.forms import Case
from tools.conformance.references import floats as f
from tools.conformance.references.warp import Lanes, Warp
from tools.conformance.references.words import clamp, read

Rows = list[list[int]]
_INTEGERS = ("s8", "u8", "s4", "u4", "b1")
_ELEMENTS = 1024
"""The minimum number of elements of the product to compare."""


@dataclass(frozen=True)
class Product:
    """A product, as its modifiers specify it."""

    m: int
    n: int
    k: int
    types: tuple[str, str, str, str]
    """The types of d, a, b and c."""
    flags: frozenset[str]
    kind: str | None
    sparse: bool
    vector: int
    """Scale factors along K, or 0 if there are none."""
    scale: str
    arch: int
    volta: tuple[str, ...]
    """The layouts of a and b of Volta's four simultaneous products."""


def read_case(case: Case) -> Product:
    """Return the product that the modifiers specify."""
    modifiers = case.modifiers
    shape = next(m for m in modifiers if re.fullmatch(r"m\d+n\d+k\d+", m))
    m, n, k = (int(part) for part in re.findall(r"\d+", shape))
    after = modifiers[modifiers.index(shape) :]
    names = [part for part in after if re.fullmatch(r"[usbef]\d+(m\d)?|bf16|tf32|ue\dm\d", part)]
    kind = next((part.removeprefix("kind::") for part in modifiers if part.startswith("kind::")), None)
    vector = next((int(part[len("scale_vec::")]) for part in modifiers if part.startswith("scale_vec::")), 0)
    if not vector and "block_scale" in modifiers:
        vector = 1 if kind == "mxf8f6f4" else 2
    four = shape == "m8n8k4" and names[1] == "f16"
    volta = tuple(part for part in modifiers if part in ("row", "col")) if four else ()
    types = (names[0], names[1], names[2], names[3])
    sparse = modifiers[0].startswith("sp")
    return Product(m, n, k, types, frozenset(modifiers), kind, sparse, vector, names[-1], case.target.arch, volta)


def warps(case: Case) -> int:
    """Return how many warps provide enough elements."""
    form = read_case(case)
    return -(-_ELEMENTS // (form.m * form.n * (4 if form.volta else 1)))


def product(modifiers: tuple[str, ...], case: Case) -> Warp | None:
    """Return the function of a warp."""
    form = read_case(case)
    names = [column.name for column in case.inputs]

    def whole(lanes: Lanes) -> Lanes:
        parts = {name: [[v for v, n in zip(lane, names, strict=True) if n == name] for lane in lanes] for name in names}
        words = [[0] * len(case.outputs) for _ in range(32)]
        for matrix in range(4 if form.volta else 1):
            _multiply_matrices(form, parts, words, matrix)
        return [tuple(lane) for lane in words]

    return whole


def _multiply_matrices(form: Product, parts: dict[str, Rows], words: Rows, matrix: int) -> None:
    """Compute one product of a warp into its words."""
    shapes = _fragments(form)
    a, b, c = (_codes(shape, parts[name], matrix) for shape, name in zip(shapes, "abc", strict=False))
    left, stored = _expand(form, a, parts["meta"]) if form.sparse else (a, None)
    columns = [list(column) for column in zip(*b, strict=True)]
    element = _element(form, parts, left, columns, stored)
    result = shapes[3]
    for lane, register, bit, row, column, owner in _places(result):
        if owner == matrix:
            words[lane][register] |= element(row, column, c[row][column]) << bit


def _fragments(form: Product) -> tuple[Fragment, Fragment, Fragment, Fragment]:
    dtype, atype, btype, ctype = form.types
    if form.volta:
        accumulators = [fragments.volta_accumulator(from_name(name)) for name in (ctype, dtype)]
        return fragments.volta_a(form.volta[0]), fragments.volta_b(form.volta[1]), accumulators[0], accumulators[1]
    bits = [fragments.element_bits(from_name(name), form.kind) for name in (atype, btype)]
    depth = form.k // 2 if form.sparse else form.k
    accumulators = [fragments.mma_accumulator(form.m, form.n, from_name(name)) for name in (ctype, dtype)]
    return (
        fragments.mma_a(form.m, depth, bits[0]),
        fragments.mma_b(form.k, form.n, bits[1]),
        accumulators[0],
        accumulators[1],
    )


@cache
def _places(fragment: Fragment) -> list[tuple[int, int, int, int, int, int]]:
    """Return lane, register, lowest bit, row, column and matrix of every element."""
    return [
        (lane, *fragment.slot(element), *fragment.position3(lane, element))
        for lane in range(32)
        for element in range(fragment.count)
    ]


def _codes(fragment: Fragment, lanes: Rows, matrix: int) -> Rows:
    rows, columns = fragment.shape
    codes = [[0] * columns for _ in range(rows)]
    mask = (1 << fragment.bits) - 1
    for lane, register, bit, row, column, owner in _places(fragment):
        if owner == matrix:
            codes[row][column] = lanes[lane][register] >> bit & mask
    return codes


def _expand(form: Product, compact: Rows, meta: Rows) -> tuple[Rows, Rows]:
    """Return A with zeros in place of the omitted elements, and for each element whether it is stored."""
    bits = fragments.element_bits(from_name(form.types[1]), form.kind)
    chunk = {32: 2, 16: 4, 8: 4, 4: 8}[bits]
    result: Rows = []
    stored: Rows = []
    for row, values in enumerate(compact):
        full, elements, is_stored = [0] * form.k, iter(values), [0] * form.k
        for index in range(form.k // chunk):
            place = fragments.mma_metadata(row, index, k=form.k, bits=bits)
            for column in fragments.nonzero_columns(index, meta[place.lane][0] >> place.bit & 15, bits):
                full[column], is_stored[column] = next(elements), 1
        result.append(full)
        stored.append(is_stored)
    return result, stored


Element = Callable[[int, int, int], int]
"""Takes a row, a column and the code of the addend, and returns the code of the result."""


Column = Callable[[int, int], list[float]]
"""Takes a row and a column, and returns the factors of B in the column that take part."""


def _element(form: Product, parts: dict[str, Rows], rows: Rows, columns: Rows, stored: Rows | None) -> Element:
    dtype, atype, btype, _ = form.types
    if atype in _INTEGERS:
        return _of_integers(form, rows, columns)
    if atype == "f64":
        rounding = next((flag for flag in ("rz", "rm", "rp") if flag in form.flags), "rn")
        return lambda i, j, c: _of_double(rows[i], columns[j], c, rounding)
    lowering = select_lowering("mma", form.arch, atype, form.k)
    if lowering is Lowering.SCALAR:
        return _of_threads(form, rows, columns)
    left = [_values(row, atype, form) for row in rows]
    right = [_values(column, btype, form) for column in columns]

    def factors(i: int, j: int) -> list[float]:
        if stored is None:
            return right[j]
        return [value if is_stored else 0.0 for value, is_stored in zip(right[j], stored[i], strict=True)]

    if lowering is Lowering.UNPACKED:
        return _of_halves(form, left, factors)
    scales = _scales(form, parts) if form.vector else None
    rule = select_rule("mma", form.arch, atype, dtype, sparse=form.sparse)

    def element(i: int, j: int, c: int) -> int:
        start = _number(c, form.types[3])
        if scales is not None and form.vector > 1:
            pairs = list(zip(scales[0][i], scales[1][j], strict=True))
            return _encode(_blocks(left[i], factors(i, j), pairs, start, form), dtype)
        power = exact.binade(Fraction(scales[0][i][0] * scales[1][j][0])) if scales is not None else 0
        return _encode(_chain(left[i], factors(i, j), start, (atype, btype), rule, power), dtype)

    return element


def _of_integers(form: Product, rows: Rows, columns: Rows) -> Element:
    _, atype, btype, _ = form.types
    if atype == "b1":
        combine: Callable[[int, int], int] = (lambda a, b: a ^ b) if "xor" in form.flags else (lambda a, b: a & b)
        return lambda i, j, c: (sum(map(combine, rows[i], columns[j])) + c) & 0xFFFFFFFF
    left = [[read(v, atype) for v in row] for row in rows]
    right = [[read(v, btype) for v in column] for column in columns]

    def element(i: int, j: int, c: int) -> int:
        total = sum(a * b for a, b in zip(left[i], right[j], strict=True)) + read(c, "s32")
        return (clamp(total, "s32") if "satfinite" in form.flags else total) & 0xFFFFFFFF

    return element


def _of_halves(form: Product, left: list[list[float]], factors: Column) -> Element:
    """Return products of f16: of the lower halves of registers, then of the upper halves, then the addend."""
    dtype, span = form.types[0], 8 if form.sparse else 4
    rule = select_rule("mma", form.arch, "f16", dtype, sparse=form.sparse)
    halves = [[k for k in range(form.k) if (k % span >= span // 2) is upper] for upper in (False, True)]

    def element(i: int, j: int, c: int) -> int:
        total = 0.0
        for half in halves:
            row, column = [left[i][k] for k in half], [factors(i, j)[k] for k in half]
            total = _chain(row, column, total, ("f16", "f16"), rule, 0)
        return f.code(f.add(f.decode(_encode(total, dtype), dtype), f.decode(c, dtype), "rn"), dtype, "rn")

    return element


def _of_threads(form: Product, rows: Rows, columns: Rows) -> Element:
    """Return four products added in f32: in a chain from zero, or in pairs where the result is f16."""
    dtype, ctype = form.types[0], form.types[3]
    first, groups = (0x80000000, ((0, 1), (2, 3))) if dtype == "f16" else (0, ((0, 1, 2, 3),))

    def single(number: f.Number) -> f.Number:
        return f.decode(f.code(number, "f32", "rn"), "f32")

    def element(i: int, j: int, c: int) -> int:
        total = f.decode(c, ctype)
        for group in groups:
            product = f.decode(first, "f32")
            for k in group:
                term = f.multiply(f.decode(rows[i][k], "f16"), f.decode(columns[j][k], "f16"))
                product = single(f.add(term, product, "rn"))
            total = single(f.add(total, product, "rn"))
        return f.code(total, dtype, "rn")

    return element


def _of_double(row: list[int], column: list[int], c: int, rounding: str) -> int:
    """Return a chain of fused multiply-adds in the order of K."""
    for a, b in zip(row, column, strict=True):
        c = f.code(
            f.add(f.multiply(f.decode(a, "f64"), f.decode(b, "f64")), f.decode(c, "f64"), rounding), "f64", rounding
        )
    return c


@cache
def _number(code: int, name: str) -> float:
    number = f.decode(code, name)
    if number.missing:
        return nan
    return float(number.rank)


def _values(codes: list[int], name: str, form: Product) -> list[float]:
    """Return the numbers of codes; an e2m1 in a byte is in its middle four bits."""
    shift = 2 if name == "e2m1" and fragments.element_bits(from_name(name), form.kind) == 8 else 0
    mask = (1 << 32) - 1 if name == "tf32" else (2 << exact.SIGN[name]) - 1
    return [_number(code >> shift & mask, name) for code in codes]


def _scales(form: Product, parts: dict[str, Rows]) -> tuple[list[list[float]], list[list[float]]]:
    scales: list[list[list[float]]] = []
    for side, count, place in (("a", form.m, fragments.mma_scale_a), ("b", form.n, fragments.mma_scale_b)):
        words = parts[f"scale_{side}"]
        scales.append([])
        for row in range(count):
            places = [place(row, block, vector=form.vector) for block in range(form.vector)]
            scales[-1].append([_scale(words[p.lane][0] >> 8 * p.byte & 0xFF, form.scale) for p in places])
    return scales[0], scales[1]


def _scale(code: int, name: str) -> float:
    return ldexp(1.0, code - 127) if name == "ue8m0" else _number(code & 0x7F, "e4m3")


def _chain(a: list[float], b: list[float], c: float, names: tuple[str, str], rule: Rule, power: int) -> float:
    """Return the result of slow_dot.chain, one step after the other."""
    for start in range(0, len(a), rule.step):
        x, y = a[start : start + rule.step], b[start : start + rule.step]
        c = _step(x, y, c, names, rule, power)
    return c


def _step(a: list[float], b: list[float], c: float, names: tuple[str, str], rule: Rule, power: int) -> float:
    products = [x * y for x, y in zip(a, b, strict=True)]
    if not isfinite(sum(products) + c):
        special = slow_dot.special_sum([*products, c])
        if special is not None:
            return special
    places = [_place(x, names[0]) + _place(y, names[1]) + power for x, y in zip(a, b, strict=True)]
    unit = max(*places, _place(c, "f16" if rule.output == "f16" else "f32")) - rule.fraction
    total = sum(int(ldexp(p, power - unit)) for p in products) + int(ldexp(c, -unit))
    return _finish(total, unit, rule.output)


def _blocks(a: list[float], b: list[float], pairs: list[tuple[float, float]], c: float, form: Product) -> float:
    """Return the result of slow_dot.block: exact runs, truncated at the exponents of their scales."""
    size, least = len(a) // len(pairs), -6 if form.scale == "ue4m3" else -127
    if not isfinite(c):
        return c
    runs = [sum(x * y for x, y in zip(a[s : s + BLOCK_RUN], b[s : s + BLOCK_RUN], strict=True))
            for s in range(0, len(a), BLOCK_RUN)]  # fmt: skip
    scales = [pairs[start // size] for start in range(0, len(a), BLOCK_RUN)]
    places = [sum(_scale_place(scale, least) for scale in pair) for pair in scales]
    unit = max(*places, _place(c, "f32")) - BLOCK_FRACTION
    total = int(ldexp(c, -unit))
    total += sum(int(ldexp(run * pair[0] * pair[1], -unit)) for run, pair in zip(runs, scales, strict=True))
    return _finish(total, unit, "f32")


@cache
def _scale_place(scale: float, least: int) -> int:
    return max(exact.binade(Fraction(scale)), least) if scale else slow_dot.NO_VALUE


@cache
def _place(x: float, name: str) -> int:
    return slow_dot.exponent(x, name) if isfinite(x) else 0


def _finish(total: int, unit: int, output: str) -> float:
    """Return a sum of this many units at the precision of a step: truncated, or rounded to nearest for f16."""
    if not total:
        return 0.0
    if output == "f16":
        return slow_dot.finish(Fraction(total) * Fraction(2) ** unit, output)
    size, digits = abs(total), 13 if output == "f32_13" else 23
    lowest = max(size.bit_length() - 1 + unit, -126) - digits
    if lowest > unit:
        size, unit = size >> lowest - unit, lowest
    magnitude = inf if size.bit_length() + unit > 128 else ldexp(size, unit)
    return magnitude if total > 0 else -magnitude


def _encode(value: float, name: str) -> int:
    if value != value:
        return f.NAN_CODES[name]
    if name == "f16":
        number = f.Number(value < 0, Fraction(abs(value)) if isfinite(value) else inf)
        return f.code(number, name)
    return int.from_bytes(struct.pack("<f", value), "little")
