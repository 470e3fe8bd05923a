"""Checks one operand against its position in an operand list: kind, declared type and width, state space."""

from __future__ import annotations

from collections.abc import Callable

from pyptx.check.complaint import Complaint
from pyptx.check.constants import check_constant, find_fault
from pyptx.check.fits import ADDRESS_REGISTERS
from pyptx.check.mismatches import OPAQUE, accepts_type, complain_kind, complain_type, complain_undeclared, is_known
from pyptx.check.names import check_name
from pyptx.check.operand_rules import OPERAND_COUNT, OPERAND_KIND, OPERAND_TYPE, STATE_SPACE
from pyptx.check.symbols import Kind as Means
from pyptx.check.symbols import Scope, Symbol
from pyptx.diagnostics import format_count
from pyptx.ir import (
    AddressOperand,
    BinaryOperand,
    ConstantAddressOperand,
    ImmediateOperand,
    IndexedOperand,
    LabelOperand,
    NegatedOperand,
    ParenthesizedOperand,
    PipeOperand,
    RegisterOperand,
    VectorOperand,
    text_of,
)
from pyptx.ir.operands import Operand as Actual
from pyptx.isa.model import Kind, Operand


def find_misfit(formal: Operand, actual: Actual, scope: Scope) -> Complaint | None:
    """Return why an operand does not fit its position, or None if it does."""
    if formal.kind is Kind.PIPE and formal.optional_parts and not isinstance(actual, PipeOperand):
        formal = formal.parts[0]
    return _CHECKS.get(type(actual), check_constant)(formal, actual, scope)


def _check_address(formal: Operand, actual: Actual, scope: Scope) -> Complaint | None:
    assert isinstance(actual, AddressOperand)
    if formal.kind is not Kind.ADDRESS:
        return complain_kind(formal, f"`{text_of(actual)}`", "an address")
    complaint = _check_address_base(formal, actual, scope) or find_fault(actual)
    return complaint or _check_address_rest(formal, actual.rest, scope)


def _check_address_base(formal: Operand, actual: AddressOperand, scope: Scope) -> Complaint | None:
    name = actual.base
    if name and name[0] in "-0123456789":
        return _check_absolute_address(formal, text_of(actual)) or find_fault(ImmediateOperand(name))
    symbol = scope.find(name) or scope.find(name.partition(".")[0])
    if symbol is None:
        return complain_undeclared(name, scope, None)
    if symbol.kind is Means.REGISTER:
        if symbol.type in ADDRESS_REGISTERS:
            return None
        return Complaint(OPERAND_TYPE, f"an address register must be .b32 or .b64, but `{name}` is .{symbol.type}")
    if symbol.kind is not Means.VARIABLE:
        return complain_kind(formal, f"`{name}`", f"the name of a {symbol.kind}")
    return (
        _check_state_space(formal, name, symbol)
        or _check_handle(formal, name, symbol)
        or _check_register_base(formal, name, symbol)
    )


def _check_handle(formal: Operand, name: str, symbol: Symbol) -> Complaint | None:
    """Reject a variable as a texture or surface if its type differs. Queries of filters take the texture or its
    sampler, depending on the texture mode."""
    base = formal.parts[0]
    if base.type not in OPAQUE or symbol.type == base.type:
        return None
    may_sample = base.type == "texref" and len(formal.parts) == 1
    return None if may_sample and symbol.type == "samplerref" else complain_type(base, name, symbol.type)


def _check_register_base(formal: Operand, name: str, symbol: Symbol) -> Complaint | None:
    if formal.parts[0].kind is not Kind.REGISTER or symbol.type in OPAQUE:
        return None
    fix = f"first move the address into a register: mov.u32 %r, {name}"
    return Complaint(OPERAND_KIND, f"this form takes its address in a register, found the variable `{name}`", fix)


_GENERIC = frozenset(("global", "shared", "local"))
"""State spaces whose variables a generic address can name; constants and parameters need their own space."""


def _check_state_space(formal: Operand, name: str, symbol: Symbol) -> Complaint | None:
    wants = (formal.space or "generic").partition("::")[0]
    if symbol.space == wants or (wants == "generic" and symbol.space in _GENERIC) or symbol.type in OPAQUE:
        return None
    return Complaint(
        STATE_SPACE,
        f"the instruction accesses {formal.space or 'generic'} memory, but `{name}` is in .{symbol.space}",
        f"use the .{symbol.space} form of the instruction",
    )


def _check_absolute_address(formal: Operand, text: str) -> Complaint | None:
    """Reject a number as an address outside local memory, as ptxas does."""
    if formal.space == "local":
        return None
    return Complaint(
        OPERAND_KIND, f"the address `{text}` is a number, which only .local allows", "move the address into a register"
    )


