"""Prints nodes as PTX text, from their fields alone. Names are loaded on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyptx.emitter.canonical import formatted
    from pyptx.emitter.emitter import emit, emit_statement
    from pyptx.emitter.styles import DEFAULT, NVCC, SPACES, STYLES, Style

__all__ = ["DEFAULT", "NVCC", "SPACES", "STYLES", "Style", "emit", "emit_statement", "formatted"]

_MODULE_OF = {"emit": "emitter", "emit_statement": "emitter", "formatted": "canonical"}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_MODULE_OF.get(name, 'styles')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
