"""Matrix products in which + is max and x is +: the largest sum of two small integers over a common axis.

Powers of a base larger than the number of terms are multiplied by a float matmul; the leading digit of the result is
the largest sum. That takes a quarter of the time of comparing sums one by one.
"""

from __future__ import annotations

import numpy as np

from pyptx.sim.numerics.arrays import F32, F64, I16, Array

_RANGE = {np.float32: (60, 186), np.float64: (505, 1500)}
"""Exponent of the largest factor, and how far below it a factor may lie and stay normal."""


def greatest_sum(x: I16, y: I16, *, floor: int | None = None) -> I16:
    """Return the largest x[i, k] + y[k, j] over k, over the last two axes.

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
        result = _leading_digits(_raised(x, high[0], digit, kind), _raised(y, high[1], digit, kind), digit)
        unsure = result < -reach
        if floor is not None:
            return np.maximum(result, np.int16(-reach)) + np.int16(best)
        count = int(np.count_nonzero(unsure))
        result += np.int16(best)
        if count == 0:
            return result
        if count < result.size // 8:
            _mend(result, np.flatnonzero(unsure), x, y)
            return result
    return _one_by_one(x, y)


def _raised(x: I16, high: int, digit: int, kind: type[np.float32] | type[np.float64]) -> Array:
    start, reach = _RANGE[kind]
    power = (x.astype(np.int32) - high) * digit
    bits, bias, width = (23, 127, np.uint32) if kind is np.float32 else (52, 1023, np.uint64)
    code = np.where(power < -reach, 0, power + start + bias).astype(width) << width(bits)
    return code.view(kind)


def _leading_digits(x: F32 | F64, y: F32 | F64, digit: int) -> I16:
    product = np.matmul(x, y)
    words = product.itemsize // 2
    upper = product.view(np.int16).reshape(*product.shape, words)[..., words - 1]
    fraction, bias, start = (7, 127, 60) if words == 2 else (4, 1023, 505)
    fields = upper >> np.int16(fraction)
    fields -= np.int16(bias + 2 * start)
    # Floor division by a small constant: a product and a shift of numbers below 2**15.
    return np.floor_divide(fields, np.int16(digit))


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
