"""Turns PTX operands into expressions of the plan. An operand that Python cannot express is None; its instruction stays
plain."""

from __future__ import annotations

import keyword
import struct
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from itertools import count
from typing import Any

from pyptx.check.symbols import Scope
from pyptx.codegen.plan import Attribute, Call, Expr, Item, List, Literal, Slice, Tuple, Unary, build_path, call
from pyptx.codegen.sugar_draft import Draft, Variable
from pyptx.ir.operands import (
    AddressOperand,
    BinaryOperand,
    ImmediateOperand,
    LabelOperand,
    NegatedOperand,
    Operand,
    ParenthesizedOperand,
    PipeOperand,
    RegisterOperand,
    VectorOperand,
)
from pyptx.isa.lookup import lookup
from pyptx.isa.model import Match
from pyptx.types import PtxType

ADDR, IMM, SEL, PIPE = build_path("ptx.addr"), build_path("ptx.imm"), build_path("ptx.sel"), build_path("reg.PipeRef")
PLUS = build_path("ptx.op.plus")
NONE = Literal(None)
DEEPEST = 4
"""Maximum nesting depth of an operand; the plain transpiler writes deeper ones."""


class Operands:
    """Turns operands into expressions for one place of a draft."""

    def __init__(self, draft: Draft, scope: Scope) -> None:
        self.draft, self.scope, self.depth = draft, scope, 0

    def get_variable(self, name: str) -> Variable | None:
        """Return the variable of a name that is a register."""
        symbol = self.scope.find(name)
        return None if symbol is None else self.draft.variables.get((name, id(symbol)))

    def build_expression(self, operand: Operand) -> Expr | None:
        """Return an operand as an expression, or None if Python cannot express it."""
        build = _MADE.get(type(operand))
        if build is None or self.depth > DEEPEST:
            return None
        self.depth += 1
        result = build(self, operand)
        self.depth -= 1
        return result

    def build_name(self, name: str) -> Expr:
        """Return a register, a part of one, a special register or a symbol."""
        if name == "_":
            return NONE
        variable = self.get_variable(name)
        if variable is not None:
            return variable.expr
        base, dot, part = name.partition(".")
        variable = self.get_variable(base) if dot else None
        if variable is not None:
            return call(SEL, variable.expr, Literal(part))
        return self.draft.symbols.get(name) or Literal(name)

    def gather(self, elements: tuple[Expr, ...]) -> Expr:
        """Return a list of expressions, as an array or a slice of one if they are consecutive there."""
        first = elements[0] if elements else None
        if (
            not isinstance(first, Item)
            or not isinstance(first.index, Literal)
            or not isinstance(first.index.value, int)
        ):
            return List(elements)
        start = first.index.value
        for offset, element in enumerate(elements):
            is_element = isinstance(element, Item) and element.value == first.value
            if not is_element or element.index != Literal(start + offset):  # pyright: ignore[reportUnknownMemberType, reportAttributeAccessIssue]
                return List(elements)
        array = self.draft.bench.look_up(first.value)
        if start == 0 and array is not None and len(array) == len(elements):
            return first.value
        return Item(first.value, Slice(Literal(start), Literal(start + len(elements))))


def _build_register(operands: Operands, operand: RegisterOperand) -> Expr | None:
    return operands.build_name(operand.name)


def _build_immediate(_: Operands, operand: ImmediateOperand) -> Expr:
    return number(operand.text)


def _build_vector(operands: Operands, operand: VectorOperand) -> Expr | None:
    elements = [operands.build_expression(element) for element in operand.elements]
    return None if None in elements else operands.gather(tuple([m for m in elements if m is not None]))


def _build_tuple(operands: Operands, operand: ParenthesizedOperand) -> Expr | None:
    elements = [operands.build_expression(element) for element in operand.elements]
    return None if None in elements else Tuple(tuple([m for m in elements if m is not None]))


def _build_address(operands: Operands, operand: AddressOperand) -> Expr | None:
    if operand.offset_expression is not None or operand.base[0] in "-0123456789":
        return None
    base = operands.build_name(operand.base)
    coordinates = [operands.build_expression(part) for part in operand.rest]
    if None in coordinates:
        return None
    if operand.offset is not None:
        if coordinates or not operand.offset.lstrip("-").isdigit() or str(int(operand.offset)) != operand.offset:
            return None
        return call(ADDR, base, Literal(int(operand.offset)))
    if coordinates:
        return call(ADDR, base, *[part for part in coordinates if part is not None])
    return base if not isinstance(base, Literal) else call(ADDR, base)


