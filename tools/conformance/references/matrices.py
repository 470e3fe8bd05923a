"""Matrix products of a warp, as the tensor cores of the target sum them (`precision="hardware"`).

Where elements lie comes from `pyptx.isa.fragments`, which tests/isa checks against the manual; how many products a step
takes and how far it cuts them comes from `pyptx.sim.numerics.tensor_core`, whose numbers were measured elsewhere (its
docstring says where, and which are taken from their kin). The sums themselves are those of tests/sim/numerics/slow_dot,
term by term, written with exact floats and integers here so that they take less time.
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
from tools.conformance.references.words import clamped, read

Rows = list[list[int]]
_INTEGERS = ("s8", "u8", "s4", "u4", "b1")
_ELEMENTS = 1024
"""Elements of the product that are compared, at least."""


@dataclass(frozen=True)
class Product:
    """What the modifiers of a product say."""

    m: int
    n: int
    k: int
    types: tuple[str, str, str, str]
    """Those of d, a, b and c."""
    flags: frozenset[str]
    kind: str | None
    sparse: bool
    vector: int
    """Scale factors along K, 0 without any."""
    scale: str
    arch: int
    volta: tuple[str, ...]
    """The layouts of a and b of the four products at once."""


def read_case(case: Case) -> Product:
    """Return what the modifiers say."""
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
    return Product(m, n, k, types, frozenset(modifiers), kind, sparse, vector, names[-1], case.where.arch, volta)


def warps(case: Case) -> int:
    """Return how many warps have enough elements."""
    made = read_case(case)
    return -(-_ELEMENTS // (made.m * made.n * (4 if made.volta else 1)))


def product(modifiers: tuple[str, ...], case: Case) -> Warp | None:
    """Return the function of a warp."""
    how = read_case(case)
    names = [column.name for column in case.inputs]

    def whole(lanes: Lanes) -> Lanes:
        parts = {name: [[v for v, n in zip(lane, names, strict=True) if n == name] for lane in lanes] for name in names}
        words = [[0] * len(case.outputs) for _ in range(32)]
        for matrix in range(4 if how.volta else 1):
            _one(how, parts, words, matrix)
        return [tuple(lane) for lane in words]

    return whole


def _one(how: Product, parts: dict[str, Rows], words: Rows, matrix: int) -> None:
    """Compute one product of a warp into its words."""
    shapes = _fragments(how)
    a, b, c = (_codes(shape, parts[name], matrix) for shape, name in zip(shapes, "abc", strict=False))
    left = _expanded(how, a, parts["meta"]) if how.sparse else a
    columns = [list(column) for column in zip(*b, strict=True)]
    element = _element(how, parts, left, columns)
    out = shapes[3]
    for lane, register, bit, row, column, own in _places(out):
        if own == matrix:
            words[lane][register] |= element(row, column, c[row][column]) << bit


def _fragments(how: Product) -> tuple[Fragment, Fragment, Fragment, Fragment]:
    dtype, atype, btype, ctype = how.types
    if how.volta:
        held = [fragments.volta_accumulator(from_name(name)) for name in (ctype, dtype)]
        return fragments.volta_a(how.volta[0]), fragments.volta_b(how.volta[1]), held[0], held[1]
    bits = [fragments.element_bits(from_name(name), how.kind) for name in (atype, btype)]
    stored = how.k // 2 if how.sparse else how.k
    held = [fragments.mma_accumulator(how.m, how.n, from_name(name)) for name in (ctype, dtype)]
    return fragments.mma_a(how.m, stored, bits[0]), fragments.mma_b(how.k, how.n, bits[1]), held[0], held[1]


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
    made = [[0] * columns for _ in range(rows)]
    mask = (1 << fragment.bits) - 1
    for lane, register, bit, row, column, own in _places(fragment):
        if own == matrix:
            made[row][column] = lanes[lane][register] >> bit & mask
    return made


def _expanded(how: Product, stored: Rows, meta: Rows) -> Rows:
    """Return A with zeros where none is stored."""
    bits = fragments.element_bits(from_name(how.types[1]), how.kind)
    chunk = {32: 2, 16: 4, 8: 4, 4: 8}[bits]
    made: Rows = []
    for row, values in enumerate(stored):
        full, taken = [0] * how.k, iter(values)
        for at in range(how.k // chunk):
            place = fragments.mma_metadata(row, at, k=how.k, bits=bits)
            for column in fragments.nonzero_columns(at, meta[place.lane][0] >> place.bit & 15, bits):
                full[column] = next(taken)
        made.append(full)
    return made


Element = Callable[[int, int, int], int]
"""Takes a row, a column and the code of the addend, and returns the code of the result."""


def _element(how: Product, parts: dict[str, Rows], rows: Rows, columns: Rows) -> Element:
    dtype, atype, btype, _ = how.types
    if atype in _INTEGERS:
        return _of_integers(how, rows, columns)
    if atype == "f64":
        rounding = next((flag for flag in ("rz", "rm", "rp") if flag in how.flags), "rn")
        return lambda i, j, c: _of_double(rows[i], columns[j], c, rounding)
    way = select_lowering("mma", how.arch, atype, how.k)
    if way is Lowering.SCALAR:
        return _of_threads(how, rows, columns)
    left = [_values(row, atype, how) for row in rows]
    right = [_values(column, btype, how) for column in columns]
    if way is Lowering.UNPACKED:
        return _of_halves(how, left, right)
    scales = _scales(how, parts) if how.vector else None
    made = select_rule("mma", how.arch, atype, dtype, sparse=how.sparse)

    def element(i: int, j: int, c: int) -> int:
        start = _number(c, how.types[3])
        if scales is not None and how.vector > 1:
            pairs = list(zip(scales[0][i], scales[1][j], strict=True))
            return _encoded(_blocks(left[i], right[j], pairs, start, how), dtype)
        power = exact.binade(Fraction(scales[0][i][0] * scales[1][j][0])) if scales is not None else 0
        return _encoded(_chain(left[i], right[j], start, (atype, btype), made, power), dtype)

    return element


def _of_integers(how: Product, rows: Rows, columns: Rows) -> Element:
    _, atype, btype, _ = how.types
    if atype == "b1":
        both: Callable[[int, int], int] = (lambda a, b: a ^ b) if "xor" in how.flags else (lambda a, b: a & b)
        return lambda i, j, c: (sum(map(both, rows[i], columns[j])) + c) & 0xFFFFFFFF
    left = [[read(v, atype) for v in row] for row in rows]
    right = [[read(v, btype) for v in column] for column in columns]

    def element(i: int, j: int, c: int) -> int:
        total = sum(a * b for a, b in zip(left[i], right[j], strict=True)) + read(c, "s32")
        return (clamped(total, "s32") if "satfinite" in how.flags else total) & 0xFFFFFFFF

    return element


def _of_halves(how: Product, left: list[list[float]], right: list[list[float]]) -> Element:
    """Return products of f16: of the lower halves of registers, then of the upper ones, then the addend."""
    dtype, span = how.types[0], 8 if how.sparse else 4
    made = select_rule("mma", how.arch, "f16", dtype, sparse=how.sparse)
    halves = [[k for k in range(how.k) if (k % span >= span // 2) is upper] for upper in (False, True)]

    def element(i: int, j: int, c: int) -> int:
        total = 0.0
        for half in halves:
            row, column = [left[i][k] for k in half], [right[j][k] for k in half]
            total = _chain(row, column, total, ("f16", "f16"), made, 0)
        return f.code(f.add(f.decode(_encoded(total, dtype), dtype), f.decode(c, dtype), "rn"), dtype, "rn")

    return element


def _of_threads(how: Product, rows: Rows, columns: Rows) -> Element:
    """Return four products added in f32: in a chain from zero, or in pairs where the result is f16."""
    dtype, ctype = how.types[0], how.types[3]
    first, groups = (0x80000000, ((0, 1), (2, 3))) if dtype == "f16" else (0, ((0, 1, 2, 3),))

    def single(number: f.Number) -> f.Number:
        return f.decode(f.code(number, "f32", "rn"), "f32")

    def element(i: int, j: int, c: int) -> int:
        total = f.decode(c, ctype)
        for group in groups:
            made = f.decode(first, "f32")
            for k in group:
                term = f.multiply(f.decode(rows[i][k], "f16"), f.decode(columns[j][k], "f16"))
                made = single(f.add(term, made, "rn"))
            total = single(f.add(total, made, "rn"))
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


def _values(codes: list[int], name: str, how: Product) -> list[float]:
    """Return the numbers of codes; in a byte, the four bits of e2m1 are the middle ones."""
    shift = 2 if name == "e2m1" and fragments.element_bits(from_name(name), how.kind) == 8 else 0
    mask = (1 << 32) - 1 if name == "tf32" else (2 << exact.SIGN[name]) - 1
    return [_number(code >> shift & mask, name) for code in codes]


def _scales(how: Product, parts: dict[str, Rows]) -> tuple[list[list[float]], list[list[float]]]:
    made: list[list[list[float]]] = []
    for side, count, place in (("a", how.m, fragments.mma_scale_a), ("b", how.n, fragments.mma_scale_b)):
        words = parts[f"scale_{side}"]
        made.append([])
        for row in range(count):
            found = [place(row, block, vector=how.vector) for block in range(how.vector)]
            made[-1].append([_scale(words[p.lane][0] >> 8 * p.byte & 0xFF, how.scale) for p in found])
    return made[0], made[1]


def _scale(code: int, name: str) -> float:
    return ldexp(1.0, code - 127) if name == "ue8m0" else _number(code & 0x7F, "e4m3")


def _chain(a: list[float], b: list[float], c: float, names: tuple[str, str], how: Rule, power: int) -> float:
    """Return what slow_dot.chain does, one step after the other."""
    for start in range(0, len(a), how.step):
        x, y = a[start : start + how.step], b[start : start + how.step]
        c = _step(x, y, c, names, how, power)
    return c


def _step(a: list[float], b: list[float], c: float, names: tuple[str, str], how: Rule, power: int) -> float:
    products = [x * y for x, y in zip(a, b, strict=True)]
    if not isfinite(sum(products) + c):
        found = slow_dot.special_sum([*products, c])
        if found is not None:
            return found
    places = [_place(x, names[0]) + _place(y, names[1]) + power for x, y in zip(a, b, strict=True)]
    unit = max(*places, _place(c, "f16" if how.output == "f16" else "f32")) - how.fraction
    total = sum(int(ldexp(p, power - unit)) for p in products) + int(ldexp(c, -unit))
    return _finished(total, unit, how.output)


def _blocks(a: list[float], b: list[float], pairs: list[tuple[float, float]], c: float, how: Product) -> float:
    """Return what slow_dot.block does: exact runs, cut by the exponents of their scales."""
    size, least = len(a) // len(pairs), -6 if how.scale == "ue4m3" else -127
    if not isfinite(c):
        return c
    runs = [sum(x * y for x, y in zip(a[s : s + BLOCK_RUN], b[s : s + BLOCK_RUN], strict=True))
            for s in range(0, len(a), BLOCK_RUN)]  # fmt: skip
    scales = [pairs[start // size] for start in range(0, len(a), BLOCK_RUN)]
    places = [sum(_scale_place(scale, least) for scale in pair) for pair in scales]
    unit = max(*places, _place(c, "f32")) - BLOCK_FRACTION
    total = int(ldexp(c, -unit))
    total += sum(int(ldexp(run * pair[0] * pair[1], -unit)) for run, pair in zip(runs, scales, strict=True))
    return _finished(total, unit, "f32")


@cache
def _scale_place(scale: float, least: int) -> int:
    return max(exact.binade(Fraction(scale)), least) if scale else slow_dot.NO_VALUE


@cache
def _place(x: float, name: str) -> int:
    return slow_dot.exponent(x, name) if isfinite(x) else 0


def _finished(total: int, unit: int, output: str) -> float:
    """Return a sum of so many units as a step leaves it: cut, or of f16 rounded to nearest."""
    if not total:
        return 0.0
    if output == "f16":
        return slow_dot.finish(Fraction(total) * Fraction(2) ** unit, output)
    size, digits = abs(total), 13 if output == "f32_13" else 23
    lowest = max(size.bit_length() - 1 + unit, -126) - digits
    if lowest > unit:
        size, unit = size >> lowest - unit, lowest
    made = inf if size.bit_length() + unit > 128 else ldexp(size, unit)
    return made if total > 0 else -made


def _encoded(value: float, name: str) -> int:
    if value != value:
        return f.NAN_CODES[name]
    if name == "f16":
        number = f.Number(value < 0, Fraction(abs(value)) if isfinite(value) else inf)
        return f.code(number, name)
    return int.from_bytes(struct.pack("<f", value), "little")
