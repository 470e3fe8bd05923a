"""Warns of `.aligned` instructions that some lanes of a warp may skip while others execute them.

A value is uniform in the warp, differs only in its lowest five bits like the thread's x index, or varies. Unknown
values count as uniform, so a finding names a branch that can really divide a warp.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from enum import IntEnum

from pyptx.check.body import Step
from pyptx.check.flow import Access, Register, Run
from pyptx.check.warps import Ways
from pyptx.diagnostics import Diagnostic, Rule, Severity
from pyptx.ir import ImmediateOperand, Instruction, RegisterOperand, opcode_span
from pyptx.isa.traits import LEAVES, Trait

_FRAME = """\
.version 8.5
.target sm_90a
.address_size 64
.visible .entry k()
{{
    .reg .b32 %r<4>;
    .reg .pred %p<2>;
    .shared .b32 tile;
    mov.u32 %r0, %tid.x;
    {}
    @%p0 bra $skip;
    barrier.sync.aligned 0;
$skip:
    st.shared.b32 [tile], %r0;
    ret;
}}
"""

DIVERGENT_ALIGNED = Rule(
    "PTX0601",
    ".aligned instruction in divergent code",
    "All threads of a warp must execute an `.aligned` instruction together. A branch before this one depends on the "
    "lane, so some threads of the warp may skip it.",
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
    """The x index of the thread plus a multiple of the warp size, or any value that differs only in its low five
    bits."""
    VARYING = 2


_VARYING_SOURCES = ("%laneid", "%lanemask_")
_SOURCES = frozenset(("mov", "shfl"))
"""Other sources of varying values; all other instructions map uniform values to uniform ones."""


def find_divergent_aligned(runs: list[Run]) -> Iterator[Diagnostic]:
    """Yield `.aligned` instructions that a divided warp may reach."""
    if not any(_is_aligned(step) for run in runs for step in run.steps):
        return
    variation = _Variation(runs)
    after: list[int] | None = None
    ways = Ways(runs)
    splits: dict[int, int] = {}
    causes: dict[int, Step] = {}
    dirty_runs = set(range(len(runs)))
    while dirty_runs:
        _propagate(runs, variation, causes, dirty_runs)
        branches = [run for run in runs if variation.deciding[run.index] and _may_divide(run, runs)]
        if branches and after is None:
            after = _compute_postdominators(runs)
            splits = {run.index: ways.split(run) for run in branches}
        partial_runs = _find_divided_runs(runs, after or [], branches, ways, splits)
        dirty_runs = partial_runs.keys() - causes.keys()
        causes = partial_runs
    for run in runs:
        values = variation.build_entry_values(run.index)
        for step, access in zip(run.steps, run.accesses, strict=True):
            if _is_aligned(step):
                cause = causes.get(run.index)
                if cause is not None or _guard_varies(step, access, values):
                    yield _report(step, cause)
            _execute(step, access, values, run.index in causes)


def _is_aligned(step: Step) -> bool:
    return step.match is not None and Trait.ALIGNED in step.traits


def _report(step: Step, cause: Step | None) -> Diagnostic:
    place = step.instruction.full_opcode
    if cause is None:
        return DIVERGENT_ALIGNED.report(
            opcode_span(step.instruction),
            f"`{place}` is guarded by a predicate that differs between the lanes of a warp",
            help="all threads of the warp must execute it, or none",
        )
    branch = opcode_span(cause.instruction)
    line = branch.line if branch else 0
    return DIVERGENT_ALIGNED.report(
        opcode_span(step.instruction),
        f"`{place}` needs all threads of the warp, but the branch on line {line} can diverge before it",
        help="move it out of the branch, or branch on a warp-uniform condition",
    )


Values = dict[Register, Varies]
"""How registers vary; missing ones are uniform."""


class _Variation:
    """The registers that each run reads before writing them, as bits: those that may differ between lanes (`thread`),
    and those among them that may differ arbitrarily (`varying`)."""

    def __init__(self, runs: list[Run]) -> None:
        self.live_ins = [_find_live_ins(run) for run in runs]
        self.bits = {r: 1 << n for n, r in enumerate(dict.fromkeys(r for run in self.live_ins for r in run))}
        self.thread = [0] * len(runs)
        self.varying = [0] * len(runs)
        self.deciding = [Varies.UNIFORM] * len(runs)

    def build_entry_values(self, index: int) -> Values:
        """Return how the exposed registers vary at the start of a run; missing ones are uniform."""
        thread, varying, bits = self.thread[index], self.varying[index], self.bits
        if not thread:
            return {}
        return {
            r: Varies.VARYING if varying & bits[r] else Varies.THREAD for r in self.live_ins[index] if thread & bits[r]
        }

    def leave(self, run: Run, values: Values) -> Iterator[int]:
        """Merge the state after a run into its successors; yield those that change."""
        thread, varying = self.thread[run.index], self.varying[run.index]
        for register in {register for _, writes in run.accesses for register in writes}:
            bit = self.bits.get(register)
            if bit is not None:
                value = values.get(register, Varies.UNIFORM)
                thread = thread | bit if value else thread & ~bit
                varying = varying | bit if value is Varies.VARYING else varying & ~bit
        for successor in run.successors:
            if thread & ~self.thread[successor] or varying & ~self.varying[successor]:
                self.thread[successor] |= thread
                self.varying[successor] |= varying
                yield successor


def _find_live_ins(run: Run) -> list[Register]:
    """Return the registers whose value at the start of the run matters; a guarded write may keep it."""
    live_ins: dict[Register, None] = {}
    write_set: set[Register] = set()
    for step, (reads, writes) in zip(run.steps, run.accesses, strict=True):
        live_ins.update((r, None) for r in reads if r not in write_set)
        if step.instruction.predicate is not None:
            live_ins.update((r, None) for r in writes if r not in write_set)
        write_set.update(writes)
    return list(live_ins)


def _propagate(runs: list[Run], variation: _Variation, causes: dict[int, Step], dirty_runs: set[int]) -> None:
    """Propagate how registers vary from the changed runs to a fixed point."""
    todo = deque(sorted(dirty_runs))
    pending = set(todo)
    while todo:
        index = todo.popleft()
        pending.discard(index)
        run = runs[index]
        values = variation.build_entry_values(index)
        for step, access in zip(run.steps, run.accesses, strict=True):
            _execute(step, access, values, index in causes)
        if run.steps:
            variation.deciding[index] = max(
                (values.get(r, Varies.UNIFORM) for r in run.accesses[-1][0]), default=Varies.UNIFORM
            )
        for successor in variation.leave(run, values):
            if successor not in pending:
                pending.add(successor)
                todo.append(successor)


def _execute(step: Step, access: Access, values: Values, is_divided: bool) -> None:
    """Update the values for one step. In a divided warp written values vary, because the other lanes keep the old
    ones."""
    reads, writes = access
    if not writes or not (values or is_divided or step.instruction.opcode in _SOURCES or Trait.YIELDS in step.traits):
        return
    result = Varies.VARYING if is_divided else _compute_result(step, reads, values)
    has_guard = step.instruction.predicate is not None
    for register in writes:
        if has_guard:
            old_value = values.get(register, Varies.UNIFORM)
            result = max(result, old_value, values.get(reads[0], Varies.UNIFORM) if reads else Varies.UNIFORM)
        if result is Varies.UNIFORM:
            values.pop(register, None)
        else:
            values[register] = result


def _compute_result(step: Step, reads: list[Register], values: Values) -> Varies:
    instruction = step.instruction
    opcode = instruction.opcode
    if step.plan is None:
        return Varies.UNIFORM
    yields = step.traits.get(Trait.YIELDS)
    if yields is not None:
        return Varies.VARYING if yields == "varying" else Varies.UNIFORM
    if step.traits.get(Trait.COMPUTES) == "copy":
        own = _classify_source(instruction)
        if own is not None:
            return own
    worst = max((values.get(r, Varies.UNIFORM) for r in reads), default=Varies.UNIFORM)
    if opcode == "shfl":
        return _compute_shuffle(instruction, values, reads)
    if worst is not Varies.THREAD:
        return worst
    return _compute_from_thread(instruction, step.traits.get(Trait.COMPUTES, ""))


def _classify_source(instruction: Instruction) -> Varies | None:
    source = instruction.operands[-1]
    if not isinstance(source, RegisterOperand) or not source.name.startswith("%"):
        return None
    if source.name == "%tid.x":
        return Varies.THREAD
    return Varies.VARYING if source.name.startswith(_VARYING_SOURCES) else None


def _compute_shuffle(instruction: Instruction, values: Values, reads: list[Register]) -> Varies:
    """Return how a shuffle's result varies: `shfl.sync.idx` from a uniform lane gives a uniform value."""
    lane = instruction.operands[2]
    if ".idx" not in instruction.modifiers:
        return Varies.VARYING
    if isinstance(lane, ImmediateOperand):
        return Varies.UNIFORM
    return max((values.get(r, Varies.UNIFORM) for r in reads[1:]), default=Varies.UNIFORM)


