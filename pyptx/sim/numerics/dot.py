"""Dot products as tensor cores compute them, bit for bit (`precision="hardware"`).

The largest exponent among the addend and the products sets a threshold; a product's exponent is the sum of its
factors' exponents. Terms are truncated at the threshold and summed exactly. Most terms lose no bits, so one float64
matmul sums them all, and only results with a term that loses bits are summed term by term.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyptx.numbers import FORMATS
from pyptx.sim.numerics.arrays import F32, F64, I16, U32, Array, Mask, quiet
from pyptx.sim.numerics.fast_dot import multiply
from pyptx.sim.numerics.maxplus import Summands, find_greatest_sum, prepare_summands
from pyptx.sim.numerics.rounding import canonicalize_nan
from pyptx.sim.numerics.tensor_core import Rule
from pyptx.sim.numerics.workspace import get_scratch

_SINGLE, _DOUBLE = FORMATS["f32"], FORMATS["f64"]
_BIAS, _DIGITS, _FIELD = _SINGLE.bias, _SINGLE.mantissa, _SINGLE.exponent_mask >> _SINGLE.mantissa
ZERO_EXPONENT = _SINGLE.least_exponent
"""The exponent of zero in every format: that of the smallest normal f32."""
NO_EXPONENT = np.int16(-400)
"""The exponent of a zero factor that does not count: with any other factor, below those of all products."""
ZERO_ADDEND = np.int16(-133)
"""The exponent of a zero addend where zero factors do not count (measured on an H200)."""
NOTHING = 8000
"""The position of the lowest bit of zero: above all others."""
_DENSE = 0.25
"""If more than this share of results loses bits, all of them are summed term by term."""


@dataclass(frozen=True, slots=True)
class Operand:
    """A matrix of factors with the exponent and the lowest bit's position of each element."""

    values: F64
    exponents: I16
    lows: I16
    finite: bool

    def take(self, start: int, stop: int, axis: int) -> Operand:
        """Return the factors at start … stop - 1 along K."""
        cut = (..., slice(start, stop)) if axis == -1 else (..., slice(start, stop), slice(None))
        return Operand(self.values[cut], self.exponents[cut], self.lows[cut], self.finite)


