"""The complaints about an operand of the wrong kind or type, or about an undeclared name."""

from __future__ import annotations

from pyptx.check.complaint import Complaint
from pyptx.check.fits import list_accepted_types
from pyptx.check.operand_rules import OPERAND_KIND, OPERAND_TYPE
from pyptx.check.suggestions import suggest_name
from pyptx.check.symbols import UNDECLARED, Scope
from pyptx.diagnostics import format_count
from pyptx.isa import special
from pyptx.isa.model import Kind, Operand

OPAQUE = frozenset(("texref", "samplerref", "surfref"))


def accepts_type(formal: Operand, type_name: str) -> bool:
    """Tell whether a position accepts a register declared with this type."""
    return formal.type is None or type_name in list_accepted_types(formal.type, formal.widenable)


def is_known(name: str, scope: Scope) -> bool:
    """Tell whether a name, without its component, is declared or a special register."""
    return scope.find(name.partition(".")[0]) is not None or special.find_special_register(name) is not None


def complain_undeclared(name: str, scope: Scope, index: int | None) -> Complaint:
    """Return the complaint about an undeclared name."""
    return Complaint(UNDECLARED, f"`{name}` is not declared here", suggest_name(name, scope), operand=index)


_EXPECTED = {
    Kind.VALUE: "a register or a number",
    Kind.REGISTER: "a register",
    Kind.IMMEDIATE: "a number",
    Kind.ADDRESS: "an address",
    Kind.PIPE: "two destinations `a|b`",
    Kind.MOVABLE: "a register, a number or an address",
    Kind.VARIABLE: "a variable or a 64-bit handle",
    Kind.LABEL: "a label",
    Kind.FUNCTION: "a function",
    Kind.LIST: "a list in parentheses",
    Kind.SPECIAL: "a special register",
    Kind.SINK: "`_`",
}


def complain_kind(formal: Operand, text: str, noun: str, help: str | None = None) -> Complaint:
    """Return the complaint about an operand that is a `noun` where the position takes something else."""
    requirement = "a register" if formal.access == "w" and formal.kind is Kind.VALUE else _EXPECTED[formal.kind]
    if formal.count:
        requirement = f"a vector of {format_count('register', formal.count)}"
    return Complaint(OPERAND_KIND, f"`{formal.name}` must be {requirement}, found {text}, {noun}", help)


def complain_type(formal: Operand, name: str, actual_type: str, type_name: str | None = None) -> Complaint:
    """Return the complaint about a register declared with a type that the position does not accept."""
    type_names = (
        sorted(list_accepted_types(formal.type, formal.widenable))
        if type_name is None and formal.type
        else [type_name or "b64"]
    )
    kinds = " or ".join(f".{t}" for t in type_names[:4])
    return Complaint(
        OPERAND_TYPE,
        f"`{formal.name}` is .{formal.type or type_name}, found `{name}` declared .{actual_type}",
        f"use a register declared {kinds}",
    )
