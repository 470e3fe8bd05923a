"""For which warps of a block a predicate may be true or false, derived from comparisons of the thread's x index.

A warp is a bit: bit n stands for the threads with x index 32 n to 32 n + 31. Unknown predicates may be either.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from pyptx.check.constant_registers import track_constants
from pyptx.check.flow import Register, Run
from pyptx.ir import ImmediateOperand, Instruction, NegatedOperand, RegisterOperand
from pyptx.ir.operands import Operand
from pyptx.isa.traits import Trait

WARP = 32
_THREADS = 1024
_WORD = 1 << 32
ALL_WARPS = (1 << _THREADS // WARP) - 1


class Truth(NamedTuple):
    """The warps in which some thread may see a true predicate, and those in which some may see a false one."""

    true: int = ALL_WARPS
    false: int = ALL_WARPS

    @property
    def divides(self) -> int:
        """The warps whose threads may disagree."""
        return self.true & self.false


_UNKNOWN = Truth()
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    ".eq": operator.eq, ".ne": operator.ne, ".lt": operator.lt, ".le": operator.le, ".gt": operator.gt,
    ".ge": operator.ge, ".lo": operator.lt, ".ls": operator.le, ".hi": operator.gt, ".hs": operator.ge,
}  # fmt: skip
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "shr": lambda a, b: a >> min(b, WARP), "and": lambda a, b: a & b, "add": operator.add, "sub": operator.sub,
}  # fmt: skip
_KINDS = ((".s32",), (".u32",), (".b32",))


class Ways:
    """The paths of a function that each warp may take."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = runs

    @cached_property
    def truth(self) -> dict[Register, Truth]:
        """The truth of the predicates that branches test."""
        return _compute_guard_truth(self.runs)

    @cached_property
    def present(self) -> list[int]:
        """The warps that may reach each run."""
        warps = [0] * len(self.runs)
        for _ in self.follow([(0, ALL_WARPS)], warps):
            pass
        return warps

    def split(self, run: Run) -> int:
        """Return the warps that the branch at the end of a run may divide."""
        return self.present[run.index] & self._evaluate_guard(run).divides

    def list_successors(self, run: Run, warps: int) -> list[tuple[int, int]]:
        """Return the successors of a run, each with the warps that may get there."""
        if run.test is None:
            return [(index, warps) for index in run.successors]
        guard = self._evaluate_guard(run)
        jump, through = run.successors
        return [(jump, warps & guard.true), (through, warps & guard.false)]

    def follow(self, todo: list[tuple[int, int]], warps: list[int], join: int = -1) -> Iterator[int]:
        """Yield the runs that warps reach before `join`, and record the warps of each."""
        while todo:
            index, arrivals = todo.pop()
            arrivals &= ~warps[index]
            if arrivals and index != join:
                warps[index] |= arrivals
                yield index
                todo += self.list_successors(self.runs[index], arrivals)

    def _evaluate_guard(self, run: Run) -> Truth:
        if run.test is None:
            return _UNKNOWN
        register, value = run.test
        truth = self.truth.get(register, _UNKNOWN)
        return truth if value else Truth(truth.false, truth.true)


def _compute_guard_truth(runs: Sequence[Run]) -> dict[Register, Truth]:
    """Return the truth of the predicates that branches test. Only registers with a single write count, in text order: a
    value computed from the index alone is always the same."""
    inputs = _find_branch_inputs(runs)
    indices: dict[Register, list[int]] = {}
    truths: dict[Register, Truth] = {}
    for step, (reads, writes), constants in track_constants(runs, [_find_live_ins(run, inputs) for run in runs]):
        instruction = step.instruction
        # The predicate of `shfl` comes second. Registers that are not declared are not written.
        alone = len(writes) == 1 or instruction.opcode == "shfl"
        if not writes or not alone or writes[0] not in inputs or instruction.predicate is not None:
            continue
        if instruction.modifiers == (".pred",):
            truths[writes[0]] = _evaluate_logic(instruction, [truths.get(register, _UNKNOWN) for register in reads])
            continue
        registers = {register[0]: indices.get(register, constants.get(register)) for register in reads}
        sources = [_read_source(operand, registers) for operand in instruction.operands[1:]]
        if instruction.opcode == "setp":
            truths[writes[0]] = _evaluate_comparison(instruction, sources)
        else:
            values = _compute_indices(instruction, sources)
            if values is not None:
                indices[writes[0]] = values
    return truths


