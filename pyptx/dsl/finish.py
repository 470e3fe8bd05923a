"""Finishes a trace: adds declarations, folds copies, moves shared memory, reports missing labels; then builds the
module."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from pyptx.diagnostics import Diagnostic, PtxError, PythonFrame
from pyptx.dsl import rules
from pyptx.dsl.origin import end_of, find_definition
from pyptx.dsl.returns import refuse_returns
from pyptx.dsl.rewrite import fold_copies, relocate_symbols
from pyptx.dsl.shared import declare_dynamic, get_memory, list_dynamic_offsets, make_dynamic_declaration
from pyptx.dsl.trace import Trace
from pyptx.ir.directives import AddressSize, FileDirective, Module, Target, Version
from pyptx.ir.kinds import LinkingDirective
from pyptx.ir.nodes import Function, FunctionDirective, Instruction, IntrinsicScope, Param, Statement
from pyptx.isa.lookup import find_traits
from pyptx.isa.traits import LEAVES, Trait

Body = tuple[Statement, ...]


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Traced:
    """One specialization of a kernel: its module, what a launch needs to know, and warnings."""

    module: Module
    dynamic_shared: int
    tensor_maps: tuple[str, ...]
    warnings: tuple[Diagnostic, ...]
    parts: Mapping[str, int] = field(default_factory=dict[str, int])
    """Offsets of the allocations behind the dynamic shared memory symbol, if they are there."""
    lenient_origins: frozenset[PythonFrame | None] = frozenset()
    """Origins of instructions that the table need not know."""
    image: bytes = field(default=b"", repr=False)
    """Machine code that came with the module, for the driver to choose from."""


def build_body(trace: Trace, function: Callable[..., Any] | None = None) -> Body:
    """Return the whole body of the function: declarations, variables, statements, and a final `ret` if needed, at the
    last line of the user's function."""
    refuse_returns(trace)
    _refuse_open(trace)
    if trace.pending:
        raise PtxError(trace.pending)
    if trace.exact is not None:
        return trace.exact.build_body()
    _refuse_missing_labels(trace)
    statements = fold_copies([*trace.prologue, *trace.statements], trace.folds)
    memory = get_memory(trace)
    offsets = list_dynamic_offsets(memory)
    if offsets:
        declare_dynamic(trace, memory)
        statements = relocate_symbols(statements, offsets, memory.symbol)
    if not _cannot_fall_off(statements):
        end = None if function is None else end_of(function)
        statements.append(Instruction("ret", origin=end))
    variables = [v for v in trace.variables if v.name not in offsets]
    return (*trace.top.build_statements(), *variables, *statements)


def build_module(traces: Sequence[Trace], functions: Iterable[Function]) -> Module:
    """Return the module of the finished functions of traces that share a unit."""
    unit, target = traces[0].unit, traces[0].target
    memories = [get_memory(trace) for trace in traces]
    align = max(memory.align for memory in memories)
    symbols = dict.fromkeys(memory.symbol for memory in memories if memory.is_declared)
    dynamic = [make_dynamic_declaration(symbol, align) for symbol in symbols]
    files = [FileDirective(index, path) for index, path in sorted(unit.files.items())]
    version = max(trace.fixed_version or trace.least_version for trace in traces)
    return Module(
        Version(*version), Target((target.name,)), AddressSize(64),
        (*files, *unit.variables, *dynamic, *unit.functions.values(), *functions),
    )  # fmt: skip


def build_entry(
    name: str,
    params: tuple[Param, ...],
    body: Body,
    directives: tuple[FunctionDirective, ...],
    function: Callable[..., Any],
) -> Function:
    """Return the kernel's function, with the user's `def` as its place."""
    origin = find_definition(function)
    return Function(True, name, params, None, body, LinkingDirective.VISIBLE, directives, origin=origin)


def _refuse_open(trace: Trace) -> None:
    if trace.blocks_to_open:
        raise PtxError(
            rules.UNCLOSED.report(
                place, f"`{title}` is created here but never opened", help="open blocks with a `with` statement"
            )
            for _, title, place in trace.blocks_to_open.values()
        )
    if trace.open:
        findings = [
            rules.UNCLOSED.report(
                block.origin,
                f"`{block.title}` is opened here but never closed",
                help="open blocks with a `with` statement",
            )
            for block in trace.open
        ]
        raise PtxError(findings)


def _refuse_missing_labels(trace: Trace) -> None:
    missing = [jump for jump in trace.jumps if jump[0] not in trace.labels]
    if missing:
        raise PtxError(
            rules.LABEL.report(origin, f"the kernel has no label `{name}`", help=_suggest_label(name, trace.labels))
            for name, origin in missing
        )


def _suggest_label(name: str, labels: Iterable[str]) -> str:
    close = get_close_matches(name, list(labels), 1)
    return f"did you mean `{close[0]}`?" if close else f"place it with ptx.label('{name}')"


def _cannot_fall_off(statements: list[Statement]) -> bool:
    """Tell whether control cannot fall off the end."""
    last = statements[-1] if statements else None
    while isinstance(last, IntrinsicScope) and last.body:
        last = last.body[-1]
    if not isinstance(last, Instruction) or last.predicate is not None:
        return False
    last_traits = find_traits(last.opcode, last.modifiers)
    return last_traits.get(Trait.JUMPS) == "" or not LEAVES.isdisjoint(last_traits)
