"""Adds comments with the source line of the kernel, taken from `.loc`.

Contract: adds comments only. `.loc` itself is not written; these comments replace it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyptx.codegen.plan import Block, Line, Repeat, Step
from pyptx.codegen.printer import format_expression
from pyptx.ir.directives import FileDirective, LocDirective, Module
from pyptx.ir.nodes import Function, Instruction, Statement
from pyptx.ir.walk import visit

LONGEST = 72
"""Maximum length of a line that gets a comment."""

Places = Mapping[int, str]
"""The source place of each instruction that has one, by identity."""


def list_files(module: Module) -> dict[int, str]:
    """Return the names of the source files by number, without directories."""
    directives = (statement for statement in visit(module) if isinstance(statement, FileDirective))
    return {int(item.index): item.path.replace("\\", "/").rpartition("/")[2] for item in directives}


def find_places(function: Function, files: Mapping[int, str]) -> dict[int, str]:
    """Return the source places of a function's instructions."""
    places: dict[int, str] = {}
    place: str | None = None
    for statement in visit(function):
        place = _find_place(statement, files, place)
        if place is not None and isinstance(statement, Instruction):
            places[id(statement)] = place
    return places


def _find_place(statement: Statement, files: Mapping[int, str], place: str | None) -> str | None:
    if not isinstance(statement, LocDirective):
        return place
    name = files.get(int(statement.file))
    return f"{name}:{int(statement.line)}" if name and int(statement.line) else None


def cite_lines(steps: Sequence[Step], places: Places) -> tuple[Step, ...]:
    """Return the steps with source places where these change."""
    return tuple(_cite(steps, places, [""]))


def _cite(steps: Sequence[Step], places: Places, last: list[str]) -> list[Step]:
    out: list[Step] = []
    for step in steps:
        if isinstance(step, Block):
            out.append(step.replace(body=tuple(_cite(step.body, places, last))))
            continue
        place = _find_place_of(step, places)
        if place is not None and place != last[0] and isinstance(step, Line) and step.comment is None:
            target = "" if step.target is None else format_expression(step.target)
            if len(format_expression(step.value)) + len(target) <= LONGEST:
                step = step.replace(comment=place)
                last[0] = place
        out.append(step)
    return out


def _find_place_of(step: Step, places: Places) -> str | None:
    """Return the place of a line's last instruction, for which the others are computed."""
    emits = step.emits if isinstance(step, Line | Repeat) else ()
    return places.get(id(emits[-1])) if emits else None
