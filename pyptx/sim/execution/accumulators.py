"""Which registers are accumulators of warpgroups, determined before a run. `state.accumulators` holds their values."""

from __future__ import annotations

from pyptx.check.body import Step
from pyptx.ir import LabelOperand, RegisterOperand, VectorOperand
from pyptx.ir.operands import Operand
from pyptx.sim.execution.operands import Operands
from pyptx.sim.program.blocks import Block, Program, is_product
from pyptx.sim.state.accumulators import Rows


def number_accumulators(program: Program) -> dict[int, int]:
    """Return the number of the accumulators that contain each 32-bit register. Omit sets that overlap or that are named
    in two orders: their products write registers."""
    factors_by_rows: dict[Rows, set[int]] = {}
    for block in program.blocks:
        for step in block.steps:
            if is_product(step):
                rows = _find_rows(program, block, step, step.instruction.operands[0])
                factors = _find_rows(program, block, step, step.instruction.operands[1])
                factors_by_rows.setdefault(rows, set()).update(set(rows) & set(factors))
    uses: dict[int, int] = {}
    for rows in factors_by_rows:
        for row in rows:
            uses[row] = uses.get(row, 0) + 1
    accumulators = [
        rows
        for rows, shared_rows in factors_by_rows.items()
        if not shared_rows and all(row >= 0 and uses[row] == 1 for row in rows)
    ]
    return {row: number for number, rows in enumerate(accumulators) for row in rows}


def find_product_number(numbers: dict[int, int], program: Program, block: Block, step: Step) -> int:
    """Return the number of a product's accumulators, -1 if it has none and for other instructions."""
    if not numbers or not is_product(step):
        return -1
    return numbers.get(_find_rows(program, block, step, step.instruction.operands[0])[0], -1)


def find_product_registers(program: Program, block: Block, step: Step) -> tuple[Rows, ...]:
    """Return the rows of the registers of D and of A of a product, -1 where there is none; nothing for other steps."""
    if not is_product(step):
        return ()
    return tuple(_find_rows(program, block, step, operand) for operand in step.instruction.operands[:2])


def _find_rows(program: Program, block: Block, step: Step, operand: Operand) -> Rows:
    """Return the rows of the 32-bit registers of an operand, -1 for anything else."""
    operands = Operands(program, block)
    rows: list[int] = []
    for element in operand.elements if isinstance(operand, VectorOperand) else (operand,):
        row = (
            operands.find_row(element.name, step.scope) if isinstance(element, RegisterOperand | LabelOperand) else None
        )
        rows.append(row.index if row is not None and row.letter == "r" else -1)
    return tuple(rows)
