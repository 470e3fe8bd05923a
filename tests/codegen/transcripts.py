"""The properties of every generated file, in one function that returns the first violation."""

from __future__ import annotations

import ast
from typing import Any

from pyptx.codegen import ptx_to_python
from pyptx.codegen.plain import build_plain_plan
from pyptx.codegen.plan import find_broken_promise
from pyptx.codegen.printer import WIDTH
from pyptx.parser import parse
from pyptx.ptx.transcript import ExactModule

HEADER = ".version 8.7\n.target sm_90a\n.address_size 64\n"
_NODES = (
    ast.Module, ast.Expr, ast.Assign, ast.FunctionDef, ast.arguments, ast.With, ast.withitem, ast.If, ast.Compare,
    ast.Eq, ast.Import, ast.ImportFrom, ast.alias, ast.Call, ast.keyword, ast.Attribute, ast.Subscript, ast.Name,
    ast.Constant, ast.List, ast.Tuple, ast.Dict, ast.UnaryOp, ast.USub, ast.Invert, ast.Load, ast.Store, ast.Pass,
)  # fmt: skip
_IMPORTS = {"__future__", "sys", "pyptx", "pyptx.codegen.program", "pyptx.types"}
_ROOTS = {"ptx", "module", "sys", "main"}


def kernel(body: str, before: str = "") -> str:
    """Return a module with one kernel."""
    return f"{HEADER}{before}.entry k()\n{{\n{body}}}\n"


def module_of(python: str) -> ExactModule:
    """Run a generated file, not as the main program, and return its module."""
    scope: dict[str, Any] = {"__name__": "generated"}
    exec(compile(python, "generated.py", "exec"), scope)
    return scope["module"]


def problem(source: str, kernel_name: str = "matmul_kernel", python: str | None = None) -> str | None:
    """Return what is wrong with the transcript of a module, or None."""
    python = ptx_to_python(source, kernel_name=kernel_name) if python is None else python
    unsafe = foreign(python)
    if unsafe:
        return f"the file holds {unsafe}"
    long = [line for line in python.split("\n") if len(line) > WIDTH]
    if long:
        return f"a line of {len(long[0])} characters: {long[0][:80]}"
    module = module_of(python)
    text = module.ptx()
    if text != source:
        offset = next(
            (i for i, (a, b) in enumerate(zip(text, source, strict=False)) if a != b), min(len(text), len(source))
        )
        return f"differs from byte {offset} on: {source[offset : offset + 60]!r} became {text[offset : offset + 60]!r}"
    original = parse(source)
    if module.newline == "\n" and module.module() != original:
        return "the nodes are not those of the parser"
    return find_broken_promise(build_plain_plan(original, kernel_name=kernel_name, source=source), original)


def foreign(python: str) -> str | None:
    """Return a name in a generated file that is outside the vocabulary: none of the PTX text may be evaluated."""
    tree = ast.parse(python)
    for node in ast.walk(tree):
        if not isinstance(node, _NODES):
            return f"a {type(node).__name__} in line {getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.ImportFrom) and node.module not in _IMPORTS:
            return f"an import from {node.module}"
        if isinstance(node, ast.Import) and [alias.name for alias in node.names] != ["sys"]:
            return "another import"
        if isinstance(node, ast.Call) and _root(node.func) not in _ROOTS:
            return f"a call of {ast.unparse(node.func)[:60]}"
        if isinstance(node, ast.Attribute) and node.attr.startswith("__"):
            return f"the attribute {node.attr}"
        if isinstance(node, ast.Assign) and _root(node.targets[0]) in _ROOTS - {"module"}:
            return "a new meaning of a name of the vocabulary"
        if isinstance(node, ast.If) and ast.unparse(node.test) != "__name__ == '__main__'":
            return "a condition"
    return None


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ast.unparse(node)
