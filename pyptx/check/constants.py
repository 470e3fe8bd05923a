"""Checks constants and expressions: what ptxas rejects in any operand, and their kind, type and range."""

from __future__ import annotations

from pyptx.check.complaint import Complaint
from pyptx.check.fits import ADDRESS_REGISTERS
from pyptx.check.mismatches import accepts_type, complain_kind, complain_undeclared
from pyptx.check.operand_rules import IMMEDIATE_RANGE, OPERAND_KIND, OPERAND_TYPE
from pyptx.check.symbols import Kind as Means
from pyptx.check.symbols import Scope
from pyptx.diagnostics import Rule
from pyptx.ir import (
    AddressOperand,
    BinaryOperand,
    CastOperand,
    ConditionalOperand,
    ConstantAddressOperand,
    ImmediateOperand,
    LabelOperand,
    RegisterOperand,
    UnaryOperand,
    evaluate,
    fault,
    text_of,
)
from pyptx.ir.operands import Operand as Actual
from pyptx.isa.model import Kind, Operand
from pyptx.types import from_name

_FRAME = """\
.version 8.5
.target sm_90a
.address_size 64
.visible .entry k()
{{
    .reg .b64 %rd<2>;
    {}
    ret;
}}
"""

CONSTANT = Rule(
    "PTX0413",
    "invalid constant",
    "Constants are 64-bit integers or doubles. ptxas rejects larger integers and division by zero, even in the "
    "branch of a conditional expression that is not selected.",
    _FRAME.format("mov.b64 %rd0, 99999999999999999999;"),
    _FRAME.format("mov.b64 %rd0, 9999999999999999999;"),
)

RULES = (CONSTANT,)


def find_fault(operand: Actual) -> Complaint | None:
    """Return why ptxas rejects a constant, or the constant offset of an address."""
    if isinstance(operand, AddressOperand):
        inner = operand.offset_expression or (ImmediateOperand(operand.offset) if operand.offset else None)
        return find_fault(inner) if inner is not None else None
    if isinstance(operand, ConstantAddressOperand):
        operand = operand.expression
    why = fault(operand)
    return Complaint(CONSTANT, why) if why else None


_FLOAT_TYPES = frozenset(("f32", "f64"))


def check_constant(formal: Operand, actual: Actual, scope: Scope) -> Complaint | None:
    """Return why a constant or an expression does not fit its position, or None if it does."""
    wrong = find_fault(actual)
    if wrong is not None:
        return wrong
    value = evaluate(actual)
    if value is None:
        return _check_expression(formal, actual, scope)
    if formal.kind not in (Kind.VALUE, Kind.IMMEDIATE, Kind.MOVABLE) or formal.access != "r" or formal.count:
        return complain_kind(formal, f"`{text_of(actual)}`", "a number")
    return _check_number(formal, actual, value)


def _check_number(formal: Operand, actual: Actual, value: int | float) -> Complaint | None:
    formal_type = from_name(formal.type) if formal.type else None
    if formal_type is not None and formal_type.kind == "f":
        if formal.type not in _FLOAT_TYPES:
            return Complaint(
                OPERAND_KIND, f".{formal.type} does not allow immediates, found `{text_of(actual)}`", "use a register"
            )
        if isinstance(value, int):
            return Complaint(
                OPERAND_TYPE,
                f"`{formal.name}` is .{formal.type}, found the integer `{text_of(actual)}`",
                "write a floating-point number, such as 1.0 or 0f3F800000",
            )
    elif isinstance(value, float) and not _takes_float_bits(formal, actual):
        return Complaint(OPERAND_TYPE, f"`{formal.name}` is .{formal.type}, found the number `{text_of(actual)}`")
    if formal.bounds is not None and isinstance(value, int):
        return _check_bounds(formal, actual, value)
    return None


def _takes_float_bits(formal: Operand, actual: Actual) -> bool:
    """Accept `0f…` for 32 untyped bits and `0d…` or `1.5` for 64, as ptxas does."""
    single = isinstance(actual, ImmediateOperand) and actual.text[:2].lower() == "0f"
    return formal.type == ("b32" if single else "b64")


def _check_bounds(formal: Operand, actual: Actual, value: int) -> Complaint | None:
    assert formal.bounds is not None
    low, high, step = formal.bounds
    if low <= value <= high and (value - low) % step == 0:
        return None
    multiple = f" in steps of {step}" if step > 1 else ""
    bounds = f"{low}" if low == high else f"{low} to {high}{multiple}"
    return Complaint(IMMEDIATE_RANGE, f"`{formal.name}` must be {bounds}, found {text_of(actual)}")


def _check_expression(formal: Operand, actual: Actual, scope: Scope) -> Complaint | None:
    """Check `symbol+4` and similar: an address computed by the assembler, or a negated register."""
    stack: list[Actual] = [actual]
    while stack:
        item = stack.pop()
        if isinstance(item, BinaryOperand):
            stack += (item.left, item.right)
        elif isinstance(item, UnaryOperand | CastOperand):
            stack.append(item.operand)
        elif isinstance(item, ConditionalOperand):
            stack += (item.test, item.then, item.other)
        elif isinstance(item, RegisterOperand | LabelOperand):
            symbol = scope.find(item.name)
            if symbol is None:
                return complain_undeclared(item.name, scope, None)
            if symbol.kind is Means.REGISTER and not formal.minus and not _sums_register(formal, actual, scope):
                return complain_kind(formal, f"`{text_of(actual)}`", "an expression over registers")
            if symbol.kind is Means.VARIABLE and formal.type in _FLOAT_TYPES:
                return Complaint(
                    OPERAND_TYPE, f"`{formal.name}` is .{formal.type}, found the address `{text_of(actual)}`",
                    f"first load its value into a register: ld.{symbol.space} from [{text_of(actual)}]",
                )  # fmt: skip
    return (
        None
        if (formal.kind in (Kind.MOVABLE, Kind.VALUE) and formal.access == "r") or _sums_register(formal, actual, scope)
        else complain_kind(formal, f"`{text_of(actual)}`", "an expression")
    )


_SUMMANDS = ADDRESS_REGISTERS - {"b8", "u8", "s8"}


def _sums_register(formal: Operand, actual: Actual, scope: Scope) -> bool:
    """Tell whether this is a valid `register+number`: ptxas adds the number to the bits of an integer register before
    the instruction reads it. Register parts do not support it, and other registers crash ptxas."""
    if not isinstance(actual, BinaryOperand) or not isinstance(actual.left, RegisterOperand | LabelOperand):
        return False
    symbol = scope.find(actual.left.name)
    scalar = formal.kind in (Kind.VALUE, Kind.REGISTER, Kind.MOVABLE) and not formal.count and not formal.selectable
    if symbol is None or symbol.kind is not Means.REGISTER or symbol.vector:
        return False
    return scalar and symbol.type in _SUMMANDS and accepts_type(formal, symbol.type) and formal.access == "r"
