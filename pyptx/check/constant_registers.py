"""Which registers hold a constant at a given point: on every path to it, the last write moved the same number."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from pyptx.check import facts
from pyptx.check.body import Step
from pyptx.check.flow import Access, Register, Run

Bits = dict[Register, dict[int, int]]
"""One bit for each number that a `mov` writes into a register: the fact that the register holds it."""


def track_constants(
    runs: Sequence[Run], live_ins: Sequence[Collection[Register]]
) -> Iterator[tuple[Step, Access, Mapping[Register, int]]]:
    """Yield the steps in text order, each with the registers that hold a constant before it. Between runs, only
    registers exposed by some run are tracked."""
    bits = _number_facts(runs, {register for registers in live_ins for register in registers})
    every = {register: sum(numbers.values()) for register, numbers in bits.items()}
    changes = [_compute_change(run, bits, every) for run in runs]

    def leave(run: Run, entry_facts: int) -> list[tuple[int, int]]:
        keep, add = changes[run.index]
        return [(successor, entry_facts & keep | add) for successor in run.successors]

    entering = facts.solve_facts(runs, 0, leave) if bits else [0] * len(runs)
    for run in runs:
        entry_facts = entering[run.index]
        constants = {r: n for r in live_ins[run.index] for n, bit in bits.get(r, {}).items() if entry_facts & bit}
        for step, access in zip(run.steps, run.accesses, strict=True):
            yield step, access, constants
            _apply_write(step, access[1], constants)


def _number_facts(runs: Sequence[Run], registers: Collection[Register]) -> Bits:
    numbers: dict[Register, set[int]] = {}
    for run in runs:
        for step, (_, writes) in zip(run.steps, run.accesses, strict=True):
            number = step.mov_value
            for register in writes:
                if number is not None and register in registers:
                    numbers.setdefault(register, set()).add(number)
    pairs = [
        (register, number) for register, values in numbers.items() if len(values) <= _MOST_NUMBERS for number in values
    ]
    bits: Bits = {}
    for count, (register, number) in enumerate(pairs):
        bits.setdefault(register, {})[number] = 1 << count
    return bits


_MOST_NUMBERS = 16
"""A register that receives more constants than this is tracked only within a run."""


def _compute_change(run: Run, bits: Bits, every: dict[Register, int]) -> tuple[int, int]:
    """Return the facts that a run preserves, and those that it establishes."""
    keep, add = -1, 0
    for step, (_, writes) in zip(run.steps, run.accesses, strict=True):
        for register in writes:
            if register in bits:
                number = step.mov_value
                match = 0 if number is None else bits[register][number]
                conflicts = every[register] - match
                keep, add = keep & ~conflicts, add & ~conflicts
                if step.instruction.predicate is None:
                    add |= match
    return keep, add


def _apply_write(step: Step, writes: Sequence[Register], constants: dict[Register, int]) -> None:
    number = step.mov_value
    for register in writes:
        if number is not None and step.instruction.predicate is None:
            constants[register] = number
        elif constants.get(register) != number:
            constants.pop(register, None)
