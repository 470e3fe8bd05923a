"""Subscripts of shared memory whose index is a register: the address has to lie in what they index.

Knows the scopes that make such addresses. PTX that computes addresses by itself may go from one variable to another.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

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
from pyptx.sim.checks.session import place_of
from pyptx.sim.engines import chosen
from pyptx.sim.hazards import Place, rules
from pyptx.sim.lanes import Lanes
from pyptx.sim.program import Code

if TYPE_CHECKING:
    from pyptx.sim.machine import Batch

_Origin = tuple[str, int]
"""A symbol and the bytes behind it where the indexed memory begins, or a later place of it."""


class Subscripts:
    """The registers that hold addresses of elements, by function."""

    def __init__(self) -> None:
        self._made: dict[int, dict[str, _Origin]] = {}

    def told(self, step: Step, code: Code) -> Callable[..., None] | None:
        """Return what looks at the addresses of an instruction, None if no subscript made one."""
        made = self._made.get(code.number)
        if made is None:
            made = self._made[code.number] = _addresses(code)
        if not made or step.plan is None:
            return None
        addresses = [
            given
            for wanted, given in zip(step.plan.signature, step.instruction.operands, strict=False)
            if wanted.kind is Kind.ADDRESS
        ]
        wanted = [
            (at, made[given.base])
            for at, given in enumerate(addresses)
            if isinstance(given, AddressOperand) and given.base in made
        ]
        return partial(_look, place_of(step.instruction), wanted) if wanted else None


def _addresses(code: Code) -> dict[str, _Origin]:
    """Return the registers that subscripts of a function write, and nobody else."""
    made: dict[str, _Origin] = {}
    writes: dict[str, int] = {}
    for statement in visit(code.function):
        if isinstance(statement, Instruction) and statement.operands:
            name = _register(statement.operands[0])
            writes[name] = writes.get(name, 0) + 1
        if isinstance(statement, IntrinsicScope) and statement.name in SUBSCRIPTS:
            steps = [inner for inner in visit(statement) if isinstance(inner, Instruction)]
            found = next((origin for step in steps for origin in [_origin(step, made)] if origin is not None), None)
            if found is not None:
                made[_register(steps[-1].operands[0])] = found
    return {name: origin for name, origin in made.items() if writes[name] == 1}


def _origin(step: Instruction, made: dict[str, _Origin]) -> _Origin | None:
    """Return where the address begins that an instruction moves or adds to."""
    for operand in step.operands[1:]:
        if isinstance(operand, LabelOperand):
            return operand.name, 0
        if isinstance(operand, BinaryOperand) and isinstance(operand.left, LabelOperand):
            right = operand.right
            if operand.operator == "+" and isinstance(right, ImmediateOperand) and isinstance(right.value, int):
                return operand.left.name, right.value
        known = made.get(_register(operand))
        if known is not None:
            return known
    return None


def _register(operand: object) -> str:
    return operand.name if isinstance(operand, RegisterOperand) else ""


def _look(
    place: Place, wanted: list[tuple[int, _Origin]], machine: Batch, lanes: Lanes, mask: Any, *given: Any
) -> None:  # fmt: skip
    """Report addresses in a CTA's own shared memory that lie outside of what the subscript indexes."""
    checks, shared, variables = machine.checks, machine.memory.shared, machine.program.variables
    assert checks is not None
    assert checks.grid is not None
    for at, (symbol, offset) in wanted:
        some, (where,) = chosen(lanes, mask, given[2 * at + 1])
        if some is None:
            continue
        end = shared.low + machine.memory.shared_size
        name, low, high = variables.shared_extent(symbol, offset, end)
        addresses = where.astype(np.int64)
        outside = (addresses < low) | (addresses >= high)
        # What is out of all shared memory is an error of the access itself; a peer's addresses lie there too.
        outside &= (addresses >= shared.low) & (addresses < end)
        if outside.any():
            first = int(outside.argmax())
            address, thread = int(addresses[first]), int(checks.group(some).threads[first])
            found = variables.shared_name(address)
            what = f"byte {address - low:,} of `{name}`, which has {high - low:,} bytes; there lies {found}"
            checks.engine.state.report(
                rules.SUBSCRIPT, place, what, thread=thread, where=found, count=int(outside.sum())
            )
