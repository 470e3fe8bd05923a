"""Operands as expressions: registers become variables, symbols strings, the rest calls of `ptx`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyptx.codegen.plan import Call, Expr, Line, List, Literal, Name, Step, Tuple, Unary, build_path
from pyptx.codegen.scopes import Scope
from pyptx.ir.base import Node
from pyptx.ir.kinds import Number, ScalarType
from pyptx.ir.operands import (
    AddressOperand,
    BinaryOperand,
    CastOperand,
    ConditionalOperand,
    ConstantAddressOperand,
    FieldOperand,
    GenericOperand,
    ImmediateOperand,
    IndexedOperand,
    LabelOperand,
    MaskOperand,
    NegatedOperand,
    Operand,
    ParenthesizedOperand,
    PipeOperand,
    RegisterOperand,
    UnaryOperand,
    VectorOperand,
)

_MOST_DIGITS = 20
DEEPEST = 12
"""Maximum nesting depth of an expression; deeper parts become variables."""
NONE = Literal(None)
IMM, ADDR, SEL = build_path("ptx.imm"), build_path("ptx.addr"), build_path("ptx.sel")
_OP = {name: build_path(f"ptx.op.{name}") for name in (
    "address", "bare", "binary", "cast", "conditional", "field", "generic", "index", "mask", "negated", "paren", "pipe",
    "unary", "vector",
)}  # fmt: skip


class Operands:
    """Turns operands into expressions. Shared operands are converted once; records the types that are named, and the
    steps that must precede the statement (`pending`)."""

    def __init__(self) -> None:
        self.types: set[str] = set()
        self.pending: list[Step] = []
        self.numbers: dict[str, Expr] = {}
        self.symbols: dict[str, Expr] = {}

    def build_expression(self, operand: Operand, scope: Scope, in_brackets: bool = False) -> Expr:
        """Return an operand's expression; `bracketed` if the position would put a plain name or number in brackets."""
        if isinstance(operand, RegisterOperand | LabelOperand):
            expression = self.build_name(operand.name, scope)
            return Call(_OP["bare"], (expression,)) if in_brackets and expression is not NONE else expression
        if isinstance(operand, ImmediateOperand):
            return Call(IMM, (Literal(operand.text),)) if in_brackets else self.build_number(operand.text)
        if isinstance(operand, AddressOperand) and not operand.rest and operand.offset_expression is None:
            return self._build_address(operand, scope)
        return self._build_nested(operand, scope)

    def build_name(self, name: str, scope: Scope) -> Expr:
        """Return the expression of a register or symbol."""
        if name == "_":
            return NONE
        register = scope.find(name)
        if register is not None:
            return register
        base, dot, part = name.partition(".")
        if dot and base:
            register = scope.find(base)
            if register is not None:
                return Call(SEL, (register, Literal(part)))
        symbol = self.symbols.get(name)
        if symbol is None:
            symbol = self.symbols[name] = Literal(name)
        return symbol

    def build_number(self, text: str) -> Expr:
        """Return the expression of a number: a Python integer if its spelling is the same."""
        expression = self.numbers.get(text)
        if expression is None:
            expression = self.numbers[text] = parse_integer(text) or Call(IMM, (Literal(text),))
        return expression

    def build_integer(self, number: int | str | None) -> Expr:
        """Return the expression of an integer or string in a declaration; None for empty brackets."""
        if not isinstance(number, Number):
            return Literal(number)
        return self.build_number(number.text) if number.text else NONE

    def build_type(self, kind: ScalarType) -> Expr:
        """Return the name of a type and record it for import."""
        name = kind.ptx[1:]
        self.types.add(name)
        return Name(name)

    def _build_address(self, operand: AddressOperand, scope: Scope) -> Expr:
        base = self._build_base(operand.base, scope)
        if operand.offset is None:
            return Call(ADDR, (base,))
        return Call(ADDR, (base, self.build_number(operand.offset)))

    def _build_base(self, base: str, scope: Scope) -> Expr:
        return self.build_number(base) if base[0] in "-.0123456789" else self.build_name(base, scope)

    def _build_nested(self, operand: Operand, scope: Scope) -> Expr:
        """Return the expression of a nested operand, built from the inside out without recursion. If it nests too deep,
        the inner part becomes a variable on a preceding line."""
        results: list[tuple[Expr, int]] = []
        todo: list[tuple[Operand, bool]] = [(operand, False)]
        while todo:
            item, ready = todo.pop()
            inside = _list_inner(item)
            if not ready:
                todo.append((item, True))
                todo += [(child, False) for child in reversed(inside)]
                continue
            parts = [results.pop() for _ in inside][::-1]
            depth = 1 + max((deep for _, deep in parts), default=0)
            expression = self._build_one(item, [expr for expr, _ in parts], scope)
            if depth > DEEPEST:
                expression, depth = self._make_variable(expression, scope), 0
            results.append((expression, depth))
        return results[0][0]

    def _make_variable(self, expr: Expr, scope: Scope) -> Expr:
        name = Name(scope.names.make_name("part"))
        self.pending.append(Line(_wrap_in_call(expr), (), name))
        return name

    def _build_one(self, item: Operand, parts: Sequence[Expr], scope: Scope) -> Expr:
        make = _MAKERS.get(type(item))
        if make is not None:
            return make(item, parts)
        if isinstance(item, AddressOperand):
            offset = [] if item.offset_expression is None else [_wrap_in_call(parts[-1])]
            coordinates = parts[: len(item.rest)]
            base = self._build_base(item.base, scope)
            if not coordinates:
                return Call(ADDR, (base, *offset))
            first = isinstance(coordinates[0], List | Tuple)
            return Call(ADDR, (base, *(offset or (() if first else (NONE,))), *coordinates))
        if isinstance(item, IndexedOperand):
            return Call(_OP["index"], (self.build_name(item.name, scope), *parts))
        if isinstance(item, NegatedOperand):
            (part,) = parts
            return Unary("~", part) if scope.is_predicate(part) else Call(_OP["negated"], (part,))
        if isinstance(item, CastOperand):
            return Call(_OP["cast"], (self.build_type(item.type), *parts))
        if isinstance(item, MaskOperand):
            return Call(_OP["mask"], (self.build_number(item.mask), *parts))
        return self.build_expression(item, scope)


