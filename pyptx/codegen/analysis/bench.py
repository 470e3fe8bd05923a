"""Tries expressions: evaluates them with the DSL itself, on a scratch trace, and compares what they emit.

Only this module decides whether a different Python spelling still emits exactly the same instruction. PTX text is never
evaluated: expressions are nodes of the plan, and names have the values that `give` assigned.
"""

from __future__ import annotations

import operator as operators
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from pyptx import ptx, reg, types
from pyptx.check.symbols import Scope
from pyptx.codegen.plan import Attribute, Binary, Call, Expr, Item, List, Literal, Name, Slice, Tuple, Unary
from pyptx.diagnostics import PtxError
from pyptx.dsl.exact import Exact, NameQueues
from pyptx.dsl.exact_declarations import DeclaredRange, register
from pyptx.dsl.registers import Reg
from pyptx.dsl.trace import CURRENT, Trace
from pyptx.ir.base import tokens
from pyptx.ir.nodes import Block, RegDecl, Statement
from pyptx.ir.walk import module_tokens
from pyptx.isa.targets import Target, Version
from pyptx.types import PtxType, from_name

VOCABULARY: dict[str, Any] = {"ptx": ptx, "reg": reg, "abs": abs, **{kind.name: kind for kind in types.ALL}}
_OPERATORS: Any = operators
"""Python's operators; their stubs are not precise enough for registers."""
_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": _OPERATORS.add, "-": _OPERATORS.sub, "*": _OPERATORS.mul, "/": _OPERATORS.truediv, "//": _OPERATORS.floordiv,
    "%": _OPERATORS.mod, "<<": _OPERATORS.lshift, ">>": _OPERATORS.rshift, "&": _OPERATORS.and_, "^": _OPERATORS.xor,
    "|": _OPERATORS.or_, "<": _OPERATORS.lt, "<=": _OPERATORS.le, ">": _OPERATORS.gt, ">=": _OPERATORS.ge,
    "==": _OPERATORS.eq, "!=": _OPERATORS.ne,
}  # fmt: skip
_IN_PLACE: dict[str, Callable[[Any, Any], Any]] = {
    "+": _OPERATORS.iadd, "-": _OPERATORS.isub, "*": _OPERATORS.imul, "<<": _OPERATORS.ilshift,
    ">>": _OPERATORS.irshift, "&": _OPERATORS.iand, "^": _OPERATORS.ixor, "|": _OPERATORS.ior,
}  # fmt: skip
_UNARY: dict[str, Callable[[Any], Any]] = {"-": _OPERATORS.neg, "~": _OPERATORS.invert}


