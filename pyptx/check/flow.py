"""The control-flow graph of a function, and the registers that each instruction reads and writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from operator import itemgetter

from pyptx.check.body import Body, Place, Step
from pyptx.check.symbols import Kind, Scope
from pyptx.ir import (
    AddressOperand,
    BinaryOperand,
    ImmediateOperand,
    IndexedOperand,
    LabelOperand,
    NegatedOperand,
    ParenthesizedOperand,
    PipeOperand,
    RegisterOperand,
    UnaryOperand,
    VectorOperand,
)
from pyptx.ir.operands import Operand as Actual
from pyptx.isa.model import Kind as OperandKind
from pyptx.isa.model import Operand
from pyptx.isa.traits import LEAVES, Trait, Traits

Register = tuple[str, int]
"""A register's name and the identity of its declaration, so that inner blocks may reuse a name."""

_SPLITS = LEAVES | {Trait.JUMPS}

Access = tuple[list[Register], list[Register]]
"""The registers that an instruction reads, its guard first, and those it writes."""


@dataclass(slots=True)
class Run:
    """A basic block: consecutive steps, each with the registers it reads and writes."""

    index: int
    steps: list[Step] = field(default_factory=list[Step])
    accesses: list[Access] = field(default_factory=list["Access"])
    successors: list[int] = field(default_factory=list[int])
    predecessors: list[int] = field(default_factory=list[int])

    @property
    def test(self) -> tuple[Register, bool] | None:
        """The predicate that selects between two successors, with the value that selects the first."""
        last = self.steps[-1] if len(self.successors) == 2 else None
        if last is None or last.traits.get(Trait.JUMPS) == "table":
            return None
        predicate = last.instruction.predicate
        if predicate is None or not self.accesses[-1][0]:
            return None
        return self.accesses[-1][0][0], not predicate.negated


def build_runs(body: Body) -> list[Run]:
    """Return the function's runs: the first is the entry, the last is the empty exit."""
    blocks = [Run(0)]
    at_label: dict[tuple[str, int], int] = {}
    for item in body.items:
        if isinstance(item, Place):
            if blocks[-1].steps:
                blocks.append(Run(len(blocks)))
            at_label[item.label.name, id(item.scope)] = blocks[-1].index
            continue
        blocks[-1].steps.append(item)
        blocks[-1].accesses.append(collect_accesses(item))
        if not _SPLITS.isdisjoint(item.traits):
            blocks.append(Run(len(blocks)))
    blocks.append(Run(len(blocks)))
    _connect(blocks, at_label, Places(body))
    return blocks


class Places(dict[tuple[str, int], Place]):
    """The labels of a function by name and scope; `cache` holds earlier lookups."""

    def __init__(self, body: Body) -> None:
        super().__init__({(item.label.name, id(item.scope)): item for item in body.items if isinstance(item, Place)})
        self.cache = {key: key for key in self}


def _connect(runs: list[Run], at_label: dict[tuple[str, int], int], places: Places) -> None:
    way_out = len(runs) - 1
    for run in runs[:-1]:
        last = run.steps[-1] if run.steps else None
        traits: Traits = last.traits if last else {}
        targets: list[int] = []
        if last is not None and Trait.JUMPS in traits:
            targets += [at_label[key] for key in _find_destinations(last, places) if key in at_label]
        if not LEAVES.isdisjoint(traits):
            targets.append(way_out)
        has_guard = last is not None and last.instruction.predicate is not None and traits.get(Trait.JUMPS) != "table"
        falls = has_guard or _SPLITS.isdisjoint(traits)
        if falls:
            targets.append(run.index + 1)
        run.successors = list(dict.fromkeys(targets))
        for target in run.successors:
            runs[target].predecessors.append(run.index)


def _find_destinations(step: Step, places: Places) -> Iterator[tuple[str, int]]:
    """Yield the labels a branch may go to, each with the scope that declares it."""
    labels = [o.name for o in step.instruction.operands if isinstance(o, LabelOperand)]
    for name in labels[-1:]:
        key = _find_label(name, step.scope, places)
        place = places.get(key)
        if place is not None and place.targets is not None:
            for item in place.targets.targets:
                names = [item.name] if item.count is None else (f"{item.name}{i}" for i in range(item.count))
                # A range may cover more labels than exist: stop at the first missing one.
                yield from takewhile(itemgetter(1), (_find_label(label, place.scope, places) for label in names))
        else:
            yield key


