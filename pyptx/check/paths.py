"""Finds reads that some path reaches before a write. Tests of an unchanged predicate agree, and a predicate set by
`mov` has its constant value; paths that contradict this are ignored.

Predicates are tracked one at a time: combinations of two are not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pyptx.check import facts
from pyptx.check.body import Step
from pyptx.check.flow import Register, Run

_MOST_BITS = 1 << 28
"""Limit on the size of all facts, 32 MiB. Larger functions are analyzed without their predicates."""


def find_unwritten_reads(runs: Sequence[Run], registers: Sequence[Register]) -> dict[tuple[int, Register], Step]:
    """Return, for each run, the first read of each register that some path reaches before a write; guarded writes
    count."""
    bits = {register: 1 << bit for bit, register in enumerate(registers)}
    predicates = _find_predicates(runs, bits)
    if len(runs) * len(bits) * (2 * len(predicates) + 1) > _MOST_BITS:
        predicates = []
    write_facts = _WriteFacts(runs, bits, predicates)
    entering = facts.solve_facts(runs, 0, write_facts.leave)
    reads: dict[tuple[int, Register], Step] = {}
    for run in runs:
        if ~entering[run.index] & write_facts.all:
            for register, step in write_facts.find_unwritten(run, entering[run.index]):
                reads.setdefault((run.index, register), step)
    return reads


def _find_predicates(runs: Sequence[Run], bits: dict[Register, int]) -> list[Register]:
    """Return the predicates that are tested twice, or tested once after a `mov` may have set them."""
    tests: Counter[Register] = Counter()
    constant: set[Register] = set()
    for run in runs:
        if run.test is not None:
            tests[run.test[0]] += 1
        for step, (reads, writes) in zip(run.steps, run.accesses, strict=True):
            if step.instruction.predicate is not None and any(register in bits for register in reads):
                tests[reads[0]] += 1
            if step.mov_value is not None:
                constant.update(writes)
    return [register for register, count in tests.items() if count > 1 or register in constant]


class _WriteFacts:
    """Fields of one bit per register: it is written; then, for each predicate, it is written if the predicate is false,
    and if it is true. If a predicate cannot have a value, the field for that value is all ones."""

    def __init__(self, runs: Sequence[Run], bits: dict[Register, int], predicates: list[Register]) -> None:
        self.bits = bits
        self.all = (1 << len(bits)) - 1
        self.fields = {
            (register, value): (2 * n + 1 + value) * len(bits)
            for n, register in enumerate(predicates)
            for value in (False, True)
        }
        self.every_field = sum(1 << n * len(bits) for n in range(len(self.fields) + 1))
        self.writes = [self.every_field * self._collect_writes(run) for run in runs]
        self.final_values = [self._find_final_values(run) for run in runs]

    def _collect_writes(self, run: Run) -> int:
        return sum(self.bits.get(register, 0) for register in {r for _, writes in run.accesses for r in writes})

    def _find_final_values(self, run: Run) -> dict[Register, bool | None]:
        """Return the predicates that a run writes, each with its final value, or None if unknown."""
        final_values: dict[Register, bool | None] = {}
        for step, (_, writes) in zip(run.steps, run.accesses, strict=True):
            for register in writes:
                if (register, True) in self.fields:
                    sure = step.instruction.predicate is None and step.mov_value is not None
                    final_values[register] = bool(step.mov_value) if sure else None
        return final_values

    def leave(self, run: Run, state: int) -> list[tuple[int, int]]:
        """Return the facts at each successor of a run."""
        state |= self.writes[run.index]
        anyhow = state & self.all
        for register, value in self.final_values[run.index].items():
            for case in (False, True):
                field = self.fields[register, case]
                state = state & ~(self.all << field) | (anyhow if value in (None, case) else self.all) << field
        if run.test is None or run.test not in self.fields:
            return [(successor, state) for successor in run.successors]
        register, branch_value = run.test
        jump, through = run.successors
        return [
            (jump, self._assume(state, register, branch_value)),
            (through, self._assume(state, register, not branch_value)),
        ]

    def _assume(self, state: int, register: Register, value: bool) -> int:
        state |= self.every_field * (state >> self.fields[register, value] & self.all)
        return state | self.all << self.fields[register, not value]

    def find_unwritten(self, run: Run, state: int) -> list[tuple[Register, Step]]:
        """Return the reads in a run of registers that some path allowed by the guard does not write."""
        reads_before: list[tuple[Register, Step]] = []
        write_set: set[Register] = set()
        for step, (reads, writes) in zip(run.steps, run.accesses, strict=True):
            guard = step.instruction.predicate
            field = 0
            if guard is not None and reads and reads[0] not in write_set:
                field = self.fields.get((reads[0], not guard.negated), 0)
            missing = ~(state >> field)
            reads_before += [(r, step) for r in reads if r not in write_set and missing & self.bits.get(r, 0)]
            write_set.update(writes)
        return reads_before
