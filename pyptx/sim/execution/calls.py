"""Pass arguments and results through the callee's frame, which a caller can locate without knowing the callee (manual:
Abstracting the ABI). Generates code for both sides of a call."""

from __future__ import annotations

import numpy as np

from pyptx.check.body import Step
from pyptx.check.symbols import Kind, Symbol
from pyptx.ir import (
    CallPrototype,
    CallTargets,
    Function,
    LabelOperand,
    Param,
    ParenthesizedOperand,
    RegisterOperand,
    VectorOperand,
    opcode_span,
)
from pyptx.ir.operands import Operand
from pyptx.sim.base.formats import dtype_of, suffix_of
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.execution.text import BlockText
from pyptx.sim.program.frames import lay_out
from pyptx.sim.program.registers import Row
from pyptx.sim.program.vectors import list_register_names
from pyptx.sim.rules import faults
from pyptx.sim.semantics.access import load, store
from pyptx.sim.state.memory import Site

Placed = list[tuple[Param, int, int]]


def split_call(step: Step) -> tuple[tuple[Operand, ...], Operand, tuple[Operand, ...], Operand | None]:
    """Return results, callee, arguments and the prototype or target list of a call."""
    operands = list(step.instruction.operands)
    results: tuple[Operand, ...] = ()
    first = operands[0]
    if isinstance(first, ParenthesizedOperand):
        results, operands = first.elements, operands[1:]
    callee, *remaining = operands
    arguments: tuple[Operand, ...] = ()
    if remaining and isinstance(remaining[0], ParenthesizedOperand):
        arguments, remaining = remaining[0].elements, remaining[1:]
    return results, callee, arguments, remaining[0] if remaining else None


def callee_name(step: Step) -> str | None:
    """Return the function that a direct call names."""
    _, callee, _, _ = split_call(step)
    if isinstance(callee, LabelOperand | RegisterOperand):
        symbol = step.scope.find(callee.name)
        if symbol is not None and symbol.kind is Kind.FUNCTION:
            return callee.name
    return None


def _lay_out_call(step: Step) -> tuple[Placed, Placed, int]:
    """Return the places of results and arguments in the callee's frame, and the size of that part."""
    _, callee, _, last = split_call(step)
    for operand in (last, callee):
        symbol = step.scope.find(operand.name) if isinstance(operand, LabelOperand | RegisterOperand) else None
        declaration = symbol.declaration if symbol is not None else None
        if isinstance(declaration, CallTargets):
            target = step.scope.find(declaration.targets[0])
            declaration = target.declaration if target is not None else None
        if isinstance(declaration, Function | CallPrototype):
            returns = declaration.return_params or ()
            layout, end = lay_out((*returns, *(p for p in declaration.params if p.name != "...")))
            return layout[: len(returns)], layout[len(returns) :], end
    text = "`call` through a register names no `.callprototype` or `.calltargets`"
    raise faults.error(faults.ILLEGAL, opcode_span(step.instruction), text)


def pass_arguments(writer: BlockText, step: Step) -> None:
    """Write the arguments of a call to the callee's frame."""
    _, formals, end = _lay_out_call(step)
    _, _, arguments, _ = split_call(step)
    writer.operands.uses_stack = True
    base = writer.block.code.frame.size
    writer.lines.append(f"M.memory.ensure_local(int(sp.max()) + {base + end}, None)")
    for (param, offset, size), argument in zip(formals, arguments, strict=False):
        address = f"sp + {base + offset}"
        variable = _find_variable(argument, step)
        if variable is not None:
            _write_copy(writer, step, address, _write_address(writer, variable), size)
        elif isinstance(argument, VectorOperand):
            for row, part in _list_members(writer, argument, step, offset, size):
                _store_row(writer, step, f"sp + {base + part}", row, param)
        elif isinstance(argument, RegisterOperand | LabelOperand):
            _store_row(writer, step, address, _find_row(writer, argument, step), param)
        else:
            name = param.type.ptx[1:]
            number = writer.operands.read(argument, name, step.scope)
            values = number.strip("()") if name == "b128" else number
            _write_access(writer, step, store, address, dtype_of("b64" if name == "b128" else name), values)


def take_results(writer: BlockText, step: Step) -> None:
    """Read the results of a call from the callee's frame, in the lanes that made the call."""
    formals, _, _ = _lay_out_call(step)
    mask = writer.read_guard(step)
    results, _, _, _ = split_call(step)
    base = writer.block.code.frame.size
    for (param, offset, size), result in zip(formals, results, strict=False):
        writer.operands.uses_stack = True
        address = f"sp + {base + offset}"
        variable = _find_variable(result, step)
        if variable is not None:
            _write_copy(writer, step, _write_address(writer, variable), address, size, mask)
        elif isinstance(result, VectorOperand):
            for row, part in _list_members(writer, result, step, offset, size):
                _load_row(writer, step, f"sp + {base + part}", row, param, mask)
        elif isinstance(result, RegisterOperand | LabelOperand) and result.name != "_":
            _load_row(writer, step, address, _find_row(writer, result, step), param, mask)


