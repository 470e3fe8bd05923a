"""Operands by the names that the table gives them: which operand list of an instruction takes these, in what order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from pyptx.dsl import rules
from pyptx.dsl.emit import Spelling, plans_of
from pyptx.dsl.trace import Trace, fail
from pyptx.dsl.values import RegisterRange

Names = tuple[str, ...]


def arranged(
    trace: Trace, spelling: Spelling, given: Mapping[str, Any], defaults: Mapping[str, Any], remedy: str
) -> list[Any]:
    """Return the values in the instruction's order: all that are given, and defaults where its form has such operands.

    Lists and register ranges go where the form has vectors. If it has no place for something given, or misses
    something, the error names both, and `remedy` says what to do.
    """
    known: dict[tuple[Spelling, frozenset[tuple[str, bool]]], Names] = trace.facts.setdefault("operand names", {})
    vectors = frozenset((name, isinstance(value, list | RegisterRange)) for name, value in given.items())
    names = known.get((spelling, vectors))
    if names is None:
        names = known[spelling, vectors] = _chosen(trace, spelling, dict(vectors), defaults, remedy)
    return [given[name] if name in given else defaults[name] for name in names]


def _chosen(
    trace: Trace, spelling: Spelling, given: Mapping[str, bool], defaults: Mapping[str, Any], remedy: str
) -> Names:
    plans = trace.plans.get(spelling) or plans_of(trace, spelling)
    signatures = [plan.signature for count in sorted(plans) for plan in plans[count]]
    fitting = [s for s in signatures if all(given.get(o.name, o.count > 0) == (o.count > 0) for o in s)]
    wrong: tuple[list[str], list[str]] = [], []
    for signature in fitting or signatures:
        names = tuple(operand.name for operand in signature)
        extra = [name for name in given if name not in names]
        missing = [name for name in names if name not in given and name not in defaults]
        if not extra and not missing:
            return names
        if not any(wrong) or len(extra) + len(missing) < len(wrong[0]) + len(wrong[1]):
            wrong = extra, missing
    _refuse(spelling, wrong, remedy)


def _refuse(spelling: Spelling, wrong: tuple[list[str], list[str]], remedy: str) -> NoReturn:
    parts = [f"{word} {_listed(names)}" for word, names in zip(("has no", "needs"), wrong, strict=True) if names]
    fail(rules.ARGUMENT, f"`{spelling}` {' and '.join(parts)}", help=remedy)


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