def parse_integer(text: str) -> Expr | None:
    """Return a number as a Python integer, or None if Python would spell it differently."""
    digits = text[1:] if text[:1] == "-" else text
    plain = digits.isascii() and digits.isdigit() and len(digits) < _MOST_DIGITS
    return Literal(int(text)) if plain and str(int(text)) == text else None


def _wrap_in_call(expr: Expr) -> Expr:
    """Wrap a Python list or tuple in a call that makes it an operand."""
    if isinstance(expr, List):
        return Call(_OP["vector"], expr.elements)
    return Call(_OP["paren"], expr.elements) if isinstance(expr, Tuple) else expr


def _list_inner(item: Operand) -> tuple[Operand, ...]:
    """Return the operands inside an operand, in the order that `_one` takes them."""
    if isinstance(item, VectorOperand | ParenthesizedOperand):
        return item.elements
    if isinstance(item, BinaryOperand | PipeOperand):
        return item.left, item.right
    if isinstance(item, UnaryOperand | CastOperand | NegatedOperand | MaskOperand):
        return (item.operand,)
    if isinstance(item, ConditionalOperand):
        return item.test, item.then, item.other
    if isinstance(item, AddressOperand):
        return item.rest if item.offset_expression is None else (*item.rest, item.offset_expression)
    if isinstance(item, ConstantAddressOperand):
        return item.expression, *item.rest
    if isinstance(item, IndexedOperand):
        return (item.index,)
    return (item.value,) if isinstance(item, FieldOperand) else ()


def _build_list(_: Node, parts: Sequence[Expr]) -> Expr:
    return List(tuple(parts))


def _build_constant_address(item: Operand, parts: Sequence[Expr]) -> Expr:
    # A single integer would be a plain address, which the parser never represents this way.
    first = _wrap_in_call(parts[0])
    return Call(ADDR, (first,) if len(parts) == 1 else (first, NONE, *parts[1:]))


_MAKERS: dict[type[Node], Callable[[Any, Sequence[Expr]], Expr]] = {
    VectorOperand: _build_list,
    ParenthesizedOperand: lambda item, parts: Tuple(tuple(parts)),
    PipeOperand: lambda item, parts: Call(_OP["pipe"], tuple(parts)),
    BinaryOperand: lambda item, parts: Call(_OP["binary"], (Literal(item.operator), *parts)),
    UnaryOperand: lambda item, parts: Call(_OP["unary"], (Literal(item.operator), *parts)),
    ConditionalOperand: lambda item, parts: Call(_OP["conditional"], tuple(parts)),
    GenericOperand: lambda item, parts: Call(_OP["generic"], (Literal(item.symbol),)),
    FieldOperand: lambda item, parts: Call(_OP["field"], (Literal(item.name), *parts)),
    ConstantAddressOperand: _build_constant_address,
}
