"""Tries expressions out: evaluates them with the DSL itself, on a trace that nobody sees, and compares what they emit.

This is the one place that decides whether Python written another way still emits exactly this instruction. Nothing of
the PTX is evaluated as text: expressions are nodes of the plan, and names mean what `give` said.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from pyptx import ptx, reg, types
from pyptx.codegen.plan import Attribute, Binary, Call, Expr, Item, List, Literal, Name, Slice, Tuple, Unary
from pyptx.diagnostics import PtxError
from pyptx.dsl.registers import Reg
from pyptx.dsl.trace import CURRENT, Declarations, Trace
from pyptx.ir.kinds import ScalarType
from pyptx.ir.nodes import Statement
from pyptx.isa.targets import Target, Version
from pyptx.types import PtxType

VOCABULARY: dict[str, Any] = {"ptx": ptx, "reg": reg, **{kind.name: kind for kind in types.ALL}}
_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "<<": operator.lshift, ">>": operator.rshift, "&": operator.and_, "^": operator.xor,
    "|": operator.or_, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_UNARY: dict[str, Callable[[Any], Any]] = {"-": operator.neg, "~": operator.invert}


class _Handed(Declarations):
    """Hands out the names that are waiting, in order."""

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        super().__init__("")
        self.waiting: list[str] = []

    def fresh(self, letter: str, storage: ScalarType) -> str:
        if not self.waiting:
            raise NothingWaits
        return self.waiting.pop(0)


class NothingWaits(Exception):
    """An expression made a register more than the instructions define."""


class Bench:
    """A scratch kernel for one target, in which expressions are tried."""

    def __init__(self, target: Target, version: Version, scope: Any) -> None:
        self.trace = Trace(target, version, "scratch")
        self.trace.scope.parent = scope
        self.names = _Handed()
        self.trace.declarations = self.trace.top = self.names
        self.given: dict[str, Any] = dict(VOCABULARY)
        self._registers: dict[tuple[str, PtxType], Reg] = {}

    def register(self, name: str, dtype: PtxType) -> Reg:
        """Return a register of the PTX as the DSL holds it."""
        known = self._registers.get((name, dtype))
        if known is None:
            token = CURRENT.set(self.trace)
            known = self._registers[name, dtype] = Reg(name, dtype)
            CURRENT.reset(token)
        return known

    def emitted(self, expr: Expr, fresh: Sequence[str], wanted: Sequence[Statement]) -> Any:
        """Return the value of an expression if it emits exactly the wanted statements, fresh registers taking the given
        names, all of them; else `DIFFERENT`."""
        trace, names = self.trace, self.names
        names.waiting = list(fresh)
        token = CURRENT.set(trace)
        try:
            value = self.value(expr)
            same = len(trace.body) == len(wanted) and not names.waiting and trace.body == list(wanted)
            return value if same else DIFFERENT
        except (PtxError, NothingWaits, AttributeError, TypeError, ValueError, IndexError):
            return DIFFERENT
        finally:
            CURRENT.reset(token)
            trace.body.clear()
            trace.jumps.clear()
            trace.folds.clear()
            for name in fresh:
                trace.scope.names.pop(name, None)

    def value(self, expr: Expr) -> Any:
        """Return what an expression means."""
        return _VALUES[type(expr)](self, expr)


DIFFERENT = object()
"""What an expression that does not emit the wanted statements gives."""


def _call(bench: Bench, expr: Call) -> Any:
    function = bench.value(expr.function)
    arguments: list[Any] = []
    for argument in expr.arguments:
        if isinstance(argument, Unary) and argument.operator == "*":
            arguments += bench.value(argument.operand)
        else:
            arguments.append(bench.value(argument))
    return function(*arguments, **{name: bench.value(value) for name, value in expr.keywords})


def _slice(bench: Bench, expr: Slice) -> slice:
    return slice(*[None if part is None else bench.value(part) for part in (expr.start, expr.stop, expr.step)])


_VALUES: dict[type[Expr], Callable[[Bench, Any], Any]] = {
    Name: lambda bench, expr: bench.given[expr.id],
    Literal: lambda _, expr: expr.value,
    Attribute: lambda bench, expr: getattr(bench.value(expr.value), expr.name),
    Item: lambda bench, expr: bench.value(expr.value)[bench.value(expr.index)],
    Slice: _slice,
    Call: _call,
    Unary: lambda bench, expr: _UNARY[expr.operator](bench.value(expr.operand)),
    Binary: lambda bench, expr: _BINARY[expr.operator](bench.value(expr.left), bench.value(expr.right)),
    List: lambda bench, expr: [bench.value(element) for element in expr.elements],
    Tuple: lambda bench, expr: tuple([bench.value(element) for element in expr.elements]),
}
