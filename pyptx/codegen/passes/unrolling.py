"""Expands the iterations of a loop without running it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyptx.codegen.passes.repeats import substitute
from pyptx.codegen.plan import Call, Expr, Line, List, Literal, Name, Repeat, Tuple
from pyptx.codegen.printer import format_expression


def unroll(loop: Repeat, local_names: Sequence[dict[str, str]]) -> list[Line]:
    """Return the lines of all iterations of a loop, with the original names of their variables."""
    out: list[Line] = []
    for values, names in zip(_find_rounds(loop), local_names, strict=True):
        replacements = {**values, **{new: Name(old) for old, new in names.items()}}
        for line in loop.body:
            assert isinstance(line, Line)
            target = None if line.target is None else substitute(line.target, replacements)
            out.append(line.replace(value=substitute(line.value, replacements), target=target, emits=()))
    return out


def _find_rounds(loop: Repeat) -> Iterator[dict[str, Expr]]:
    """Yield the values of a loop's variables in each iteration."""
    targets, values = _flatten(loop.target), loop.values
    if isinstance(values, Tuple | List):
        for row in values.elements:
            yield dict(zip(targets, _split_row(row, len(targets)), strict=True))
        return
    assert isinstance(values, Call)
    table = values.arguments[0]
    if isinstance(table, Tuple):
        for index, row in enumerate(table.elements):
            yield dict(zip(targets, (Literal(index), *_split_row(row, len(targets) - 1)), strict=True))
        return
    bounds = [argument.value for argument in values.arguments if isinstance(argument, Literal)]
    for number in range(*[limit for limit in bounds if isinstance(limit, int)]):
        yield {targets[0]: Literal(number)}


def _split_row(row: Expr, width: int) -> tuple[Expr, ...]:
    return (row,) if width == 1 else row.elements if isinstance(row, Tuple) else ()


def _flatten(target: Expr) -> list[str]:
    if isinstance(target, Tuple):
        return [name for element in target.elements for name in _flatten(element)]
    return [format_expression(target)]
