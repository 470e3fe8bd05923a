"""Dot products as tensor cores make them, bit for bit (`precision="hardware"`).

Each product is cut toward zero some bits below the largest exponent among the addend's and the products', the latter
being sums of the factors' exponents; the cut terms are summed exactly. Most terms lose nothing, so the sum of all is
one float64 matmul, and only results with a term that loses bits are summed term by term.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyptx.numbers import FORMATS
from pyptx.sim.numerics.arrays import F32, F64, I16, U32, Array, Mask, quiet
from pyptx.sim.numerics.fast_dot import multiplied
from pyptx.sim.numerics.maxplus import Summands, greatest_sum, prepare
from pyptx.sim.numerics.rounding import canonical
from pyptx.sim.numerics.tensor_core import Rule
from pyptx.sim.numerics.workspace import scratch

_SINGLE, _DOUBLE = FORMATS["f32"], FORMATS["f64"]
_BIAS, _DIGITS, _FIELD = _SINGLE.bias, _SINGLE.mantissa, _SINGLE.exponent_mask >> _SINGLE.mantissa
ZERO_EXPONENT = _SINGLE.least_exponent
"""A zero counts as the smallest normal f32, whatever its format."""
NOTHING = 8000
"""Position of the lowest bit of zero: above every other."""
_DENSE = 0.25
"""From this share of results that lose bits on, all of them are summed term by term."""


@dataclass(frozen=True, slots=True)
class Operand:
    """A matrix of factors with the exponent and the lowest bit's position of each element."""

    values: F64
    exponents: I16
    lows: I16
    finite: bool

    def part(self, start: int, stop: int, axis: int) -> Operand:
        """Return some of the factors along K."""
        cut = (..., slice(start, stop)) if axis == -1 else (..., slice(start, stop), slice(None))
        return Operand(self.values[cut], self.exponents[cut], self.lows[cut], self.finite)


