"""Parameters, addresses, variables, loads and stores."""

from __future__ import annotations

from typing import Any, TypeVar, cast, overload

from pyptx.dsl import rules
from pyptx.dsl.emit import convert, describe, emit, refuse_foreign, spell
from pyptx.dsl.operators import emit_binary
from pyptx.dsl.registers import Dtype, Pred, Reg, create_register, move_type, resolve_type
from pyptx.dsl.scopes import Named
from pyptx.dsl.shared import SharedView, choose_memory_type, shift_address
from pyptx.dsl.tensors import TensorSpec
from pyptx.dsl.trace import Trace, fail, get_trace
from pyptx.dsl.values import Register, RegisterRange, Value
from pyptx.ir.kinds import UNSIZED, LinkingDirective, ScalarType, StateSpace
from pyptx.ir.nodes import VarDecl
from pyptx.ir.operands import AddressOperand, ImmediateOperand, LabelOperand, Operand, RegisterOperand, VectorOperand
from pyptx.ptx.scalar import FRESH
from pyptx.types import b64

_D = TypeVar("_D")
"""Destination of a load: a register, a list, or a range."""


def global_ptrs(*params: Any) -> tuple[Reg, ...]:
    """Return the global address of each tensor: `ld.param.u64` and `cvta.to.global.u64` in place."""
    pointers: list[Reg] = []
    for param in params:
        if not isinstance(param, TensorSpec | str):
            fail(
                rules.ARGUMENT,
                f"`ptx.global_ptrs` takes the kernel's tensors or parameter names, found {describe(param)}",
            )
        pointer = create_register(b64)
        emit(spell("ld", "param", "u64"), (pointer, AddressOperand(param) if isinstance(param, str) else param))
        emit(spell("cvta", "to", "global", "u64"), (pointer, pointer))
        pointers.append(pointer)
    return tuple(pointers)


def param(dtype: Dtype, name: str, dst: Reg | None = None) -> Reg:
    """Read a scalar parameter: `ld.param.T`; of an array parameter, its address: `mov.T`."""
    dtype = resolve_type(dtype)
    trace = get_trace()
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        fail(rules.ARGUMENT, f"`ptx.param` takes the name of a parameter, found {describe(name)}",
             help="use ptx.global_ptrs to get the addresses of tensors")  # fmt: skip
    result = dst if dst is not None else create_register(dtype)
    if name in trace.array_parameters:
        emit(spell("mov", move_type(dtype)), (result, LabelOperand(name)))
    else:
        emit(spell("ld", "param", choose_memory_type(dtype)), (result, AddressOperand(name)))
    return result


def addr(base: Any, offset: Any = None, *more: Any) -> AddressOperand:
    """Return the address `[base]` or `[base+offset]`. A register offset emits an `add` into a new register. Offsets are
    in bytes.

    A list of coordinates makes `[map, {x, y}]`; a texture with its sampler: `[tex, samp, {x, y}]`.
    """
    trace = get_trace()
    if trace.exact is not None:
        return trace.exact.build_address(base, offset, more)
    if isinstance(offset, list) and not more and isinstance(base, Register) and base.__trace__ is trace:
        return AddressOperand(base.name, None, (_convert_part(offset, trace),))  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(offset, list) or more:
        parts = [_convert_part(part, trace) for part in cast("tuple[Any, ...]", (offset, *more))]
        return _make_address(base, None, tuple(parts))
    if isinstance(offset, Register):
        return _add_index(base, offset)
    if offset is not None and (isinstance(offset, bool) or not isinstance(offset, int)):
        fail(rules.ARGUMENT, f"an offset must be an integer or a register, found {describe(offset)}")
    if offset is not None and not -(1 << 31) <= offset < 1 << 31:
        fail(
            rules.LITERAL,
            f"an address offset must fit in 32 signed bits, found {offset}",
            help="add it to a register first",
        )
    return _make_address(base, offset, ())


def _convert_part(value: Any, trace: Trace) -> Operand:
    if type(value) is not list:
        return convert(value, None, trace)
    items = cast("list[Any]", value)
    return VectorOperand(
        tuple(
            [v.__node__ if isinstance(v, Register) and v.__trace__ is trace else convert(v, None, trace) for v in items]
        )
    )


def _make_address(base: Any, offset: int | None, coordinates: tuple[Operand, ...]) -> AddressOperand:
    if isinstance(base, Register):
        if base.__trace__ is not get_trace():
            refuse_foreign(base)
        return (
            AddressOperand(base.name, _spell_offset(offset), coordinates)
            if coordinates
            else get_trace().intern_address(base.name, offset)
        )
    if isinstance(base, str):
        return AddressOperand(base, _spell_offset(offset), coordinates)
    inner = base.__address__() if isinstance(base, Value) else base
    if not isinstance(inner, AddressOperand):
        fail(
            rules.ARGUMENT,
            f"the base of an address must be a register, a symbol or an allocation, found {describe(base)}",
        )
    total = int(inner.offset or 0) + (offset or 0)
    return AddressOperand(inner.base, _spell_offset(total or None), (*inner.rest, *coordinates))


