"""Instructions that move values without using them: an unwritten value is harmless until its first use.

`mov`, also of parts of registers, `selp` and `slct`, which drop one of two values, `prmt`, which drops bytes, and
`shfl`: of the values that a warp shuffles, often only one is used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from pyptx.check.body import Step
from pyptx.check.flow import Register
from pyptx.check.symbols import Kind
from pyptx.ir import LabelOperand, PipeOperand, RegisterOperand, VectorOperand
from pyptx.ir.operands import Operand
from pyptx.isa.traits import Trait
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.execution.text import BlockText
from pyptx.sim.program.blocks import resolve_name
from pyptx.sim.semantics.data_movement import shuffle
from pyptx.sim.state.meetings import Meeter, add_met_lanes

WRITTEN = 0xFF
"""The flags of a register: one bit per byte, set if written, and set beyond its end."""
_MOST = 8
_BYTES = {".b16": 2, ".b32": 4, ".b64": 8, ".b128": 16}


@dataclass(frozen=True, slots=True)
class Transfer:
    """A transfer: from the registers `sources` to each of `targets`, selected by the operands `used`."""

    targets: tuple[Register, ...]
    sources: tuple[Register | None, ...]
    used: tuple[Operand, ...] = ()


def find_transfer(step: Step) -> Transfer | None:
    """Return the transfer of an instruction, None if it uses its operands."""
    instruction = step.instruction
    operands, opcode = instruction.operands, instruction.opcode
    if step.plan is None or Trait.CARRIES not in step.traits:
        return None
    if opcode == "shfl":
        result = _register(operands[0].left if isinstance(operands[0], PipeOperand) else operands[0], step)
        return Transfer((result,) if result else (), (_register(operands[1], step),), operands[2:])
    targets = tuple(register for part in _parts(operands[0]) if (register := _register(part, step)) is not None)
    if opcode == "mov":
        sources = tuple(_register(part, step) for part in _parts(operands[1]))
        return Transfer(targets, sources) if any(sources) else None
    if opcode == "prmt" and len(instruction.modifiers) > 1:
        return None
    return Transfer(targets, (_register(operands[1], step), _register(operands[2], step)), operands[3:])


def write_flags(writer: BlockText, step: Step, transfer: Transfer, flags: list[str]) -> list[str]:
    """Return the expressions of the written bytes of each target, from those of each source."""
    opcode, read = step.instruction.opcode, writer.operands.read
    if opcode == "mov":
        return _move_flags(writer, step, flags)
    if opcode == "shfl":
        assert step.plan is not None
        call = writer.operands.add_constant(partial(_shuffle_flags, step.plan.match.chosen["mode"]))
        offset, limit = (read(operand, "b32", step.scope) for operand in transfer.used[:2])
        return [f"{call}(M, L, {flags[0]}, {offset}, {limit})"]
    (selector,) = transfer.used
    if opcode == "selp":
        return [f"np.where({read(selector, 'pred', step.scope)}, {flags[0]}, {flags[1]})"]
    if opcode == "slct":
        kind = step.instruction.modifiers[-1].removeprefix(".")
        return [f"np.where({read(selector, kind, step.scope)} >= 0, {flags[0]}, {flags[1]})"]
    function: Callable[..., Array] = _permute_flags
    return [f"{writer.operands.add_constant(function)}({read(selector, 'u32', step.scope)}, {flags[0]}, {flags[1]})"]


def _shuffle_flags(mode: str, machine: Meeter, group: Lanes, flags: Array | int, offset: Array, limit: Array) -> Array:
    """Return which bytes that `shfl` returns are written; treat those of lanes at another place as written."""
    together = add_met_lanes(machine, group)
    if together is group:
        return shuffle(mode, machine, group, np.asarray(flags), offset, limit)[0]
    all_flags, is_here = np.full(together.n, WRITTEN, np.uint8), np.isin(together.index, group.index)
    all_flags[is_here] = flags
    offset, limit = (np.asarray(operand, np.uint32) for operand in (offset, limit))
    operands = [np.zeros(together.n, np.uint32) for _ in range(2)]
    for operand, values in zip(operands, (offset, limit), strict=True):
        operand[is_here] = values
    return shuffle(mode, machine, together, all_flags, *operands)[0][is_here]


def _move_flags(writer: BlockText, step: Step, flags: list[str]) -> list[str]:
    """Return which bytes `mov` writes, including split and joined registers."""
    to, sources = (_parts(operand) for operand in step.instruction.operands)
    if len(to) == len(sources):
        return [flag for part, flag in zip(to, flags, strict=True) if _register(part, step) is not None]
    size = _BYTES[step.instruction.modifiers[-1]] // max(len(to), len(sources))
    if size * max(len(to), len(sources)) > _MOST:
        return [" & ".join(flags)] * len(to)
    join: Callable[..., Array | int] = _join_flags
    if len(to) == 1:
        return [f"{writer.operands.add_constant(partial(join, size))}({', '.join(flags)})"]
    positions = [position for position, part in enumerate(to) if _register(part, step) is not None]
    return [f"({flags[0]} >> {size * position} | {WRITTEN << size & WRITTEN})" for position in positions]


def _join_flags(size: int, *flags: Array | int) -> Array | int:
    """Return the written bytes of a register, from those of its parts of one size."""
    flags_of_register: Array | int = WRITTEN << size * len(flags) & WRITTEN
    for index, part_flags in enumerate(flags):
        flags_of_register = flags_of_register | (part_flags & (1 << size) - 1) << size * index
    return flags_of_register


def _permute_flags(selector: Array, first: Array | int, second: Array | int) -> Array:
    """Return which bytes that `prmt` selects are written, from those of its operands."""
    pair, result = (first & 15) | (second & 15) << 4, np.zeros(np.shape(selector), np.uint8) | 0xF0
    for byte in range(4):
        result |= ((pair >> (selector >> np.uint32(4 * byte) & np.uint32(7)).astype(np.uint8) & 1) << byte).astype(
            np.uint8
        )
    return result


def find_register(name: str, step: Step) -> Register:
    """Return the register of a name in a step."""
    symbol, base = resolve_name(name, step.scope)
    return base, id(symbol)


def _parts(operand: Operand) -> tuple[Operand, ...]:
    return operand.elements if isinstance(operand, VectorOperand) else (operand,)


def _register(operand: Operand, step: Step) -> Register | None:
    """Return the register of an operand, None for anything else."""
    if not isinstance(operand, RegisterOperand | LabelOperand):
        return None
    symbol, base = resolve_name(operand.name, step.scope)
    return (base, id(symbol)) if symbol is not None and symbol.kind is Kind.REGISTER else None
