"""Scratch arrays, reused from call to call: a new array of more than 128 KB costs a mapping and page faults.

Each name has one array at a time. Results that leave this package never lie in one.
"""

from __future__ import annotations

import threading
from math import prod
from typing import Any

import numpy as np

from pyptx.sim.numerics.arrays import Array

LARGEST = 1 << 26
"""The size in bytes of the largest array that is reused."""


class _Pool(threading.local):
    def __init__(self) -> None:
        self.buffers: dict[str, Array] = {}


_POOL = _Pool()


def get_scratch(name: str, shape: tuple[int, ...], dtype: type[np.generic]) -> Array:
    """Return an array with unspecified contents, valid until the next call with the same name."""
    size = prod(shape) * np.dtype(dtype).itemsize
    if size > LARGEST:
        return np.empty(shape, dtype)
    buffer: Array | None = _POOL.buffers.get(name)
    if buffer is None or buffer.size < size:
        buffer = np.empty(max(size, 4096), np.uint8)
        _POOL.buffers[name] = buffer
    array: np.ndarray[Any, np.dtype[Any]] = buffer[:size].view(dtype)
    return array.reshape(shape)
