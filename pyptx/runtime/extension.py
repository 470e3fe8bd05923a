"""The C extension with fast launches, if this installation has it."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any


@cache
def load() -> Any:
    """Return the extension module; None if it was not built, as without a C compiler."""
    try:
        return import_module("pyptx.runtime._launch")
    except ImportError:
        return None
