"""Matrix products in which + is max and x is +: the largest sum of two small integers over a common axis.

Powers of a base larger than the number of terms are multiplied by a float matmul; the leading digit of the result is
the largest sum. That takes a quarter of the time of comparing sums one by one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyptx.numbers import FORMATS
from pyptx.sim.numerics.arrays import F32, F64, I16, Array
from pyptx.sim.numerics.fast_dot import multiplied
from pyptx.sim.numerics.workspace import scratch

_SINGLE, _DOUBLE = FORMATS["f32"], FORMATS["f64"]
Kind = type[np.float32] | type[np.float64]
_RANGE: dict[Kind, tuple[int, int]] = {np.float32: (60, 186), np.float64: (505, 1500)}
"""Exponent of the largest factor, and how far below it a factor may lie and stay normal."""


@dataclass(frozen=True, slots=True)
class Summands:
    """Integers, and the powers of a base that stand for them below the largest one."""

    integers: I16
    high: int
    raised: Array

    def part(self, start: int, stop: int, axis: int) -> Summands:
        """Return some of them along the common axis, the last of the left or the one but last of the right."""
        cut = (..., slice(start, stop)) if axis == -1 else (..., slice(start, stop), slice(None))
        return Summands(self.integers[cut], self.high, self.raised[cut])


def prepare(x: I16, y: I16, terms: int, enough: int | None = None) -> tuple[Summands, Summands]:
    """Prepare both sides for sums of `terms` summands; sums at or below `enough` will not be asked for."""
    digit = terms.bit_length()
    high = int(x.max(initial=-32768)), int(y.max(initial=-32768))
    kind: Kind = np.float32
    if sum(high) - _max_reach(np.float32, digit) > (_estimate_least(x, y) if enough is None else enough):
        kind = np.float64
    return Summands(x, high[0], _raise_codes(x, high[0], digit, kind)), Summands(
        y, high[1], _raise_codes(y, high[1], digit, kind)
    )


def _estimate_least(x: I16, y: I16) -> int:
    """Return a number that few greatest sums lie below."""
    return int(np.median(x.max(axis=-1, initial=-32768))) + int(np.median(y.max(axis=-2, initial=-32768))) - 12


def _max_reach(kind: Kind, digit: int) -> int:
    return _RANGE[kind][1] // digit - 1


def greatest_sum(x: Summands, y: Summands, terms: int, name: str, *, loose: bool = False) -> I16:
    """Return the largest x[i, k] + y[k, j] over k, over the last two axes, in the scratch array `name`.

    `loose` results may be too large where they are far below the largest one.
    """
    digit = terms.bit_length()
    best = x.high + y.high
    reach = _max_reach(x.raised.dtype.type, digit)
    result = _extract_digits(x.raised, y.raised, digit, name)
    unsure = None
    if int(result.min(initial=0)) < -reach:
        if loose:
            np.maximum(result, np.int16(-reach), out=result)
        else:
            unsure = np.flatnonzero(result < -reach)
    result += np.int16(best)
    if unsure is not None and unsure.size > result.size // 8:
        return _compute_each(x.integers, y.integers)
    if unsure is not None:
        _recompute(result, unsure, x.integers, y.integers)
    return result


def _raise_codes(x: I16, high: int, digit: int, kind: Kind) -> Array:
    start, reach = _RANGE[kind]
    power = np.clip(x, np.int16(max(high - 4000, -32768)), np.int16(high))
    power -= np.int16(high)
    power *= np.int16(digit)
    form, width = (_SINGLE, np.uint32) if kind is np.float32 else (_DOUBLE, np.uint64)
    power[power < -reach] = -(start + form.bias)
    power += np.int16(start + form.bias)
    code = power.astype(width)
    code <<= width(form.mantissa)
    return code.view(kind)


def _extract_digits(x: F32 | F64, y: F32 | F64, digit: int, name: str) -> I16:
    shape = (*np.broadcast_shapes(x.shape[:-2], y.shape[:-2]), x.shape[-2], y.shape[-1])
    product = multiplied(x, y, scratch("digits", shape, x.dtype.type))
    kind: Kind = np.float32 if product.itemsize == 4 else np.float64
    form, width = (_SINGLE, np.uint32) if kind is np.float32 else (_DOUBLE, np.uint64)
    codes = product.view(width)
    codes >>= width(form.mantissa)
    fields: I16 = scratch(name, shape, np.int16)
    np.copyto(fields, codes, casting="unsafe")
    fields -= np.int16(form.bias + 2 * _RANGE[kind][0])
    return np.floor_divide(fields, np.int16(digit), out=fields)


def _recompute(result: I16, places: Array, x: I16, y: I16) -> None:
    depth, columns, rows = x.shape[-1], y.shape[-1], x.shape[-2]
    left = np.broadcast_to(x, (*result.shape[:-1], depth)).reshape(-1, depth)
    right = np.swapaxes(np.broadcast_to(y, (*result.shape[:-2], depth, columns)), -1, -2).reshape(-1, depth)
    row, column = np.divmod(places, columns)
    sums = left.take(row, axis=0) + right.take(column + (row // rows) * columns, axis=0)
    result.reshape(-1)[places] = sums.max(axis=1)


def _compute_each(x: I16, y: I16) -> I16:
    result = x[..., :, 0, None] + y[..., None, 0, :]
    for k in range(1, x.shape[-1]):
        np.maximum(result, x[..., :, k, None] + y[..., None, k, :], out=result)
    return result
