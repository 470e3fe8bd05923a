"""Replaces long symbols, such as mangled names, by a constant of the file: `DEVICE_KERNEL =
"_ZN7cutlass13device_kernel…"`.

Contract: returns steps in which some strings are replaced by names. Nothing else changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyptx.codegen.analysis.demangle import demangle
from pyptx.codegen.expressions import replace_parts
from pyptx.codegen.names import Names, make_identifier
from pyptx.codegen.plan import Binary, Block, Define, Expr, Line, Literal, Name, Repeat, Step

LONGEST = 40
"""Maximum length of an unmangled symbol that is used directly."""


def shorten_symbols(steps: Sequence[Step], symbols: Sequence[str], names: Names) -> tuple[tuple[Step, ...], list[Step]]:
    """Return the steps with constants for long symbols, and the lines that define them."""
    replacements: dict[str, Expr] = {}
    definitions: list[Step] = []
    for symbol in sorted(set(symbols), key=lambda word: (len(word), word)):
        if len(symbol) <= LONGEST and demangle(symbol) == symbol:
            continue
        stem = next(
            (prefix for prefix in replacements if symbol.startswith(prefix) and isinstance(replacements[prefix], Name)),
            None,
        )
        if stem is not None:
            replacements[symbol] = Binary("+", replacements[stem], Literal(symbol[len(stem) :]))
            continue
        name = Name(names.make_name(make_identifier(demangle(symbol).strip("_")).upper()))
        replacements[symbol] = name
        definitions.append(Line(Literal(symbol), (), name))
    if not replacements:
        return tuple(steps), []
    return tuple(_shorten(steps, replacements)), definitions


def _shorten(steps: Sequence[Step], replacements: dict[str, Expr]) -> Iterator[Step]:
    for step in steps:
        if isinstance(step, Line):
            yield step.replace(value=_replace(step.value, replacements))
        elif isinstance(step, Block):
            yield step.replace(
                header=_replace(step.header, replacements), body=tuple(_shorten(step.body, replacements))
            )
        elif isinstance(step, Repeat):
            values = _replace(step.values, replacements)
            yield step.replace(values=values, body=tuple(_shorten(step.body, replacements)))
        elif isinstance(step, Define):
            decorators = tuple([_replace(decorator, replacements) for decorator in step.decorators])
            yield step.replace(decorators=decorators, body=tuple(_shorten(step.body, replacements)))
        else:
            yield step


def _replace(value: Expr, replacements: dict[str, Expr]) -> Expr:
    if isinstance(value, Literal):
        return replacements.get(value.value, value) if isinstance(value.value, str) else value
    return replace_parts(value, lambda part: _replace(part, replacements))
