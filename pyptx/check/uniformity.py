"""Warns of `.aligned` instructions that some lanes of a warp may skip while others execute them.

A value is uniform in the warp, the thread's own x index, or varying. What the rules do not know counts as uniform, so a
finding names a branch that really can divide a warp.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

from pyptx.check.body import Step
from pyptx.check.flow import Access, Register, Run
from pyptx.diagnostics import Diagnostic, Rule, Severity
from pyptx.ir import ImmediateOperand, Instruction, RegisterOperand, opcode_span
from pyptx.isa.control import ENDS

_FRAME = """\
.version 8.5
.target sm_90a
.address_size 64
.visible .entry k()
{{
    .reg .b32 %r<4>;
    .reg .pred %p<2>;
    mov.u32 %r0, %tid.x;
    {}
    @%p0 bra $skip;
    barrier.sync.aligned 0;
$skip:
    ret;
}}
"""

DIVERGENT_ALIGNED = Rule(
    "PTX0601",
    ".aligned instruction in divergent code",
    "All threads of a warp must execute an `.aligned` instruction together. Here a branch before it depends on the "
    "lane, so that some threads of a warp may skip it.",
    _FRAME.format("setp.eq.u32 %p0, %r0, 0;"),
    _FRAME.format("setp.lt.u32 %p0, %r0, 128;"),
    Severity.WARNING,
)

RULES = (DIVERGENT_ALIGNED,)

_LANE_BITS = 5
_WARP = 1 << _LANE_BITS


class Varies(IntEnum):
    """How a value differs between the lanes of a warp."""

    UNIFORM = 0
    THREAD = 1
    """The x index of the thread plus a multiple of the warp size: its low five bits are the lane."""
    VARYING = 2


_VARYING_SOURCES = ("%laneid", "%lanemask_")
_UNIFORM_RESULTS = frozenset(("vote", "redux", "activemask", "barrier", "bar"))
_VARYING_RESULTS = frozenset(("elect", "atom", "match"))


def divergent_aligned(made: list[Run]) -> Iterator[Diagnostic]:
    """Yield `.aligned` instructions that a divided warp may reach."""
    aligned = [(run.index, step) for run in made for step in run.steps if _is_aligned(step)]
    if not aligned:
        return
    accesses = {id(step): access for run in made for step, access in zip(run.steps, run.accesses, strict=True)}
    divided: dict[int, Step] = {}
    while True:
        values = _values(made, accesses, divided)
        found = _divided_runs(made, accesses, values)
        if found.keys() == divided.keys():
            break
        divided = found
    for index, step in aligned:
        guard = _guard_varies(step, values, accesses)
        cause = divided.get(index)
        if cause is not None or guard:
            yield _finding(step, cause)


def _is_aligned(step: Step) -> bool:
    if step.match is None:
        return False
    return "aligned" in step.match.modifiers or (
        step.instruction.opcode == "bar" and "warp" not in step.match.modifiers
    )


def _finding(step: Step, cause: Step | None) -> Diagnostic:
    place = step.instruction.full_opcode
    if cause is None:
        return DIVERGENT_ALIGNED.found(
            opcode_span(step.instruction),
            f"`{place}` is guarded by a predicate that differs between the lanes of a warp",
            help="all threads of the warp must execute it, or none",
        )
    branch = opcode_span(cause.instruction)
    line = branch.line if branch else 0
    return DIVERGENT_ALIGNED.found(
        opcode_span(step.instruction),
        f"`{place}` needs all threads of the warp, but the branch in line {line} can divide the warp before it",
        help="move it out of the branch, or branch on something that is the same in the whole warp",
    )


Accesses = dict[int, Access]
Values = dict[Register, Varies]


def _values(made: list[Run], accesses: Accesses, divided: dict[int, Step]) -> Values:
    """Return how each register varies: the join over all its writes, whatever their order."""
    values: Values = {}
    changed = True
    while changed:
        changed = False
        for run in made:
            for step in run.steps:
                reads, writes = accesses[id(step)]
                if not writes:
                    continue
                made_here = Varies.VARYING if run.index in divided else _result(step, reads, values)
                for register in writes:
                    known = values.get(register)
                    joined = made_here if known is None else max(known, made_here)
                    if known is not joined:
                        values[register] = joined
                        changed = True
    return values


def _result(step: Step, reads: list[Register], values: Values) -> Varies:
    instruction = step.instruction
    opcode = instruction.opcode
    if opcode in _VARYING_RESULTS:
        return Varies.VARYING
    if opcode in _UNIFORM_RESULTS:
        return Varies.UNIFORM
    if opcode == "mov":
        own = _special(instruction)
        if own is not None:
            return own
    worst = max((values.get(r, Varies.UNIFORM) for r in reads), default=Varies.UNIFORM)
    if opcode == "shfl":
        return _shuffled(instruction, values, reads)
    if worst is not Varies.THREAD:
        return worst
    return _of_thread(instruction)


def _special(instruction: Instruction) -> Varies | None:
    source = instruction.operands[-1]
    if not isinstance(source, RegisterOperand) or not source.name.startswith("%"):
        return None
    if source.name == "%tid.x":
        return Varies.THREAD
    return Varies.VARYING if source.name.startswith(_VARYING_SOURCES) else None


def _shuffled(instruction: Instruction, values: Values, reads: list[Register]) -> Varies:
    """`shfl.sync.idx` from a lane that is the same for all gives all the same value."""
    lane = instruction.operands[2]
    if ".idx" not in instruction.modifiers:
        return Varies.VARYING
    if isinstance(lane, ImmediateOperand):
        return Varies.UNIFORM
    return max((values.get(r, Varies.UNIFORM) for r in reads[1:]), default=Varies.UNIFORM)


def _of_thread(instruction: Instruction) -> Varies:
    """What becomes of the thread's x index: shifts, masks and comparisons by whole warps make it uniform."""
    number = _number(instruction)
    if number is None:
        return Varies.THREAD if instruction.opcode in ("mov", "cvt", "add", "sub", "mad", "cvta") else Varies.VARYING
    opcode, modifiers = instruction.opcode, instruction.modifiers
    if opcode == "shr":
        return Varies.UNIFORM if number >= _LANE_BITS else Varies.VARYING
    if opcode == "and":
        return Varies.UNIFORM if number % _WARP == 0 else Varies.VARYING
    if opcode == "div":
        return Varies.UNIFORM if number and number % _WARP == 0 else Varies.VARYING
    if opcode in ("add", "sub"):
        return Varies.THREAD if number % _WARP == 0 else Varies.VARYING
    if opcode == "setp":
        below = {".lt", ".ge", ".lo", ".hs"} & set(modifiers) and number % _WARP == 0
        up_to = {".gt", ".le", ".hi", ".ls"} & set(modifiers) and number % _WARP == _WARP - 1
        return Varies.UNIFORM if below or up_to else Varies.VARYING
    return Varies.VARYING