def operand(values: F32 | F64, name: str, scale: I16 | None = None) -> Operand:
    """Prepare decoded factors of a format; `scale` holds exponents of powers of two to multiply with."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    field = ((bits >> np.uint32(_DIGITS)) & np.uint32(_FIELD)).astype(np.int16)
    hidden = np.uint32(1 << _DIGITS)
    fraction = (bits & (hidden - np.uint32(1))) | np.where(field > 0, hidden, np.uint32(0))
    base = np.maximum(field, 1)
    zero = fraction == 0
    exponents = np.maximum(base - np.int16(_BIAS), np.int16(max(FORMATS[name].least_exponent, ZERO_EXPONENT)))
    exponents = np.where(zero, np.int16(ZERO_EXPONENT), exponents)
    lowest = (fraction & (~fraction + np.uint32(1))).astype(np.float32).view(np.uint32) >> np.uint32(_DIGITS)
    lows = np.where(zero, np.int16(NOTHING), lowest.astype(np.int16) + base - np.int16(2 * _BIAS + _DIGITS))
    finite = bool((field < _FIELD).all())
    wide = values.astype(np.float64)
    if scale is not None:
        with quiet():
            wide = np.ldexp(wide, scale)
        exponents, lows = exponents + scale, np.where(zero, np.int16(NOTHING), lows + scale)
    return Operand(wide, exponents, lows, finite)


@dataclass(frozen=True, slots=True)
class _Sums:
    """What finding the largest exponents and the lowest bits of products takes, for all of K."""

    exponents: tuple[Summands, Summands]
    lows: tuple[Summands, Summands]
    narrow: bool
    """Whether every factor is an f32."""

    def part(self, start: int, stop: int) -> _Sums:
        (x, y), (u, v) = self.exponents, self.lows
        return _Sums(
            (x.part(start, stop, -1), y.part(start, stop, -2)),
            (u.part(start, stop, -1), v.part(start, stop, -2)),
            self.narrow,
        )


def dot(a: Operand, b: Operand, c: F32, rule: Rule) -> F32:
    """Return a @ b + c over the last two axes, every step of K summed and rounded as the rule says.

    A has the shape (..., M, K), B (..., K, N), C (..., M, N); an f16 accumulator comes and goes as values of f16.
    """
    depth = a.values.shape[-1]
    left, right = _zero_nonfinite(a), _zero_nonfinite(b)
    exponents = prepare(left.exponents, right.exponents, rule.step)
    # Sums grow past the largest product by a few bits; bits above that threshold are never lost.
    enough = rule.fraction - exponents[0].high - exponents[1].high - 8
    lows = prepare(-left.lows, -right.lows, rule.step, enough)
    narrow = all(x.high < 128 for x in exponents) and all(x.high < 150 for x in lows)
    sums = _Sums(exponents, lows, narrow)
    for start in range(0, depth, rule.step):
        stop = min(start + rule.step, depth)
        c = _step(a.part(start, stop, -1), b.part(start, stop, -2), c, rule, sums.part(start, stop))
    return c.copy()


def _step(a: Operand, b: Operand, c: F32, rule: Rule, sums: _Sums) -> F32:
    with quiet():
        fields = exponent_fields(c)
        finite = a.finite and b.finite and int(fields.max(initial=0)) < _FIELD
        special = None
        if not finite:
            special = np.matmul(a.values, b.values) + c
            a, b, c = _zero_nonfinite(a), _zero_nonfinite(b), np.where(np.isfinite(c), c, np.float32(0))
            fields = exponent_fields(c)
        result = _sum_finite(a, b, c, addend_exponents(c, fields, rule.output), rule, sums)
        if special is None:
            return result
        return canonical(np.where(np.isfinite(special), result, special.astype(np.float32)))


def _zero_nonfinite(x: Operand) -> Operand:
    if x.finite:
        return x
    good = np.isfinite(x.values)
    return Operand(
        np.where(good, x.values, 0.0),
        np.where(good, x.exponents, np.int16(ZERO_EXPONENT)),
        np.where(good, x.lows, np.int16(NOTHING)),
        True,
    )


def exponent_fields(c: F32) -> I16:
    """Return the exponent fields."""
    upper = np.right_shift(c.view(np.int32), np.int32(_DIGITS), out=scratch("upper", c.shape, np.int32))
    fields: I16 = scratch("fields", c.shape, np.int16)
    np.copyto(fields, upper, casting="unsafe")
    return np.bitwise_and(fields, np.int16(_FIELD), out=fields)


def addend_exponents(c: F32, fields: I16, output: str) -> I16:
    """Turn exponent fields into exponents, in place; zeros have that of the smallest normal f32."""
    # Clipping runs several times faster than a maximum with one number.
    np.clip(fields, np.int16(1), np.int16(_FIELD), out=fields)
    fields -= np.int16(_BIAS)
    if output == "f16":
        least = np.int16(FORMATS["f16"].least_exponent)
        np.copyto(fields, least, where=(fields < least) & (c != 0))
    return fields


def _sum_finite(a: Operand, b: Operand, c: F32, of_c: I16, rule: Rule, sums: _Sums) -> F32:
    top = greatest_sum(*sums.exponents, rule.step, "top")
    top = np.maximum(top, of_c, out=top)
    lowest, highest = int(top.min(initial=0)) - rule.fraction, int(top.max(initial=0))
    threshold = np.subtract(top, np.int16(rule.fraction), out=top)
    lossy = _may_lose(sums, threshold, rule.step)
    if rule.output == "f16":
        of_c = addend_exponents(c, exponent_fields(c), "f32")
    cut = _cut_addend(c, of_c, threshold)
    count = int(np.count_nonzero(lossy))
    narrow = sums.narrow and lowest > -100 and highest < 100
    if count > _DENSE * lossy.size:
        total = (_sum_all_f32 if narrow and rule.fraction + rule.step.bit_length() <= 30 else _sum_all)(a, b, threshold)
        total += cut
    else:
        total = multiplied(a.values, b.values, scratch("total", c.shape, np.float64))
        total += cut
        if count:
            _sum_again(total, np.flatnonzero(lossy), a, b, cut, threshold, narrow)
    # Sums of all steps share one array: C has been read when its successor is written.
    result: F32 = scratch("sum", c.shape, np.float32)
    np.copyto(result, rounded(total, lowest, rule.output), casting="same_kind")
    return result


def _may_lose(sums: _Sums, threshold: I16, terms: int) -> Mask:
    """Tell which results may have a product with bits below the threshold."""
    low = greatest_sum(*sums.lows, terms, "low", loose=True)
    low += threshold
    return np.greater(low, np.int16(0), out=scratch("lossy", low.shape, np.bool_))


def _cut_addend(c: F32, of_c: I16, threshold: I16) -> F64:
    """Drop the bits of C below the threshold, toward zero. Uses up `of_c`, the exponents that C has as f32."""
    drop = np.subtract(threshold, of_c, out=of_c)
    drop += np.int16(_DIGITS)
    np.clip(drop, np.int16(0), np.int16(31), out=drop)
    if int(drop.max(initial=0)) > _DIGITS:
        np.putmask(drop, drop > _DIGITS, np.int16(31))
    shift: U32 = scratch("upper", c.shape, np.uint32)
    np.copyto(shift, drop, casting="unsafe")
    kept = np.left_shift(np.uint32(0xFFFFFFFF), shift, out=shift)
    kept &= c.view(np.uint32)
    cut: F64 = scratch("cut", c.shape, np.float64)
    np.copyto(cut, kept.view(np.float32))
    return cut


def _powers(exponents: I16) -> F64:
    """Return powers of two."""
    return ((exponents.astype(np.int64) + _DOUBLE.bias) << _DOUBLE.mantissa).view(np.float64)


def _sum_all(a: Operand, b: Operand, threshold: I16) -> F64:
    """Sum the cut products of every result."""
    unit = _powers(-threshold)
    total: F64 = scratch("total", threshold.shape, np.float64)
    total[...] = 0.0
    term: F64 = scratch("term", threshold.shape, np.float64)
    for k in range(a.values.shape[-1]):
        np.multiply(a.values[..., :, k, None], b.values[..., None, k, :], out=term)
        term *= unit
        np.trunc(term, out=term)
        total += term
    total *= _powers(threshold)
    return total


def _sum_all_f32(a: Operand, b: Operand, threshold: I16) -> F64:
    """Sum the cut products of every result where all lie well within f32, which holds each product exactly."""
    unit = _powers(-threshold).astype(np.float32)
    left, right = a.values.astype(np.float32), b.values.astype(np.float32)
    term: F32 = scratch("term", threshold.shape, np.float32)
    whole: Array = scratch("whole", threshold.shape, np.int32)
    count: Array = scratch("count", threshold.shape, np.int32)
    count[...] = 0
    for k in range(left.shape[-1]):
        np.multiply(left[..., :, k, None], right[..., None, k, :], out=term)
        term *= unit
        np.copyto(whole, term, casting="unsafe")
        count += whole
    total: F64 = scratch("total", threshold.shape, np.float64)
    np.copyto(total, count)
    total *= _powers(threshold)
    return total


_TERMS = 1 << 15
"""Terms that are summed again at once: so few that BLAS does not share them among threads."""


def _sum_again(total: F64, places: Array, a: Operand, b: Operand, cut: F64, threshold: I16, narrow: bool) -> None:
    """Sum the cut products of some results, in place; in f32 where they lie well within its range."""
    kind = np.float32 if narrow else np.float64
    depth, columns, rows = a.values.shape[-1], b.values.shape[-1], a.values.shape[-2]
    left = np.broadcast_to(a.values.astype(kind), (*total.shape[:-1], depth)).reshape(-1, depth)
    right = np.broadcast_to(np.swapaxes(b.values.astype(kind), -1, -2), (*total.shape[:-2], columns, depth))
    right = right.reshape(-1, depth)
    row = places // columns
    # Within one matrix; in a batch each has columns of its own.
    column = places - row * columns if total.ndim == 2 else places % columns + row // rows * columns
    at = threshold.reshape(-1).take(places)
    left, row, unit = _scale_rows(left, row, at, kind)
    ones = np.ones(depth)
    sums = np.empty(places.size)
    rows_at_once = max(1, _TERMS // depth)
    for start in range(0, places.size, rows_at_once):
        subset = slice(start, min(start + rows_at_once, places.size))
        shape = (subset.stop - start, depth)
        terms = left.take(row[subset], axis=0, out=scratch("left", shape, kind), mode="clip")
        terms *= right.take(column[subset], axis=0, out=scratch("right", shape, kind), mode="clip")
        if unit is not None:
            terms *= unit[subset, None]
        np.trunc(terms, out=terms)
        np.matmul(terms, ones, out=sums[subset])
    sums *= _powers(at)
    sums += cut.reshape(-1).take(places)
    total.reshape(-1)[places] = sums


def _scale_rows(left: Array, row: Array, at: I16, kind: type[np.generic]) -> tuple[Array, Array, Array | None]:
    """Scale the rows for every threshold if these are few: cheaper than scaling all terms, row by row."""
    low, high = int(at.min()), int(at.max())
    if (high - low + 1) * len(left) > len(row):
        return left, row, _powers(-at).astype(kind)
    powers = _powers(np.arange(-low, -high - 1, -1, dtype=np.int16)).astype(kind)
    table = (powers[:, None] * left.reshape(1, -1)).reshape(-1, left.shape[-1])
    return table, row + (at.astype(np.intp) - low) * len(left), None


_KEPT_DIGITS = {"f32": _DIGITS, "f32_13": 13}
_KEPT = {name: np.uint64(-1 << _DOUBLE.mantissa - digits & (1 << 64) - 1) for name, digits in _KEPT_DIGITS.items()}


def rounded(total: F64, lowest: int, output: str) -> F64:
    """Round exact sums, of which none has a bit below 2**lowest, to what f32 holds; changes `total`."""
    if output == "f16":
        return total.astype(np.float16).astype(np.float64)
    if lowest < ZERO_EXPONENT and bool((small := np.abs(total) < 2.0**ZERO_EXPONENT).any()):
        unit = 2.0 ** (ZERO_EXPONENT - _KEPT_DIGITS[output])
        total[small] = np.trunc(total[small] / unit) * unit
    bits = total.view(np.uint64)
    bits &= _KEPT[output]
    return total
