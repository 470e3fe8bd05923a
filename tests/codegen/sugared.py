"""Helpers that transpile with sugar, run the result and compare it."""

from __future__ import annotations

import textwrap

from pyptx.codegen import ptx_to_python
from tests.codegen.transcripts import kernel, module_of
from tools.audit_sugar import difference

REGISTERS = ".reg .pred %p<9>;\n.reg .b32 %r<99>;\n.reg .f32 %f<99>;\n.reg .b64 %rd<99>;\n"


def body(ptx: str, before: str = "") -> str:
    """Return the Python of a kernel's statements, without the rest of the file."""
    python = ptx_to_python(kernel(REGISTERS + ptx, before), sugar=True)
    inside = python[python.index("def matmul_kernel()") :].split("\n\n\n")[0]
    lines = textwrap.dedent("\n".join(inside.split("\n")[1:])).split("\n")
    return "\n".join(line for line in lines if "ptx.decl.reg(" not in line)


def statements(ptx: str, before: str = "") -> list[str]:
    """Return the same as lines without their indentation."""
    return [line.strip() for line in body(ptx, before).split("\n")]


def find_difference(ptx: str, before: str = "") -> str | None:
    """Return how the tokens of a kernel and of its sugared file differ, or None if they are equal."""
    return find_module_difference(kernel(REGISTERS + ptx, before))


def find_module_difference(source: str) -> str | None:
    """Return how the tokens of a module and of its sugared file differ, or None if they are equal."""
    return difference(source, module_of(ptx_to_python(source, sugar=True)).ptx())
