"""Constants that ptxas rejects in any operand: larger than 64 bits, or divided by zero."""

from __future__ import annotations

from pyptx.check.complaint import Complaint
from pyptx.diagnostics import Rule
from pyptx.ir import AddressOperand, ConstantAddressOperand, ImmediateOperand, fault
from pyptx.ir.operands import Operand

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


def refused(given: Operand) -> Complaint | None:
    """Return why ptxas rejects a constant, or the constant offset of an address."""
    if isinstance(given, AddressOperand):
        inner = given.offset_expression or (ImmediateOperand(given.offset) if given.offset else None)
        return refused(inner) if inner is not None else None
    if isinstance(given, ConstantAddressOperand):
        given = given.expression
    why = fault(given)
    return Complaint(CONSTANT, why) if why else None