def _compute_from_thread(instruction: Instruction, value: str) -> Varies:
    """Return how a value computed from the thread's x index varies: shifts, masks and comparisons by whole warps make
    it uniform."""
    number = _find_number(instruction)
    if value == "bitwise" and not (number is not None and instruction.opcode == "and"):
        return Varies.THREAD
    if number is None and instruction.opcode == "div":
        return Varies.UNIFORM  # Usually by the block size, which gives the block's index.
    if number is None:
        return Varies.THREAD if value in ("copy", "offset") else Varies.VARYING
    opcode, modifiers = instruction.opcode, instruction.modifiers
    if opcode == "shr":
        return Varies.UNIFORM if number >= _LANE_BITS else Varies.VARYING
    if opcode == "and":
        return Varies.UNIFORM if number % _WARP == 0 else Varies.THREAD
    if opcode == "div":
        return Varies.UNIFORM if number and number % _WARP == 0 else Varies.VARYING
    if opcode in ("add", "sub"):
        return Varies.THREAD if number % _WARP == 0 else Varies.VARYING
    if opcode == "setp":
        below = {".lt", ".ge", ".lo", ".hs"} & set(modifiers) and number % _WARP == 0
        up_to = {".gt", ".le", ".hi", ".ls"} & set(modifiers) and number % _WARP == _WARP - 1
        return Varies.UNIFORM if below or up_to else Varies.VARYING
    return Varies.VARYING


