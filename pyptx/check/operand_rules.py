"""The rules about operands: what each code means, with a wrong and a right example."""

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
    "The form takes another number of operands, or a vector or address of it another number of parts.",
    _FRAME.format("add.s32 %r0, %r1;"),
    _FRAME.format("add.s32 %r0, %r1, %r2;"),
)
OPERAND_KIND = Rule(
    "PTX0202",
    "wrong kind of operand",
    "A register, a number, an address, a vector or a name stands where the form takes another of these.",
    _FRAME.format("ld.shared.b32 %r0, %r1;"),
    _FRAME.format("ld.shared.b32 %r0, [%r1];"),
)
OPERAND_TYPE = Rule(
    "PTX0203",
    "operand of another type",
    "The register's declared type or the number's kind does not agree with the instruction's type. Untyped bits agree "
    "with every type of their size, signed and unsigned integers with each other; only loads, stores and conversions "
    "take wider registers.",
    _FRAME.format("add.s32 %r0, %r1, %rd2;"),
    _FRAME.format("add.s64 %rd0, %rd1, %rd2;"),
)
IMMEDIATE_RANGE = Rule(
    "PTX0204",
    "number out of range",
    "The instruction's encoding or the manual limits this number.",
    _FRAME.format("bar.sync 16;"),
    _FRAME.format("bar.sync 15;"),
)
STATE_SPACE = Rule(
    "PTX0205",
    "variable in another state space",
    "The instruction names one state space and the variable was declared in another.",
    _FRAME.format("ld.global.b32 %r0, [tile];"),
    _FRAME.format("ld.shared.b32 %r0, [tile];"),
)
GUARD = Rule(
    "PTX0206",
    "guard is no predicate",
    "An instruction is guarded by a register declared .pred.",
    _FRAME.format("@%r1 mov.b32 %r0, 1;"),
    _FRAME.format("@%p mov.b32 %r0, 1;"),
)

RULES = (OPERAND_COUNT, OPERAND_KIND, OPERAND_TYPE, IMMEDIATE_RANGE, STATE_SPACE, GUARD)
