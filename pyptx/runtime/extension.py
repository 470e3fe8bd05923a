"""The C extension with fast launches, if this installation has it."""

from __future__ import annotations

import warnings
from functools import cache
from importlib import import_module
from typing import Any

_VERSION = 2
"""Of the functions and types of the extension: one that was built in place may be older than this file."""


@cache
def load() -> Any:
    """Return the extension module; None if it was not built, as without a C compiler."""
    try:
        module = import_module("pyptx.runtime._launch")
    except ImportError:
        return None
    if getattr(module, "VERSION", 1) == _VERSION:
        return module
    text = "the C extension is from another version of pyptx, so launches take longer; rebuild it: pip install -e ."
    warnings.warn(text, RuntimeWarning, stacklevel=2)
    return None
