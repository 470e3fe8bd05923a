"""Emits the instructions of Python's binary operators: typed by the registers, with the number on either side."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, cast

from pyptx.dsl import rules
from pyptx.dsl.arithmetic import cast_hint, check_operand, find_common_type, to_unsigned, to_untyped
from pyptx.dsl.creation import create_peer
from pyptx.dsl.emit import Spelling, describe, emit, get_remedy, spell
from pyptx.dsl.trace import Trace, fail, get_trace
from pyptx.dsl.values import Negation, Register, is_pair, make_literal, unwrap_number
from pyptx.ir.operands import ImmediateOperand
from pyptx.types import PtxType, from_name, pred, u32


def _make_result(peer: Register, symbol: str, dtype: PtxType, trace: Trace) -> Any:
    """Return a new register of the class of an operand for the result of a binary operator."""
    register = create_peer(peer, dtype, trace)
    trace.operators[register.name] = symbol
    return register


def _refuse_widening(into: Register | None, dtype: PtxType, operand: Any, symbol: str) -> None:
    """Refuse an in-place operator whose result is wider than the register."""
    if into is not None and dtype is not into.dtype:
        fail(
            rules.TYPES,
            f"`{into.name}` of type .{into.dtype} cannot hold the .{dtype} result of `{symbol}`",
            help=f"narrow the other operand first: {cast_hint(operand.dtype, into.dtype)}",
        )


@lru_cache(maxsize=4096)
def _choose_arithmetic(operation: str, symbol: str, left: PtxType, right: PtxType | None) -> tuple[PtxType, Spelling]:
    """Return the type and instruction of an operation on two registers, or on a register and a number."""
    if right is None:
        check_operand(operation, left, symbol)
    dtype = left if right is None else find_common_type(operation, left, right, symbol)
    if dtype.kind != "f":
        if operation == "truediv":
            fail(rules.TYPES, f"`/` does not support .{dtype}, only .f32 and .f64",
                 help="use a // b, which truncates toward zero as PTX does")  # fmt: skip
        modes = ("lo",) if operation == "mul" else ()
        return dtype, spell(operation, *modes, to_unsigned(dtype).name)
    if operation != "truediv":
        return dtype, spell(operation, dtype.name)
    if dtype.name not in ("f32", "f64"):
        fail(rules.TYPES, f"`/` does not support .{dtype}, only .f32 and .f64", help="convert to f32 first")
    return dtype, spell("div", "rn", dtype.name)


def emit_binary(operation: str, symbol: str, left: Any, right: Any, into: Register | None = None) -> Any:
    """Emit an arithmetic instruction typed by its registers. It writes `into` or a new register."""
    if isinstance(left, Register) and isinstance(right, Register):
        dtype, spelling = _choose_arithmetic(operation, symbol, left.dtype, right.dtype)
        _refuse_widening(into, dtype, right, symbol)
        if left.dtype is not dtype or right.dtype is not dtype:
            left, right = _widen_to(left, dtype), _widen_to(right, dtype)
    elif isinstance(left, Register):
        dtype, spelling = _choose_arithmetic(operation, symbol, left.dtype, None)
        right = make_constant(left, right, symbol)
        if operation in ("div", "rem") and getattr(right, "text", "") == "0":
            fail(rules.LITERAL, f"`{symbol}` by 0: the result is undefined in PTX", help="guard it with ptx.if_")
    else:
        return _emit_with_number(operation, symbol, left, right)
    trace = get_trace()
    result = _make_result(left, symbol, dtype, trace) if into is None else into
    emit(spelling, (result, left, right), None, trace)
    return result


def _emit_with_number(operation: str, symbol: str, number: Any, right: Register) -> Any:
    """Emit an arithmetic instruction whose left operand is a Python number."""
    dtype, spelling = _choose_arithmetic(operation, symbol, right.dtype, None)
    left, trace = make_constant(right, number, symbol), get_trace()
    result = _make_result(right, symbol, dtype, trace)
    emit(spelling, (result, left, right), None, trace)
    if isinstance(number, int | float):
        trace.from_numbers[result.name] = number
    return result


def emit_comparison(operation: str, symbol: str, left: Any, right: Any) -> Any:
    """Emit `setp`, typed by its registers, and return the predicate."""
    if _is_pred(left) and _is_pred(right):
        fail(rules.TYPES, f"`{symbol}` does not support predicates", help="use p ^ q, which is true where they differ")
    left, right, dtype = _convert_operands(operation, symbol, left, right)
    result = create_peer(_find_register(left, right), pred, get_trace())
    kind = dtype
    if dtype.kind == "b" and operation not in ("eq", "ne"):
        kind = to_unsigned(dtype)
    # `!=` means the unordered `ne`, for operands that may be NaN.
    word = "neu" if operation == "ne" and dtype.kind == "f" else operation
    emit(spell("setp", word, kind.name), (result, left, right))
    return result


def emit_logic(operation: str, symbol: str, left: Any, right: Any, into: Register | None = None) -> Any:
    """Emit `and`, `or`, `xor` on bits or predicates. It writes `into` or a new register."""
    if _is_pred(left) or _is_pred(right):
        sides: list[Any] = []
        for side in (left, right):
            if isinstance(side, bool):
                sides.append(int(side))
            elif _is_pred(side):
                sides.append(side)
            else:
                fail(
                    rules.TYPES,
                    f"`{symbol}` cannot combine a predicate and {describe(side)}",
                    help="compare it first: x != 0",
                )
        result = _make_result(_find_register(left, right), symbol, pred, get_trace()) if into is None else into
        emit(spell(operation, "pred"), (result, *sides))
        return result
    left, right, dtype = _convert_operands(operation, symbol, left, right, into)
    result = _make_result(_find_register(left, right), symbol, dtype, get_trace()) if into is None else into
    emit(spell(operation, to_untyped(dtype).name), (result, left, right))
    return result


def emit_shift(operation: str, symbol: str, left: Any, right: Any, into: Register | None = None) -> Any:
    """Emit `shl` or `shr` with the type of the shifted register and a 32-bit amount. It writes `into` or a new
    register."""
    dtype = left.dtype if isinstance(left, Register) else right.dtype
    check_operand(operation, dtype, symbol)
    if not isinstance(left, Register):
        left = make_literal(_check_integer(left, symbol), dtype)
    if isinstance(right, Register):
        check_operand(operation, right.dtype, symbol)
        if right.dtype.bits == 64:
            fail(
                rules.TYPES,
                f"`{symbol}` takes a shift amount of at most 32 bits, found {describe(right)}",
                help=f"convert it first: ptx.cvt(u32, {right.dtype}, dst, src)",
            )
        right = widen(right, u32) if right.dtype.bits < 32 else right
    else:
        right = _check_integer(right, symbol)
        if not 0 <= right < dtype.bits:
            fail(rules.LITERAL, f"`{symbol}` shifts .{dtype} by 0 to {dtype.bits - 1} bits, found {right}",
                 help="shifting out all bits gives 0, or -1 for negative numbers: use that value instead")  # fmt: skip
    kind = to_untyped(dtype) if operation == "shl" else to_unsigned(dtype)
    result = _make_result(_find_register(left, right), symbol, dtype, get_trace()) if into is None else into
    emit(spell(operation, kind.name), (result, left, right))
    return result


def widen(source: Register, to: PtxType) -> Any:
    """Emit the `cvt` that extends an integer according to its own signedness."""
    own = to_unsigned(source.dtype)
    kind = from_name(f"{own.kind}{to.bits}")
    result = create_peer(source, kind, get_trace())
    emit(spell("cvt", kind.name, own.name), (result, source))
    return result


def _find_register(left: Any, right: Any) -> Register:
    """Return the operand that is a register, or the register that it negates."""
    operand = left if isinstance(left, Register | Negation) else right
    return operand.reg if isinstance(operand, Negation) else operand


def _is_pred(value: Any) -> bool:
    return isinstance(value, Negation) or (isinstance(value, Register) and value.dtype.kind == "pred")


def _check_integer(value: Any, symbol: str) -> int:
    value = unwrap_number(value)
    if isinstance(value, bool) or not isinstance(value, int):
        fail(rules.TYPES, f"`{symbol}` takes registers and integers, found {describe(value)}",
             help="pass the number of bits")  # fmt: skip
    return value


def _convert_operands(
    operation: str, symbol: str, left: Any, right: Any, into: Register | None = None
) -> tuple[Any, Any, PtxType]:
    """Return both sides as instruction operands of one type."""
    if isinstance(left, Register) and isinstance(right, Register):
        dtype = find_common_type(operation, left.dtype, right.dtype, symbol)
        _refuse_widening(into, dtype, right, symbol)
        return _widen_to(left, dtype), _widen_to(right, dtype), dtype
    register, operand = (left, right) if isinstance(left, Register) else (right, left)
    check_operand(operation, register.dtype, symbol)
    value = make_constant(register, operand, symbol, operation in _BITWISE)
    return (left, value, register.dtype) if register is left else (value, right, register.dtype)


_BITWISE = frozenset(("eq", "ne", "and", "or", "xor"))
"""Operations that read only the bits of a constant, so ptxas accepts either sign."""


def make_constant(peer: Register, operand: Any, symbol: str, lenient: bool = False) -> Any:
    """Return a number as the operand beside a register; `lenient` accepts either sign. Half precision has no
    immediates, so the number goes into a register; a pair type takes a pair of numbers, the low half first."""
    value: Any = operand if isinstance(operand, int | float) else unwrap_number(operand)
    if isinstance(value, ImmediateOperand):
        return value
    pair = is_pair(value, peer.dtype)
    if not isinstance(value, int | float) and not pair:
        if isinstance(value, Negation):
            check_operand(symbol, pred, symbol)
        help = "use `is None`" if value is None else get_remedy(value) or "operators take registers and numbers"
        fail(rules.TYPES, f"`{symbol}` cannot combine `{peer.name}` and {describe(value)}", help=help)
    dtype = peer.dtype
    # 0.0 and -0.0 are equal keys but different numbers, also inside a pair.
    is_cacheable = not pair and value != 0
    kind = cast("type", type(value))
    number = _make_literal(kind, value, dtype, lenient) if is_cacheable else make_literal(value, dtype, lenient=lenient)
    if dtype.kind != "f" or dtype.name in ("f32", "f64"):
        return number
    register = create_peer(peer, dtype, get_trace())
    emit(spell("mov", to_untyped(dtype).name), (register, number))
    return register


@lru_cache(maxsize=4096)
def _make_literal(kind: type, value: int | float, dtype: PtxType, lenient: bool) -> ImmediateOperand:
    """Return a cached literal. The key includes the type, because 1, True and 1.0 are equal."""
    return make_literal(value, dtype, lenient=lenient)


def _widen_to(side: Any, dtype: PtxType) -> Any:
    if side.dtype.kind != "f" and side.dtype.bits < dtype.bits:
        return widen(side, dtype)
    return side
