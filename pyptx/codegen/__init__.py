"""PTX into Python that says the same. Names are loaded on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyptx.codegen.plain import ir_to_python, ptx_to_python
    from pyptx.codegen.sugar import apply_sugar

_MODULE_OF = {"ptx_to_python": "plain", "ir_to_python": "plain", "apply_sugar": "sugar"}
__all__ = ["apply_sugar", "ir_to_python", "ptx_to_python"]


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value
