"""The statements of one function in order, each instruction with its table match and scope: the input of the
control-flow and data-flow checks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from pyptx.check.plans import Plan
from pyptx.check.symbols import Scope
from pyptx.ir import BranchTargets, Function, ImmediateOperand, Instruction, Label
from pyptx.isa import lookup
from pyptx.isa.model import Match, Operand
from pyptx.isa.traits import Trait, Traits


class Step(NamedTuple):
    """An instruction; `plan` is None if its spelling or operands are wrong."""

    instruction: Instruction
    scope: Scope
    plan: Plan | None

    @property
    def match(self) -> Match | None:
        return self.plan.match if self.plan else None

    @property
    def traits(self) -> Traits:
        """What the instruction does and computes."""
        if self.plan is not None:
            return self.plan.match.traits
        return lookup.find_traits(self.instruction.opcode, self.instruction.modifiers)

    @property
    def signature(self) -> tuple[Operand, ...] | None:
        return self.plan.signature if self.plan else None

    @property
    def mov_value(self) -> int | None:
        """The integer that a `mov` writes, ignoring its guard; None for anything else."""
        if self.plan is None or self.traits.get(Trait.COMPUTES) != "copy":
            return None
        source = self.instruction.operands[-1]
        value = source.value if isinstance(source, ImmediateOperand) else None
        return value if isinstance(value, int) else None


class Place(NamedTuple):
    """A label in the scope of its block. `targets` is the list it names, for `brx.idx`."""

    label: Label
    scope: Scope
    targets: BranchTargets | None = None


@dataclass(slots=True)
class Body:
    """A function with its steps and places in text order; blocks are flattened into scopes."""

    function: Function
    items: list[Step | Place] = field(default_factory=list[Step | Place])
    steps: list[Step] = field(default_factory=list[Step])
    """The items that are instructions."""