class Bench:
    """A scratch transcript for one target, in which expressions are tried."""

    def __init__(self, target: Target, version: Version, scope: Scope) -> None:
        self.trace = Trace(target, version, "scratch")
        self.trace.scope.parent = scope
        self.exact = Exact(self.trace)
        self.trace.exact = self.exact
        self.given: dict[str, Any] = dict(VOCABULARY)
        self._registers: dict[tuple[str, PtxType], Reg] = {}
        self._queues: dict[tuple[str, int], None] = {}
        self._reached: dict[tuple[PtxType, PtxType], bool] = {}
        self._handed = NameQueues(self.exact, (), ())

    def declare(self, statement: RegDecl) -> None:
        """Record the types of declared registers: new registers take their names from them, class by class."""
        for item in statement.declarators:
            self.exact.declare(statement.type, item.name, item.count)
            self._queues[self.exact.find_class(self.register(item.name, from_name(statement.type.ptx)))] = None

    def reaches(self, dtype: PtxType, declared: PtxType) -> bool:
        """Tell whether a new register of a type takes its name from the registers declared as another."""
        known = self._reached.get((dtype, declared))
        if known is None:
            names = NameQueues(self.exact, (), ())
            names.queues = {key: deque((repr(key),)) for key in self._queues}
            register_class = self.exact.find_class(Reg("_", declared))
            known = self._reached[dtype, declared] = names.take(dtype) == repr(register_class)
        return known

    def register(self, name: str, dtype: PtxType) -> Reg:
        """Return a PTX register as the DSL represents it."""
        known = self._registers.get((name, dtype))
        if known is None:
            token = CURRENT.set(self.trace)
            known = self._registers[name, dtype] = register(name, dtype)
            CURRENT.reset(token)
        return known

    def changes(self, target: Expr, symbol: str, value: Expr, wanted: Statement) -> bool:
        """Tell whether `target += value`, or another in-place operator, emits exactly the expected statement."""
        result = self.emitted(Tuple((target, value)), (), None)
        return result is not DIFFERENT and self._try(lambda: _IN_PLACE[symbol](*result), wanted) is not DIFFERENT

    def emitted(self, expr: Expr, fresh: Sequence[Reg], wanted: Statement | None) -> Any:
        """Return the value of an expression if it emits exactly the expected statement and its new registers take
        exactly the given names; else `DIFFERENT`. Every class of registers holds a wrong name in reserve."""
        queues = self._handed.queues
        for key in self._queues:
            queues[key] = deque(("_wrong",))
        for item in fresh:
            queue = queues.setdefault(self.exact.find_class(item), deque(("_wrong",)))
            queue.insert(len(queue) - 1, item.name)
        self.exact.name_queues = [self._handed]
        return self._try(lambda: self.value(expr), wanted)

    def emits_all(self, expr: Expr, fresh: Sequence[Reg], wanted: Sequence[Statement]) -> bool:
        """Tell whether an expression emits exactly these statements."""
        return self.emitted(expr, fresh, Block(tuple(wanted))) is not DIFFERENT

    def _try(self, evaluate: Callable[[], Any], wanted: Statement | None) -> Any:
        trace, queues = self.trace, self._handed.queues
        token = CURRENT.set(trace)
        try:
            value = evaluate()
            exhausted = all(len(queue) == 1 for queue in queues.values())
            body = trace.body
            same = not body if wanted is None else _are_alike(body, wanted)
            return value if exhausted and same else DIFFERENT
        except (PtxError, AttributeError, TypeError, ValueError, IndexError, KeyError):
            return DIFFERENT
        finally:
            CURRENT.reset(token)
            trace.body.clear()
            trace.jumps.clear()
            trace.folds.clear()
            trace.pending.clear()

    def range(self, identifier: str, base: str, count: int, dtype: PtxType) -> None:
        """Bind a name to a range of registers."""
        token = CURRENT.set(self.trace)
        self.given[identifier] = DeclaredRange(base, count, dtype)
        CURRENT.reset(token)

    def known(self, expr: Expr) -> Any:
        """Return the value of a plain name or element, or None for anything else."""
        if isinstance(expr, Name):
            return self.given.get(expr.id)
        if isinstance(expr, Item | Attribute):
            token = CURRENT.set(self.trace)
            try:
                return self.value(expr)
            finally:
                CURRENT.reset(token)
        return None

    def value(self, expr: Expr) -> Any:
        """Return the value of an expression."""
        return _VALUES[type(expr)](self, expr)


DIFFERENT = object()
"""Result of an expression that does not emit the expected statement."""


def _are_alike(body: Sequence[Statement], wanted: Statement) -> bool:
    if not isinstance(wanted, Block):
        return len(body) == 1 and alike(body[0], wanted)
    # A block is compared as a whole, other statements with the contents of the expected one.
    if len(body) == 1 and isinstance(body[0], Block):
        return module_tokens(body[0]) == module_tokens(wanted)
    return module_tokens(Block(tuple(body))) == module_tokens(wanted)


def alike(mine: Statement, wanted: Statement) -> bool:
    """Tell whether two statements have the same tokens."""
    return mine == wanted or tokens(mine) == tokens(wanted)


def _call(bench: Bench, expr: Call) -> Any:
    function = bench.value(expr.function)
    arguments: list[Any] = []
    for argument in expr.arguments:
        if isinstance(argument, Unary) and argument.operator == "*":
            arguments += bench.value(argument.operand)
        else:
            arguments.append(bench.value(argument))
    return function(*arguments, **{name: bench.value(value) for name, value in expr.keywords})


def _build_slice(bench: Bench, expr: Slice) -> slice:
    return slice(*[None if part is None else bench.value(part) for part in (expr.start, expr.stop, expr.step)])


_VALUES: dict[type[Expr], Callable[[Bench, Any], Any]] = {
    Name: lambda bench, expr: bench.given[expr.id],
    Literal: lambda _, expr: expr.value,
    Attribute: lambda bench, expr: getattr(bench.value(expr.value), expr.name),
    Item: lambda bench, expr: bench.value(expr.value)[bench.value(expr.index)],
    Slice: _build_slice,
    Call: _call,
    Unary: lambda bench, expr: _UNARY[expr.operator](bench.value(expr.operand)),
    Binary: lambda bench, expr: _BINARY[expr.operator](bench.value(expr.left), bench.value(expr.right)),
    List: lambda bench, expr: [bench.value(element) for element in expr.elements],
    Tuple: lambda bench, expr: tuple([bench.value(element) for element in expr.elements]),
}
