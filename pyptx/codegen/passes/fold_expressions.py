"""Folds values that are computed and used once into the expression that uses them: `x = (a + b) * 4`.

Contract: returns steps that emit the same statements in the same order. A line is folded into the next one only if its
value is read only there, and if Python evaluates it there before anything else that emits. Depth and length are
limited, for readability.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pyptx.codegen.expressions import list_parts, replace_parts
from pyptx.codegen.plan import (
    Block,
    Call,
    Expr,
    Lambda,
    Line,
    Name,
    Repeat,
    Step,
    Tuple,
)
from pyptx.codegen.printer import format_expression
from pyptx.ir.nodes import RegDecl

LONGEST = 76
"""Maximum length of a folded expression."""
DEEPEST = 3

Once = Callable[[str], bool]
"""Tells whether a variable is defined once and read once, so that it can be removed."""


def fold_expressions(steps: Sequence[Step], once: Once) -> tuple[Step, ...]:
    """Return the steps with single uses folded into their expressions."""
    return _Folding(once).fold_steps(steps)


class _Folding:
    def __init__(self, once: Once) -> None:
        self.once = once
        self.emitting: dict[int, Expr] = {}
        """Parts of expressions that emit, by identity."""
        self.depths: dict[int, int] = {}

    def fold_steps(self, steps: Sequence[Step]) -> tuple[Step, ...]:
        out: list[Step] = []
        for step in steps:
            if isinstance(step, Line):
                out.append(self.fold_line(step, out))
            elif isinstance(step, Block):
                out.append(self.fold_block(step, out))
            else:
                out.append(step)
        return tuple(out)

    def fold_line(self, step: Line, out: list[Step]) -> Line:
        if not step.emits:
            return step
        value, before = self.absorb(step.value, out)
        if before:
            step = step.replace(value=value, emits=(*before, *step.emits))
        self.emitting[id(value)] = value
        return step

    def fold_block(self, step: Block, out: list[Step]) -> Block:
        header, before = self.absorb(step.header, out)
        body = list(self.fold_steps(step.body))
        closes = step.closes
        keywords = dict(header.keywords) if isinstance(header, Call) else {}
        test = keywords.get("pred")
        if test is not None and isinstance(header, Call) and closes:
            condition, late = self.absorb(test, body)
            if not isinstance(condition, Lambda) and (late or self.assigns_condition(condition, body)):
                condition = Lambda(condition)
            keywords["pred"] = condition
            header, closes = header.replace(keywords=tuple(keywords.items())), (*late, *closes)
        return step.replace(header=header, body=tuple(body), opens=(*before, *step.opens), closes=closes)

    def assigns_condition(self, test: Expr, body: Sequence[Step]) -> bool:
        """Tell whether the body assigns the variable of a loop's condition."""
        names = {part.id for part in iterate_parts(test) if isinstance(part, Name)}
        return any(isinstance(t, Name) and t.id in names for t in _find_targets(body))

    def absorb(self, value: Expr, out: list[Step]) -> tuple[Expr, tuple[object, ...]]:
        """Return an expression with the preceding lines that fold into it, removed from `out`, and what they emit."""
        before: tuple[object, ...] = ()
        while out:
            last = out[-1]
            if not isinstance(last, Line) or not isinstance(last.target, Name) or last.operator or last.comment:
                break
            name = last.target.id
            if not last.emits or isinstance(last.emits[-1], RegDecl):
                break
            if not self.once(name) or not self.is_first(value, name):
                break
            depth = 1 + max(self.depths.get(id(last.value), 0), self.depths.get(id(value), 0) - 1)
            candidate = replace_name(value, name, last.value)
            if depth > DEEPEST or len(format_expression(candidate)) > LONGEST:
                break
            self.depths[id(candidate)] = depth
            self.emitting[id(last.value)] = last.value
            value, before = candidate, (*last.emits, *before)
            out.pop()
        return value, before

    def is_first(self, value: Expr, name: str) -> bool:
        """Tell whether a variable is evaluated before everything in an expression that emits."""
        for part in iterate_parts(value):
            if id(part) in self.emitting and part is not value:
                return False
            if isinstance(part, Name) and part.id == name:
                return True
        return False


def iterate_parts(value: Expr) -> Iterator[Expr]:
    """Yield the parts of an expression in Python's evaluation order; a part follows its own parts, except for one
    evaluated at once."""
    for part in list_parts(value):
        yield from iterate_parts(part)
    yield value


def replace_name(value: Expr, name: str, by: Expr) -> Expr:
    """Return an expression with a variable replaced; unaffected parts remain the same objects."""
    if isinstance(value, Name):
        return by if value.id == name else value
    return replace_parts(value, lambda part: replace_name(part, name, by))


def _find_targets(steps: Sequence[Step]) -> Iterator[Expr]:
    for step in steps:
        if isinstance(step, Line) and step.target is not None:
            yield step.target
            if isinstance(step.target, Tuple):
                yield from step.target.elements
        elif isinstance(step, Block | Repeat):
            yield from _find_targets(step.body)
