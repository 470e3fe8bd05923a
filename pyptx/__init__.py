"""Write, read, check and run NVIDIA PTX from Python.

Only names: each is loaded on first use, so `import pyptx` costs nothing and pulls in nothing.
"""

from __future__ import annotations

# Importing `typing` or `importlib` would cost more than this whole module.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyptx import ptx, reg, smem
    from pyptx import sim as sim
    from pyptx.decorator import Kernel, combine, detect_arch, intrinsic, kernel
    from pyptx.diagnostics import Diagnostic, HazardWarning, PtxError, Severity, Span
    from pyptx.dsl.tensors import TensorSpec
    from pyptx.runtime.exported import load_kernel
    from pyptx.specs import Layout, Tile
    from pyptx.torch_support import differentiable_kernel

__version__ = "0.1.0.dev0"

__all__ = [
    "Diagnostic", "HazardWarning", "Kernel", "Layout", "PtxError", "Severity", "Span", "TensorSpec", "Tile",
    "__version__", "combine", "detect_arch", "differentiable_kernel", "intrinsic", "kernel", "load_kernel", "ptx",
    "reg", "smem",
]  # fmt: skip

_HOME = {
    "Diagnostic": "pyptx.diagnostics",
    "HazardWarning": "pyptx.diagnostics",
    "Kernel": "pyptx.decorator",
    "Layout": "pyptx.specs",
    "PtxError": "pyptx.diagnostics",
    "Severity": "pyptx.diagnostics",
    "Span": "pyptx.diagnostics",
    "TensorSpec": "pyptx.dsl.tensors",
    "Tile": "pyptx.specs",
    "combine": "pyptx.decorator",
    "detect_arch": "pyptx.dsl.device",
    "differentiable_kernel": "pyptx.torch_support",
    "intrinsic": "pyptx.dsl.scopes",
    "kernel": "pyptx.decorator",
    "load_kernel": "pyptx.runtime.exported",
    "ptx": "",
    "reg": "",
    "sim": "",
    "smem": "",
}
"""Where each name is defined; empty for a module. `import *` omits `sim`, which loads NumPy."""


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'pyptx' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOME[name]), name) if _HOME[name] else import_module(f"pyptx.{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return ["__version__", *_HOME]