def _number(instruction: Instruction) -> int | None:
    last = instruction.operands[-1]
    value = last.value if isinstance(last, ImmediateOperand) else None
    return value if isinstance(value, int) else None


def _guard_varies(step: Step, values: Values, accesses: Accesses) -> bool:
    if step.instruction.predicate is None:
        return False
    return values.get(accesses[id(step)][0][0], Varies.UNIFORM) is not Varies.UNIFORM


def _divided_runs(made: list[Run], accesses: Accesses, values: Values) -> dict[int, Step]:
    """Return the runs that only part of a warp may execute, each with the branch that divided it."""
    after = _immediate_postdominators(made)
    divided: dict[int, Step] = {}
    for run in made:
        if len(run.successors) < 2:
            continue
        branch = run.steps[-1]
        if ".uni" in branch.instruction.modifiers or branch.instruction.opcode not in ("bra", "brx"):
            continue
        deciding = accesses[id(branch)][0]
        if all(values.get(r, Varies.UNIFORM) is Varies.UNIFORM for r in deciding):
            continue
        if any(_only_leaves(made[s]) for s in run.successors):
            continue
        join = after[run.index]
        todo = [s for s in run.successors if s != join]
        while todo:
            index = todo.pop()
            if index not in divided and index != join:
                divided[index] = branch
                todo += made[index].successors
    return divided


def _only_leaves(run: Run) -> bool:
    """Tell whether the run is nothing but a way out: lanes that have ended do not divide those that go on."""
    return bool(run.steps) and all(step.instruction.opcode in ENDS for step in run.steps)


def _immediate_postdominators(made: list[Run]) -> list[int]:
    """Return, for each run, the nearest run that every path from it to the way out passes (Cooper, Harvey, Kennedy)."""
    way_out = len(made) - 1
    order = _postorder_from(made, way_out)
    number = {index: position for position, index in enumerate(order)}
    after = [-1] * len(made)
    after[way_out] = way_out
    changed = True
    while changed:
        changed = False
        for index in reversed(order[:-1]):
            candidates = [s for s in made[index].successors if after[s] != -1]
            if not candidates:
                continue
            nearest = candidates[0]
            for other in candidates[1:]:
                nearest = _common(nearest, other, after, number)
            if after[index] != nearest:
                after[index] = nearest
                changed = True
    return after


def _common(a: int, b: int, after: list[int], number: dict[int, int]) -> int:
    while a != b:
        while number[a] < number[b]:
            a = after[a]
        while number[b] < number[a]:
            b = after[b]
    return a


def _postorder_from(made: list[Run], root: int) -> list[int]:
    """Return the runs that reach the way out, in postorder of the reversed graph."""
    order: list[int] = []
    seen = {root}
    stack: list[tuple[int, Iterator[int]]] = [(root, iter(made[root].predecessors))]
    while stack:
        index, predecessors = stack[-1]
        for predecessor in predecessors:
            if predecessor not in seen:
                seen.add(predecessor)
                stack.append((predecessor, iter(made[predecessor].predecessors)))
                break
        else:
            order.append(index)
            stack.pop()
    return order
