"""Arrays of a launch that share bytes of the caller's memory, such as views of one workspace, also share them in the
kernel's memory. Knows the addresses of arrays, not launches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pyptx.sim.base.formats import Array

_MOST_WORK = 1_000_000


@dataclass(frozen=True, slots=True)
class Span:
    """A contiguous range of the caller's memory that contains several arrays."""

    low: int
    data: Array
    writable: bool


def find_spans(arrays: Sequence[Array]) -> list[Span]:
    """Return the ranges of memory in which contiguous arrays overlap; arrays with equal bounds count only if they
    differ in being writable."""
    ordered_arrays = sorted((array for array in arrays if array.size and array.flags.c_contiguous), key=_find_bounds)
    groups: list[list[Array]] = []
    for array in ordered_arrays:
        if groups and _find_bounds(array)[0] < max(_find_bounds(other)[1] for other in groups[-1]):
            groups[-1].append(array)
        else:
            groups.append([array])
    return [
        _make_span(group)
        for group in groups
        if len({(_find_bounds(array), array.flags.writeable) for array in group}) > 1
    ]


def find_entangled(arrays: Sequence[Array]) -> tuple[int, int] | None:
    """Return the positions of two arrays that share bytes, one of them writable, if spans cannot describe how; None if
    there are none."""
    for position, array in enumerate(arrays):
        for earlier in range(position):
            if _is_entangled(arrays[earlier], array):
                return earlier, position
    return None


def has_unique_elements(array: Array) -> bool:
    """Return whether every element has its own bytes; elements of a sliding window do not."""
    reach = array.itemsize - 1
    for stride, size in sorted((abs(stride), size) for stride, size in zip(array.strides, array.shape, strict=True)):
        if size > 1:
            if stride <= reach:
                return False
            reach += stride * (size - 1)
    return True


def _make_span(group: Sequence[Array]) -> Span:
    low = _find_bounds(group[0])[0]
    high = max(_find_bounds(array)[1] for array in group)
    return Span(low, _view_bytes(group[0], high - low), any(array.flags.writeable for array in group))


def _is_entangled(first: Array, second: Array) -> bool:
    if first is second or (first.flags.c_contiguous and second.flags.c_contiguous):
        return False
    if not (first.flags.writeable or second.flags.writeable) or _is_same(first, second):
        return False
    try:
        return bool(np.may_share_memory(first, second) and np.shares_memory(first, second, max_work=_MOST_WORK))  # pyright: ignore[reportArgumentType]
    except np.exceptions.TooHardError:
        return True


def _is_same(first: Array, second: Array) -> bool:
    return (first.ctypes.data, first.strides, first.shape) == (second.ctypes.data, second.strides, second.shape)


def _find_bounds(array: Array) -> tuple[int, int]:
    return array.ctypes.data, array.ctypes.data + array.nbytes


def _view_bytes(first: Array, size: int) -> Array:
    """Return `size` bytes from the start of an array, possibly past its end, where overlapping arrays lie."""
    return np.lib.stride_tricks.as_strided(first.reshape(-1).view(np.uint8), (size,), (1,), writeable=False)