def _check_address_rest(formal: Operand, actuals: tuple[Actual, ...], scope: Scope) -> Complaint | None:
    parts = formal.parts[1:]
    if len(actuals) != len(parts):
        return Complaint(
            OPERAND_COUNT, f"expected the address `{formal}`, found {len(actuals) + 1} part{'s' if actuals else ''}"
        )
    for part, actual in zip(parts, actuals, strict=True):
        complaint = find_misfit(part, actual, scope)
        if complaint is not None:
            return complaint
    return None


def _check_other_address(formal: Operand, actual: Actual, scope: Scope) -> Complaint | None:
    if formal.kind is not Kind.ADDRESS:
        return complain_kind(formal, f"`{text_of(actual)}`", "an address")
    if isinstance(actual, IndexedOperand):
        symbol = scope.find(actual.name)
        return complain_undeclared(actual.name, scope, None) if symbol is None else find_fault(actual.index)
    return _check_absolute_address(formal, text_of(actual)) or find_fault(actual)


def _check_vector(formal: Operand, actual: Actual, scope: Scope) -> Complaint | None:
    assert isinstance(actual, VectorOperand)
    if not formal.count:
        if formal.braceable and len(actual.elements) == 1:
            return _check_element(formal, actual.elements[0], scope)
        return complain_kind(formal, f"`{text_of(actual)}`", "a vector", _LONE)
    if len(actual.elements) != formal.count:
        return Complaint(
            OPERAND_COUNT,
            f"`{formal.name}` has {format_count('element', formal.count)}, found {len(actual.elements)}",
            f"write {format_count('register', formal.count)} in braces",
        )
    for element in actual.elements:
        complaint = _check_element(formal, element, scope)
        if complaint is not None:
            return complaint
    return None


_LONE = "name one register, or add a vector modifier (`.v2`, `.v4`) to the instruction"


def _check_element(formal: Operand, element: Actual, scope: Scope) -> Complaint | None:
    if isinstance(element, RegisterOperand | LabelOperand):
        symbol = scope.find(element.name)
        if symbol is not None and symbol.kind is Means.REGISTER and not symbol.vector:
            return None if accepts_type(formal, symbol.type) else complain_type(formal, element.name, symbol.type)
        if element.name == "_" and "w" in formal.access:
            return None
    return _refuse_sum_in_list(element) or find_misfit(formal.scalar(), element, scope)


def _refuse_sum_in_list(element: Actual) -> Complaint | None:
    """Reject `{%r1+4, …}` and `(symbol+4, …)`: in lists, ptxas accepts only a plain register or symbol."""
    if not isinstance(element, BinaryOperand) or not isinstance(element.left, RegisterOperand | LabelOperand):
        return None
    fix = "compute it into a register first"
    return Complaint(OPERAND_KIND, f"`{text_of(element)}` is not allowed in a list", fix)


def _check_pipe(formal: Operand, actual: Actual, scope: Scope) -> Complaint | None:
    assert isinstance(actual, PipeOperand)
    if formal.kind is not Kind.PIPE:
        return complain_kind(formal, f"`{text_of(actual)}`", "a pair of destinations")
    return find_misfit(formal.parts[0], actual.left, scope) or find_misfit(formal.parts[1], actual.right, scope)


def _check_list(formal: Operand, actual: Actual, scope: Scope) -> Complaint | None:
    assert isinstance(actual, ParenthesizedOperand)
    if formal.kind is not Kind.LIST:
        return check_constant(formal, actual, scope)
    for element in actual.elements:
        if isinstance(element, RegisterOperand | LabelOperand) and not is_known(element.name, scope):
            return complain_undeclared(element.name, scope, None)
        wrong = _refuse_sum_in_list(element) or find_fault(element)
        if wrong is not None:
            return wrong
    return None


def _check_negated(formal: Operand, actual: Actual, scope: Scope) -> Complaint | None:
    assert isinstance(actual, NegatedOperand)
    if not formal.negatable:
        return complain_kind(formal, f"`{text_of(actual)}`", "a negated predicate")
    return find_misfit(formal, actual.operand, scope)


_CHECKS: dict[type, Callable[[Operand, Actual, Scope], Complaint | None]] = {
    RegisterOperand: check_name,
    LabelOperand: check_name,
    AddressOperand: _check_address,
    IndexedOperand: _check_other_address,
    ConstantAddressOperand: _check_other_address,
    VectorOperand: _check_vector,
    PipeOperand: _check_pipe,
    ParenthesizedOperand: _check_list,
    NegatedOperand: _check_negated,
}
