"""The Python variables that hold the registers of a kernel: those bound to an instruction's result, and destinations
of `ptx.inst`. Reads the places of instructions; does not know how they were traced."""

from __future__ import annotations

import ast
import linecache
from functools import lru_cache
from itertools import groupby

from pyptx.check.flow import collect_accesses
from pyptx.diagnostics import PythonFrame
from pyptx.sim.program.blocks import Program

_Place = tuple[int | None, int | None, int | None, int | None]
"""The first and last line of an expression, and its first and last column."""


def find_python_names(program: Program) -> dict[str, str]:
    """Return the Python variable of each register that has one, by register name."""
    variables: dict[str, str] = {}
    loops: set[tuple[str, _Place]] = set()
    steps = ((step.instruction.origin, step) for block in program.blocks for step in block.steps if step.plan)
    for origin, group in groupby(steps, key=lambda item: item[0]):
        if not isinstance(origin, PythonFrame):
            continue
        registers = [name for _, step in group for name, _ in collect_accesses(step)[1]]
        place = list(origin.code.co_positions())[origin.lasti // 2]
        names, loop = _find_names(origin, place)
        if loop and (origin.file, place) in loops:
            # The loop's counter came first; its increments and tests have the same place.
            continue
        loops.add((origin.file, place))
        targets = list(dict.fromkeys(registers))[-len(names) :] if names else []
        if len(targets) == len(names):
            variables.update(zip(targets, names, strict=True))
    return variables


def _find_names(origin: PythonFrame, place: _Place) -> tuple[tuple[str, ...], bool]:
    """Return the variables that an expression is bound to, and whether a loop binds them."""
    places = _find_bindings("".join(linecache.getlines(origin.file)))
    names, loop = places.get(place, ((), False))
    local = {*origin.code.co_varnames, *origin.code.co_cellvars}
    return (names, loop) if local.issuperset(names) else ((), False)


@lru_cache(maxsize=16)
def _find_bindings(source: str) -> dict[_Place, tuple[tuple[str, ...], bool]]:
    """Return the variables to which each expression of a file is bound, and whether a loop binds them."""
    bindings: dict[_Place, tuple[tuple[str, ...], bool]] = {}

    def bind(target: ast.expr, value: ast.expr | ast.stmt, loop: bool = False) -> None:
        parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
        if len(parts) > 1 and isinstance(value, ast.Tuple) and len(value.elts) == len(parts):
            for part, item in zip(parts, value.elts, strict=True):
                bind(part, item)
        elif names := tuple(part.id for part in parts if isinstance(part, ast.Name)):
            bindings[value.lineno, value.end_lineno, value.col_offset, value.end_col_offset] = names, loop

    try:
        nodes = list(ast.walk(ast.parse(source)))
    except SyntaxError:
        return bindings
    for node in nodes:
        # The first operand may also be a type, which is not a local variable.
        if isinstance(node, ast.Call) and node.args and ast.unparse(node.func).startswith("ptx.inst."):
            bind(node.args[0], node)
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                bind(target, node.value)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            bind(node.target, node.value)
        elif isinstance(node, ast.For):
            # The increment of a loop has the place of the statement in Python 3.11, that of the iterable in later ones.
            for place in (node, node.iter):
                bind(node.target, place, loop=True)
    return bindings
