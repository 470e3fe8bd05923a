"""Prints nodes as PTX text, from their fields alone. Names are loaded on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyptx.lazy_names import defer_imports

if TYPE_CHECKING:
    from pyptx.emitter.canonical import formatted
    from pyptx.emitter.emitter import emit, emit_statement
    from pyptx.emitter.styles import DEFAULT, NVCC, SPACES, STYLES, Style

__all__ = ["DEFAULT", "NVCC", "SPACES", "STYLES", "Style", "emit", "emit_statement", "formatted"]

_NAMES_OF = {
    "canonical": "formatted",
    "emitter": "emit emit_statement",
    "styles": "DEFAULT NVCC SPACES STYLES Style",
}
__getattr__, __dir__ = defer_imports(__name__, _NAMES_OF)
