"""Numbers of kernels, by which compilers that only take constants refer to them."""

from __future__ import annotations

from itertools import count
from typing import Any
from weakref import WeakValueDictionary

KERNELS: WeakValueDictionary[int, Any] = WeakValueDictionary()
"""Every kernel of the process by its number."""
_NUMBERS = count()


def register(kernel: object) -> int:
    """Return a number for a kernel."""
    number = next(_NUMBERS)
    KERNELS[number] = kernel
    return number
