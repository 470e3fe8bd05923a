"""Sugared files under test: made, run, compared."""

from __future__ import annotations

import textwrap

from pyptx.codegen import ptx_to_python
from tests.codegen.transcripts import kernel, module_of
from tools.audit_sugar import difference

REGISTERS = ".reg .pred %p<9>;\n.reg .b32 %r<99>;\n.reg .f32 %f<99>;\n.reg .b64 %rd<99>;\n"


def body(ptx: str, before: str = "") -> str:
    """Return the Python of a kernel's statements, without what stands around them."""
    python = ptx_to_python(kernel(REGISTERS + ptx, before), sugar=True)
    inside = python[python.index("def matmul_kernel()") :].split("\n\n\n")[0]
    lines = textwrap.dedent("\n".join(inside.split("\n")[1:])).split("\n")
    return "\n".join(line for line in lines if "ptx.decl.reg(" not in line)


def statements(ptx: str, before: str = "") -> list[str]:
    """Return the same as lines without their indentation."""
    return [line.strip() for line in body(ptx, before).split("\n")]


def find_difference(ptx: str, before: str = "") -> str | None:
    """Return how the tokens of a kernel and those of its sugared file differ, None where they are the same."""
    return find_module_difference(kernel(REGISTERS + ptx, before))


def find_module_difference(source: str) -> str | None:
    """Return the same for a whole module."""
    return difference(source, module_of(ptx_to_python(source, sugar=True)).ptx())
