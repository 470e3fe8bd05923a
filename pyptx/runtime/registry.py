"""Keys of kernels, by which compilers that only take constants refer to them."""

from __future__ import annotations

from itertools import count
from typing import Any
from weakref import WeakValueDictionary

KERNELS: WeakValueDictionary[str, Any] = WeakValueDictionary()
"""Every kernel of the process by its key."""
_NUMBERS = count()


def register(kernel: object) -> str:
    """Return a key for a kernel. It is no number: Dynamo would take one that changes for a variable."""
    key = f"kernel {next(_NUMBERS)}"
    KERNELS[key] = kernel
    return key
