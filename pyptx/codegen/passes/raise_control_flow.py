"""Writes branches and labels as `if_`, `else_`, `loop`, `break_`, `continue_` where they nest.

Contract: returns the steps of a body, which emit its statements, the same objects in the same order. Nothing is moved:
a structure emits its branch and its label. What does not nest stays `ptx.bra` and `ptx.label`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pyptx.codegen.analysis.structure import DEEPEST, Choice, Cycle, Leaf, Part, Shape, find_shape
from pyptx.codegen.plan import Block, Call, Emitted, Expr, Line, Literal, Step, Unary, build_path
from pyptx.ir.nodes import Instruction, Label, Statement

IF, ELSE, LOOP = build_path("ptx.if_"), build_path("ptx.else_"), build_path("ptx.loop")
_TRUE, _FALSE = Literal(True), Literal(False)
_UNI = ".uni"

Writer = Callable[[Statement, int], Sequence[Step]]
"""Writes one statement outside of structures, at this depth of `with` blocks."""
Guard = Callable[[Instruction], Expr]
"""Returns the predicate of a conditional branch, `~p` for `@!p`."""
Waits = Callable[[Statement, Statement, Instruction], "Line | None"]
"""Returns a line for a loop of a label, one statement and a branch back, if it is a wait loop."""


@dataclass(slots=True)
class Tally:
    """The result for the control flow of a function: the labels that `if_` and `else_` take, in order, and counts."""

    labels: list[str] = field(default_factory=list[str])
    structures: int = 0


@dataclass(slots=True)
class _Body:
    statements: Sequence[Statement]
    shape: Shape
    write: Writer
    guard: Guard
    waits: Waits
    tally: Tally

    def build_steps(self, parts: Sequence[Part], depth: int) -> tuple[Step, ...]:
        out: list[Step] = []
        for part in parts:
            if isinstance(part, Leaf):
                out += self.build_leaf(part.position, depth)
            else:
                self.tally.structures += 1
                out += self.build_choice(part, depth) if isinstance(part, Choice) else [self.build_cycle(part, depth)]
        return tuple(out)

    def build_leaf(self, position: int, depth: int) -> Sequence[Step]:
        statement = self.statements[position]
        exit = self.shape.leaves.get(position)
        if exit is None or not isinstance(statement, Instruction):
            return self.write(statement, depth)
        keywords = _build_uni(statement)
        if statement.predicate is not None:
            keywords = (*keywords, ("pred", self.guard(statement)))
        return [Line(Call(build_path(f"ptx.{exit}_"), (), keywords), (statement,))]

    def build_choice(self, part: Choice, depth: int) -> list[Step]:
        head, label = self.get_branch(part.head), self.statements[part.label]
        self.tally.labels.append(_get_name(label))
        test = self.guard(head)
        test = test.operand if isinstance(test, Unary) else Unary("~", test)
        closes = (label,) if part.owns_label and part.jump is None else ()
        is_placed = part.owns_label or part.jump is not None
        header = Call(IF, (test,), (*_build_uni(head), *_build_place(is_placed)))
        first = Block(header, self.build_steps(part.then, depth + 1), (head,), closes)
        if part.jump is None or part.end is None:
            return [first]
        jump, end = self.get_branch(part.jump), self.statements[part.end]
        self.tally.labels.append(_get_name(end))
        header = Call(ELSE, (), (*_build_uni(jump), *_build_place(part.owns_label)))
        opens: tuple[Emitted, ...] = (jump, label)
        return [
            first,
            Block(header, self.build_steps(part.otherwise, depth + 1), opens, (end,) if part.owns_label else ()),
        ]

    def build_cycle(self, part: Cycle, depth: int) -> Step:
        label, tail = self.statements[part.label], self.get_branch(part.tail)
        if len(part.body) == 1 and isinstance(part.body[0], Leaf) and part.end is None:
            waits = self.waits(label, self.statements[part.body[0].position], tail)
            if waits is not None:
                return waits
        keywords = _build_uni(tail)
        if tail.predicate is not None:
            keywords = (("pred", self.guard(tail)), *keywords)
        closes: tuple[Emitted, ...] = (tail,)
        if part.end is not None:
            end = self.statements[part.end]
            keywords, closes = (*keywords, ("end", Literal(_get_name(end)))), (tail, end)
        header = Call(LOOP, (Literal(_get_name(label)),), keywords)
        return Block(header, self.build_steps(part.body, depth + 1), (label,), closes)

    def get_branch(self, position: int) -> Instruction:
        statement = self.statements[position]
        assert isinstance(statement, Instruction)
        return statement


def _get_name(label: Statement) -> str:
    assert isinstance(label, Label)
    return label.name


def _build_uni(branch: Instruction) -> tuple[tuple[str, Expr], ...]:
    return (("uni", _TRUE),) if branch.modifiers == (_UNI,) else ()


def _build_place(is_placed: bool) -> tuple[tuple[str, Expr], ...]:
    return () if is_placed else (("place", _FALSE),)


def raise_control_flow(
    statements: Sequence[Statement],
    write: Writer,
    guard: Guard,
    waits: Waits,
    tally: Tally,
    depth: int = 0,
) -> tuple[Step, ...]:
    """Return the steps of a body at this depth of `with` blocks. `write` writes the statements outside of
    structures."""
    shape = find_shape(statements, deepest=max(DEEPEST - depth, 0))
    return _Body(statements, shape, write, guard, waits, tally).build_steps(shape.parts, depth)
