"""Operands by their names in the table: selects the operand list of an instruction that takes them, and their order."""

from __future__ import annotations

from typing import Any

from pyptx.dsl import rules
from pyptx.dsl.emit import Spelling, require_plans
from pyptx.dsl.trace import Trace, fail
from pyptx.dsl.values import RegisterRange

Names = tuple[str, ...]


def arrange_operands(
    trace: Trace, spelling: Spelling, values: dict[str, Any], defaults: dict[str, Any], remedy: str
) -> list[Any]:
    """Return the values in the instruction's order: all that are passed, plus defaults for operands that the form
    requires.

    Lists and register ranges fill vector operands. If the form has no place for a value, or one is missing, the error
    names both, and `remedy` says what to do.
    """
    cache: dict[tuple[Spelling, tuple[tuple[str, bool], ...]], Names] = trace.facts.setdefault("operand names", {})
    vectors = tuple([(name, isinstance(value, list | RegisterRange)) for name, value in values.items()])
    names = cache.get((spelling, vectors))
    if names is None:
        names = cache[spelling, vectors] = _choose_names(trace, spelling, dict(vectors), defaults, remedy)
    return [values[name] if name in values else defaults[name] for name in names]


def _choose_names(
    trace: Trace, spelling: Spelling, vectors: dict[str, bool], defaults: dict[str, Any], remedy: str
) -> Names:
    plans = trace.plans.get(spelling) or require_plans(trace, spelling)
    signatures = [plan.signature for count in sorted(plans) for plan in plans[count]]
    fitting = [s for s in signatures if all(vectors.get(o.name, o.count > 0) == (o.count > 0) for o in s)]
    lists = [tuple(operand.name for operand in signature) for signature in fitting or signatures]
    mismatches = [
        ([n for n in vectors if n not in names], [n for n in names if n not in vectors | defaults]) for names in lists
    ]
    best = min(range(len(lists)), key=lambda i: len(mismatches[i][0]) + len(mismatches[i][1]))
    parts = [
        f"{word} {_join_names(names)}"
        for word, names in zip(("has no", "needs"), mismatches[best], strict=True)
        if names
    ]
    if parts:
        fail(rules.ARGUMENT, f"`{spelling}` {' and '.join(parts)}", help=remedy)
    return lists[best]


def _join_names(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
