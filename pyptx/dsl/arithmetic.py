"""Typing rules of operators on registers: the type of an operation, and which operands are widened or refused.

Pure functions over types; knows no trace.
"""

from __future__ import annotations

from pyptx.dsl import rules
from pyptx.dsl.trace import fail
from pyptx.types import PtxType, from_name

SIGN_MATTERS = frozenset(("div", "rem", "max", "min", "lt", "le", "gt", "ge"))
FLOAT_ARITHMETIC = frozenset(("f16", "f16x2", "bf16", "bf16x2", "f32", "f32x2", "f64"))
FLOAT_COMPARED = frozenset(("f16", "f16x2", "bf16", "bf16x2", "f32", "f64"))
_FLOAT_OPERATIONS = frozenset(("add", "sub", "mul", "truediv", "max", "min", "neg", "abs"))
_INTEGER_BITS = (16, 32, 64)


def find_common_type(operation: str, left: PtxType, right: PtxType, symbol: str) -> PtxType:
    """Return the type of an operation on two registers; the narrower integer is widened."""
    for dtype in (left, right):
        check_operand(operation, dtype, symbol)
    if left.kind == "f" or right.kind == "f":
        if left != right:
            fail(
                rules.TYPES,
                f"`{symbol}` cannot combine .{left} and .{right}: PTX has no such instruction",
                help=f"convert one operand first: {cast_hint(right, left)}",
            )
        return left
    wide = left if left.bits >= right.bits else right
    signs = {left.kind, right.kind} - {"b"}
    # A signed type holds every value of a narrower unsigned one; the converse never holds.
    if operation in SIGN_MATTERS and len(signs) == 2 and (left.bits == right.bits or wide.kind == "u"):
        fail(
            rules.TYPES,
            f"`{symbol}` cannot combine .{left} and .{right}: the result depends on the sign",
            help=f"make the sign explicit: {cast_hint(right, left)}, or declare both with the same sign",
        )
    return wide


def check_operand(operation: str, dtype: PtxType, symbol: str) -> None:
    """Refuse a type that has no instruction for the operation."""
    if dtype.kind == "pred":
        fail(
            rules.TYPES,
            f"`{symbol}` does not support predicates",
            help="predicates support & | ^ ~; ptx.selp converts one to a number",
        )
    if dtype.kind == "f":
        is_comparison = operation in ("eq", "ne", "lt", "le", "gt", "ge") and dtype.name in FLOAT_COMPARED
        if is_comparison or (operation in _FLOAT_OPERATIONS and dtype.name in FLOAT_ARITHMETIC):
            return
        if operation in ("and", "or", "xor", "not", "shl", "shr", "div", "rem"):
            fail(
                rules.TYPES,
                f"`{symbol}` does not support .{dtype}, only integers",
                help=_suggest_integer_form(operation, dtype),
            )
        fail(
            rules.TYPES,
            f"`{symbol}` does not support .{dtype}: PTX has no arithmetic for this type",
            help=cast_hint(dtype, from_name("f32")),
        )
    if dtype.bits not in _INTEGER_BITS or "x" in dtype.name:
        wide = from_name(f"{'s' if dtype.kind == 's' else 'u'}{32 if dtype.bits < 32 else 64}")
        fail(
            rules.TYPES,
            f"`{symbol}` does not support .{dtype}: PTX has no arithmetic for this type",
            help=cast_hint(dtype, wide),
        )


def _suggest_integer_form(operation: str, dtype: PtxType) -> str:
    if operation == "div":
        return "write a / b"
    return f"read its bits through a b{dtype.bits} register: reg.from_(x, b{dtype.bits})"


def cast_hint(source: PtxType, to: PtxType) -> str:
    """Return the call that converts a register."""
    rounding = ", rounding='rzi'" if source.kind == "f" else ""
    if to.kind == "f":
        rounding = "" if source.kind == "f" and source.bits < to.bits else ", rounding='rn'"
    return f"ptx.cvt({to}, {source}, dst, src{rounding})"


def to_unsigned(dtype: PtxType) -> PtxType:
    """Return the type that an instruction uses for this register: untyped bits count as unsigned."""
    return from_name(f"u{dtype.bits}") if dtype.kind == "b" else dtype


def to_untyped(dtype: PtxType) -> PtxType:
    """Return the untyped type of the same width."""
    return from_name(f"b{dtype.bits}")


def to_signed(dtype: PtxType) -> PtxType:
    """Return the signed integer type of the same width."""
    return from_name(f"s{dtype.bits}")