def _find_branch_inputs(runs: Sequence[Run]) -> set[Register]:
    """Return the registers, written once, from which branch predicates are computed."""
    write_counts = Counter(register for run in runs for _, writes in run.accesses for register in writes)
    inputs: set[Register] = set()
    for run in reversed(runs):
        for step, (reads, writes) in zip(reversed(run.steps), reversed(run.accesses), strict=True):
            if Trait.JUMPS in step.traits or not inputs.isdisjoint(writes):
                inputs.update(register for register in reads if write_counts[register] == 1)
    return inputs


def _find_live_ins(run: Run, inputs: set[Register]) -> set[Register]:
    """Return the registers that a run uses to compute needed values and does not write before."""
    live_ins: set[Register] = set()
    write_set: set[Register] = set()
    for reads, writes in run.accesses:
        if not inputs.isdisjoint(writes):
            live_ins.update(register for register in reads if register not in write_set)
        write_set.update(writes)
    return live_ins


Source = list[int] | int | None
"""The value of an operand: derived from the index (one number per thread), a constant, or unknown."""


def _read_source(operand: Operand, registers: dict[str, Source]) -> Source:
    source: Source = None
    if isinstance(operand, ImmediateOperand) and isinstance(operand.value, int):
        source = operand.value
    elif isinstance(operand, RegisterOperand):
        source = list(range(_THREADS)) if operand.name == "%tid.x" else registers.get(operand.name)
    return source % _WORD if isinstance(source, int) else source


def _evaluate_logic(instruction: Instruction, truths: Sequence[Truth]) -> Truth:
    if any(isinstance(operand, NegatedOperand) for operand in instruction.operands):
        return _UNKNOWN
    if instruction.opcode == "not" and len(truths) == 1:
        return Truth(truths[0].false, truths[0].true)
    if len(truths) == 2 and instruction.opcode == "and":
        return Truth(truths[0].true & truths[1].true, truths[0].false | truths[1].false)
    if len(truths) == 2 and instruction.opcode == "or":
        return Truth(truths[0].true | truths[1].true, truths[0].false & truths[1].false)
    return _UNKNOWN


def _evaluate_comparison(instruction: Instruction, sources: Sequence[Source]) -> Truth:
    if len(sources) != 2 or len(instruction.modifiers) != 2:
        return _UNKNOWN
    values, number = sources
    compare, kind = _COMPARISONS.get(instruction.modifiers[0]), instruction.modifiers[1:]
    if not isinstance(values, list) or not isinstance(number, int) or compare is None or kind not in _KINDS:
        return _UNKNOWN
    if kind == (".s32",):
        values, number = [_convert_to_signed(value) for value in values], _convert_to_signed(number)
    answers = [compare(value, number) for value in values]
    return Truth(_collect_warps(answers), _collect_warps([not answer for answer in answers]))


def _convert_to_signed(value: int) -> int:
    return value - _WORD if value >= _WORD >> 1 else value


def _collect_warps(answers: Sequence[bool]) -> int:
    return sum(1 << first // WARP for first in range(0, _THREADS, WARP) if any(answers[first : first + WARP]))


def _compute_indices(instruction: Instruction, sources: Sequence[Source]) -> list[int] | None:
    """Return what an instruction computes from the x index, for each thread, or None if unknown."""
    opcode, kind = instruction.opcode, instruction.modifiers[-1:]
    values = sources[0] if sources and kind in _KINDS else None
    if not isinstance(values, list):
        return None
    if opcode == "mov":
        return values
    if opcode == "shfl":
        from_first = ".idx" in instruction.modifiers and sources[1:3] == [0, WARP - 1]
        return [values[thread - thread % WARP] for thread in range(_THREADS)] if from_first else None
    number, compute = sources[-1], _ARITHMETIC.get(opcode)
    if not isinstance(number, int) or compute is None or len(instruction.modifiers) != 1:
        return None
    if opcode == "shr" and kind == (".s32",):
        values = [_convert_to_signed(value) for value in values]
    return [compute(value, number) % _WORD for value in values]
