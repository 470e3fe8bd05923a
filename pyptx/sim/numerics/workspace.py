"""Arrays for intermediate results, kept from call to call: a fresh one of more than 128 KB is mapped and faulted anew.

A name stands for one array at a time; what a caller gets back never lies in one.
"""

from __future__ import annotations

import threading
from math import prod
from typing import Any

import numpy as np

from pyptx.sim.numerics.arrays import Array

LARGEST = 1 << 26
"""Bytes above which an array is not kept."""


class _Pool(threading.local):
    def __init__(self) -> None:
        self.buffers: dict[str, Array] = {}


_POOL = _Pool()


def scratch(name: str, shape: tuple[int, ...], dtype: type[np.generic]) -> Array:
    """Return an array with unspecified contents that lives until the name is asked for again."""
    size = prod(shape) * np.dtype(dtype).itemsize
    if size > LARGEST:
        return np.empty(shape, dtype)
    buffer: Array | None = _POOL.buffers.get(name)
    if buffer is None or buffer.size < size:
        buffer = np.empty(max(size, 4096), np.uint8)
        _POOL.buffers[name] = buffer
    stored: np.ndarray[Any, np.dtype[Any]] = buffer[:size].view(dtype)
    return stored.reshape(shape)
