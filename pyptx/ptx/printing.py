"""`printf` and assertions: calls of functions that the driver provides, with strings stored in the module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyptx.dsl import rules
from pyptx.dsl.emit import describe, emit, spell
from pyptx.dsl.operators import widen
from pyptx.dsl.registers import Pred, Reg, create_register, move
from pyptx.dsl.scopes import intrinsic
from pyptx.dsl.shared import choose_memory_type
from pyptx.dsl.trace import Trace, fail, get_trace
from pyptx.dsl.values import Register, compute_integer_range, is_integer, unwrap_number
from pyptx.ir.kinds import LinkingDirective, ScalarType, StateSpace
from pyptx.ir.nodes import Function, FunctionDirective, Param, VarDecl
from pyptx.ir.operands import AddressOperand, LabelOperand
from pyptx.isa.printf import Field, Parts, Unprintable, list_argument_offsets, parse_format
from pyptx.ptx.conditionals import If
from pyptx.ptx.functions import call, declare
from pyptx.types import PtxType, b32, b64, f64, s32, s64, u32, u64


@intrinsic
def printf(text: str, *values: Any) -> None:
    """Print from the GPU: `ptx.printf("i=%d x=%f\\n", i, x)`. Values are registers, numbers, and strings for `%s`;
    small ones are widened as in C. Each must match its conversion."""
    trace = get_trace()
    parts = _parse_parts(text)
    fields = [(part, dtype) for part in parts if isinstance(part, Field) for dtype in part.dtypes]
    if len(values) < len(fields):
        fail(rules.ARGUMENT, f"`{fields[len(values)][0].text}` of `ptx.printf` has no argument: the format needs "
                             f"{len(fields)}, found {len(values)}", help="pass it; %% is a percent sign")  # fmt: skip
    if len(values) > len(fields):
        fail(rules.ARGUMENT, f"argument {len(fields) + 1} of `ptx.printf`, {describe(values[len(fields)])}, has no "
                             f"conversion: the format needs {len(fields)}", help="add %d, %f, … for it")  # fmt: skip
    words = [
        _convert_argument(number, field, _CLASSES[dtype], value, trace)
        for number, ((field, dtype), value) in enumerate(zip(fields, values, strict=True), 1)
    ]
    _declare_external(trace, "vprintf", (ScalarType.B64, ScalarType.B64), (ScalarType.B32,))
    buffer: Any = 0
    if words:
        name = trace.choose_name(None, "$printf")
        offsets = [offset for offset, _ in list_argument_offsets(parts)]
        end = offsets[-1] + words[-1].dtype.bits // 8
        trace.declare_variable(VarDecl(StateSpace.LOCAL, ScalarType.B8, name, end, 8))
        for offset, word in zip(offsets, words, strict=True):
            kind = choose_memory_type(word.dtype)
            emit(spell("st", "local", kind), (AddressOperand(name, str(offset) if offset else None), word))
        local, buffer = create_register(b64), create_register(b64)
        move(local, LabelOperand(name))
        emit(spell("cvta", "local", "u64"), (buffer, local))
    call(trace, "vprintf", [(b64, _make_text(trace, text)), (b64, buffer)], [b32])


_CLASSES = {"i4": s32, "u4": u32, "i8": s64, "u8": u64, "f8": f64}
"""The type in which a conversion passes its argument."""


def _parse_parts(text: Any) -> Parts:
    if not isinstance(text, str):
        fail(rules.ARGUMENT, f"the format of `ptx.printf` must be a string, found {describe(text)}",
             help='write ptx.printf("x=%f\\n", x)')  # fmt: skip
    try:
        return parse_format(text.encode())
    except Unprintable as why:
        return fail(rules.ARGUMENT, f"`ptx.printf`: {why}", help="%% prints a percent sign")


def _convert_argument(number: int, field: Field, kind: PtxType, value: Any, trace: Trace) -> Reg:
    """Return a value as C passes it to printf: doubles, and 32- or 64-bit integers, according to its conversion."""
    if field.kind == "s" and isinstance(value, str):
        return _make_text(trace, value)
    value = unwrap_number(value)
    if isinstance(value, Register):
        if (value.dtype.kind == "f") != (kind is f64) or (
            kind is not f64 and (value.dtype.bits > 32) != (kind.bits > 32)
        ):
            _refuse_mismatch(number, field, kind, value)
        return _promote(value)
    if not (is_integer(value) or (isinstance(value, float) and kind is f64)):
        _refuse_mismatch(number, field, kind, value)
    if kind is not f64:
        low, high = compute_integer_range(kind, lenient=True)
        if not low <= value <= high:
            _refuse_mismatch(number, field, kind, value)
    result = create_register(kind if kind is f64 or value >= 0 else s32 if kind.bits == 32 else s64)
    move(result, value)
    return result


def _refuse_mismatch(number: int, field: Field, kind: PtxType, value: Any) -> None:
    """Refuse an argument that does not match its conversion."""
    prints = "a string" if field.kind == "s" else "a floating-point number" if kind is f64 else f"{kind.bits} bits"
    fail(rules.ARGUMENT, f"`{field.text}` of `ptx.printf` prints {prints}, but argument {number} is {describe(value)}",
         help=f"use {_choose_conversion(value)}, or convert it with ptx.cvt")  # fmt: skip


def _choose_conversion(value: Any) -> str:
    """Return a conversion that prints a value."""
    if isinstance(value, Register):
        if value.dtype.kind == "f":
            return "%f"
        return f"%{'ll' if value.dtype.bits > 32 else ''}{'d' if value.dtype.kind == 's' else 'u'}"
    if isinstance(value, str):
        return "%s"
    return "%f" if isinstance(value, float) else "%lld" if is_integer(value) else "%d, %f, … for registers and numbers"


def _promote(value: Register) -> Reg:
    """Return a register promoted as C does for a function without a prototype."""
    if value.dtype.kind == "f" and value.dtype.bits < 64:
        result = create_register(f64)
        emit(spell("cvt", "f64", value.dtype.name), (result, value))
        return result
    if value.dtype.kind == "pred":
        result = create_register(u32)
        emit(spell("selp", "u32"), (result, 1, 0, value))
        return result
    return widen(value, s32 if value.dtype.kind == "s" else u32) if value.dtype.bits < 32 else value  # pyright: ignore[reportReturnType]


def _make_text(trace: Trace, text: str) -> Reg:
    """Return the generic address of a zero-terminated string, which the module holds once."""
    name = trace.unit.once.get(("text", text))
    if name is None:
        data = (*text.encode(), 0)
        name = trace.unit.once["text", text] = trace.choose_module_name(None, "$text")
        initial = tuple(map(str, data))
        trace.declare_module_variable(VarDecl(StateSpace.GLOBAL, ScalarType.B8, name, len(data), 1, initial))
    address, result = create_register(b64), create_register(b64)
    move(address, LabelOperand(name))
    emit(spell("cvta", "global", "u64"), (result, address))
    return result


def _declare_external(
    trace: Trace, name: str, params: Sequence[ScalarType], returns: Sequence[ScalarType], *words: str
) -> None:
    """Declare a function provided by the driver."""
    if name in trace.unit.functions:
        return
    parameters, results = (
        tuple(Param(StateSpace.PARAM, kind, f"{name}_{prefix}{i}") for i, kind in enumerate(kinds))
        for prefix, kinds in (("", params), ("result", returns))
    )
    function = Function(
        False, name, parameters, results or None, linking=LinkingDirective.EXTERN, definition=False,
        directives=tuple(FunctionDirective(word) for word in words),
    )  # fmt: skip
    declare(trace, function)
    trace.unit.functions[name] = function


@intrinsic
def assert_(pred: Pred, message: str = "assertion failed") -> None:
    """Abort the kernel with a message that names the Python line, if the predicate is false."""
    trace = get_trace()
    origin = trace.locate()
    file, line, name = (origin.file, origin.line, origin.code.co_name) if origin else ("<kernel>", 0, trace.name)
    kinds = (ScalarType.B64, ScalarType.B64, ScalarType.B32, ScalarType.B64, ScalarType.B64)
    _declare_external(trace, "__assertfail", kinds, (), "noreturn")
    with If("ptx.if_", ~pred):
        texts = [_make_text(trace, text) for text in (message, file, name)]
        arguments = [(b64, texts[0]), (b64, texts[1]), (b32, line), (b64, texts[2]), (b64, 1)]
        call(trace, "__assertfail", arguments, ())
