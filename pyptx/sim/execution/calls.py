"""Pass arguments and results through the callee's frame, which a caller can locate without knowing the callee (manual:
Abstracting the ABI). Generates code for both sides of a call."""

from __future__ import annotations

import numpy as np

from pyptx.check.body import Step
from pyptx.check.symbols import Kind, Symbol
from pyptx.ir import (
    CallPrototype,
    Function,
    LabelOperand,
    Param,
    ParenthesizedOperand,
    RegisterOperand,
    VectorOperand,
)
from pyptx.ir.operands import Operand
from pyptx.sim.base.formats import dtype_of, suffix_of
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.execution.text import BlockText
from pyptx.sim.program.frames import lay_out
from pyptx.sim.program.registers import Row
from pyptx.sim.program.vectors import list_register_names
from pyptx.sim.semantics.access import load, store
from pyptx.sim.state.memory import Site

Placed = list[tuple[Param, int, int]]


def parts_of_call(step: Step) -> tuple[tuple[Operand, ...], Operand, tuple[Operand, ...], Operand | None]:
    """Return results, callee, arguments and the prototype or target list of a call."""
    operands = list(step.instruction.operands)
    results: tuple[Operand, ...] = ()
    first = operands[0]
    if isinstance(first, ParenthesizedOperand):
        results, operands = first.elements, operands[1:]
    callee, *rest = operands
    arguments: tuple[Operand, ...] = ()
    if rest and isinstance(rest[0], ParenthesizedOperand):
        arguments, rest = rest[0].elements, rest[1:]
    return results, callee, arguments, rest[0] if rest else None


def callee_name(step: Step) -> str | None:
    """Return the function that a direct call names."""
    _, callee, _, _ = parts_of_call(step)
    if isinstance(callee, LabelOperand | RegisterOperand):
        symbol = step.scope.find(callee.name)
        if symbol is not None and symbol.kind is Kind.FUNCTION:
            return callee.name
    return None


def _declared(step: Step, writer: BlockText) -> tuple[Placed, Placed, int]:
    """Return the places of results and arguments in the callee's frame, and the size of that part."""
    _, callee, _, last = parts_of_call(step)
    for operand in (last, callee):
        symbol = step.scope.find(operand.name) if isinstance(operand, LabelOperand | RegisterOperand) else None
        declared = symbol.declaration if symbol is not None else None
        if symbol is not None and symbol.kind is Kind.TARGETS:
            listed = getattr(declared, "targets", ())
            declared = writer.program.by_name[listed[0]].function if listed else None
        if isinstance(declared, Function | CallPrototype):
            returns = declared.return_params or ()
            placed, end = lay_out((*returns, *(p for p in declared.params if p.name != "...")))
            return placed[: len(returns)], placed[len(returns) :], end
    return [], [], 0


def pass_arguments(writer: BlockText, step: Step) -> None:
    """Write the arguments of a call to the callee's frame."""
    _, formals, end = _declared(step, writer)
    _, _, arguments, _ = parts_of_call(step)
    writer.operands.uses_stack = True
    base = writer.block.code.frame.size
    writer.lines.append(f"M.memory.ensure_local(int(sp.max()) + {base + end}, None)")
    for (param, offset, size), given in zip(formals, arguments, strict=False):
        where = f"sp + {base + offset}"
        variable = _variable(given, step)
        if variable is not None:
            _copy(writer, step, where, _place(writer, variable), size)
        elif isinstance(given, VectorOperand):
            for row, part in _parts_of(writer, given, step, offset, size):
                _store_row(writer, step, f"sp + {base + part}", row, param)
        elif isinstance(given, RegisterOperand | LabelOperand):
            _store_row(writer, step, where, _row(writer, given, step), param)
        else:
            number = writer.operands.read(given, param.type.ptx[1:], step.scope)
            _memory(writer, step, store, where, dtype_of(param.type.ptx[1:]), number)


def take_results(writer: BlockText, step: Step) -> None:
    """Read the results of a call from the callee's frame."""
    placed, _, _ = _declared(step, writer)
    results, _, _, _ = parts_of_call(step)
    base = writer.block.code.frame.size
    for (param, offset, size), given in zip(placed, results, strict=False):
        writer.operands.uses_stack = True
        where = f"sp + {base + offset}"
        variable = _variable(given, step)
        if variable is not None:
            _copy(writer, step, _place(writer, variable), where, size)
        elif isinstance(given, VectorOperand):
            for row, part in _parts_of(writer, given, step, offset, size):
                _load_row(writer, step, f"sp + {base + part}", row, param)
        elif isinstance(given, RegisterOperand | LabelOperand) and given.name != "_":
            _load_row(writer, step, where, _row(writer, given, step), param)


