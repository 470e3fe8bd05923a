"""Rules PTX0001 to PTX0012: syntax errors. Each has a wrong and a right module, which the tests parse."""

from __future__ import annotations

from pyptx.diagnostics import Rule

_HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"


def _build_kernel(body: str) -> str:
    return f"{_HEAD}.visible .entry k(.param .u64 p)\n{{\n    .reg .b32 %r<4>;\n{body}    ret;\n}}\n"


_RIGHT = _build_kernel("    add.s32 %r1, %r2, %r3;\n")

UNEXPECTED = Rule(
    "PTX0001",
    "unexpected token",
    "The statement cannot continue with this token; the message says what is expected here.",
    _build_kernel("    add.s32 %r1, %r2 %r3;\n"),
    _RIGHT,
)
SEMICOLON = Rule(
    "PTX0002",
    "missing `;`",
    "Instructions and declarations end with `;`. ptxas reports the line of the next statement; pyptx reports the end "
    "of the unterminated one.",
    _build_kernel("    add.s32 %r1, %r2, %r3\n"),
    _RIGHT,
)
BRACE = Rule(
    "PTX0003",
    "unbalanced braces",
    "Each `{` of a body, block or section needs a matching `}`.",
    _build_kernel("    { add.s32 %r1, %r2, %r3;\n"),
    _build_kernel("    { add.s32 %r1, %r2, %r3; }\n"),
)
UNTERMINATED = Rule(
    "PTX0004",
    "unterminated comment or string",
    "A `/*` comment ends at the first `*/`; a string ends at the next quotation mark.",
    _build_kernel("    /* add.s32 %r1, %r2, %r3;\n"),
    _build_kernel("    /* add.s32 %r1, %r2, %r3; */\n"),
)
STRAY = Rule(
    "PTX0005",
    "stray character",
    "Outside comments and strings, PTX consists of ASCII letters, digits, `_ $ % .` and operators.",
    _build_kernel("    add.s32 %r1, %r2, %r3`;\n"),
    _RIGHT,
)
NUMBER = Rule(
    "PTX0006",
    "malformed number",
    "Integers are decimal, 0x…, 0… (octal) or 0b…, with an optional `U` for unsigned. Floating-point numbers have a "
    "point or an exponent, or are 0f followed by 8 or 0d followed by 16 hexadecimal digits. C suffixes are not "
    "allowed.",
    _build_kernel("    add.s32 %r1, %r2, 09;\n"),
    _build_kernel("    add.s32 %r1, %r2, 9;\n"),
)
HEADER = Rule(
    "PTX0007",
    "missing module header",
    "A module starts with `.version`, then `.target`, then optionally `.address_size`.",
    ".target sm_90\n.address_size 64\n",
    _HEAD,
)
DIRECTIVE = Rule(
    "PTX0008",
    "unknown or misplaced directive",
    "PTX has no such directive, or it is not allowed here.",
    _build_kernel("    .regs .b32 %x;\n"),
    _build_kernel("    .reg .b32 %x;\n"),
)
TYPE = Rule(
    "PTX0009",
    "type expected",
    "A declaration gives its state space, then its type, then the names.",
    _build_kernel("    .reg %x;\n"),
    _build_kernel("    .reg .b32 %x;\n"),
)
PLACE = Rule(
    "PTX0010",
    "statement outside a function",
    "Instructions, labels and blocks must be in the body of a function.",
    _HEAD + "add.s32 %r1, %r2, %r3;\n",
    _RIGHT,
)
DEPTH = Rule(
    "PTX0011",
    "nested too deeply",
    "pyptx accepts 20,000 levels of blocks and brackets; ptxas gives up earlier.",
    _build_kernel("{" * 20_001),
    _build_kernel("{" * 10 + "}" * 10),
)
CONSTANT = Rule(
    "PTX0012",
    "not a constant expression",
    "A register or symbol can only be followed by `+` and a constant: write `+-4` for `-4`. The exact form 0f… "
    "cannot have an operator.",
    _build_kernel("    ld.shared.b32 %r1, [%r2-4];\n"),
    _build_kernel("    ld.shared.b32 %r1, [%r2+-4];\n"),
)

RULES = (UNEXPECTED, SEMICOLON, BRACE, UNTERMINATED, STRAY, NUMBER, HEADER, DIRECTIVE, TYPE, PLACE, DEPTH, CONSTANT)
