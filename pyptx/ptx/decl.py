"""Declarations of exact transcripts, written in place: `ptx.decl.reg`, `ptx.decl.var`, `ptx.decl.param`."""

from __future__ import annotations

from typing import Any

from pyptx.dsl import exact_declarations
from pyptx.dsl.exact_declarations import DeclaredRange
from pyptx.dsl.registers import Dtype, Reg
from pyptx.ir.nodes import Declarator, Param
from pyptx.ptx.exact import require_exact

__all__ = ["item", "param", "reg", "var"]


def reg(dtype: Dtype, *names: str, vector: int | None = None, align: Any = None) -> Any:
    """Declare registers: `.reg .b32 %r<24>, %x;`. Returns a register for each name, and for `%r<24>` an array of 24.
    `align` is in bytes."""
    exact = require_exact("ptx.decl.reg")
    node, registers = exact_declarations.declare_registers(dtype, names, vector, align)
    exact.trace.append(node.replace(origin=exact.trace.locate()))
    for register in registers:
        if isinstance(register, Reg):
            exact.declare(node.type, register.name, None)
        else:
            array: DeclaredRange = register
            exact.declare(node.type, array.base, array.count)
    return registers[0] if len(registers) == 1 else tuple(registers)


def var(
    space: str,
    dtype: Dtype,
    name: str,
    shape: Any = None,
    *more: Declarator,
    init: Any = None,
    align: Any = None,
    linking: str | None = None,
    vector: int | None = None,
    count: Any = None,
    braces: bool | None = None,
    attributes: Any = (),
    attributes_first: bool = True,
    bank: Any = None,
) -> str:
    """Declare a variable: `.shared .align 16 .b8 name[1024];`. `shape` is one or several sizes, None for `[]`; `init` a
    value or a list of numbers, names, lists, operands of `ptx.op`. `ptx.decl.item` adds further declarators. Returns
    the name. `shape` and `count` count elements, `align` is in bytes."""
    trace = require_exact("ptx.decl.var").trace
    trace.append(
        exact_declarations.build_variable(
            space, dtype, name, shape, *more, init=init, align=align, linking=linking, vector=vector, count=count,
            braces=braces, attributes=attributes, attributes_first=attributes_first, bank=bank,
        ).replace(origin=trace.locate())
    )  # fmt: skip
    return name


def item(
    name: str, shape: Any = None, *, init: Any = None, count: Any = None, braces: bool | None = None
) -> Declarator:
    """Return another declarator of `ptx.decl.var`. `shape` and `count` count elements."""
    return Declarator(*exact_declarations.build_declarator(name, shape, init, count, braces))


def param(
    dtype: Dtype,
    name: str,
    shape: Any = None,
    *,
    space: str = "param",
    align: Any = None,
    ptr: bool | str = False,
    ptr_align: Any = None,
    vector: int | None = None,
    trailing_align: Any = None,
) -> Param:
    """Return a parameter of a function: `.param .u64 .ptr .global .align 16 name`. `ptr` is True for `.ptr` alone, or
    its state space; `shape` the size of an array, () for `[]`. Alignments are in bytes, `shape` counts elements."""
    return exact_declarations.build_parameter(
        dtype, name, shape, space=space, align=align, ptr=ptr, ptr_align=ptr_align, vector=vector,
        trailing_align=trailing_align,
    )  # fmt: skip


def __dir__() -> list[str]:
    return __all__
