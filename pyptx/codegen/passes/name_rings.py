"""Finds rings of barriers: the registers that hold a stage or a phase.

Contract: yields roles for registers, derived from the address and parity computations of waiting threads. Only names
registers.
"""

from __future__ import annotations

from pyptx.check.body import Step
from pyptx.codegen.analysis.usage import Register
from pyptx.codegen.sugar_draft import Draft
from pyptx.ir.operands import AddressOperand, ImmediateOperand, Operand

_STEP = 8
"""Size of a barrier in bytes."""


def find_ring_roles(draft: Draft) -> dict[Register, str]:
    """Return the registers that are stages and phases of rings."""
    roles: dict[Register, str] = {}
    for step in draft.usage.steps:
        operands = step.instruction.operands
        if step.instruction.opcode != "mbarrier" or ".parity" not in step.instruction.modifiers or len(operands) < 3:
            continue
        phase = _find_register(step, operands[2])
        if phase is not None:
            source = _find_source(draft, phase, "xor", "1")
            roles.setdefault(source or phase, "phase")
        if isinstance(operands[1], AddressOperand):
            barrier = _find_named(step, operands[1].base)
            stage = None if barrier is None else _find_stage(draft, barrier)
            if stage is not None:
                roles.setdefault(stage, "stage")
    return roles


def _find_stage(draft: Draft, barrier: Register) -> Register | None:
    """Return the register that selects a barrier: `base + 8 * stage`, as `mad` or as `shl` and `add`."""
    step = _find_definition(draft, barrier)
    if step is None:
        return None
    operands = step.instruction.operands
    if step.instruction.opcode == "mad" and _is_number(operands[2], str(_STEP)):
        return _find_register(step, operands[1])
    if step.instruction.opcode == "add":
        for operand in operands[1:]:
            part = _find_register(step, operand)
            stage = None if part is None else _find_source(draft, part, "shl", "3")
            if stage is not None:
                return stage
    return None


def _find_source(draft: Draft, register: Register, opcode: str, number: str) -> Register | None:
    """Return the other operand, a register, of the operation with a number that defines this one."""
    step = _find_definition(draft, register)
    if step is None or step.instruction.opcode != opcode or not _is_number(step.instruction.operands[2], number):
        return None
    return _find_register(step, step.instruction.operands[1])


def _find_definition(draft: Draft, register: Register) -> Step | None:
    use = draft.usage.registers.get(register)
    return draft.usage.steps[use.writes[0]] if use is not None and len(use.writes) == 1 else None


def _is_number(operand: Operand, number: str) -> bool:
    return isinstance(operand, ImmediateOperand) and operand.text == number


def _find_register(step: Step, operand: Operand) -> Register | None:
    name = getattr(operand, "name", None)
    return _find_named(step, name) if isinstance(name, str) else None


def _find_named(step: Step, name: str) -> Register | None:
    symbol = step.scope.find(name)
    return None if symbol is None or symbol.space != "reg" else (name, id(symbol))
