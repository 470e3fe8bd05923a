"""Translates PTX into equivalent Python. Names are loaded on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyptx.codegen.transpile import apply_sugar, ir_to_python, ptx_to_python

__all__ = ["apply_sugar", "ir_to_python", "ptx_to_python"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.transpile"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
