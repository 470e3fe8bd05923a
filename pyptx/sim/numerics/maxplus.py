"""Matrix products in which + is max and x is +: the largest sum of two small integers over a common axis.

Powers of a base larger than the number of terms are multiplied by a float matmul; the leading digit of the result is
the largest sum. That takes a quarter of the time of comparing sums one by one.
"""

from __future__ import annotations

import numpy as np

from pyptx.sim.numerics.arrays import F32, F64, I16, Array
from pyptx.sim.numerics.scratch import scratch

_RANGE = {np.float32: (60, 186), np.float64: (505, 1500)}
"""Exponent of the largest factor, and how far below it a factor may lie and stay normal."""


def greatest_sum(x: I16, y: I16, *, name: str, floor: int | None = None) -> I16:
    """Return the largest x[i, k] + y[k, j] over k, over the last two axes, in the scratch array `name`.

    With `floor`, sums at or below it need not be exact: any number from the true one to `floor` will do.
    """
    digit = int(x.shape[-1]).bit_length()
    if digit > 7:
        return _one_by_one(x, y)
    high = int(x.max(initial=-32768)), int(y.max(initial=-32768))
    best = high[0] + high[1]
    for kind in (np.float32, np.float64):
        reach = _RANGE[kind][1] // digit - 1
        if floor is not None and best - reach > floor:
            continue
        result = _leading_digits(_raised(x, high[0], digit, kind), _raised(y, high[1], digit, kind), digit, name)
        least = int(result.min(initial=0))
        if least >= -reach:
            result += np.int16(best)
            return result
        if floor is not None:
            np.maximum(result, np.int16(-reach), out=result)
            result += np.int16(best)
            return result
        unsure = result < -reach
        if np.count_nonzero(unsure) < result.size // 8:
            result += np.int16(best)
            _mend(result, np.flatnonzero(unsure), x, y)
            return result
    return _one_by_one(x, y)


def _raised(x: I16, high: int, digit: int, kind: type[np.float32] | type[np.float64]) -> Array:
    start, reach = _RANGE[kind]
    power = (x.astype(np.int32) - high) * digit
    bits, bias, width = (23, 127, np.uint32) if kind is np.float32 else (52, 1023, np.uint64)
    code = np.where(power < -reach, 0, power + start + bias).astype(width) << width(bits)
    return code.view(kind)


def _leading_digits(x: F32 | F64, y: F32 | F64, digit: int, name: str) -> I16:
    shape = (*np.broadcast_shapes(x.shape[:-2], y.shape[:-2]), x.shape[-2], y.shape[-1])
    product = np.matmul(x, y, out=scratch("digits", shape, x.dtype.type))
    width, bits, bias, start = (np.uint32, 23, 127, 60) if product.itemsize == 4 else (np.uint64, 52, 1023, 505)
    codes = product.view(width)
    codes >>= width(bits)
    fields: I16 = scratch(name, shape, np.int16)
    np.copyto(fields, codes, casting="unsafe")
    fields -= np.int16(bias + 2 * start)
    return np.floor_divide(fields, np.int16(digit), out=fields)


def _mend(result: I16, places: Array, x: I16, y: I16) -> None:
    depth, columns, rows = x.shape[-1], y.shape[-1], x.shape[-2]
    left = np.broadcast_to(x, (*result.shape[:-1], depth)).reshape(-1, depth)
    right = np.swapaxes(np.broadcast_to(y, (*result.shape[:-2], depth, columns)), -1, -2).reshape(-1, depth)
    row, column = np.divmod(places, columns)
    sums = left.take(row, axis=0) + right.take(column + (row // rows) * columns, axis=0)
    result.reshape(-1)[places] = sums.max(axis=1)


def _one_by_one(x: I16, y: I16) -> I16:
    result = x[..., :, 0, None] + y[..., None, 0, :]
    for k in range(1, x.shape[-1]):
        np.maximum(result, x[..., :, k, None] + y[..., None, k, :], out=result)
    return result
