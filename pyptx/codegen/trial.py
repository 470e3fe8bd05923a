"""Runs a kernel on generated arguments: buffers for parameters used as addresses, small numbers for the rest.

The only part of the transpiler that needs NumPy and the simulator; loaded only when a generated file is told to run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pyptx import sim
from pyptx.ir.directives import Module
from pyptx.ir.kinds import LinkingDirective, StateSpace
from pyptx.ir.nodes import Function, Instruction, Param, VarDecl
from pyptx.ir.operands import AddressOperand, LabelOperand, RegisterOperand, VectorOperand
from pyptx.ir.walk import visit

THREADS, DYNAMIC_SHARED, MOST_STEPS = 128, 48 << 10, 2_000_000
_ADDRESS_OPCODES = frozenset("ld ldu st atom red prefetch prefetchu cp applypriority discard multimem wgmma".split())
_CARRIES = frozenset("mov cvta add sub mad fma and or selp shl cvt".split())
Array = np.ndarray[Any, np.dtype[Any]]
Field = tuple[str, int]
"""A parameter's name and the offset of eight bytes in it."""


def run_trial(module: Module, entry: Function, grid: int, block: int | None, size: int, number: int) -> Iterator[str]:
    """Simulate a kernel; yield its arguments and its effects."""
    pointers = find_pointers(entry)
    random = np.random.default_rng(0)
    arguments: dict[str, Any] = {}
    for param in entry.params:
        arguments[param.name] = _make_argument(param, pointers, size, number, lambda: _make_buffer(random, size))
        yield f"  {param.name}: {_format_value(arguments[param.name])}"
    shape = (block,) if block else _choose_block(entry)
    shared = DYNAMIC_SHARED if _has_dynamic_shared(module) else 0
    yield f"simulating {entry.name} with grid={grid}, block={shape}, shared={shared}"
    before: dict[str, Any] = {name: value.copy() for name, value in arguments.items() if hasattr(value, "copy")}
    result = sim.run(
        module, entry.name, grid=grid, block=shape, args=arguments, shared=shared, check="all", on_hazard="report",
        max_steps=MOST_STEPS,
    )  # fmt: skip
    for name, old in before.items():
        change_count = int((arguments[name] != old).sum())
        if change_count:
            yield f"  {name}: {change_count} of {old.nbytes} bytes changed"
    yield f"finished; {len(result.hazards)} hazards found"
    for finding in result.hazards[:10]:
        yield f"  {finding.diagnostic()}"


def _make_buffer(random: np.random.Generator, size: int) -> Array:
    """Return bytes that are small numbers when read as 32-bit integers."""
    return random.integers(0, 8, size // 4, dtype=np.int32).view(np.uint8)


def _make_argument(
    param: Param, pointers: set[Field], size: int, number: int, buffer: Callable[[], Array]
) -> Array | sim.Struct | int | float:
    kind = param.type.ptx[1:]
    if param.array_size is not None:
        width = int(param.array_size) * max(param.type.bits // 8, 1)
        inside = sorted(offset for name, offset in pointers if name == param.name and offset + 8 <= width)
        return sim.Struct(width, [(offset, buffer()) for offset in inside])
    if param.type.bits == 64 and (_is_declared_pointer(param) or (param.name, 0) in pointers):
        return buffer()
    if kind[0] == "f":
        return 1.0
    return min(number, (1 << (param.type.bits - 1)) - 1)


def _is_declared_pointer(param: Param) -> bool:
    return param.pointer or param.ptr_state_space is not None or param.ptr_alignment is not None


def _format_value(value: object) -> str:
    if isinstance(value, sim.Struct):
        offsets = ", ".join([str(offset) for offset, _ in value.fields])
        return f"{value.size} bytes, " + (f"buffers at offsets {offsets}, else zero" if offsets else "all zero")
    return f"a buffer of {value.nbytes} bytes" if isinstance(value, np.ndarray) else repr(value)


def find_pointers(entry: Function) -> set[Field]:
    """Return the parameters, or offsets in them, whose value reaches an address through moves and sums."""
    instructions = [node for node in visit(entry) if isinstance(node, Instruction)]
    origin: dict[str, set[Field]] = {}
    pointers: set[Field] = set()
    for _ in range(4):
        size_before = sum(map(len, origin.values()))
        for node in instructions:
            _follow(node, origin, pointers)
        if sum(map(len, origin.values())) == size_before:
            break
    return pointers


def _follow(node: Instruction, origin: dict[str, set[Field]], pointers: set[Field]) -> None:
    first = node.operands[0] if node.operands else None
    if node.opcode == "ld" and ".param" in node.modifiers and len(node.operands) == 2:
        address = node.operands[1]
        if isinstance(address, AddressOperand) and (address.offset or "0").isdigit():
            is_wide = node.modifiers[-1].endswith("64")
            elements = first.elements if is_wide and isinstance(first, VectorOperand) else (first,)
            for position, element in enumerate(elements):
                if isinstance(element, RegisterOperand | LabelOperand):
                    offset = int(address.offset or "0") + 8 * position
                    origin.setdefault(element.name, set()).add((address.base, offset))
        return
    if node.opcode in _ADDRESS_OPCODES:
        for operand in node.operands:
            if isinstance(operand, AddressOperand):
                pointers |= origin.get(operand.base, set())
    elif node.opcode in _CARRIES and isinstance(first, RegisterOperand | LabelOperand):
        for operand in node.operands[1:]:
            if isinstance(operand, RegisterOperand | LabelOperand) and operand.name in origin:
                origin.setdefault(first.name, set()).update(origin[operand.name])


def _choose_block(entry: Function) -> tuple[int, ...]:
    """Return the block size that the kernel requires, or a usable one within its bounds."""
    for directive in entry.directives:
        values = tuple(int(value) for value in directive.values if isinstance(value, int))
        if directive.name == "reqntid" and values:
            return values
        if directive.name == "maxntid" and values:
            first, *further = values
            return values if further and further[0] > 1 else (min(THREADS, first),)
    return (THREADS,)


def _has_dynamic_shared(module: Module) -> bool:
    return any(
        isinstance(node, VarDecl) and node.state_space is StateSpace.SHARED and node.linking is LinkingDirective.EXTERN
        for node in visit(module)
    )
