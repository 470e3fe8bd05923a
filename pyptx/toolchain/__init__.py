"""The bridge to NVIDIA's tools: finds them, assembles, measures, disassembles, and asks ptxas what is legal.

Only names: each is loaded on first use, and nothing outside the standard library before a function needs it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyptx.toolchain.assembler import (
        assemble,
        assemble_with_nvjitlink,
        assemble_with_ptxas,
        default_target,
        validate,
    )
    from pyptx.toolchain.cubin import AssemblyError, Cubin, Engine
    from pyptx.toolchain.cubin_cache import assemble_cached
    from pyptx.toolchain.disassembly import SassInstruction, disassemble, sass, sass_difference, sass_equal
    from pyptx.toolchain.messages import parse_log
    from pyptx.toolchain.process import ToolFailed
    from pyptx.toolchain.residency import Occupancy, occupancy
    from pyptx.toolchain.tools import Tool, ToolMissing, find_tool, supported_targets
    from pyptx.toolchain.usage import Resources, resources
    from pyptx.toolchain.verdicts import Verdict, judge

_HOME = {
    "AssemblyError": "cubin",
    "Cubin": "cubin",
    "Engine": "cubin",
    "Occupancy": "residency",
    "Resources": "usage",
    "SassInstruction": "disassembly",
    "Tool": "tools",
    "ToolFailed": "process",
    "ToolMissing": "tools",
    "Verdict": "verdicts",
    "assemble": "assembler",
    "assemble_cached": "cubin_cache",
    "assemble_with_nvjitlink": "assembler",
    "assemble_with_ptxas": "assembler",
    "default_target": "assembler",
    "disassemble": "disassembly",
    "find_tool": "tools",
    "judge": "verdicts",
    "occupancy": "residency",
    "parse_log": "messages",
    "resources": "usage",
    "sass": "disassembly",
    "sass_difference": "disassembly",
    "sass_equal": "disassembly",
    "supported_targets": "tools",
    "validate": "assembler",
}

__all__ = [
    "AssemblyError",
    "Cubin",
    "Engine",
    "Occupancy",
    "Resources",
    "SassInstruction",
    "Tool",
    "ToolFailed",
    "ToolMissing",
    "Verdict",
    "assemble",
    "assemble_cached",
    "assemble_with_nvjitlink",
    "assemble_with_ptxas",
    "default_target",
    "disassemble",
    "find_tool",
    "judge",
    "occupancy",
    "parse_log",
    "resources",
    "sass",
    "sass_difference",
    "sass_equal",
    "supported_targets",
    "validate",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'pyptx.toolchain' has no attribute {name!r}")
    value = getattr(import_module(f"pyptx.toolchain.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
