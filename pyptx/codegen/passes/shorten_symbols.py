"""Replaces long symbols, such as mangled names, by a constant of the file: `DEVICE_KERNEL =
"_ZN7cutlass13device_kernel…"`.

Contract: returns steps in which some strings are replaced by names. Nothing else changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyptx.codegen.analysis.demangle import readable
from pyptx.codegen.names import Names, identifier
from pyptx.codegen.passes.repeats import inside, rebuilt
from pyptx.codegen.plan import Binary, Block, Define, Expr, Line, Literal, Main, Name, Repeat, Step

LONGEST = 40
"""Maximum length of an unmangled symbol that is used directly."""


def shorten_symbols(steps: Sequence[Step], symbols: Sequence[str], names: Names) -> tuple[tuple[Step, ...], list[Step]]:
    """Return the steps with constants for long symbols, and the lines that define them."""
    known: dict[str, Expr] = {}
    definitions: list[Step] = []
    for symbol in sorted(set(symbols), key=lambda word: (len(word), word)):
        if len(symbol) <= LONGEST and readable(symbol) == symbol:
            continue
        stem = next((other for other in known if symbol.startswith(other) and isinstance(known[other], Name)), None)
        if stem is not None:
            known[symbol] = Binary("+", known[stem], Literal(symbol[len(stem) :]))
            continue
        name = Name(names.fresh(identifier(readable(symbol).strip("_")).upper()))
        known[symbol] = name
        definitions.append(Line(Literal(symbol), (), name))
    if not known:
        return tuple(steps), []
    return tuple(_shorten(steps, known)), definitions


def _shorten(steps: Sequence[Step], known: dict[str, Expr]) -> Iterator[Step]:
    for step in steps:
        if isinstance(step, Line):
            yield step.replace(value=_replace(step.value, known))
        elif isinstance(step, Block):
            yield step.replace(header=_replace(step.header, known), body=tuple(_shorten(step.body, known)))
        elif isinstance(step, Repeat):
            values = _replace(step.values, known)
            yield step.replace(values=values, body=tuple(_shorten(step.body, known)))
        elif isinstance(step, Define):
            decorators = tuple([_replace(decorator, known) for decorator in step.decorators])
            yield step.replace(decorators=decorators, body=tuple(_shorten(step.body, known)))
        elif isinstance(step, Main):
            yield step
        else:
            yield step


def _replace(value: Expr, known: dict[str, Expr]) -> Expr:
    if isinstance(value, Literal):
        return known.get(value.value, value) if isinstance(value.value, str) else value
    parts = inside(value)
    result = [_replace(part, known) for part in parts]
    return value if all(mine is theirs for mine, theirs in zip(result, parts, strict=True)) else rebuilt(value, result)
