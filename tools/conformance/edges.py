"""Operands whose exact results are near what rounding and flushing decide: ties, the smallest and the largest numbers.

Random operands seldom have such results. They take the place of every fourth tuple of products, quotients, sums and
conversions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from pyptx.numbers import FORMATS, Format, decode_number, is_float, split_packed
from pyptx.types import from_name
from tools.conformance.forms import Array, Case

Point = Callable[[np.random.Generator, int], Array]
"""Draws float64 values."""
_FLOATS = {"f16": ("u2", "f2"), "f32": ("u4", "f4"), "f64": ("u8", "f8")}
_OPCODES = ("mul", "fma", "mad", "div", "add", "sub")
_SALT = 7
"""Makes draws that are independent of the other operands."""


def place_edges(case: Case, columns: list[Array], seed: int) -> None:
    """Replace a quarter of the operands."""
    draw = _choose(case)
    if draw is None:
        return
    rng = np.random.default_rng((seed, _SALT))
    lanes = [split_packed(column.type or "")[0] for column in case.inputs]
    where = slice(3, None, 4)
    width = FORMATS[lanes[0]].width
    for start in range(0, from_name(case.inputs[0].kind).bits, width):
        mask = np.uint64(((1 << width) - 1) << start)
        for column, codes in zip(columns, draw(rng, len(columns[0][where])), strict=False):
            column[where] = column[where] & ~mask | codes << np.uint64(start)


def _choose(case: Case) -> Callable[[np.random.Generator, int], list[Array]] | None:
    """Return the function that draws the operands of one lane, which may be fewer than the case has."""
    lanes = [split_packed(column.type or "")[0] for column in case.inputs]
    if case.opcode == "cvt":
        name = next(m for m in case.modifiers if split_packed(m)[0] in FORMATS)
        count = sum(lane == lanes[0] for lane in lanes)
        point = _choose_point(lanes[0], split_packed(name)[0], case.modifiers)
        return partial(_draw_conversion, point, lanes[0], count) if point else None
    if case.opcode not in _OPCODES or len(set(lanes)) != 1 or lanes[0] not in ("bf16", *_FLOATS):
        return None
    return partial(_draw_arithmetic, case.opcode, lanes[0])


def _draw_conversion(point: Point, name: str, operands: int, rng: np.random.Generator, count: int) -> list[Array]:
    return [_perturb(point(rng, count), name, rng) for _ in range(operands)]


def _draw_arithmetic(opcode: str, name: str, rng: np.random.Generator, count: int) -> list[Array]:
    form = FORMATS[name]
    with np.errstate(all="ignore"):
        a = _draw_normal(form, rng, count)
        if opcode in ("add", "sub"):
            # Near half a unit in the last place of the other operand, or a few units from its negative.
            _, exponent = np.frexp(a)
            half = np.ldexp(rng.choice([-1.0, 1.0], count), exponent - form.mantissa - 2)
            return [_encode(a, name), _perturb(np.where(rng.integers(0, 4, count) > 0, half, -a), name, rng)]
        edge = rng.choice([_decode_one(form, code) for code in (1, 1 << form.mantissa, form.largest)], count)
        edge *= rng.choice([-1.0, 1.0], count)
        if opcode == "div":
            return [_perturb(a * edge, name, rng), _encode(a, name)]
        # Products near an edge, or of random size with an addend that cancels them.
        cancels = rng.integers(0, 3, count) == 0
        b = _perturb(np.where(cancels, _draw_normal(form, rng, count), edge / a), name, rng)
        product = a * _decode(b, name)
        addend = np.where(cancels, -product, rng.choice([0.0, -0.0, _decode_one(form, 1)], count))
        return [_encode(a, name), b, np.where(cancels, _perturb(addend, name, rng), _encode(addend, name))]


def _draw_normal(form: Format, rng: np.random.Generator, count: int) -> Array:
    """Return normal numbers of the format whose exponents are in the middle half."""
    fraction = 1 + rng.integers(0, 1 << form.mantissa, count) / 2.0**form.mantissa
    return np.ldexp(fraction, rng.integers(-(form.bias // 2), form.bias // 2, count))


def _choose_point(source: str, target: str, modifiers: tuple[str, ...]) -> Point | None:
    """Return the function that draws numbers near which a conversion's result changes."""
    if source not in ("bf16", *_FLOATS):
        return None
    if not is_float(target) or any(m in modifiers for m in ("rni", "rzi", "rmi", "rpi")):
        most = min(FORMATS[source].mantissa, 62)
        return partial(_draw_halves, most)
    form = FORMATS[target]
    if form.bits >= FORMATS[source].bits:
        return None
    return partial(_draw_between, form)


def _draw_halves(most: int, rng: np.random.Generator, count: int) -> Array:
    """Return integers and a half, of up to `most` bits."""
    whole = np.floor(np.exp2(rng.uniform(0, most, count))) + rng.choice([0.0, 0.5], count)
    return whole * rng.choice([-1.0, 1.0], count)


def _draw_between(form: Format, rng: np.random.Generator, count: int) -> Array:
    """Return numbers of a format, and numbers halfway between two of them and beyond the largest."""
    codes = np.where(rng.integers(0, 4, count) == 0, form.largest, rng.integers(0, form.largest, count))
    lower = np.array([_decode_one(form, int(code)) for code in codes])
    below = np.array([_decode_one(form, max(int(code) - 1, 0)) for code in codes])
    upper = np.where(codes == form.largest, 2 * lower - below, [_decode_one(form, int(code) + 1) for code in codes])
    return np.where(rng.integers(0, 3, count) == 0, lower, (lower + upper) / 2) * rng.choice([-1.0, 1.0], count)


def _decode_one(form: Format, code: int) -> float:
    return decode_number(code, form)


def _perturb(values: Array, name: str, rng: np.random.Generator) -> Array:
    """Return codes of values, some of them one unit off."""
    form = FORMATS[name]
    codes = _encode(values, name).astype(np.int64) + rng.integers(-1, 2, len(values))
    return codes.astype(np.uint64) & np.uint64((1 << form.width) - 1)


def _encode(values: Array, name: str) -> Array:
    """Return the codes of float64 values in a format, rounded."""
    with np.errstate(all="ignore"):
        if name == "bf16":
            return (values.astype("f4").view("u4") >> 16).astype(np.uint64)
        bits, dtype = _FLOATS[name]
        return values.astype(dtype).view(bits).astype(np.uint64)


def _decode(codes: Array, name: str) -> Array:
    if name == "bf16":
        return (codes << np.uint64(16)).astype("u4").view("f4").astype("f8")
    bits, dtype = _FLOATS[name]
    return codes.astype(bits).view(dtype).astype("f8")
