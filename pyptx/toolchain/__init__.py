"""The bridge to NVIDIA's tools: finds them, assembles, measures, disassembles, and asks ptxas what is legal.

Only names: each is loaded on first use, and nothing outside the standard library before a function needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyptx.lazy_names import defer_imports

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

_NAMES_OF = {
    "assembler": "assemble assemble_with_nvjitlink assemble_with_ptxas default_target validate",
    "cubin": "AssemblyError Cubin Engine",
    "cubin_cache": "assemble_cached",
    "disassembly": "SassInstruction disassemble sass sass_difference sass_equal",
    "messages": "parse_log",
    "process": "ToolFailed",
    "residency": "Occupancy occupancy",
    "tools": "Tool ToolMissing find_tool supported_targets",
    "usage": "Resources resources",
    "verdicts": "Verdict judge",
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
__getattr__, __dir__ = defer_imports(__name__, _NAMES_OF)
