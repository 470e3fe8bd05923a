"""Checks that every register is written before it is read on every path, and that every instruction is reachable."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pyptx.check import facts
from pyptx.check.body import Step
from pyptx.check.flow import Register, Run
from pyptx.check.paths import find_unwritten_reads
from pyptx.diagnostics import Diagnostic, Rule, Severity
from pyptx.ir import Function, opcode_span
from pyptx.isa.traits import LEAVES, Trait

_FRAME = """\
.version 8.5
.target sm_90a
.address_size 64
.visible .entry k(.param .u32 n, .param .u64 out)
{{
    .reg .b32 %r<4>;
    .reg .b64 %rd<2>;
    .reg .pred %p<2>;
    ld.param.u32 %r0, [n];
    ld.param.u64 %rd0, [out];
    setp.eq.u32 %p0, %r0, 0;
    {}
    st.global.u32 [%rd0], %r1;
    ret;
}}
"""

NEVER_WRITTEN = Rule(
    "PTX0501",
    "register read but never written",
    "Nothing in the function writes the register, so its value is undefined.",
    _FRAME.format("add.s32 %r1, %r0, %r2;"),
    _FRAME.format("mov.b32 %r2, 4;\nadd.s32 %r1, %r0, %r2;"),
    Severity.WARNING,
)
MAYBE_UNWRITTEN = Rule(
    "PTX0502",
    "register may be read before it is written",
    "Some path from the function entry to the read does not write the register. Paths ruled out by an unchanged "
    "predicate are ignored: two branches on the same predicate go the same way.",
    _FRAME.format("@%p0 bra $join;\nmov.b32 %r1, 4;\n$join:"),
    _FRAME.format("mov.b32 %r1, 0;\n@%p0 bra $join;\nmov.b32 %r1, 4;\n$join:"),
    Severity.WARNING,
)
UNREACHABLE = Rule(
    "PTX0503",
    "instruction cannot be reached",
    "No path from the function entry reaches the instruction. It is often left over from an unfinished edit.",
    _FRAME.format("mov.b32 %r1, 4;\nbra $join;\nadd.s32 %r1, %r1, 1;\n$join:"),
    _FRAME.format("mov.b32 %r1, 4;\nadd.s32 %r1, %r1, 1;"),
    Severity.WARNING,
)
UNUSED = Rule(
    "PTX0504",
    "register written but never read",
    "Reported only with `--unused`: the value is computed but never used.",
    _FRAME.format("selp.b32 %r1, 4, 5, %p0;\nmov.b32 %r3, 4;"),
    _FRAME.format("selp.b32 %r1, 4, 5, %p0;"),
    Severity.WARNING,
)

RULES = (NEVER_WRITTEN, MAYBE_UNWRITTEN, UNREACHABLE, UNUSED)


@dataclass(slots=True)
class _Effects:
    """How a run uses registers: `first_reads` maps each register read before the run writes it to its first read."""

    writes: set[Register] = field(default_factory=set[Register])
    first_reads: dict[Register, Step] = field(default_factory=dict[Register, Step])
    reads: set[Register] = field(default_factory=set[Register])


def check_dataflow(function: Function, runs: list[Run], with_unused: bool) -> Iterator[Diagnostic]:
    """Yield the findings of one function."""
    reachable = _find_reachable(runs)
    yield from _report_unreachable(runs, reachable)
    effects = [_compute_effects(run) for run in runs]
    bits = {register: bit for bit, register in enumerate(dict.fromkeys(r for e in effects for r in e.first_reads))}
    unwritten = _find_maybe_unwritten(runs, effects, bits, _collect_parameters(function, bits))
    all_writes = {register for effect in effects for register in effect.writes}
    suspects = dict.fromkeys(r for first_reads in unwritten for r in first_reads if r in all_writes)
    possible = find_unwritten_reads(runs, list(suspects)) if suspects else {}
    reports: set[Register] = set()
    for run in runs:
        missing: dict[tuple[int, bool], tuple[Step, list[str]]] = {}
        for register, first in unwritten[run.index].items():
            step = possible.get((run.index, register)) if register in suspects else first
            if step is not None and register not in reports:
                reports.add(register)
                missing.setdefault((id(step), register in suspects), (step, []))[1].append(register[0])
        for (_, somewhere), (step, names) in missing.items():
            yield _describe_unwritten(step, names, somewhere)
    if with_unused:
        yield from _report_unused(runs, {register for effect in effects for register in effect.reads})


def _compute_effects(run: Run) -> _Effects:
    effect = _Effects()
    for step, (reads, writes) in zip(run.steps, run.accesses, strict=True):
        for register in reads:
            if register not in effect.writes and register not in effect.first_reads:
                effect.first_reads[register] = step
        effect.writes.update(writes)
        effect.reads.update(reads)
    return effect


def _collect_parameters(function: Function, bits: dict[Register, int]) -> int:
    """Return the registers that the caller initializes: `.reg` parameters."""
    names = {p.name for p in function.params if p.state_space.ptx == ".reg"}
    return sum(1 << bit for (name, _), bit in bits.items() if name in names)


def _find_reachable(runs: list[Run]) -> list[bool]:
    reachable = [False] * len(runs)
    todo = [0]
    while todo:
        index = todo.pop()
        if not reachable[index]:
            reachable[index] = True
            todo += runs[index].successors
    return reachable


def _report_unreachable(runs: list[Run], reachable: list[bool]) -> Iterator[Diagnostic]:
    """Yield the first instruction of each unreachable stretch; compilers leave a lone `ret` there."""
    for run in runs:
        dead = [step for step in run.steps if not _is_harmless(step)]
        if dead and not reachable[run.index] and reachable[run.index - 1]:
            step = dead[0]
            yield UNREACHABLE.report(
                opcode_span(step.instruction),
                f"`{step.instruction.full_opcode}` cannot be reached",
                help="remove it, or add a branch to a label before it",
            )


def _is_harmless(step: Step) -> bool:
    return step.traits.get(Trait.JUMPS) == "" or not (LEAVES | {Trait.TRAPS}).isdisjoint(step.traits)


def _find_maybe_unwritten(
    runs: list[Run], effects: list[_Effects], bits: dict[Register, int], parameters: int
) -> list[dict[Register, Step]]:
    """Return, for each run, its exposed registers that some path to the run does not write; guarded writes count. Only
    exposed registers are tracked, so straight-line code costs nothing."""
    writes = [sum(1 << bits[r] for r in effect.writes if r in bits) for effect in effects]

    def leave(run: Run, entry_facts: int) -> list[tuple[int, int]]:
        return [(successor, entry_facts | writes[run.index]) for successor in run.successors]

    entering = facts.solve_facts(runs, parameters, leave)
    return [
        {r: step for r, step in effect.first_reads.items() if not entry_facts >> bits[r] & 1}
        for entry_facts, effect in zip(entering, effects, strict=True)
    ]


def _describe_unwritten(step: Step, names: list[str], somewhere: bool) -> Diagnostic:
    origin = opcode_span(step.instruction)
    listing = ", ".join(f"`{name}`" for name in names[:_MOST_NAMED])
    listing += f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    single = len(names) == 1
    if not somewhere:
        text = f"{listing} {'is' if single else 'are'} read here but never written"
        return NEVER_WRITTEN.report(origin, text, help=f"write {'it' if single else 'them'} first")
    return MAYBE_UNWRITTEN.report(
        origin,
        f"{listing} may be read here before {'it is' if single else 'they are'} written: some path skips the write",
        help=f"write {'it' if single else 'them'} before the branch that skips the write",
    )


_MOST_NAMED = 3


def _report_unused(runs: list[Run], read: set[Register]) -> Iterator[Diagnostic]:
    exempt = set(read)
    for run in runs:
        for step, (_, writes) in zip(run.steps, run.accesses, strict=True):
            for register in writes:
                if register not in exempt:
                    exempt.add(register)
                    yield UNUSED.report(
                        opcode_span(step.instruction), f"`{register[0]}` is written here but never read"
                    )
