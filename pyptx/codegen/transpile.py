"""Translates PTX text or a module to the text of a Python file, plain or readable."""

from __future__ import annotations

from pyptx.codegen.plain import build_plain_plan
from pyptx.codegen.plan import Plan
from pyptx.codegen.printer import print_plan
from pyptx.codegen.sugar import build_readable_plan
from pyptx.emitter import emit
from pyptx.ir.collection import without_collector
from pyptx.ir.directives import Module
from pyptx.parser import parse


def ptx_to_python(source: str, *, sugar: bool = False, kernel_name: str = "matmul_kernel") -> str:
    """Return a Python file that emits a PTX text byte for byte; with `sugar` it is readable. The first kernel is named
    `kernel_name` in Python; if that is empty, it keeps its own name, like the others."""
    newline = "\r\n" if _has_windows_line_ends(source) else "\n"
    with without_collector():
        module = parse(source.replace("\r\n", "\n") if newline != "\n" else source)
        plan = build_plain_plan(module, kernel_name=kernel_name, source=source, newline=newline, bare=sugar)
        return print_plan(build_readable_plan(plan, module) if sugar else plan)


def ir_to_python(module: Module, *, sugar: bool = False, kernel_name: str = "matmul_kernel") -> str:
    """Return a Python file that emits a module."""
    return ptx_to_python(emit(module), sugar=sugar, kernel_name=kernel_name)


def apply_sugar(module: Module, *, kernel_name: str = "matmul_kernel") -> Plan:
    """Return the plan of a readable file for a module."""
    source = emit(module)
    reparsed = parse(source)
    return build_readable_plan(build_plain_plan(reparsed, kernel_name=kernel_name, source=source, bare=True), reparsed)


def _has_windows_line_ends(source: str) -> bool:
    """Tell whether every line ends in CR LF, so that the line ending can be set once."""
    ends = source.count("\r\n")
    return ends > 0 and ends == source.count("\n") == source.count("\r")
