"""Compares the sums of every matrix instruction and type, as each target computes them, with slow references.

Used by `tools.sim_numerics`. A case is one element of a product: two steps of K, factors with all codes, and an addend.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyptx.numbers import FORMATS
from pyptx.sim.numerics.formats import code_dtype, decode, value_table
from pyptx.sim.numerics.plain_dots import binary_dot, double_dot, integer_dot
from pyptx.sim.numerics.products import multiply_matrices, multiply_scaled_matrices
from pyptx.sim.numerics.sparse import expand
from pyptx.sim.numerics.tensor_core import Lowering, select_lowering, select_rule
from tests.sim.numerics import slow_dot

Array = NDArray[Any]
Row = tuple[str, int, int]
HALVES, BYTES = ("f16", "bf16"), ("e4m3", "e5m2")
SMALL = (*BYTES, "e2m3", "e3m2", "e2m1")
TARGETS: dict[str, dict[int, tuple[str, ...]]] = {
    "mma": {70: ("f16",), 75: ("f16",), 80: (*HALVES, "tf32"), 89: (*HALVES, "tf32", *BYTES),
            90: (*HALVES, "tf32", *BYTES), 100: BYTES, 110: BYTES, 120: (*HALVES, "tf32", *SMALL)},
    "wgmma": {90: (*HALVES, "tf32", *BYTES)},
    "tcgen05": {100: (*HALVES, "tf32", *SMALL)},
}  # fmt: skip
SPARSE = (("mma", 80, "f16"), ("mma", 89, "e4m3"), ("mma", 90, "e4m3"), ("wgmma", 90, "bf16"), ("tcgen05", 100, "e5m2"))
SCALED = (("e4m3", "ue8m0", 1), ("e3m2", "ue8m0", 1), ("e2m1", "ue8m0", 2), ("e2m1", "ue4m3", 4))


def products(cases: int) -> Iterator[Row]:
    """Yield every form with its number of cases and how many differ."""
    side = int(cases**0.5) + 1
    for instruction, targets in TARGETS.items():
        for sm, names in targets.items():
            for name in names:
                yield _sums(side, instruction, sm, name, "f32")
                if name not in ("bf16", "tf32"):
                    yield _sums(side, instruction, sm, name, "f16")
    for instruction, sm, name in SPARSE:
        yield _sparse(side, instruction, sm, name)
    for name, scale, blocks in SCALED:
        yield _check_block_scales(side, name, scale, blocks)
    yield from _plain(side)


def codes(random: np.random.Generator, name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Return numbers with every finite code of a format."""
    form = FORMATS[name]
    magnitudes = random.integers(0, form.largest + 1, shape) | random.integers(0, 2, shape) * form.sign
    if name == "tf32":
        return (magnitudes.astype(np.uint32) << 13).view(np.float32)
    return decode(magnitudes.astype(code_dtype(form)), name).astype(np.float32)


def addend(random: np.random.Generator, side: int, output: str) -> NDArray[np.float32]:
    least = -24 if output == "f16" else -12
    c = (random.standard_normal((side, side)) * 2.0 ** random.integers(least, 12, (side, side))).astype(np.float32)
    return c.astype(np.float16).astype(np.float32) if output == "f16" else c


def _wrong(got: Array, expectation: list[list[float]]) -> int:
    values = np.array(expectation, np.float64)
    return int(np.count_nonzero((got != values) & ~(np.isnan(got) & np.isnan(values))))


def _sums(side: int, instruction: str, sm: int, name: str, output: str) -> Row:
    random, rule = np.random.default_rng(sm), select_rule(instruction, sm, name, output)
    depth = 2 * rule.step
    a, b, c = codes(random, name, (side, depth)), codes(random, name, (depth, side)), addend(random, side, output)
    got = multiply_matrices(a, b, c, (output, name, name), instruction=instruction, sm=sm)
    expectation = _compute_sums(a, b, c, (instruction, sm, name, output), sparse=False)
    return f"{instruction} sm_{sm} {output}.{name}", side * side, _wrong(got, expectation)


def _compute_sums(a: Array, b: Array, c: Array, form: tuple[str, int, str, str], *, sparse: bool) -> list[list[float]]:
    """Return every element, computed with fractions."""
    instruction, sm, name, output = form
    is_unpacked = select_lowering(instruction, sm, name, a.shape[-1]) is Lowering.UNPACKED
    rule = select_rule(instruction, sm, "f16" if is_unpacked else name, output, sparse=sparse)
    rows: list[list[float]] = []
    for i, row in enumerate(a.tolist()):
        rows.append([])
        for j, column in enumerate(b.T.tolist()):
            start = float(c[i, j])
            if is_unpacked:
                span = 8 if sparse else 4
                total = slow_dot.chain_unpacked(row, column, start, span, rule.fraction, rule.step, rule.output)
            else:
                total = slow_dot.chain(row, column, start, (name, name), rule.fraction, rule.step, rule.output)
            rows[-1].append(total)
    return rows


