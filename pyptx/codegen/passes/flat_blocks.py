"""Flattens blocks of braces into lines between two marks, so that repeats are found across them."""

from __future__ import annotations

from collections.abc import Sequence

from pyptx.codegen.plan import Block, Call, Line, Literal, Repeat, Step, Tuple, build_path

MOST = 24
"""Maximum number of lines of a block."""
_BRACES = build_path("ptx.block")
_OPEN, _CLOSE = Tuple((Literal("{"),)), Tuple((Literal("}"),))
"""Stands for the two ends of a block while repeats are searched."""


def flatten_block(step: Step) -> list[Line] | None:
    """Return a block of braces that contains only lines as lines between two marks."""
    if not isinstance(step, Block) or step.header != Call(_BRACES) or step.comment is not None:
        return None
    lines = [line for line in step.body if isinstance(line, Line) and line.comment is None]
    if len(lines) < len(step.body) or len(lines) > MOST:
        return None
    return [Line(_OPEN, step.opens), *lines, Line(_CLOSE, step.closes)]


def assemble(steps: Sequence[Step]) -> list[Step]:
    """Return steps with their blocks reassembled."""
    outer: list[tuple[list[Step], Line]] = []
    out: list[Step] = []
    for step in steps:
        if isinstance(step, Line) and step.value is _OPEN:
            outer.append((out, step))
            out = []
        elif isinstance(step, Line) and step.value is _CLOSE:
            inside = tuple(out)
            out, opening = outer.pop()
            out.append(Block(Call(_BRACES), inside, opening.emits, step.emits))
        elif isinstance(step, Repeat):
            out.append(step.replace(body=tuple(assemble(step.body))))
        else:
            out.append(step)
    return out


def is_balanced(lines: Sequence[Line]) -> bool:
    """Tell whether every block that the lines open is closed in them."""
    depth = 0
    for line in lines:
        depth += (line.value is _OPEN) - (line.value is _CLOSE)
        if depth < 0:
            return False
    return depth == 0
