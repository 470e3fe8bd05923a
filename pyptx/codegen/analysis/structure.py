"""Finds loops and conditionals of one body in place: nothing is moved, so a structure is a range of statements with a
branch before it and a label after it. Branches that do not nest remain branches.

Checks that structures are entered only at the top and left only to expected places, not what the branches mean.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

from pyptx.codegen.analysis.branches import Branch, Branches, Entries, find_branches
from pyptx.ir.nodes import Instruction, Label, Statement

DEEPEST = 14
"""Maximum nesting of structures: Python allows 20 `with` blocks, and readers fewer."""


@dataclass(slots=True)
class Leaf:
    """One statement."""

    position: int


@dataclass(slots=True)
class Choice:
    """`@p bra label; then…; label:`, with an else part also `bra done` before the label and `done:` at the end.

    `head` is the branch, `label` the place of the label behind the first part, `jump` that of `bra done`, `end` that
    of its label. The structure owns the last of these labels (`owns_label`) unless an outer structure ends with it or a
    loop begins with it.
    """

    head: int
    then: list[Part]
    label: int
    owns_label: bool
    jump: int | None = None
    otherwise: list[Part] = field(default_factory=list["Part"])
    end: int | None = None


@dataclass(slots=True)
class Cycle:
    """`label: …; bra label`, with the branch back at `tail`; `end` is the label after it, the target of `break_`."""

    label: int
    body: list[Part]
    tail: int
    end: int | None = None


Part = Leaf | Choice | Cycle


@dataclass(slots=True)
class Shape:
    """The structures of a body, and the effect of each branch left inside a cycle."""

    parts: list[Part]
    leaves: dict[int, str] = field(default_factory=dict[int, str])
    """`break` or `continue` for the branches that leave the innermost cycle or start its next iteration."""


class _Search:
    """The analysis of a body while its parts are built."""

    def __init__(self, body: Sequence[Statement], branches: Branches, deepest: int) -> None:
        self.body, self.branches, self.deepest = body, branches, deepest
        self.entries = Entries(branches)
        self.cycles = _find_cycles(body, branches, self.entries)
        self.shape = Shape([])
        self.places = sorted(branches.by_place)

    def find_parts(self, low: int, high: int, end: int | None, depth: int) -> list[Part]:
        """Return the parts of low…high-1; `end` is the position of the label that ends the outer structure."""
        out: list[Part] = []
        position = low
        while position < high:
            part = (
                self._find_cycle(position, high, depth) or self._find_choice(position, high, end, depth)
                if depth < self.deepest
                else None
            )
            if part is None:
                out.append(Leaf(position))
                position += 1
                continue
            out.append(part)
            position = _find_end(part)
        return out

    def _find_cycle(self, position: int, high: int, depth: int) -> Cycle | None:
        tail = self.cycles.get(position)
        if tail is None or tail >= high:
            return None
        behind = tail + 1
        has_label = behind < high and isinstance(self.body[behind], Label) and behind not in self.cycles
        end = behind if has_label else None
        leaving = self._find_leaving(position, tail, behind) if end is not None else []
        cycle = Cycle(position, self.find_parts(position + 1, tail, None, depth + 1), tail, end if leaving else None)
        inner = [range(c.label, c.tail + 1) for c in _collect_cycles(cycle.body)]
        for place in leaving:
            if not any(place in stretch for stretch in inner):
                self.shape.leaves[place] = "break"
        if end is not None and not any(self.shape.leaves.get(p) == "break" for p in leaving):
            cycle.end = None
        for place in self._find_leaving(position + 1, tail, position):
            if not any(place in stretch for stretch in inner):
                self.shape.leaves[place] = "continue"
        return cycle

    def _find_leaving(self, first: int, last: int, target: int) -> list[int]:
        inside = self.places[bisect_left(self.places, first) : bisect_left(self.places, last)]
        return [place for place in inside if self.branches.by_place[place].target == target]

    def _find_choice(self, position: int, high: int, end: int | None, depth: int) -> Choice | None:
        head = self.branches.by_place.get(position)
        if head is None or not head.conditional or head.target <= position + 1:
            return None
        label = head.target
        if not self._reaches(label, high, end) or not self.entries.is_closed(position + 1, label - 1):
            return None
        jump = self._find_jump(position, label, high, end)
        if jump is None:
            return Choice(
                position, self.find_parts(position + 1, label, label, depth + 1), label, self._owns(label, high)
            )
        far = jump.target
        then = self.find_parts(position + 1, jump.position, None, depth + 1)
        otherwise = self.find_parts(label + 1, far, far, depth + 1)
        return Choice(position, then, label, self._owns(far, high), jump.position, otherwise, far)

    def _reaches(self, label: int, high: int, end: int | None) -> bool:
        """Tell whether a label ends something here: it is here, or the outer structure ends with it."""
        return label < high or label == end == high

    def _owns(self, label: int, high: int) -> bool:
        return label < high and label not in self.cycles

    def _find_jump(self, position: int, label: int, high: int, end: int | None) -> Branch | None:
        """Return the branch over the else part, if the first part ends with one and both nest."""
        jump = self.branches.by_place.get(label - 1)
        if jump is None or jump.conditional or jump.target <= label + 1 or label in self.cycles or label >= high:
            return None
        sources = self.branches.sources[label]
        nests = min(sources) >= position and max(sources) < label and self._reaches(jump.target, high, end)
        return jump if nests and self.entries.is_closed(label + 1, jump.target - 1) else None


def _find_end(part: Choice | Cycle) -> int:
    """Return the position after a part."""
    if isinstance(part, Cycle):
        return part.tail + 1 if part.end is None else part.end + 1
    last = part.label if part.end is None else part.end
    return last + part.owns_label


def _collect_cycles(parts: list[Part]) -> list[Cycle]:
    cycles: list[Cycle] = []
    stack = list(parts)
    while stack:
        part = stack.pop()
        if isinstance(part, Cycle):
            cycles.append(part)
        elif isinstance(part, Choice):
            stack += part.then
            stack += part.otherwise
    return cycles


def _find_cycles(body: Sequence[Statement], branches: Branches, entries: Entries) -> dict[int, int]:
    """Return the positions of each loop's label and of its last branch back, for loops that nest and are entered only
    at the top."""
    tails: dict[int, int] = {}
    for branch in branches.by_place.values():
        if branch.target <= branch.position:
            tails[branch.target] = max(tails.get(branch.target, 0), branch.position)
    cycles: dict[int, int] = {}
    around: list[int] = []
    for label, tail in sorted(tails.items()):
        while around and around[-1] < label:
            around.pop()
        last = body[tail]
        ends_at_tail = isinstance(last, Instruction) and max(branches.sources[label]) == tail
        crossing = bool(around) and around[-1] < tail
        if ends_at_tail and not crossing and (tail == label or entries.is_closed(label + 1, tail)):
            cycles[label] = tail
            around.append(tail)
    return cycles


def find_shape(
    body: Sequence[Statement], outside_targets: frozenset[str] = frozenset(), deepest: int = DEEPEST
) -> Shape:
    """Return the structures of a body, with limited nesting. Labels reached from outside are entries that no structure
    may contain."""
    branches = find_branches(body, outside_targets)
    search = _Search(body, branches, deepest)
    search.shape.parts = search.find_parts(0, len(body), None, 0)
    return search.shape