def _find_number(instruction: Instruction) -> int | None:
    last = instruction.operands[-1]
    value = last.value if isinstance(last, ImmediateOperand) else None
    return value if isinstance(value, int) else None


def _guard_varies(step: Step, access: Access, values: Values) -> bool:
    return step.instruction.predicate is not None and bool(access[0]) and access[0][0] in values


def _may_divide(run: Run, runs: list[Run]) -> bool:
    """Tell whether the run ends in a branch that may send lanes of a warp different ways, none of which just exits."""
    if len(run.successors) < 2:
        return False
    branch = run.steps[-1]
    if ".uni" in branch.instruction.modifiers or Trait.JUMPS not in branch.traits:
        return False
    return not any(_only_leaves(runs[s]) for s in run.successors)


def _find_divided_runs(
    runs: list[Run], after: list[int], branches: list[Run], ways: Ways, splits: dict[int, int]
) -> dict[int, Step]:
    """Return the runs that only part of a warp may execute, each with the branch that divided it, by following the
    divided warps along the paths they can take. A branch missing in `splits` tests values that vary only because
    divided warps wrote them, so it divides no other warps."""
    causes: dict[int, Step] = {}
    warps = [0] * len(runs)
    ever = 0
    for warp_mask in splits.values():
        ever |= warp_mask
    for run in branches:
        join = after[run.index]
        warp_mask = splits[run.index] if run.index in splits else ways.split(run) & ever
        for index in ways.follow(ways.list_successors(run, warp_mask), warps, join):
            causes.setdefault(index, run.steps[-1])
    return causes


def _only_leaves(run: Run) -> bool:
    """Tell whether the run only exits: exited lanes do not divide the remaining ones."""
    return bool(run.steps) and all(not LEAVES.isdisjoint(step.traits) for step in run.steps)


def _compute_postdominators(runs: list[Run]) -> list[int]:
    """Return, for each run, its nearest postdominator, -1 if all paths trap. Paths that trap are ignored: nothing waits
    there. Loops without an exit are ignored too, except for runs that lead nowhere else; for these, the last run of the
    text counts as the exit."""
    way_out = len(runs) - 1
    after = [-1] * len(runs)
    after[way_out] = way_out
    leaving = [index for index in runs[way_out].predecessors if not _traps(runs[index])]
    _resolve_postdominators(runs, leaving or runs[way_out].predecessors, after)
    for index in reversed(range(way_out)):
        if after[index] == -1 and runs[index].successors and not _traps(runs[index]):
            _resolve_postdominators(runs, [index], after)
    return after


def _resolve_postdominators(runs: list[Run], leaving: list[int], after: list[int]) -> None:
    """Compute the postdominators of the unresolved runs that lead to `leaving` (Cooper, Harvey, Kennedy)."""
    way_out = len(runs) - 1
    order = _compute_postorder(runs, way_out, [index for index in leaving if after[index] == -1], after)
    number = {index: position for position, index in enumerate(order)}
    leaves = set(leaving)
    has_changed = True
    while has_changed:
        has_changed = False
        for index in reversed(order[:-1]):
            candidates = [s for s in runs[index].successors if after[s] != -1]
            if index in leaves:
                candidates.append(way_out)
            if not candidates:
                continue
            nearest, *others = candidates
            for candidate in others:
                nearest = _find_common_postdominator(nearest, candidate, after, number)
            if after[index] != nearest:
                after[index] = nearest
                has_changed = True


def _find_common_postdominator(a: int, b: int, after: list[int], number: dict[int, int]) -> int:
    while a != b:
        while number[a] < number[b]:
            a = after[a]
        while number[b] < number[a]:
            b = after[b]
    return a


def _traps(run: Run) -> bool:
    """Tell whether the run traps, like a failed assertion."""
    return any(Trait.TRAPS in step.traits for step in run.steps)


def _compute_postorder(runs: list[Run], root: int, leaving: list[int], after: list[int]) -> list[int]:
    """Return the unresolved runs that reach the exit through `leaving`, in postorder of the reversed graph."""
    order: list[int] = []
    reachable = {root}
    stack: list[tuple[int, Iterator[int]]] = [(root, iter(leaving))]
    while stack:
        index, predecessors = stack[-1]
        for predecessor in predecessors:
            if predecessor not in reachable and after[predecessor] == -1:
                reachable.add(predecessor)
                stack.append((predecessor, iter(runs[predecessor].predecessors)))
                break
        else:
            order.append(index)
            stack.pop()
    return order