def take_parameters(writer: BlockText) -> None:
    """Read the `.reg` parameters at the start of a function."""
    code = writer.block.code
    for param, offset, size in () if code.function.is_entry else code.frame.params:
        for row, part in _formals(writer, param, offset, size):
            writer.operands.uses_stack = True
            _load_row(writer, None, f"sp + {part}", row, param)


def leave_results(writer: BlockText) -> None:
    """Write the `.reg` results to the frame at the end of a function."""
    for param, offset, size in writer.block.code.frame.results:
        for row, part in _formals(writer, param, offset, size):
            writer.operands.uses_stack = True
            _store_row(writer, None, f"sp + {part}", row, param)


def _formals(writer: BlockText, param: Param, offset: int, size: int) -> list[tuple[Row, int]]:
    """Return the registers of a `.reg` parameter with their offsets: a vector has one register per member."""
    if param.state_space.ptx != ".reg":
        return []
    names = list_register_names(param)
    rows = {name: row for (name, _), row in writer.block.code.rows.by_name.items() if name in names}
    return [(rows[name], offset + at * size // len(names)) for at, name in enumerate(names) if name in rows]


def _parts_of(writer: BlockText, given: VectorOperand, step: Step, offset: int, size: int) -> list[tuple[Row, int]]:
    """Return the registers of a vector with their offsets."""
    count = len(given.elements)
    named = [element for element in given.elements if isinstance(element, RegisterOperand)]
    return [(_row(writer, element, step), offset + at * size // count) for at, element in enumerate(named)]


def _variable(given: Operand, step: Step) -> tuple[str, Symbol] | None:
    name = given.name if isinstance(given, LabelOperand | RegisterOperand) else None
    symbol = step.scope.find(name) if name else None
    if name is None or symbol is None or symbol.kind is not Kind.VARIABLE:
        return None
    return name, symbol


def _place(writer: BlockText, variable: tuple[str, Symbol]) -> str:
    at = writer.operands.place(*variable)
    return f"sp * 0 + {at}" if isinstance(at, int) else at


def _row(writer: BlockText, given: RegisterOperand | LabelOperand, step: Step) -> Row:
    found = writer.operands.row(given.name, step.scope)
    assert found is not None
    return found


def _store_row(writer: BlockText, step: Step | None, where: str, row: Row, param: Param) -> None:
    name = param.type.ptx[1:]
    view = writer.operands.view(row, suffix_of(dtype_of(name)) if name in ("f32", "f64") else "")
    _memory(writer, step, store, where, _stored(name), view)


def _load_row(writer: BlockText, step: Step | None, where: str, row: Row, param: Param) -> None:
    view = writer.operands.view(row, reads=False)
    _memory(writer, step, load, where, _stored(param.type.ptx[1:]), view)
    writer.operands.wrote(view, False)


def _stored(name: str) -> np.dtype[np.generic]:
    dtype = dtype_of(name)
    return np.dtype(f"u{dtype.itemsize}") if dtype.kind == "f" else dtype


def _memory(
    writer: BlockText, step: Step | None, how: object, where: str, dtype: np.dtype[np.generic], value: str
) -> None:
    site = f"S{len(writer.sites)}"
    writer.sites[site] = step or writer.block.steps[0]
    value = f"{value}.view('{dtype.str}')" if how is store and dtype.kind == "u" and value.endswith("f") else value
    function, kind = writer.operands.constant(how), writer.operands.constant(dtype)
    writer.lines.append(f"{function}({site}, L, None, 'local', {where}, {kind}, ({value},))")


def _copy(writer: BlockText, step: Step, target: str, source: str, size: int) -> None:
    site = f"S{len(writer.sites)}"
    writer.sites[site] = step
    function = writer.operands.constant(copy_bytes)
    writer.lines.append(f"{function}({site}, L, {target}, {source}, {size})")


def copy_bytes(site: Site, lanes: Lanes, target: np.ndarray, source: np.ndarray, size: int) -> None:
    """Copy bytes inside each thread's local memory."""
    step = 8 if not size % 8 else 4 if not size % 4 else 1
    scratch = (np.empty(lanes.n, f"u{step}"),)
    for offset in range(0, size, step):
        load(site, lanes, None, "local", source + offset, scratch[0].dtype, scratch)
        store(site, lanes, None, "local", target + offset, scratch[0].dtype, scratch)