def _find_label(name: str, scope: Scope, places: Places) -> tuple[str, int]:
    """Return the key of the label that a name means in a scope, and cache it for the scopes on the way."""
    inner: Scope | None = scope
    misses: list[tuple[str, int]] = []
    while inner is not None and (name, id(inner)) not in places.cache:
        misses.append((name, id(inner)))
        inner = inner.parent
    key = places.cache[name, id(inner)] if inner is not None else (name, 0)
    places.cache.update(dict.fromkeys(misses, key))
    return key


def collect_accesses(step: Step) -> Access:
    """Return the registers that a step reads, including its guard, and those it writes."""
    instruction, scope, plan = step
    reads: list[Register] = []
    writes: list[Register] = []
    if instruction.predicate is not None:
        _add_register(instruction.predicate.register, scope, reads)
    if plan is None:
        _assume_first_write(step, writes)
        return reads, writes
    symbols = scope.cache
    for formal, actual in zip(plan.signature, instruction.operands, strict=True):
        if isinstance(actual, ImmediateOperand):
            continue
        if not isinstance(actual, RegisterOperand):
            _collect_nested(formal, actual, scope, reads, writes)
            continue
        symbol = symbols.get(actual.name)
        if symbol is None or not symbol.plain:
            _collect_nested(formal, actual, scope, reads, writes)
        elif formal.access == "r":
            reads.append((actual.name, id(symbol)))
        else:
            writes.append((actual.name, id(symbol)))
            if formal.access == "rw":
                reads.append((actual.name, id(symbol)))
    if plan.accumulates is not None and not _is_true(instruction.operands[plan.accumulates]):
        write_set = set(writes)
        reads = [r for r in reads if r not in write_set]
    return reads, writes


def _is_true(actual: Actual) -> bool:
    return isinstance(actual, ImmediateOperand) and bool(actual.value)


def _assume_first_write(step: Step, writes: list[Register]) -> None:
    """Assume that an invalid instruction writes its first operand, so that one mistake is reported once."""
    for actual in step.instruction.operands[:1]:
        pair = (actual.left, actual.right) if isinstance(actual, PipeOperand) else (actual,)
        for item in pair:
            for element in item.elements if isinstance(item, VectorOperand) else (item,):
                if isinstance(element, RegisterOperand | LabelOperand):
                    _add_register(element.name, step.scope, writes)


def _collect_nested(
    formal: Operand, actual: Actual, scope: Scope, reads: list[Register], writes: list[Register]
) -> None:
    """Collect the registers that a compound operand reads and writes, left to right."""
    todo = [(formal, actual)]
    while todo:
        formal, actual = todo.pop()
        if formal.kind is OperandKind.PIPE and not isinstance(actual, PipeOperand):
            formal = formal.parts[0]
        if isinstance(actual, RegisterOperand | LabelOperand):
            if formal.access != "r":
                _add_register(actual.name, scope, writes)
            if formal.access != "w":
                _add_register(actual.name, scope, reads)
        elif isinstance(actual, AddressOperand):
            _add_register(actual.base, scope, reads)
            todo += reversed(list(zip(formal.parts[1:], actual.rest, strict=False)))
        elif isinstance(actual, VectorOperand | ParenthesizedOperand):
            todo += [(formal, element) for element in reversed(actual.elements)]
        elif isinstance(actual, PipeOperand) and formal.parts:
            todo += [(formal.parts[1], actual.right), (formal.parts[0], actual.left)]
        elif isinstance(actual, NegatedOperand | UnaryOperand):
            todo.append((formal, actual.operand))
        elif isinstance(actual, BinaryOperand):
            todo.append((formal, actual.left))
        elif isinstance(actual, IndexedOperand):
            todo.append((formal, actual.index))


def _add_register(name: str, scope: Scope, into: list[Register]) -> None:
    symbol = scope.cache.get(name) or scope.find(name)
    if symbol is None and "." in name:
        name = name.partition(".")[0]
        symbol = scope.find(name)
    if symbol is not None and symbol.kind is Kind.REGISTER:
        into.append((name, id(symbol)))