def _build_negated(operands: Operands, operand: NegatedOperand) -> Expr | None:
    inner = operands.build_expression(operand.operand)
    return None if inner is None else Unary("~", inner)


def _build_pipe(operands: Operands, operand: PipeOperand) -> Expr | None:
    left, right = operands.build_expression(operand.left), operands.build_expression(operand.right)
    return None if left is None or right is None else call(PIPE, left, right)


def _build_binary(operands: Operands, operand: BinaryOperand) -> Expr | None:
    left, right = operands.build_expression(operand.left), operands.build_expression(operand.right)
    return None if operand.operator != "+" or left is None or right is None else call(PLUS, left, right)


_MADE: dict[type[Operand], Callable[[Operands, Any], Expr | None]] = {
    BinaryOperand: _build_binary,
    RegisterOperand: _build_register,
    LabelOperand: _build_register,
    ImmediateOperand: _build_immediate,
    VectorOperand: _build_vector,
    ParenthesizedOperand: _build_tuple,
    AddressOperand: _build_address,
    NegatedOperand: _build_negated,
    PipeOperand: _build_pipe,
}


@lru_cache(maxsize=1 << 14)
def number(text: str) -> Expr:
    """Return a number in Python notation, or with its spelling if PTX would print another."""
    kind = text[:2].lower()
    if kind == "0f" and len(text) == 10:
        bits = int(text[2:], 16)
        value = struct.unpack(">f", bits.to_bytes(4, "big"))[0]
        if value == value and abs(value) != float("inf") and text == f"0f{bits:08X}":
            return Literal(shorten_float(value))
    elif kind == "0d" and len(text) == 18:
        bits = int(text[2:], 16)
        value = struct.unpack(">d", bits.to_bytes(8, "big"))[0]
        if value == value and abs(value) != float("inf") and text == f"0d{bits:016X}":
            return Literal(value)
    elif text.lstrip("-").isdigit() and len(text) < 40 and str(int(text)) == text:
        return Literal(int(text))
    return call(IMM, Literal(text))


def shorten_float(value: float) -> float:
    """Return the number with the fewest digits that has the same single-precision value."""
    candidates = (float(f"{value:.{digits}g}") for digits in count())
    return next(candidate for candidate in candidates if _encode_single(candidate) == struct.pack(">f", value))


def _encode_single(value: float) -> bytes | None:
    """Return the bytes of a number in single precision; rounded to few digits, the largest numbers overflow."""
    with suppress(OverflowError):
        return struct.pack(">f", value)
    return None


def view_as(expr: Expr, dtype: PtxType) -> Expr:
    """Return a register viewed as another type."""
    return Attribute(expr, dtype.name)


@lru_cache(maxsize=1 << 12)
def chain(opcode: str, modifiers: tuple[str, ...]) -> Expr:
    """Return `ptx.inst.op.mod…`; modifiers that are not valid attributes go in brackets."""
    match = lookup(opcode, tuple([modifier[1:] for modifier in modifiers]))
    if isinstance(match, Match) and match.canonical is not None:
        return Item(build_path("ptx.inst"), Literal(opcode + "".join(modifiers)))
    expression: Expr = Attribute(build_path("ptx.inst"), spell_word(opcode) or "")
    for modifier in modifiers:
        word = spell_word(modifier[1:])
        expression = Item(expression, Literal(modifier[1:])) if word is None else Attribute(expression, word)
    return expression


def spell_word(modifier: str) -> str | None:
    """Return the Python name of a modifier, or None."""
    name = modifier.replace("::", "__")
    if name[:1].isdigit():
        name = f"_{name}"
    if keyword.iskeyword(name):
        name = f"{name}_"
    return name if name.isidentifier() and name.isascii() and ":" not in name and not name.endswith("__") else None


__all__ = ["NONE", "Call", "Operands", "chain", "number", "shorten_float", "view_as", "spell_word"]
