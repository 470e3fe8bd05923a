"""The generated text of one block: its lines, its operands, and the sites that access memory."""

from __future__ import annotations

from pyptx.check.body import Step
from pyptx.ir import LabelOperand
from pyptx.ir.operands import Operand as Actual
from pyptx.sim.execution.operands import Operands
from pyptx.sim.program.blocks import Block, Program


class BlockText:
    """Lines of Python over register views."""

    def __init__(self, program: Program, block: Block) -> None:
        self.program, self.block = program, block
        self.operands = Operands(program, block)
        self.lines: list[str] = []
        self.sites: dict[str, Step] = {}
        self.temporaries = 0

    def read(self, operand: Actual, type_name: str | None, step: Step) -> str:
        """Return the expression of a scalar input; one without a type is an immediate number."""
        return self.operands.read(operand, type_name or "b64", step.scope)

    def add_temporary(self) -> str:
        """Return a fresh name."""
        self.temporaries += 1
        return f"t{self.temporaries}"

    def read_guard(self, step: Step) -> str | None:
        """Return the mask of a guarded instruction."""
        predicate = step.instruction.predicate
        if predicate is None or (self.block.converges and step is self.block.steps[0]):
            return None
        name = self.read(LabelOperand(predicate.register), "pred", step)
        return f"(~{name})" if predicate.negated else name
