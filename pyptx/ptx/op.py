"""PTX operands without a Python notation: constant expressions, `a[2]`, `a|b`, `generic(x)`.

Each function takes any operand of `ptx.inst` and returns an operand.
"""

from __future__ import annotations

from typing import Any

from pyptx.dsl import rules
from pyptx.dsl.emit import convert, describe
from pyptx.dsl.exact import check_symbol_name
from pyptx.dsl.registers import Dtype, resolve_type
from pyptx.dsl.trace import CURRENT, fail
from pyptx.dsl.values import Register
from pyptx.ir.kinds import ScalarType
from pyptx.ir.operands import (
    AddressOperand,
    BinaryOperand,
    CastOperand,
    ConditionalOperand,
    FieldOperand,
    GenericOperand,
    ImmediateOperand,
    IndexedOperand,
    LabelOperand,
    MaskOperand,
    NegatedOperand,
    Operand,
    ParenthesizedOperand,
    PipeOperand,
    RegisterOperand,
    UnaryOperand,
    VectorOperand,
)

__all__ = [
    "address", "bare", "binary", "cast", "conditional", "field", "generic", "index", "mask", "negated", "operand",
    "paren", "pipe", "plus", "unary", "vector",
]  # fmt: skip

_BINARY = frozenset("+ - * / % << >> < > <= >= == != & ^ | && ||".split())
_UNARY = frozenset("- + ~ !".split())


def operand(value: Any) -> Operand:
    """Return a value as an operand, inside a kernel or at module level."""
    trace = CURRENT.get()
    if isinstance(value, Operand):
        return value
    if trace is not None:
        return trace.exact.convert_operand(value) if trace.exact is not None else convert(value, None, trace)
    if isinstance(value, Register):
        return value.__node__
    if isinstance(value, str):
        return RegisterOperand(value) if value[:1] == "%" or value == "_" else LabelOperand(check_symbol_name(value))
    if isinstance(value, int):
        return ImmediateOperand(str(int(value)))
    if isinstance(value, list):
        return VectorOperand(tuple([operand(item) for item in value]))  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, tuple):
        return ParenthesizedOperand(tuple([operand(item) for item in value]))  # pyright: ignore[reportUnknownVariableType]
    return fail(rules.OPERAND, f"an operand cannot be {describe(value)}")


def bare(value: Any) -> Operand:
    """Return a register or symbol that is never put in brackets."""
    return operand(value)


def binary(operator: str, left: Any, right: Any) -> Operand:
    """Return `left operator right`."""
    return BinaryOperand(_check_operator(operator, _BINARY), operand(left), operand(right))


def plus(left: Any, right: Any) -> Operand:
    """Return `left+right`, such as an address in an allocation."""
    return binary("+", left, right)


def unary(operator: str, value: Any) -> Operand:
    """Return `-x`, `+x`, `~x`, `!x` of a constant, or `-x` of a register."""
    return UnaryOperand(_check_operator(operator, _UNARY), operand(value))


def negated(value: Any) -> Operand:
    """Return `!x` of a register."""
    return NegatedOperand(operand(value))


def conditional(test: Any, then: Any, other: Any) -> Operand:
    """Return `test ? then : other`."""
    return ConditionalOperand(operand(test), operand(then), operand(other))


def cast(dtype: Dtype, value: Any) -> Operand:
    """Return `(.s64) x` or `(.u64) x`."""
    dtype = resolve_type(dtype)
    return CastOperand(ScalarType.from_ptx(dtype.name), operand(value))


def paren(*values: Any) -> Operand:
    """Return `(x)`: parentheses around a constant, or the list of a call."""
    return ParenthesizedOperand(tuple([operand(value) for value in values]))


def vector(*values: Any) -> Operand:
    """Return `{a, b}`."""
    return VectorOperand(tuple([operand(value) for value in values]))


def pipe(left: Any, right: Any) -> Operand:
    """Return `a|b`, two destinations."""
    return PipeOperand(operand(left), operand(right))


def index(name: Any, at: Any) -> Operand:
    """Return `a[2]`, an address without brackets."""
    return IndexedOperand(_get_name(name, "indexed"), operand(at))


def address(base: Any, offset: Any = None, *rest: Any) -> Operand:
    """Return `[base+offset]` in an initializer. The offset is in bytes."""
    name = _get_name(base, "the base of an address")
    return AddressOperand(name, None, tuple(map(operand, rest)), None if offset is None else operand(offset))


def generic(symbol: str) -> Operand:
    """Return `generic(symbol)`, in an initializer."""
    return GenericOperand(check_symbol_name(symbol))


def mask(bits: Any, value: Any) -> Operand:
    """Return `0xFF00(x)`, selected bytes of an address, in an initializer."""
    number = operand(bits)
    if not isinstance(number, ImmediateOperand):
        fail(rules.OPERAND, f"a mask must be a number, found {describe(bits)}")
    return MaskOperand(number.text, operand(value))


def field(name: str, value: Any) -> Operand:
    """Return `name = value`, in the initializer of a texture, sampler or surface."""
    return FieldOperand(check_symbol_name(name), operand(value))


def _get_name(value: Any, place: str) -> str:
    variable = operand(value)
    if not isinstance(variable, RegisterOperand | LabelOperand):
        fail(rules.OPERAND, f"only a variable or register can be {place}, found {describe(value)}")
    return variable.name


def _check_operator(operator: str, operators: frozenset[str]) -> str:
    if operator not in operators:
        fail(
            rules.OPERAND, f"expected a PTX operator, one of {' '.join(sorted(operators))}, found {describe(operator)}"
        )
    return operator


def __dir__() -> list[str]:
    return __all__