def take_parameters(writer: BlockText) -> None:
    """Read the `.reg` parameters at the start of a function."""
    code = writer.block.code
    for param, offset, size in () if code.function.is_entry else code.frame.params:
        for row, part in _list_formals(writer, param, offset, size):
            writer.operands.uses_stack = True
            _load_row(writer, None, f"sp + {part}", row, param)


def leave_results(writer: BlockText) -> None:
    """Write the `.reg` results to the frame at the end of a function."""
    for param, offset, size in writer.block.code.frame.results:
        for row, part in _list_formals(writer, param, offset, size):
            writer.operands.uses_stack = True
            _store_row(writer, None, f"sp + {part}", row, param)


def _list_formals(writer: BlockText, param: Param, offset: int, size: int) -> list[tuple[Row, int]]:
    """Return the registers of a `.reg` parameter with their offsets: a vector has one register per member."""
    if param.state_space.ptx != ".reg":
        return []
    names = list_register_names(param)
    rows = {name: row for (name, _), row in writer.block.code.rows.by_name.items() if name in names}
    return [(rows[name], offset + index * size // len(names)) for index, name in enumerate(names) if name in rows]


def _list_members(
    writer: BlockText, vector: VectorOperand, step: Step, offset: int, size: int
) -> list[tuple[Row, int]]:
    """Return the registers of a vector with their offsets."""
    count = len(vector.elements)
    registers = [element for element in vector.elements if isinstance(element, RegisterOperand)]
    return [
        (_find_row(writer, element, step), offset + index * size // count) for index, element in enumerate(registers)
    ]


def _find_variable(operand: Operand, step: Step) -> tuple[str, Symbol] | None:
    name = operand.name if isinstance(operand, LabelOperand | RegisterOperand) else None
    symbol = step.scope.find(name) if name else None
    if name is None or symbol is None or symbol.kind is not Kind.VARIABLE:
        return None
    return name, symbol


def _write_address(writer: BlockText, variable: tuple[str, Symbol]) -> str:
    address = writer.operands.place(*variable)
    return f"sp * 0 + {address}" if isinstance(address, int) else address


def _find_row(writer: BlockText, operand: RegisterOperand | LabelOperand, step: Step) -> Row:
    row = writer.operands.find_row(operand.name, step.scope)
    assert row is not None
    return row


def _store_row(writer: BlockText, step: Step | None, address: str, row: Row, param: Param) -> None:
    name = param.type.ptx[1:]
    view = writer.operands.name_view(row, suffix_of(dtype_of(name)) if name in ("f32", "f64") else "")
    if name == "b128":
        view += ", " + writer.operands.name_view(row, "", 1)
    _write_access(writer, step, store, address, _choose_dtype(name), view)


def _load_row(
    writer: BlockText, step: Step | None, address: str, row: Row, param: Param, mask: str | None = None
) -> None:
    name = param.type.ptx[1:]
    views = [writer.operands.name_view(row, "", half, reads=False) for half in range(2 if name == "b128" else 1)]
    _write_access(writer, step, load, address, _choose_dtype(name), ", ".join(views), mask)
    for view in views:
        writer.operands.record_write(view, mask is not None)


def _choose_dtype(name: str) -> np.dtype[np.generic]:
    dtype = dtype_of("b64" if name == "b128" else name)
    return np.dtype(f"u{dtype.itemsize}") if dtype.kind == "f" else dtype


def _write_access(
    writer: BlockText, step: Step | None, operation: object, address: str, dtype: np.dtype[np.generic], value: str,
    mask: str | None = None,
) -> None:  # fmt: skip
    site = f"S{len(writer.sites)}"
    writer.sites[site] = step or writer.block.steps[0]
    value = (
        f"{value}.view('{dtype.str}')" if operation is store and dtype.kind == "u" and value.endswith("f") else value
    )
    function, kind = writer.operands.add_constant(operation), writer.operands.add_constant(dtype)
    writer.lines.append(f"{function}({site}, L, {mask}, 'local', {address}, {kind}, ({value},))")


def _write_copy(writer: BlockText, step: Step, target: str, source: str, size: int, mask: str | None = None) -> None:
    site = f"S{len(writer.sites)}"
    writer.sites[site] = step
    function = writer.operands.add_constant(copy_bytes)
    writer.lines.append(f"{function}({site}, L, {mask}, {target}, {source}, {size})")


def copy_bytes(
    site: Site, lanes: Lanes, mask: np.ndarray | None, target: np.ndarray, source: np.ndarray, size: int
) -> None:
    """Copy bytes inside each thread's local memory."""
    step = 8 if not size % 8 else 4 if not size % 4 else 1
    scratch = (np.empty(lanes.n, f"u{step}"),)
    for offset in range(0, size, step):
        load(site, lanes, mask, "local", source + offset, scratch[0].dtype, scratch)
        store(site, lanes, mask, "local", target + offset, scratch[0].dtype, scratch)
