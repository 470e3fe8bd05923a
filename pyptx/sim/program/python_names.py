"""The variables of a kernel in Python that hold its registers: those that are bound to what an instruction made, and
those that `ptx.inst` is given as destination. Reads places of instructions; knows nothing of how they were traced."""

from __future__ import annotations

import ast
import linecache
from functools import lru_cache
from itertools import groupby

from pyptx.check.flow import collect_accesses
from pyptx.diagnostics import PythonFrame
from pyptx.sim.program.blocks import Program

_Place = tuple[int | None, int | None, int | None, int | None]
"""The first and the last line of an expression, and its first and its last column."""


def python_names(program: Program) -> dict[str, str]:
    """Return the variable of each register that has one, by the register's name in PTX."""
    found: dict[str, str] = {}
    begun: set[tuple[str, _Place]] = set()
    steps = ((step.instruction.origin, step) for block in program.blocks for step in block.steps if step.plan)
    for origin, group in groupby(steps, key=lambda item: item[0]):
        if not isinstance(origin, PythonFrame):
            continue
        written = [name for _, step in group for name, _ in collect_accesses(step)[1]]
        place = list(origin.code.co_positions())[origin.lasti // 2]
        names, loop = _names_at(origin, place)
        if loop and (origin.file, place) in begun:
            # The loop began with its counter; its steps and tests have the same place.
            continue
        begun.add((origin.file, place))
        targets = list(dict.fromkeys(written))[-len(names) :] if names else []
        if len(targets) == len(names):
            found.update(zip(targets, names, strict=True))
    return found


def _names_at(origin: PythonFrame, place: _Place) -> tuple[tuple[str, ...], bool]:
    """Return the variables that an expression is bound to, and whether a loop does so."""
    places = _bound("".join(linecache.getlines(origin.file)))
    names, loop = places.get(place, ((), False))
    local = {*origin.code.co_varnames, *origin.code.co_cellvars}
    return (names, loop) if local.issuperset(names) else ((), False)


@lru_cache(maxsize=16)
def _bound(source: str) -> dict[_Place, tuple[tuple[str, ...], bool]]:
    """Return the variables that expressions of a file are bound to."""
    found: dict[_Place, tuple[tuple[str, ...], bool]] = {}

    def bind(target: ast.expr, value: ast.expr | ast.stmt, loop: bool = False) -> None:
        parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
        if len(parts) > 1 and isinstance(value, ast.Tuple) and len(value.elts) == len(parts):
            for part, item in zip(parts, value.elts, strict=True):
                bind(part, item)
        elif names := tuple(part.id for part in parts if isinstance(part, ast.Name)):
            found[value.lineno, value.end_lineno, value.col_offset, value.end_col_offset] = names, loop

    try:
        nodes = list(ast.walk(ast.parse(source)))
    except SyntaxError:
        return found
    for node in nodes:
        # The first operand may be a type, too, which is no local variable.
        if isinstance(node, ast.Call) and node.args and ast.unparse(node.func).startswith("ptx.inst."):
            bind(node.args[0], node)
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                bind(target, node.value)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            bind(node.target, node.value)
        elif isinstance(node, ast.For):
            # Python 3.11 gives the step of a loop the place of the statement, later ones that of what it iterates over.
            for place in (node, node.iter):
                bind(node.target, place, loop=True)
    return found
