"""Write, read, check and run NVIDIA PTX from Python.

Only names: each is loaded on first use, so `import pyptx` costs nothing and pulls in nothing.
"""

from __future__ import annotations

# Importing `typing` or `importlib` would cost more than this whole module.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyptx.diagnostics import Diagnostic, PtxError, Severity, Span

__version__ = "0.1.0.dev0"

__all__ = ["Diagnostic", "PtxError", "Severity", "Span", "__version__"]

_HOME = {
    "Diagnostic": "pyptx.diagnostics",
    "PtxError": "pyptx.diagnostics",
    "Severity": "pyptx.diagnostics",
    "Span": "pyptx.diagnostics",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'pyptx' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
