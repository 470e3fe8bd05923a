"""Counts the writes and reads of each register of a function, and where they occur. Uses only the instruction table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pyptx.check.body import Body, Step
from pyptx.check.flow import collect_accesses
from pyptx.ir.base import Node, tokens
from pyptx.ir.nodes import Instruction

Register = tuple[str, int]
"""A register's name and the identity of its declaration: nested blocks may reuse a name."""


@dataclass(slots=True)
class Use:
    """One register: the positions of its writes and reads among the function's instructions, in order."""

    writes: list[int] = field(default_factory=list[int])
    reads: list[int] = field(default_factory=list[int])

    @property
    def fresh(self) -> bool:
        """Whether it is written once, before everything that reads it in the text."""
        return len(self.writes) == 1 and (not self.reads or self.writes[0] < self.reads[0])


@dataclass(slots=True)
class Usage:
    """The registers of a function. `places` maps each instruction, by identity, to its position, `access` to the
    registers that it reads and writes."""

    registers: dict[Register, Use] = field(default_factory=dict[Register, Use])
    places: dict[int, int] = field(default_factory=dict[int, int])
    access: list[tuple[list[Register], list[Register]]] = field(
        default_factory=list["tuple[list[Register], list[Register]]"]
    )
    steps: list[Step] = field(default_factory=list[Step])


def analyze_usage(body: Body) -> Usage:
    """Return the writes and reads of a function. An unknown instruction may both read and write everything that it
    names."""
    usage = Usage(steps=body.steps)
    for place, step in enumerate(body.steps):
        reads, writes = collect_accesses(step) if step.plan is not None else _assume_all(step)
        usage.places[id(step.instruction)] = place
        usage.access.append((reads, writes))
        for register in writes:
            usage.registers.setdefault(register, Use()).writes.append(place)
        for register in reads:
            usage.registers.setdefault(register, Use()).reads.append(place)
    return usage


def _assume_all(step: Step) -> tuple[list[Register], list[Register]]:
    registers = [r for r in _find_named(step.instruction, step) if r]
    return registers, registers * 2


def _find_named(instruction: Instruction, step: Step) -> Iterator[Register]:
    for operand in instruction.parts():
        if isinstance(operand, str):
            continue
        for word in _find_words(operand):
            name = word.partition(".")[0]
            symbol = step.scope.find(name)
            if symbol is not None and symbol.space == "reg":
                yield name, id(symbol)


def _find_words(node: object) -> Iterator[str]:
    if isinstance(node, Node):
        yield from tokens(node)