def prepare_operand(values: F32 | F64, name: str, scale: I16 | None = None) -> Operand:
    """Prepare decoded factors of a format, times 2**scale."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    field = ((bits >> np.uint32(_DIGITS)) & np.uint32(_FIELD)).astype(np.int16)
    implicit_bit = np.uint32(1 << _DIGITS)
    fraction = (bits & (implicit_bit - np.uint32(1))) | np.where(field > 0, implicit_bit, np.uint32(0))
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
    """The summands for finding the largest exponent and the lowest bit of products, for all of K."""

    exponents: tuple[Summands, Summands]
    lows: tuple[Summands, Summands]
    narrow: bool
    """Whether f32 holds the exponents of all factors and of their lowest bits."""

    def take(self, start: int, stop: int) -> _Sums:
        (x, y), (u, v) = self.exponents, self.lows
        return _Sums(
            (x.take(start, stop, -1), y.take(start, stop, -2)),
            (u.take(start, stop, -1), v.take(start, stop, -2)),
            self.narrow,
        )


def dot(a: Operand, b: Operand, c: F32, rule: Rule) -> F32:
    """Return a @ b + c over the last two axes; the rule sets how each step of K is summed and rounded.

    A has the shape (..., M, K), B (..., K, N), C (..., M, N). An f16 accumulator holds f16 values as f32.
    """
    depth = a.values.shape[-1]
    if not rule.counts_zeros:
        a, b = _ignore_zeros(a), _ignore_zeros(b)
    finite_a, finite_b = _zero_nonfinite(a), _zero_nonfinite(b)
    exponents = prepare_summands(finite_a.exponents, finite_b.exponents, rule.step)
    # A sum exceeds the largest product by a few bits at most; bits above this cutoff are never lost.
    cutoff = rule.fraction - exponents[0].high - exponents[1].high - 8
    lows = prepare_summands(-finite_a.lows, -finite_b.lows, rule.step, cutoff)
    narrow = all(x.high < 128 for x in exponents) and all(x.high < 150 for x in lows)
    sums = _Sums(exponents, lows, narrow)
    for start in range(0, depth, rule.step):
        stop = min(start + rule.step, depth)
        c = _add_step(a.take(start, stop, -1), b.take(start, stop, -2), c, rule, sums.take(start, stop))
    return c.copy()


def _add_step(a: Operand, b: Operand, c: F32, rule: Rule, sums: _Sums) -> F32:
    with quiet():
        fields = extract_exponent_fields(c)
        finite = a.finite and b.finite and int(fields.max(initial=0)) < _FIELD
        special = None
        if not finite:
            special = np.matmul(a.values, b.values) + c
            a, b, c = _zero_nonfinite(a), _zero_nonfinite(b), np.where(np.isfinite(c), c, np.float32(0))
            fields = extract_exponent_fields(c)
        exponents = compute_addend_exponents(c, fields, rule.output)
        if not rule.counts_zeros:
            np.copyto(exponents, ZERO_ADDEND, where=c == 0)
        result = _sum_finite(a, b, c, exponents, rule, sums)
        if special is None:
            return result
        return canonicalize_nan(np.where(np.isfinite(special), result, special.astype(np.float32)))


def _ignore_zeros(x: Operand) -> Operand:
    return Operand(x.values, np.where(x.values == 0, NO_EXPONENT, x.exponents), x.lows, x.finite)


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


def extract_exponent_fields(c: F32) -> I16:
    """Return the exponent fields of f32 values."""
    upper = np.right_shift(c.view(np.int32), np.int32(_DIGITS), out=get_scratch("upper", c.shape, np.int32))
    fields: I16 = get_scratch("fields", c.shape, np.int16)
    np.copyto(fields, upper, casting="unsafe")
    return np.bitwise_and(fields, np.int16(_FIELD), out=fields)


def compute_addend_exponents(c: F32, fields: I16, output: str) -> I16:
    """Turn exponent fields into exponents, in place; a zero has `ZERO_EXPONENT`."""
    # `clip` is several times faster than `maximum` with a scalar.
    np.clip(fields, np.int16(1), np.int16(_FIELD), out=fields)
    fields -= np.int16(_BIAS)
    if output == "f16":
        least = np.int16(FORMATS["f16"].least_exponent)
        np.copyto(fields, least, where=(fields < least) & (c != 0))
    return fields


def _sum_finite(a: Operand, b: Operand, c: F32, c_exponents: I16, rule: Rule, sums: _Sums) -> F32:
    top = find_greatest_sum(*sums.exponents, rule.step, "top")
    top = np.maximum(top, c_exponents, out=top)
    lowest, highest = int(top.min(initial=0)) - rule.fraction, int(top.max(initial=0))
    threshold = np.subtract(top, np.int16(rule.fraction), out=top)
    lossy = _may_lose(sums, threshold, rule.step)
    if rule.output == "f16":
        c_exponents = compute_addend_exponents(c, extract_exponent_fields(c), "f32")
    cut = _cut_addend(c, c_exponents, threshold)
    count = int(np.count_nonzero(lossy))
    narrow = sums.narrow and lowest > -100 and highest < 100
    if count > _DENSE * lossy.size:
        total = (_sum_all_f32 if narrow and rule.fraction + rule.step.bit_length() <= 30 else _sum_all)(a, b, threshold)
        total += cut
    else:
        total = multiply(a.values, b.values, get_scratch("total", c.shape, np.float64))
        total += cut
        if count:
            _recompute_sums(total, np.flatnonzero(lossy), a, b, cut, threshold, narrow)
    # All steps share one array: C is no longer needed when the next sum overwrites it.
    result: F32 = get_scratch("sum", c.shape, np.float32)
    np.copyto(result, round_sums(total, lowest, rule.output), casting="same_kind")
    return result


def _may_lose(sums: _Sums, threshold: I16, terms: int) -> Mask:
    """Return which results may have a product with bits below the threshold."""
    low = find_greatest_sum(*sums.lows, terms, "low", loose=True)
    low += threshold
    return np.greater(low, np.int16(0), out=get_scratch("lossy", low.shape, np.bool_))


def _cut_addend(c: F32, c_exponents: I16, threshold: I16) -> F64:
    """Truncate C at the threshold, toward zero. Overwrites `c_exponents`, the exponents of C as f32."""
    drop = np.subtract(threshold, c_exponents, out=c_exponents)
    drop += np.int16(_DIGITS)
    np.clip(drop, np.int16(0), np.int16(31), out=drop)
    if int(drop.max(initial=0)) > _DIGITS:
        np.putmask(drop, drop > _DIGITS, np.int16(31))
    shift: U32 = get_scratch("upper", c.shape, np.uint32)
    np.copyto(shift, drop, casting="unsafe")
    bits = np.left_shift(np.uint32(0xFFFFFFFF), shift, out=shift)
    bits &= c.view(np.uint32)
    cut: F64 = get_scratch("cut", c.shape, np.float64)
    np.copyto(cut, bits.view(np.float32))
    return cut


def _compute_powers(exponents: I16) -> F64:
    """Return 2**exponents."""
    return ((exponents.astype(np.int64) + _DOUBLE.bias) << _DOUBLE.mantissa).view(np.float64)


def _sum_all(a: Operand, b: Operand, threshold: I16) -> F64:
    """Sum the truncated products of every result."""
    unit = _compute_powers(-threshold)
    total: F64 = get_scratch("total", threshold.shape, np.float64)
    total[...] = 0.0
    term: F64 = get_scratch("term", threshold.shape, np.float64)
    for k in range(a.values.shape[-1]):
        np.multiply(a.values[..., :, k, None], b.values[..., None, k, :], out=term)
        term *= unit
        np.trunc(term, out=term)
        total += term
    total *= _compute_powers(threshold)
    return total


def _sum_all_f32(a: Operand, b: Operand, threshold: I16) -> F64:
    """Sum the truncated products of every result in f32, which holds each product exactly."""
    unit = _compute_powers(-threshold).astype(np.float32)
    a_values, b_values = a.values.astype(np.float32), b.values.astype(np.float32)
    term: F32 = get_scratch("term", threshold.shape, np.float32)
    integer_term: Array = get_scratch("whole", threshold.shape, np.int32)
    count: Array = get_scratch("count", threshold.shape, np.int32)
    count[...] = 0
    for k in range(a_values.shape[-1]):
        np.multiply(a_values[..., :, k, None], b_values[..., None, k, :], out=term)
        term *= unit
        np.copyto(integer_term, term, casting="unsafe")
        count += integer_term
    total: F64 = get_scratch("total", threshold.shape, np.float64)
    np.copyto(total, count)
    total *= _compute_powers(threshold)
    return total


_TERMS = 1 << 15
"""Terms that are recomputed at once: so few that BLAS uses one thread."""


def _recompute_sums(total: F64, places: Array, a: Operand, b: Operand, cut: F64, threshold: I16, narrow: bool) -> None:
    """Sum the truncated products of some results again, in place; `narrow` ones in f32."""
    kind = np.float32 if narrow else np.float64
    depth, columns, rows = a.values.shape[-1], b.values.shape[-1], a.values.shape[-2]
    a_rows = np.broadcast_to(a.values.astype(kind), (*total.shape[:-1], depth)).reshape(-1, depth)
    b_columns = np.broadcast_to(np.swapaxes(b.values.astype(kind), -1, -2), (*total.shape[:-2], columns, depth))
    b_columns = b_columns.reshape(-1, depth)
    row = places // columns
    # In a batch, each matrix has its own columns.
    column = places - row * columns if total.ndim == 2 else places % columns + row // rows * columns
    thresholds = threshold.reshape(-1).take(places)
    a_rows, row, unit = _scale_rows(a_rows, row, thresholds, kind)
    ones = np.ones(depth)
    sums = np.empty(places.size)
    rows_at_once = max(1, _TERMS // depth)
    for start in range(0, places.size, rows_at_once):
        subset = slice(start, min(start + rows_at_once, places.size))
        shape = (subset.stop - start, depth)
        terms = a_rows.take(row[subset], axis=0, out=get_scratch("left", shape, kind), mode="clip")
        terms *= b_columns.take(column[subset], axis=0, out=get_scratch("right", shape, kind), mode="clip")
        if unit is not None:
            terms *= unit[subset, None]
        np.trunc(terms, out=terms)
        np.matmul(terms, ones, out=sums[subset])
    sums *= _compute_powers(thresholds)
    sums += cut.reshape(-1).take(places)
    total.reshape(-1)[places] = sums


def _scale_rows(
    a_rows: Array, row: Array, thresholds: I16, kind: type[np.generic]
) -> tuple[Array, Array, Array | None]:
    """Scale the rows of A once per threshold if thresholds are few, which is cheaper than scaling every term."""
    low, high = int(thresholds.min()), int(thresholds.max())
    if (high - low + 1) * len(a_rows) > len(row):
        return a_rows, row, _compute_powers(-thresholds).astype(kind)
    powers = _compute_powers(np.arange(-low, -high - 1, -1, dtype=np.int16)).astype(kind)
    table = (powers[:, None] * a_rows.reshape(1, -1)).reshape(-1, a_rows.shape[-1])
    return table, row + (thresholds.astype(np.intp) - low) * len(a_rows), None


_KEPT_DIGITS = {"f32": _DIGITS, "f32_13": 13}
_KEPT = {name: np.uint64(-1 << _DOUBLE.mantissa - digits & (1 << 64) - 1) for name, digits in _KEPT_DIGITS.items()}


def round_sums(total: F64, lowest: int, output: str) -> F64:
    """Round exact sums without bits below 2**lowest to the output's precision, in place."""
    if output == "f16":
        total = total.astype(np.float16).astype(np.float64)
        # -0 becomes 0 (measured on an H200).
        total += 0.0
        return total
    if lowest < ZERO_EXPONENT and bool((small := np.abs(total) < 2.0**ZERO_EXPONENT).any()):
        unit = 2.0 ** (ZERO_EXPONENT - _KEPT_DIGITS[output])
        total[small] = np.trunc(total[small] / unit) * unit + 0.0
    bits = total.view(np.uint64)
    bits &= _KEPT[output]
    return total