def _spell_offset(value: int | None) -> str | None:
    return None if value is None else str(value)


def _add_index(base: Any, offset: Register) -> AddressOperand:
    with Named("addr", f"{getattr(base, 'name', base)}, {offset.name}"):
        if isinstance(base, SharedView):
            address = shift_address(base, offset).register
        else:
            start = base.__ring_base__() if isinstance(base, Value) else None
            if start is not None and isinstance(start[0], Register):
                base = start[0]
            if not isinstance(base, Register):
                operand = base.__operand__() if isinstance(base, Value) else convert(base, None, get_trace())
                base = create_register(b64)
                emit(spell("mov", "b64"), (base, operand))
            address = emit_binary("add", "+", base, offset)
        assert address is not None
        return AddressOperand(address.name)


def var(
    state_space: str,
    dtype: Dtype,
    name: str,
    *,
    size: int | None = None,
    align: int | None = None,
    linking: str | None = None,
) -> str:
    """Declare a variable: `.space .align A .T name[size]`. With `linking` it is declared at module level. `size` counts
    elements, `align` is in bytes."""
    dtype = resolve_type(dtype)
    trace = get_trace()
    try:
        space, kind = StateSpace.from_ptx(state_space), ScalarType.from_ptx(dtype.name)
        link = None if linking is None else LinkingDirective.from_ptx(linking)
    except ValueError as wrong:
        fail(rules.ARGUMENT, str(wrong))
    trace.claim(name, "variable")
    extent = UNSIZED if size is None and link is LinkingDirective.EXTERN and space is StateSpace.SHARED else size
    node = VarDecl(space, kind, name, extent, align, linking=link, origin=trace.locate())
    if link is not None:
        trace.declare_module_variable(node)
    else:
        trace.declare_variable(node)
    return name


def imm(text: str) -> ImmediateOperand:
    """Return a number with its spelling: `ptx.imm("0x10")`."""
    operand = ImmediateOperand(text)
    try:
        _ = operand.value
    except ValueError:
        fail(rules.ARGUMENT, f"{text!r} is not a PTX number", help="write it as in PTX: 16, 0x10, 1.5, 0f3F800000")
    return operand


def sel(reg: Register, part: str) -> RegisterOperand:
    """Return a part of a register, for instructions that accept one: `ptx.sel(r, "b0")`."""
    if reg.__trace__ is not get_trace():
        refuse_foreign(reg)
    return RegisterOperand(f"{reg.name}.{part.removeprefix('.')}")


def _split_words(text: str | None) -> tuple[str, ...]:
    return tuple(word for word in (text or "").split(".") if word and word != "generic")


def _make_vector(value: Any) -> tuple[tuple[str, ...], Any]:
    """Return the `.vN` for a list or range of registers, and the value as an operand."""
    if isinstance(value, RegisterRange):
        return (f"v{value.count}",), value
    if isinstance(value, list | tuple):
        items: list[Any] = list(value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        return (f"v{len(items)}",), items
    return (), value


@overload
def ld(
    dtype: Dtype,
    addr: Any,
    /,
    *,
    vec: None = None,
    space: str = "global",
    cache: str | None = None,
    pred: Pred | None = None,
) -> Reg: ...
@overload
def ld(
    dtype: Dtype, addr: Any, /, *, vec: int, space: str = "global", cache: str | None = None, pred: Pred | None = None
) -> list[Reg]: ...
@overload
def ld(
    dtype: Dtype, dst: _D, addr: Any, *, space: str = "global", cache: str | None = None, pred: Pred | None = None
) -> _D: ...
def ld(
    dtype: Dtype,
    dst: Any,
    addr: Any = FRESH,
    *,
    vec: int | None = None,
    space: str = "global",
    cache: str | None = None,
    pred: Pred | None = None,
) -> Any:
    """Emit `ld.space[.cache].T`; a list of 2, 4 or 8 registers makes it a vector load. `ld(dtype, addr)` loads into a
    new register, `vec=4` into four. Returns the destination."""
    dtype = resolve_type(dtype)
    if addr is FRESH:
        dst, addr = create_register(dtype) if vec is None else [create_register(dtype) for _ in range(vec)], dst
    vector, target = _make_vector(dst)
    emit(
        spell("ld", *_split_words(space), *_split_words(cache), *vector, choose_memory_type(dtype)),
        (target, addr),
        pred,
    )
    return dst


def st(
    dtype: Dtype, addr: Any, src: Any, *, space: str = "global", cache: str | None = None, pred: Pred | None = None
) -> None:
    """Emit `st.space[.cache].T`; a list of 2, 4 or 8 registers makes it a vector store."""
    dtype = resolve_type(dtype)
    vector, source = _make_vector(src)
    emit(
        spell("st", *_split_words(space), *_split_words(cache), *vector, choose_memory_type(dtype)),
        (addr, source),
        pred,
    )
