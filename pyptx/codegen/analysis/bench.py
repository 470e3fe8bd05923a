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
        self.bindings: dict[str, Any] = dict(VOCABULARY)
        self._registers: dict[tuple[str, PtxType], Reg] = {}
        self._queues: dict[tuple[str, int], None] = {}
        self._reach_cache: dict[tuple[PtxType, PtxType], bool] = {}
        self._name_queues = NameQueues(self.exact, (), ())

    def declare(self, statement: RegDecl) -> None:
        """Record the types of declared registers: new registers take their names from them, class by class."""
        for item in statement.declarators:
            self.exact.declare(statement.type, item.name, item.count)
            self._queues[self.exact.find_class(self.view_register(item.name, from_name(statement.type.ptx)))] = None

    def reaches(self, dtype: PtxType, declared_type: PtxType) -> bool:
        """Tell whether a new register of a type takes its name from the registers declared as another."""
        answer = self._reach_cache.get((dtype, declared_type))
        if answer is None:
            names = NameQueues(self.exact, (), ())
            names.queues = {key: deque((repr(key),)) for key in self._queues}
            register_class = self.exact.find_class(Reg("_", declared_type))
            answer = self._reach_cache[dtype, declared_type] = names.take(dtype) == repr(register_class)
        return answer

    def view_register(self, name: str, dtype: PtxType) -> Reg:
        """Return a PTX register as the DSL represents it."""
        view = self._registers.get((name, dtype))
        if view is None:
            token = CURRENT.set(self.trace)
            view = self._registers[name, dtype] = register(name, dtype)
            CURRENT.reset(token)
        return view

    def emits_in_place(self, target: Expr, symbol: str, value: Expr, statement: Statement) -> bool:
        """Tell whether `target += value`, or another in-place operator, emits exactly the expected statement."""
        result = self.try_expression(Tuple((target, value)), (), None)
        return result is not DIFFERENT and self._try(lambda: _IN_PLACE[symbol](*result), statement) is not DIFFERENT

    def try_expression(self, expr: Expr, fresh: Sequence[Reg], statement: Statement | None) -> Any:
        """Return the value of an expression if it emits exactly the expected statement and its new registers take
        exactly the given names; else `DIFFERENT`. Every class of registers holds a wrong name in reserve."""
        queues = self._name_queues.queues
        for key in self._queues:
            queues[key] = deque(("_wrong",))
        for item in fresh:
            queue = queues.setdefault(self.exact.find_class(item), deque(("_wrong",)))
            queue.insert(len(queue) - 1, item.name)
        self.exact.name_queues = [self._name_queues]
        return self._try(lambda: self.evaluate_expression(expr), statement)

    def emits_all(self, expr: Expr, fresh: Sequence[Reg], statements: Sequence[Statement]) -> bool:
        """Tell whether an expression emits exactly these statements."""
        return self.try_expression(expr, fresh, Block(tuple(statements))) is not DIFFERENT

    def _try(self, evaluate: Callable[[], Any], statement: Statement | None) -> Any:
        trace, queues = self.trace, self._name_queues.queues
        token = CURRENT.set(trace)
        try:
            value = evaluate()
            uses_all_names = all(len(queue) == 1 for queue in queues.values())
            body = trace.body
            matches = not body if statement is None else _are_alike(body, statement)
            return value if uses_all_names and matches else DIFFERENT
        except (PtxError, AttributeError, TypeError, ValueError, IndexError, KeyError):
            return DIFFERENT
        finally:
            CURRENT.reset(token)
            trace.body.clear()
            trace.jumps.clear()
            trace.folds.clear()
            trace.pending.clear()

    def bind_range(self, identifier: str, base: str, count: int, dtype: PtxType) -> None:
        """Bind a name to a range of registers."""
        token = CURRENT.set(self.trace)
        self.bindings[identifier] = DeclaredRange(base, count, dtype)
        CURRENT.reset(token)

    def look_up(self, expr: Expr) -> Any:
        """Return the value of a plain name or element, or None for anything else."""
        if isinstance(expr, Name):
            return self.bindings.get(expr.id)
        if isinstance(expr, Item | Attribute):
            token = CURRENT.set(self.trace)
            try:
                return self.evaluate_expression(expr)
            finally:
                CURRENT.reset(token)
        return None

    def evaluate_expression(self, expr: Expr) -> Any:
        """Return the value of an expression."""
        return _VALUES[type(expr)](self, expr)


DIFFERENT = object()
"""Result of an expression that does not emit the expected statement."""


def _are_alike(body: Sequence[Statement], statement: Statement) -> bool:
    if not isinstance(statement, Block):
        return len(body) == 1 and have_same_tokens(body[0], statement)
    # A block is compared as a whole, other statements with the contents of the expected one.
    if len(body) == 1 and isinstance(body[0], Block):
        return module_tokens(body[0]) == module_tokens(statement)
    return module_tokens(Block(tuple(body))) == module_tokens(statement)


def have_same_tokens(first: Statement, second: Statement) -> bool:
    """Tell whether two statements have the same tokens."""
    return first == second or tokens(first) == tokens(second)


def _call(bench: Bench, expr: Call) -> Any:
    function = bench.evaluate_expression(expr.function)
    arguments: list[Any] = []
    for argument in expr.arguments:
        if isinstance(argument, Unary) and argument.operator == "*":
            arguments += bench.evaluate_expression(argument.operand)
        else:
            arguments.append(bench.evaluate_expression(argument))
    return function(*arguments, **{name: bench.evaluate_expression(value) for name, value in expr.keywords})


def _build_slice(bench: Bench, expr: Slice) -> slice:
    return slice(
        *[None if part is None else bench.evaluate_expression(part) for part in (expr.start, expr.stop, expr.step)]
    )


_VALUES: dict[type[Expr], Callable[[Bench, Any], Any]] = {
    Name: lambda bench, expr: bench.bindings[expr.id],
    Literal: lambda _, expr: expr.value,
    Attribute: lambda bench, expr: getattr(bench.evaluate_expression(expr.value), expr.name),
    Item: lambda bench, expr: bench.evaluate_expression(expr.value)[bench.evaluate_expression(expr.index)],
    Slice: _build_slice,
    Call: _call,
    Unary: lambda bench, expr: _UNARY[expr.operator](bench.evaluate_expression(expr.operand)),
    Binary: lambda bench, expr: _BINARY[expr.operator](
        bench.evaluate_expression(expr.left), bench.evaluate_expression(expr.right)
    ),
    List: lambda bench, expr: [bench.evaluate_expression(element) for element in expr.elements],
    Tuple: lambda bench, expr: tuple([bench.evaluate_expression(element) for element in expr.elements]),
}
