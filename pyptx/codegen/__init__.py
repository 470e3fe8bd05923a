"""Translates PTX into equivalent Python. Names are loaded on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyptx.lazy_names import defer_imports

if TYPE_CHECKING:
    from pyptx.codegen.transpile import apply_sugar, ir_to_python, ptx_to_python

__all__ = ["apply_sugar", "ir_to_python", "ptx_to_python"]
__getattr__, __dir__ = defer_imports(__name__, {"transpile": "apply_sugar ir_to_python ptx_to_python"})
