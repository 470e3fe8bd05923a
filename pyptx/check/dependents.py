"""Warns of global memory that a kernel accesses before `griddepcontrol.wait` and again after it, and writes.

Until the wait, the previous grid may still use the memory. Memory that the kernel only reads may be constant and is not
reported; neither are tensor maps, whose copies the simulator checks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pyptx.check.body import Step
from pyptx.check.flow import Register, Run
from pyptx.check.symbols import Kind
from pyptx.diagnostics import Diagnostic, Rule, Severity
from pyptx.ir import AddressOperand, Function, opcode_span
from pyptx.isa.model import Kind as OperandKind
from pyptx.isa.traits import Trait

_FRAME = """\
.version 8.5
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 sums)
{{
    .reg .b64 %rd<2>;
    .reg .b32 %r<2>;
    ld.param.u64 %rd0, [sums];
    {}
    add.u32 %r0, %r0, 1;
    st.global.u32 [%rd0], %r0;
    ret;
}}
"""

BEFORE_WAIT = Rule(
    "PTX0979",
    "memory accessed both before and after griddepcontrol.wait",
    "Until `griddepcontrol.wait` returns, the previous grid may still write what this kernel reads, or read what it "
    "writes. This kernel writes the memory, so it is not constant data that can be read early.",
    _FRAME.format("ld.global.u32 %r0, [%rd0];\n    griddepcontrol.wait;"),
    _FRAME.format("griddepcontrol.wait;\n    ld.global.u32 %r0, [%rd0];"),
    Severity.WARNING,
)

RULES = (BEFORE_WAIT,)

_ACCESSES = frozenset((Trait.LOADS, Trait.STORES, Trait.UPDATES, Trait.ISSUES))
_ADDRESSES = ("copy", "offset")
"""The values that are addresses if an operand is one."""
_WIDE = frozenset((".u64", ".b64", ".s64"))


@dataclass(frozen=True, slots=True)
class _Use:
    """An access to the memory that a parameter points to."""

    step: Step
    param: str
    writes: bool


def check_dependents(function: Function, runs: list[Run]) -> Iterator[Diagnostic]:
    """Yield the findings of one kernel."""
    waits = {run.index: next(position for position, step in enumerate(run.steps) if _is_wait(step))
             for run in runs if any(_is_wait(step) for step in run.steps)}  # fmt: skip
    if not waits or not function.is_entry:
        return
    pointers = _find_pointers(runs)
    ahead = _find_reachable(runs, [0], set(waits), forward=True)
    leading = _find_reachable(runs, [*waits], set(), forward=False)
    behind = _find_reachable(runs, [s for index in waits for s in runs[index].successors], set(), forward=True)
    early, late = list[_Use](), list[_Use]()
    for run in runs:
        end = waits.get(run.index, len(run.steps) if run.index in leading else 0)
        if run.index in ahead:
            early += _find_uses(run.steps[:end], pointers)
        first = 0 if run.index in behind else waits.get(run.index, len(run.steps))
        late += _find_uses(run.steps[first:], pointers)
    for use in early:
        again = [access for access in late if access.param == use.param and (use.writes or access.writes)]
        if again:
            yield _report(use, again[0])


def _is_wait(step: Step) -> bool:
    return step.traits.get(Trait.MEETS) == "grid" and Trait.ARRIVES not in step.traits


def _report(use: _Use, again: _Use) -> Diagnostic:
    origin = opcode_span(again.step.instruction)
    verbs = ["writes" if access.writes else "reads" for access in (use, again)]
    return BEFORE_WAIT.report(
        opcode_span(use.step.instruction),
        f"`{use.step.instruction.full_opcode}` {verbs[0]} memory of `{use.param}` before `griddepcontrol.wait`, and "
        f"`{again.step.instruction.full_opcode}` on line {origin.line if origin else 0} {verbs[1]} it after",
        help="move the access after the wait, or pass a separate buffer that no earlier grid uses",
    )


def _find_pointers(runs: list[Run]) -> dict[Register, str]:
    """Return the registers that hold addresses derived from one parameter, with its name."""
    names: dict[Register, set[str]] = {}
    foreign: set[Register] = set()
    steps = [(step, access) for run in runs for step, access in zip(run.steps, run.accesses, strict=True)]
    has_changed = True
    while has_changed:
        has_changed = False
        for step, (reads, writes) in steps:
            param = _find_loaded_parameter(step)
            origins = {param} if param else set[str]()
            if step.traits.get(Trait.COMPUTES) in _ADDRESSES:
                origins = origins.union(*(names.get(register, ()) for register in reads))
            elif not param:
                foreign.update(writes)
            for register in writes:
                params = names.setdefault(register, set())
                has_changed = has_changed or not origins <= params
                params |= origins
    return {register: min(params) for register, params in names.items() if len(params) == 1 and register not in foreign}


def _find_loaded_parameter(step: Step) -> str:
    """Return the parameter that `ld.param` loads as an address, or an empty name."""
    address = step.instruction.operands[-1] if step.instruction.operands else None
    if Trait.LOADS not in step.traits or not isinstance(address, AddressOperand):
        return ""
    wide = ".param" in step.instruction.modifiers and not _WIDE.isdisjoint(step.instruction.modifiers)
    symbol = step.scope.find(address.base) if wide else None
    if symbol is None or symbol.kind is not Kind.VARIABLE or not symbol.entry:
        return ""
    return address.base if address.offset is None else f"{address.base}+{address.offset}"


def _find_uses(steps: list[Step], pointers: dict[Register, str]) -> Iterator[_Use]:
    for step in steps:
        if _ACCESSES.isdisjoint(step.traits):
            continue
        for formal, operand in zip(step.signature or (), step.instruction.operands, strict=False):
            if formal.kind is not OperandKind.ADDRESS or not isinstance(operand, AddressOperand):
                continue
            symbol = step.scope.find(operand.base) if formal.space in (None, "", "global") else None
            param = pointers.get((operand.base, id(symbol)))
            if param is not None:
                yield _Use(step, param, formal.access != "r")


def _find_reachable(runs: list[Run], starts: list[int], ends: set[int], *, forward: bool) -> set[int]:
    """Return the runs reachable from the given ones, forward or backward, without passing through `ends`."""
    reachable, todo = set[int](), [*starts]
    while todo:
        index = todo.pop()
        if index not in reachable:
            reachable.add(index)
            if index not in ends:
                todo += runs[index].successors if forward else runs[index].predecessors
    return reachable
