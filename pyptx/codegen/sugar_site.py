"""One instruction of a draft as the passes see it: its words, its operands as expressions, and helpers to build
calls."""

from __future__ import annotations

from functools import cached_property

from pyptx.check.body import Step
from pyptx.codegen.plan import Binary, Call, Expr, List, Literal, Name, Unary, build_path, call
from pyptx.codegen.sugar_draft import Draft
from pyptx.codegen.sugar_operands import NONE, PIPE, Operands
from pyptx.ir.operands import Operand, PipeOperand, VectorOperand
from pyptx.types import ALL, PtxType

_TYPES = {kind.name: kind for kind in ALL}


class Site:
    """An instruction with its position. `fresh`: the expression to be found creates its destination."""

    types = _TYPES

    def __init__(self, draft: Draft, step: Step, fresh: bool) -> None:
        self.draft, self.step, self.fresh = draft, step, fresh
        instruction = step.instruction
        self.opcode = instruction.opcode
        self.words = tuple([modifier[1:] for modifier in instruction.modifiers])
        self.actuals: tuple[Operand, ...] = instruction.operands
        self.operands = Operands(draft, step.scope)

    @property
    def kind(self) -> PtxType | None:
        """The type that the last modifier names."""
        return _TYPES.get(self.words[-1]) if self.words else None

    def name_type(self, kind: PtxType | str) -> Expr:
        """Return a type by its name."""
        return Name(kind if isinstance(kind, str) else kind.name)

    @cached_property
    def pred(self) -> Expr | None:
        """The guard."""
        guard = self.step.instruction.predicate
        if guard is None:
            return None
        expression = self.operands.build_name(guard.register)
        return Unary("~", expression) if guard.negated else expression

    def build_guard(self) -> tuple[tuple[str, Expr], ...]:
        """Return the guard as a keyword."""
        return () if self.pred is None else (("pred", self.pred),)

    def build_operand(self, index: int) -> Expr | None:
        """Return one operand; None if it is missing or Python cannot express it."""
        return self.operands.build_expression(self.actuals[index]) if index < len(self.actuals) else None

    def build_operands(self, first: int) -> tuple[Expr | None, ...]:
        """Return the operands from an index on."""
        return tuple([self.operands.build_expression(operand) for operand in self.actuals[first:]])

    def build_call(self, path: str, *arguments: Expr | None, **keywords: Expr | None) -> Expr | None:
        """Return a call with the guard; None if an argument is None."""
        values = [argument for argument in arguments if argument is not None]
        if len(values) < len(arguments):
            return None
        pairs = tuple([(name, value) for name, value in keywords.items() if value is not None])
        return Call(build_path(path), tuple(values), (*pairs, *self.build_guard()))

    def build_list(self, values: tuple[Expr | None, ...]) -> Expr | None:
        """Return a list; None if an element is None."""
        return None if None in values else List(tuple([value for value in values if value is not None]))

    def find_home(self, operand: Operand) -> PtxType | None:
        """Return the type that most uses of a register need."""
        name = getattr(operand, "name", None)
        variable = self.operands.get_variable(name) if isinstance(name, str) else None
        return None if variable is None else variable.home

    def build_new_types(self) -> Expr | None:
        """Return the types of new destination registers in place of the registers, the first operand."""
        operand = self.actuals[0] if self.actuals else None
        if isinstance(operand, VectorOperand):
            kinds = [self.find_home(element) for element in operand.elements]
            types = [kind for kind in kinds if kind is not None]
            if len(types) < len(kinds):
                return None
            return (
                repeat_type(types[0], len(types))
                if len(set(types)) == 1
                else List(tuple([Name(k.name) for k in types]))
            )
        if isinstance(operand, PipeOperand):
            sides = [
                NONE if getattr(side, "name", "") == "_" else self._find_type(side)
                for side in (operand.left, operand.right)
            ]
            return None if None in sides else call(PIPE, *[side for side in sides if side is not None])
        return None if operand is None else self._find_type(operand)

    def _find_type(self, operand: Operand) -> Expr | None:
        kind = self.find_home(operand)
        return None if kind is None else Name(kind.name)


def repeat_type(kind: PtxType, count: int) -> Expr:
    """Return `[kind] * count`: that many new registers."""
    return Binary("*", List((Name(kind.name),)), Literal(count))
