"""The positions of the labels of one body, and of the branches to them. Knows positions, not the meaning of
registers."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from pyptx.ir.directives import BranchTargets
from pyptx.ir.nodes import Block, Instruction, IntrinsicScope, Label, Statement
from pyptx.ir.operands import LabelOperand


@dataclass(frozen=True, slots=True)
class Branch:
    """A `bra` directly in the body: its position, the label's position, its guard."""

    position: int
    target: int
    label: str
    conditional: bool


@dataclass(slots=True)
class Branches:
    """The labels and branches of one body, by position. A label's sources are the positions of branches to it,
    including those in nested blocks; `outside` is before everything."""

    labels: dict[str, int] = field(default_factory=dict[str, int])
    by_place: dict[int, Branch] = field(default_factory=dict[int, Branch])
    sources: dict[int, list[int]] = field(default_factory=dict[int, list[int]])


def find_branches(body: Sequence[Statement], outside_targets: frozenset[str] = frozenset()) -> Branches:
    """Return the labels and branches of a body."""
    branches = Branches()
    for position, statement in enumerate(body):
        if isinstance(statement, Label):
            branches.labels[statement.name] = position
    for name in outside_targets & branches.labels.keys():
        branches.sources.setdefault(branches.labels[name], []).append(-1)
    for position, statement in enumerate(body):
        if isinstance(statement, Instruction):
            _note(statement, position, branches)
        elif isinstance(statement, Block | IntrinsicScope):
            for name in list_inner_labels(statement):
                if name in branches.labels:
                    branches.sources.setdefault(branches.labels[name], []).append(position)
        elif isinstance(statement, BranchTargets):
            for name in list_labels(statement):
                if name in branches.labels:
                    branches.sources.setdefault(branches.labels[name], []).append(-1)
    return branches


def _note(instruction: Instruction, position: int, branches: Branches) -> None:
    labels = [o.name for o in instruction.operands if isinstance(o, LabelOperand) and o.name in branches.labels]
    if not labels:
        return
    for name in labels:
        branches.sources.setdefault(branches.labels[name], []).append(position)
    if instruction.opcode == "bra" and len(instruction.operands) == 1:
        label = labels[0]
        branches.by_place[position] = Branch(position, branches.labels[label], label, instruction.predicate is not None)


def list_inner_labels(statement: Statement) -> Iterator[str]:
    """Yield the labels that the instructions inside a block name."""
    stack: list[Statement] = [statement]
    while stack:
        item = stack.pop()
        if isinstance(item, Block | IntrinsicScope):
            stack += item.body
        elif isinstance(item, Instruction):
            yield from (o.name for o in item.operands if isinstance(o, LabelOperand))
        elif isinstance(item, BranchTargets):
            yield from list_labels(item)


def list_labels(table: BranchTargets) -> Iterator[str]:
    """Yield the labels of a jump table."""
    for item in table.targets:
        yield from [item.name] if item.count is None else [f"{item.name}{i}" for i in range(min(item.count, 4096))]


class Entries:
    """Answers in constant time whether a range of the body is entered only at its first statement."""

    def __init__(self, branches: Branches) -> None:
        self.places = sorted(branches.sources)
        low = [min(branches.sources[place]) for place in self.places]
        high = [max(branches.sources[place]) for place in self.places]
        self.least, self.most = _build_table(low, min), _build_table(high, max)

    def is_closed(self, first: int, last: int) -> bool:
        """Tell whether all labels in first…last are reached only from first…last."""
        left, right = bisect_left(self.places, first), bisect_right(self.places, last)
        if left == right:
            return True
        power = (right - left).bit_length() - 1
        second = right - (1 << power)
        low = min(self.least[power][left], self.least[power][second])
        high = max(self.most[power][left], self.most[power][second])
        return low >= first and high <= last


def _build_table(values: list[int], better: Callable[[int, int], int]) -> list[list[int]]:
    rows = [values]
    width = 1
    while 2 * width <= len(values):
        above = rows[-1]
        rows.append([better(above[i], above[i + width]) for i in range(len(values) - 2 * width + 1)])
        width *= 2
    return rows
