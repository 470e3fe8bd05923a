"""Which register types match which instruction types (manual: Operand Type Information; Operand Size Exceeding
Instruction-Type Size). Every rule was measured with ptxas 13.5, pair by pair."""

from __future__ import annotations

from functools import cache

from pyptx.types import from_name

_INTEGERS = frozenset(f"{kind}{bits}" for kind in "bus" for bits in (8, 16, 32, 64))

DECLARABLE = _INTEGERS | {"pred", "b128", "f16", "f16x2", "f32", "f64"}
"""The types a register may be declared with."""

ADDRESS_REGISTERS = _INTEGERS
"""The registers that may hold an address."""

_WIDTHS = (8, 16, 32, 64, 128)


@cache
def list_accepted_types(type_name: str, widenable: bool = False) -> frozenset[str]:
    """Return the declared register types that an operand of this type accepts."""
    instruction_type = from_name(type_name)
    if instruction_type.kind == "pred":
        return frozenset(("pred",))
    bits = max(instruction_type.bits, 8)
    widths = [w for w in _WIDTHS if w == bits or (widenable and w > bits)]
    names = {f"b{w}" for w in widths}
    if instruction_type.kind in "us":
        names |= {f"{kind}{w}" for w in widths for kind in "us"}
    elif instruction_type.kind == "b":
        names |= {f"{kind}{w}" for w in widths for kind in "usf"}
    else:
        names.add(type_name)
    if (bits <= 32 and (32 in widths) and instruction_type.kind in "bus") or type_name == "f16x2":
        names.add("f16x2")
    return frozenset(names & DECLARABLE)
