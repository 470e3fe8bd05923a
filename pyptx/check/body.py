"""One function's statements in order, each instruction with the table's answer and the names it sees: what the checks
of control and data flow read."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyptx.check.symbols import Scope
from pyptx.ir import BranchTargets, Function, Instruction, Label
from pyptx.isa.model import Match, Operand


@dataclass(frozen=True, slots=True)
class Step:
    """An instruction; `match` and `signature` are None where its spelling or operands are wrong."""

    instruction: Instruction
    scope: Scope
    match: Match | None
    signature: tuple[Operand, ...] | None


@dataclass(frozen=True, slots=True)
class Place:
    """A label, in the scope of its block. `targets` is the list it names, for `brx.idx`."""

    label: Label
    scope: Scope
    targets: BranchTargets | None = None


@dataclass(slots=True)
class Body:
    """A function with its steps and places in the order of the text; blocks are dissolved into scopes."""

    function: Function
    items: list[Step | Place] = field(default_factory=list[Step | Place])

    @property
    def steps(self) -> list[Step]:
        return [item for item in self.items if isinstance(item, Step)]
