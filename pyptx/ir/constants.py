"""Evaluates constant expressions by the manual's rules: 64-bit integers as in C, and doubles."""

from __future__ import annotations

from collections.abc import Callable
from math import isinf

from pyptx.ir.base import Node
from pyptx.ir.kinds import ScalarType
from pyptx.ir.operands import (
    AddressOperand,
    BinaryOperand,
    CastOperand,
    ConditionalOperand,
    ImmediateOperand,
    Operand,
    ParenthesizedOperand,
    UnaryOperand,
    number_value,
    text_of,
)

_ALL = (1 << 64) - 1
_TOP = 1 << 63
Constant = tuple[int | float, bool]
"""A value, and whether it is unsigned."""


def evaluate(operand: Operand) -> int | float | None:
    """Return the value of a constant expression, or None if it has none because of a symbol or a division by zero."""
    return _compute_value(operand, [])


def _compute_value(operand: Operand, faults: list[str]) -> int | float | None:
    """Return the value of an expression, and record why ptxas rejects it."""
    results: list[Constant | None] = []
    todo: list[tuple[Operand, bool]] = [(operand, False)]
    while todo:
        item, ready = todo.pop()
        children = _list_children(item)
        if children is None:
            results.append(_read_literal(item, faults))
        elif not ready:
            todo.append((item, True))
            todo += [(child, False) for child in reversed(children)]
        else:
            values = [results.pop() for _ in children][::-1]
            constants = [value for value in values if value is not None]
            if isinstance(item, BinaryOperand) and item.operator in ("/", "%") and values[1] and not values[1][0]:
                faults.append(f"a constant is divided by `{text_of(item.right)}`, which is zero")
            results.append(_combine(item, constants) if len(constants) == len(values) else None)
    return results[0][0] if results[0] is not None else None


def fault(operand: Operand) -> str | None:
    """Return why ptxas rejects a constant expression, or the constants beside a symbol: `1/0`, or a number too
    large."""
    faults: list[str] = []
    _compute_value(operand, faults)
    return faults[0] if faults else None


def overflows(text: str) -> bool:
    """Tell whether ptxas considers a number too large. It keeps the low 64 bits of an integer and complains only if the
    highest bit was set before another digit; a decimal fraction must be a finite double."""
    digits = text.removeprefix("-").removesuffix("U")
    prefix = digits[:2].lower()
    if prefix in ("0f", "0d") or not digits[:1].isdigit():
        return False
    base = {"0x": 16, "0b": 2}.get(prefix, 8 if digits[0] == "0" else 10)
    if base in (8, 10) and not digits.isdigit():
        return isinf(float(digits))
    value = 0
    for digit in digits[2:] if base in (2, 16) else digits:
        if value & _TOP:
            return True
        value = (value * base + int(digit, 16)) & _ALL
    return False


def displacement(address: AddressOperand) -> int | None:
    """Return the constant added to the base: 0 if there is none, None if it is not an integer."""
    if address.offset_expression is not None:
        value = evaluate(address.offset_expression)
    else:
        value = number_value(address.offset or "0")
    return value if isinstance(value, int) else None


def _list_children(item: Operand) -> tuple[Operand, ...] | None:
    if isinstance(item, BinaryOperand):
        return item.left, item.right
    if isinstance(item, UnaryOperand | CastOperand):
        return (item.operand,)
    if isinstance(item, ConditionalOperand):
        return item.test, item.then, item.other
    if isinstance(item, ParenthesizedOperand) and len(item.elements) == 1:
        return item.elements
    return None


def _read_literal(item: Node, faults: list[str]) -> Constant | None:
    if not isinstance(item, ImmediateOperand):
        return None
    if overflows(item.text):
        faults.append(f"`{item.text}` does not fit in 64 bits")
    try:
        value = item.value
    except ValueError:
        return None
    return value, isinstance(value, int) and ("U" in item.text or not -_TOP <= value < _TOP)


def _combine(item: Operand, values: list[Constant]) -> Constant | None:
    if isinstance(item, BinaryOperand):
        return _apply_binary(item.operator, *values)
    if isinstance(item, UnaryOperand):
        return _apply_unary(item.operator, values[0])
    if isinstance(item, CastOperand):
        return _wrap(values[0][0], item.type is ScalarType.U64)
    if isinstance(item, ConditionalOperand):
        branch = values[1] if values[0][0] else values[2]
        return _wrap(branch[0], values[1][1] or values[2][1])
    return values[0]


def _wrap(value: int | float, unsigned: bool) -> Constant:
    if isinstance(value, float):
        return value, False
    value &= _ALL
    return (value, True) if unsigned or value < _TOP else (value - (1 << 64), False)


def _apply_unary(operator: str, operand: Constant) -> Constant | None:
    value, unsigned = operand
    if operator == "!":
        return int(not value), False
    if operator == "~":
        return _wrap(~value, True) if isinstance(value, int) else None
    return _wrap(-value if operator == "-" else value, unsigned)


_COMPARE: dict[str, Callable[[int | float, int | float], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "&&": lambda a, b: bool(a) and bool(b),
    "||": lambda a, b: bool(a) or bool(b),
}
_INTEGER: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: -(-a // b) if (a < 0) != (b < 0) else a // b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
}
_FLOAT: dict[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
}


def _apply_binary(operator: str, left: Constant, right: Constant) -> Constant | None:
    (a, a_unsigned), (b, b_unsigned) = left, right
    if operator in ("/", "%") and not b:
        return None
    if isinstance(a, float) or isinstance(b, float):
        if operator in _COMPARE:
            return int(_COMPARE[operator](a, b)), False
        return (_FLOAT[operator](float(a), float(b)), False) if operator in _FLOAT else None
    if operator in ("<<", ">>"):
        places = min(b & _ALL, 64)
        result = a << places if operator == "<<" else a >> places
        return _wrap(result, a_unsigned)
    if operator == "%":
        return _wrap((a & _ALL) % (b & _ALL), False)
    unsigned = a_unsigned or b_unsigned
    if unsigned:
        a, b = a & _ALL, b & _ALL
    if operator in _COMPARE:
        return int(_COMPARE[operator](a, b)), False
    return _wrap(_INTEGER[operator](a, b), unsigned)
