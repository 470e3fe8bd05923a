"""Subscripts of shared memory with a register as index: the address must be inside the indexed memory.

Knows the scopes that compute such addresses. Handwritten PTX may compute addresses across variables.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from pyptx.check.body import Step
from pyptx.ir import (
    AddressOperand,
    BinaryOperand,
    ImmediateOperand,
    Instruction,
    IntrinsicScope,
    LabelOperand,
    RegisterOperand,
    visit,
)
from pyptx.ir.nodes import SUBSCRIPTS
from pyptx.isa.model import Kind
from pyptx.sim import rules
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.engines.issuing import select_lanes
from pyptx.sim.execution.machine import Batch
from pyptx.sim.hazards import Place
from pyptx.sim.observers.checks.session import find_session, make_place
from pyptx.sim.program.blocks import Code

_Origin = tuple[str, int]
"""A symbol and the byte offset at which the indexed memory begins, or a later place in it."""


class Subscripts:
    """The registers that hold element addresses, by function."""

    def __init__(self) -> None:
        self._origins: dict[int, dict[str, _Origin]] = {}

    def make_event(self, step: Step, code: Code) -> Callable[..., None] | None:
        """Return the check of an instruction's addresses, None if they are not from a subscript."""
        origins = self._origins.get(code.number)
        if origins is None:
            origins = self._origins[code.number] = _collect_addresses(code)
        if not origins or step.plan is None:
            return None
        addresses = [
            operand
            for signature_operand, operand in zip(step.plan.signature, step.instruction.operands, strict=False)
            if signature_operand.kind is Kind.ADDRESS
        ]
        targets = [
            (index, origins[operand.base])
            for index, operand in enumerate(addresses)
            if isinstance(operand, AddressOperand) and operand.base in origins
        ]
        return partial(_check_addresses, make_place(step.instruction), targets) if targets else None


def _collect_addresses(code: Code) -> dict[str, _Origin]:
    """Return the registers of a function that only subscripts write."""
    origins: dict[str, _Origin] = {}
    writes: dict[str, int] = {}
    for statement in visit(code.function):
        if isinstance(statement, Instruction) and statement.operands:
            name = _name_register(statement.operands[0])
            writes[name] = writes.get(name, 0) + 1
        if isinstance(statement, IntrinsicScope) and statement.name in SUBSCRIPTS:
            steps = [inner for inner in visit(statement) if isinstance(inner, Instruction)]
            address = next(
                (origin for step in steps for origin in [_find_origin(step, origins)] if origin is not None), None
            )
            if address is not None:
                origins[_name_register(steps[-1].operands[0])] = address
    return {name: origin for name, origin in origins.items() if writes[name] == 1}


def _find_origin(step: Instruction, origins: dict[str, _Origin]) -> _Origin | None:
    """Return the origin of the address that an instruction moves or adds to."""
    for operand in step.operands[1:]:
        if isinstance(operand, LabelOperand):
            return operand.name, 0
        if isinstance(operand, BinaryOperand) and isinstance(operand.left, LabelOperand):
            right = operand.right
            if operand.operator == "+" and isinstance(right, ImmediateOperand) and isinstance(right.value, int):
                return operand.left.name, right.value
        origin = origins.get(_name_register(operand))
        if origin is not None:
            return origin
    return None


def _name_register(operand: object) -> str:
    return operand.name if isinstance(operand, RegisterOperand) else ""


def _check_addresses(
    place: Place, targets: list[tuple[int, _Origin]], machine: Batch, lanes: Lanes, mask: Any, *operands: Any
) -> None:  # fmt: skip
    """Report addresses in a CTA's own shared memory outside the memory that the subscript indexes."""
    checks, shared, names = find_session(machine), machine.memory.shared, machine.launch.shared_names
    assert checks.grid is not None
    for index, (symbol, offset) in targets:
        active, (lane_addresses,) = select_lanes(lanes, mask, operands[2 * index + 1])
        if active is None:
            continue
        end = shared.low + machine.memory.shared_size
        name, low, high = names.find_extent(symbol, offset, end)
        addresses = lane_addresses.astype(np.int64)
        outside = (addresses < low) | (addresses >= high)
        # The access itself reports addresses outside all shared memory; addresses of a peer are there too.
        outside &= (addresses >= shared.low) & (addresses < end)
        if outside.any():
            first = int(outside.argmax())
            address, thread = int(addresses[first]), int(checks.group_lanes(active).threads[first])
            object_name = names.format_address(address)
            message = (
                f"byte {address - low:,} of `{name}`, which has {high - low:,} bytes; that address belongs to "
                f"{object_name}"
            )
            checks.engine.state.report(
                rules.SUBSCRIPT, place, message, thread=thread, where=object_name, count=int(outside.sum())
            )
