"""Checks operands that are names: registers and their components, special registers, variables, labels, functions."""

from __future__ import annotations

from pyptx.check.complaint import Complaint
from pyptx.check.mismatches import OPAQUE, accepts_type, complain_kind, complain_type, complain_undeclared
from pyptx.check.operand_rules import OPERAND_KIND
from pyptx.check.spelling import NEWER_VERSION, OTHER_TARGET
from pyptx.check.suggestions import suggest_name
from pyptx.check.symbols import UNKNOWN_FUNCTION, UNKNOWN_LABEL, Scope, Symbol, make_register
from pyptx.check.symbols import Kind as Means
from pyptx.diagnostics import format_count
from pyptx.ir import LabelOperand, RegisterOperand
from pyptx.ir.operands import Operand as Actual
from pyptx.isa import special
from pyptx.isa.model import Kind, Operand
from pyptx.types import from_name

_VECTOR_SELECTORS = frozenset((".x", ".y", ".z", ".w", ".r", ".g", ".b", ".a"))


def check_name(formal: Operand, actual: Actual, scope: Scope) -> Complaint | None:
    """Return why a name does not fit its position, or None if it does."""
    assert isinstance(actual, RegisterOperand | LabelOperand)
    name = actual.name
    if name == "_":
        is_allowed = formal.discardable or formal.kind is Kind.SINK
        return None if is_allowed else complain_kind(formal, "`_`", "a result to keep")
    symbol = scope.find(name)
    if symbol is not None:
        return _check_symbol(formal, name, symbol, scope)
    if name.startswith("%") or "." in name:
        base, _, component = name.partition(".")
        vector = scope.find(base)
        if vector is not None and component:
            return _check_component(formal, name, vector, scope)
        special_register = special.find_special_register(name)
        if special_register is not None:
            return _check_special_register(formal, special_register, scope)
    if formal.kind is Kind.LABEL:
        return Complaint(
            UNKNOWN_LABEL, f"no label `{name}` in this block or an enclosing one", suggest_name(name, scope) or _INWARD
        )
    if formal.kind is Kind.FUNCTION:
        return Complaint(
            UNKNOWN_FUNCTION, f"no function `{name}` is declared before this call", _suggest_function(name, scope)
        )
    return complain_undeclared(name, scope, None)


_INWARD = "a label is visible in its own block and in nested blocks; move it out, or correct its name"


def _suggest_function(name: str, scope: Scope) -> str:
    return suggest_name(name, scope) or f"declare it before the kernel: `.extern .func {name} (…);`"


def _check_symbol(formal: Operand, name: str, symbol: Symbol, scope: Scope) -> Complaint | None:
    if symbol.kind is Means.REGISTER:
        return _check_declared_register(formal, name, symbol)
    if symbol.kind is Means.VARIABLE:
        return _check_variable(formal, name, symbol)
    fitting = {Means.LABEL: Kind.LABEL, Means.FUNCTION: Kind.FUNCTION}.get(symbol.kind)
    if formal.kind is fitting:
        return None
    # ptxas accepts a function's address wherever a value is read, whatever its type.
    if symbol.kind is Means.FUNCTION and formal.kind in (Kind.VALUE, Kind.MOVABLE) and formal.access == "r":
        return None
    if formal.kind is Kind.FUNCTION and symbol.kind is Means.LABEL:
        return None
    if symbol.kind in (Means.TARGETS, Means.PROTOTYPE) and formal.kind in (Kind.LABEL, Kind.FUNCTION):
        return None
    return complain_kind(formal, f"`{name}`", f"the name of a {symbol.kind}")


_REGISTER_KINDS = frozenset((Kind.VALUE, Kind.REGISTER, Kind.MOVABLE, Kind.VARIABLE, Kind.FUNCTION))


def _check_declared_register(formal: Operand, name: str, symbol: Symbol) -> Complaint | None:
    if formal.kind not in _REGISTER_KINDS:
        return complain_kind(formal, f"`{name}`", "a register")
    if formal.kind in (Kind.VARIABLE, Kind.FUNCTION):
        return None if symbol.type in ("u64", "b64", "s64") else complain_type(formal, name, symbol.type, "b64")
    if symbol.vector:
        return (
            None
            if formal.count == symbol.vector and accepts_type(formal, symbol.type)
            else _complain_vector(formal, name, symbol)
        )
    if formal.count:
        return Complaint(
            OPERAND_KIND,
            f"`{formal.name}` is a vector of {format_count('register', formal.count)}, "
            f"found the single register `{name}`",
            "write the registers in braces: {a, b, …}",
        )
    return None if accepts_type(formal, symbol.type) else complain_type(formal, name, symbol.type)


def _complain_vector(formal: Operand, name: str, symbol: Symbol) -> Complaint:
    return Complaint(
        OPERAND_KIND,
        f"`{name}` is a vector (.v{symbol.vector} .{symbol.type}), expected `{formal}`",
        f"name one component: {name}.x",
    )


def _check_component(formal: Operand, name: str, symbol: Symbol, scope: Scope) -> Complaint | None:
    base, _, component = name.partition(".")
    if symbol.kind is Means.REGISTER and symbol.vector and f".{component}" in _VECTOR_SELECTORS:
        return _check_declared_register(formal, name, make_register(symbol.type))
    if symbol.kind is Means.REGISTER and component in formal.selectable:
        return None
    return Complaint(OPERAND_KIND, f"`{base}` has no component `.{component}` here")


def _check_special_register(formal: Operand, register: special.SpecialRegister, scope: Scope) -> Complaint | None:
    name, type_name = register.name, register.type.name
    if register.vector and formal.count != _COMPONENTS and formal.kind is not Kind.SPECIAL:
        return Complaint(OPERAND_KIND, f"`{name}` is a vector", f"name one component: {name}.x")
    if formal.access != "r":
        return Complaint(OPERAND_KIND, f"the special register `{name}` can only be read")
    if formal.kind not in (Kind.MOVABLE, Kind.SPECIAL):
        fix = f"first read it into a register: mov.{type_name} %r, {name}"
        return Complaint(OPERAND_KIND, f"the special register `{name}` cannot be used here", fix)
    if not accepts_type(formal, type_name) and (
        formal.type is None or from_name(formal.type).bits not in register.narrower
    ):
        return complain_type(formal, name, type_name)
    header = scope.header
    if header is None or register.available.on(*header):
        return None
    return Complaint(
        OTHER_TARGET if register.available.find_first_version(header[0]) is None else NEWER_VERSION,
        f"`{name}` needs {register.available}",
    )


_COMPONENTS = 4


def _check_variable(formal: Operand, name: str, symbol: Symbol) -> Complaint | None:
    if formal.kind is Kind.MOVABLE:
        ok = formal.type is None or (from_name(formal.type).bits >= 32 and from_name(formal.type).kind != "f")
        return None if ok else complain_kind(formal, f"`{name}`", "an address")
    if formal.kind is Kind.VARIABLE:
        differs = formal.type in OPAQUE and symbol.type != formal.type
        return complain_type(formal, name, symbol.type) if differs else None
    if formal.kind is Kind.LIST:
        return None
    fix = f"first load its value into a register: ld.{symbol.space} from [{name}]; `mov` gives its address"
    return complain_kind(formal, f"`{name}`", f"a variable in .{symbol.space}", fix)
