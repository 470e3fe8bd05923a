"""Rules PTX0201 to PTX0206: operands of an instruction."""

from __future__ import annotations

from pyptx.diagnostics import Rule

_FRAME = """\
.version 8.5
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p)
{{
    .reg .b32 %r<4>;
    .reg .f32 %f<4>;
    .reg .b64 %rd<4>;
    .reg .pred %p;
    .shared .align 16 .b8 tile[64];
    {}
    ret;
}}
"""

OPERAND_COUNT = Rule(
    "PTX0201",
    "wrong number of operands",
    "The number of operands, or of elements in a vector or address operand, does not match the instruction form.",
    _FRAME.format("add.s32 %r0, %r1;"),
    _FRAME.format("add.s32 %r0, %r1, %r2;"),
)
OPERAND_KIND = Rule(
    "PTX0202",
    "wrong kind of operand",
    "The operand is not of the kind (register, number, address, vector, name) that the form takes.",
    _FRAME.format("ld.shared.b32 %r0, %r1;"),
    _FRAME.format("ld.shared.b32 %r0, [%r1];"),
)
OPERAND_TYPE = Rule(
    "PTX0203",
    "wrong operand type",
    "The register's declared type or the kind of number does not match the instruction type. Untyped bits match "
    "every type of the same size, and signed integers match unsigned ones. Only loads, stores and conversions accept "
    "wider registers.",
    _FRAME.format("add.s32 %r0, %r1, %rd2;"),
    _FRAME.format("add.s64 %rd0, %rd1, %rd2;"),
)
IMMEDIATE_RANGE = Rule(
    "PTX0204",
    "number out of range",
    "The encoding of the instruction or the manual limits this number.",
    _FRAME.format("bar.sync 16;"),
    _FRAME.format("bar.sync 15;"),
)
STATE_SPACE = Rule(
    "PTX0205",
    "variable in the wrong state space",
    "The instruction names one state space, but the variable is declared in another.",
    _FRAME.format("ld.global.b32 %r0, [tile];"),
    _FRAME.format("ld.shared.b32 %r0, [tile];"),
)
GUARD = Rule(
    "PTX0206",
    "guard is not a predicate",
    "The guard of an instruction must be a register declared .pred.",
    _FRAME.format("@%r1 mov.b32 %r0, 1;"),
    _FRAME.format("@%p mov.b32 %r0, 1;"),
)

RULES = (OPERAND_COUNT, OPERAND_KIND, OPERAND_TYPE, IMMEDIATE_RANGE, STATE_SPACE, GUARD)