def _sparse(side: int, instruction: str, sm: int, name: str) -> Row:
    """A sparse A: one step spans twice the K."""
    random, rule = np.random.default_rng(sm + 1), select_rule(instruction, sm, name, "f32", sparse=True)
    depth = rule.step
    meta = random.choice((0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110), (side, depth // 4)).astype(np.uint8)
    a = expand(codes(random, name, (side, depth // 2)), meta, "2:4")
    b, c = codes(random, name, (depth, side)), addend(random, side, "f32")
    got = multiply_matrices(a, b, c, ("f32", name, name), instruction=instruction, sm=sm, sparse=True)
    expectation = _compute_sums(a, b, c, (instruction, sm, name, "f32"), sparse=True)
    return f"{instruction}.sp sm_{sm} f32.{name}", side * side, _wrong(got, expectation)


def _check_block_scales(side: int, name: str, scale: str, blocks: int) -> Row:
    random, depth = np.random.default_rng(blocks), 32 if blocks == 1 else 64
    a, b, c = codes(random, name, (side, depth)), codes(random, name, (depth, side)), addend(random, side, "f32")
    low, high = (0, 0x7F) if scale == "ue4m3" else (118, 138)
    raw_a, raw_b = random.integers(low, high, (side, blocks)), random.integers(low, high, (blocks, side))
    for_a, for_b = (value_table(scale)[raw.astype(np.uint8)].astype(np.float64) for raw in (raw_a, raw_b))
    got = multiply_scaled_matrices(a, b, (for_a, for_b), c, (name, name), instruction="tcgen05", sm=100)
    least = -6 if scale == "ue4m3" else -127
    expectation: list[list[float]] = []
    for i, row in enumerate(a.tolist()):
        expectation.append([])
        for j, column in enumerate(b.T.tolist()):
            if blocks == 1:
                power = int(raw_a[i, 0]) + int(raw_b[0, j]) - 254
                element = slow_dot.chain(row, column, float(c[i, j]), (name, name), 25, 32, "f32", [power])
            else:
                element = slow_dot.block(row, column, for_a[i].tolist(), for_b[:, j].tolist(), float(c[i, j]), least)
            expectation[-1].append(element)
    return f"block-scaled {name} x {scale} of {blocks}", side * side, _wrong(got, expectation)


def _plain(side: int) -> Iterator[Row]:
    """Yield integers, single bits and double precision."""
    random, depth = np.random.default_rng(3), 64
    for name in ("s8", "u8"):
        dtype = np.int8 if name == "s8" else np.uint8
        a, b = (random.integers(0, 256, shape).astype(np.uint8).view(dtype) for shape in ((side, depth), (depth, side)))
        c = random.integers(-(1 << 31), 1 << 31, (side, side)).astype(np.int32)
        whole = a.astype(object) @ b.astype(object) + c.astype(object)
        modular = ((whole + (1 << 31)) % (1 << 32) - (1 << 31)).astype(np.int64)
        clipped = np.clip(whole, -(1 << 31), (1 << 31) - 1).astype(np.int64)
        yield f"s32.{name}", side * side, int(np.count_nonzero(integer_dot(a, b, c) != modular))
        yield (
            f"satfinite s32.{name}",
            side * side,
            int(np.count_nonzero(integer_dot(a, b, c, satfinite=True) != clipped)),
        )
    x, y = random.integers(0, 2, (side, 256)), random.integers(0, 2, (256, side))
    zero = np.zeros((side, side), np.int32)
    for operation, terms in (("and", x[:, :, None] & y[None]), ("xor", x[:, :, None] ^ y[None])):
        got = binary_dot(x.astype(np.uint8), y.astype(np.uint8), zero, operation)
        yield f"{operation}.popc s32.b1", side * side, int(np.count_nonzero(got != terms.sum(1)))
    yield _double(side, random)


def _double(side: int, random: np.random.Generator) -> Row:
    a, b, c = (random.standard_normal(shape) * 2.0 ** random.integers(-40, 40, shape)
               for shape in ((side, 4), (4, side), (side, side)))  # fmt: skip
    got = double_dot(a, b, c).view(np.uint64).tolist()
    wrong = 0
    for i in range(side):
        for j in range(side):
            total = float(c[i, j])
            for k in range(4):
                whole = Fraction(float(a[i, k])) * Fraction(float(b[k, j])) + Fraction(total)
                total = whole.numerator / whole.denominator
            wrong += got[i][j] != int(np.float64(total).view(np.uint64))
    return "f64 chain of fma", side * side, wrong
