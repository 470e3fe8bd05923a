"""Accumulators of warpgroups as matrices: products go on with them, registers get them when somebody else looks.

Which registers are accumulators is known before anything runs. Generated code calls `settle` before another instruction
reads or writes them; who looks at registers from outside settles everything.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyptx.check.body import Step
from pyptx.ir import LabelOperand, RegisterOperand, VectorOperand
from pyptx.ir.operands import Operand
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.execution.operands import Operands
from pyptx.sim.numerics.rounding import canonical
from pyptx.sim.program.blocks import Block, Program, is_product
from pyptx.sim.semantics import warpgroups as wg

Rows = tuple[int, ...]


@dataclass(slots=True)
class Held:
    """The accumulators of some lanes, whose registers `outs` are views of; `changed` since these had them last."""

    groups: wg.Groups
    outs: tuple[Array, ...]
    kind: str
    made: Array
    changed: bool = True

    def write(self) -> None:
        """Give the registers what the matrix holds."""
        if not self.changed:
            return
        if self.kind == "f4":
            canonical(self.made)
        for out, row in zip(self.outs, wg.registers_of(self.groups, self.made, self.kind), strict=True):
            out[...] = row.view(out.dtype)
        self.changed = False


HeldOf = dict[int, dict[Lanes, Held]]
"""What is held, by the number of the registers and the lanes."""


def hold(held: HeldOf, number: int, lanes: Lanes, item: Held) -> None:
    """Let registers of this number have an older value than these lanes' accumulators."""
    held.setdefault(number, {})[lanes] = item


def held_for(held: HeldOf, number: int, lanes: Lanes, kind: str) -> Held | None:
    """Return what these lanes hold in the registers of this number; what other lanes, some of which are among them,
    hold there goes to the registers."""
    inner = held.get(number)
    if inner is None:
        return None
    found = inner.get(lanes)
    if found is None or found.kind != kind or len(inner) > 1:
        for other, item in list(inner.items()):
            if (other is not lanes or item.kind != kind) and other.lo < lanes.hi and lanes.lo < other.hi:
                item.write()
                del inner[other]
        found = inner.get(lanes)
    return found


def settle(held: HeldOf, lanes: Lanes, numbers: Rows, drops: bool) -> None:
    """Give registers what these lanes hold in them; with `drops` they are about to be written."""
    for number in numbers:
        inner = held.get(number)
        if inner is None:
            continue
        for other, item in list(inner.items()):
            if other.lo < lanes.hi and lanes.lo < other.hi:
                item.write()
                if drops:
                    del inner[other]
        if not inner:
            del held[number]


def settle_all(held: HeldOf) -> None:
    """Give all registers what is held in them, and hold nothing."""
    for inner in held.values():
        for item in inner.values():
            item.write()
    held.clear()


def numbers_of(program: Program) -> dict[int, int]:
    """Return the number of the accumulators that a 32-bit register belongs to. Sets of registers that overlap, or that
    are named in two orders, are left out: their products write registers."""
    found: dict[Rows, set[int]] = {}
    for block in program.blocks:
        for step in block.steps:
            if is_product(step):
                rows = _rows(program, block, step, step.instruction.operands[0])
                factors = _rows(program, block, step, step.instruction.operands[1])
                found.setdefault(rows, set()).update(set(rows) & set(factors))
    uses: dict[int, int] = {}
    for rows in found:
        for row in rows:
            uses[row] = uses.get(row, 0) + 1
    whole = [rows for rows, both in found.items() if not both and all(row >= 0 and uses[row] == 1 for row in rows)]
    return {row: number for number, rows in enumerate(whole) for row in rows}


def product_number(numbers: dict[int, int], program: Program, block: Block, step: Step) -> int:
    """Return the number of the accumulators of a product, -1 for another instruction and for those without one."""
    if not numbers or not is_product(step):
        return -1
    return numbers.get(_rows(program, block, step, step.instruction.operands[0])[0], -1)


def registers_of(program: Program, block: Block, step: Step) -> tuple[Rows, ...]:
    """Return the rows of the registers of D and of A of a product, -1 for what is none; nothing for another step."""
    if not is_product(step):
        return ()
    return tuple(_rows(program, block, step, operand) for operand in step.instruction.operands[:2])


def _rows(program: Program, block: Block, step: Step, operand: Operand) -> Rows:
    """Return the rows of the 32-bit registers that an operand names, -1 for what is none."""
    operands = Operands(program, block)
    made: list[int] = []
    for element in operand.elements if isinstance(operand, VectorOperand) else (operand,):
        row = operands.row(element.name, step.scope) if isinstance(element, RegisterOperand | LabelOperand) else None
        made.append(row.index if row is not None and row.letter == "r" else -1)
    return tuple(made)
