"""Removes assignments to unused variables: `rs = ptx.decl.reg(…)` becomes `ptx.decl.reg(…)`.

Contract: removes only targets of lines; every statement keeps what it emits.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyptx.codegen.passes.fold_expressions import iterate_parts
from pyptx.codegen.plan import Block, Define, Expr, Line, Name, Repeat, Step, walk


def drop_unused(function: Define) -> Define:
    """Return a function without assignments to variables that it never reads."""
    read = {
        part.id
        for step in walk((function,))
        for value in _find_read(step)
        for part in iterate_parts(value)
        if isinstance(part, Name)
    }
    return function.replace(body=_drop(function.body, read))


def _find_read(step: Step) -> Iterator[Expr]:
    """Yield the evaluated expressions of a step."""
    if isinstance(step, Line):
        yield step.value
        if step.target is not None and (step.operator or not isinstance(step.target, Name)):
            yield step.target
    elif isinstance(step, Block):
        yield step.header
    elif isinstance(step, Repeat):
        yield step.values


def _drop(body: tuple[Step, ...], read: set[str]) -> tuple[Step, ...]:
    out = list[Step]()
    for step in body:
        if (
            isinstance(step, Line)
            and isinstance(step.target, Name)
            and not step.operator
            and step.target.id not in read
        ):
            out.append(step.replace(target=None))
        elif isinstance(step, Block | Repeat):
            out.append(step.replace(body=_drop(step.body, read)))
        else:
            out.append(step)
    return tuple(out)
