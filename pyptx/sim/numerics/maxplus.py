"""Max-plus matrix products: the largest sum of two small integers over a common axis.

The integers become powers of a base larger than the number of terms. A float matmul multiplies them, and the leading
digit of each result is the largest sum. That takes a quarter of the time of comparing sums one by one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyptx.numbers import FORMATS
from pyptx.sim.numerics.arrays import F32, F64, I16, Array
from pyptx.sim.numerics.fast_dot import multiply
from pyptx.sim.numerics.workspace import get_scratch

_SINGLE, _DOUBLE = FORMATS["f32"], FORMATS["f64"]
Kind = type[np.float32] | type[np.float64]
_RANGE: dict[Kind, tuple[int, int]] = {np.float32: (60, 186), np.float64: (505, 1500)}
"""The exponent of the largest factor, and how far below it a factor stays normal."""


@dataclass(frozen=True, slots=True)
class Summands:
    """Integers and their powers of a base, scaled so that the largest one has a fixed exponent."""

    integers: I16
    high: int
    powers: Array

    def take(self, start: int, stop: int, axis: int) -> Summands:
        """Return the summands at start … stop - 1 along the common axis: the last of X, the second to last of Y."""
        cut = (..., slice(start, stop)) if axis == -1 else (..., slice(start, stop), slice(None))
        return Summands(self.integers[cut], self.high, self.powers[cut])


def prepare_summands(x: I16, y: I16, terms: int, cutoff: int | None = None) -> tuple[Summands, Summands]:
    """Prepare both sides for sums over `terms` terms; sums at or below `cutoff` are not needed."""
    digit = terms.bit_length()
    high = int(x.max(initial=-32768)), int(y.max(initial=-32768))
    kind: Kind = np.float32
    if sum(high) - _max_reach(np.float32, digit) > (_estimate_least(x, y) if cutoff is None else cutoff):
        kind = np.float64
    return Summands(x, high[0], _encode_powers(x, high[0], digit, kind)), Summands(
        y, high[1], _encode_powers(y, high[1], digit, kind)
    )


def _estimate_least(x: I16, y: I16) -> int:
    """Return an estimate below which few of the greatest sums lie."""
    return int(np.median(x.max(axis=-1, initial=-32768))) + int(np.median(y.max(axis=-2, initial=-32768))) - 12


def _max_reach(kind: Kind, digit: int) -> int:
    return _RANGE[kind][1] // digit - 1


def find_greatest_sum(x: Summands, y: Summands, terms: int, name: str, *, loose: bool = False) -> I16:
    """Return the largest x[i, k] + y[k, j] over k, for the last two axes, in the scratch array `name`.

    `loose` results may be too large if they are far below the largest one.
    """
    digit = terms.bit_length()
    best = x.high + y.high
    reach = _max_reach(x.powers.dtype.type, digit)
    result = _extract_digits(x.powers, y.powers, digit, name)
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


def _encode_powers(x: I16, high: int, digit: int, kind: Kind) -> Array:
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
    product = multiply(x, y, get_scratch("digits", shape, x.dtype.type))
    kind: Kind = np.float32 if product.itemsize == 4 else np.float64
    form, width = (_SINGLE, np.uint32) if kind is np.float32 else (_DOUBLE, np.uint64)
    codes = product.view(width)
    codes >>= width(form.mantissa)
    fields: I16 = get_scratch(name, shape, np.int16)
    np.copyto(fields, codes, casting="unsafe")
    fields -= np.int16(form.bias + 2 * _RANGE[kind][0])
    return np.floor_divide(fields, np.int16(digit), out=fields)


def _recompute(result: I16, places: Array, x: I16, y: I16) -> None:
    depth, columns, rows = x.shape[-1], y.shape[-1], x.shape[-2]
    x_rows = np.broadcast_to(x, (*result.shape[:-1], depth)).reshape(-1, depth)
    y_columns = np.swapaxes(np.broadcast_to(y, (*result.shape[:-2], depth, columns)), -1, -2).reshape(-1, depth)
    row, column = np.divmod(places, columns)
    sums = x_rows.take(row, axis=0) + y_columns.take(column + (row // rows) * columns, axis=0)
    result.reshape(-1)[places] = sums.max(axis=1)


def _compute_each(x: I16, y: I16) -> I16:
    result = x[..., :, 0, None] + y[..., None, 0, :]
    for k in range(1, x.shape[-1]):
        np.maximum(result, x[..., :, k, None] + y[..., None, k, :], out=result)
    return result
