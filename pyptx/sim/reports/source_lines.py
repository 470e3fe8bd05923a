"""The lines of CUDA C++, or of whatever a compiler read, that places in PTX come from, as `.loc` says; and findings and
errors that name them. Text that a kernel was traced from needs none: its places are Python lines already.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from pyptx.diagnostics import Diagnostic, Origin, Span
from pyptx.emitter import emit
from pyptx.ir import FileDirective, Function, Instruction, LocDirective, Module, opcode_span, visit
from pyptx.sim.reports.findings import Finding

_Loc = tuple[int, int, int]
_MOST_CALLERS = 8


def text_of(modules: Sequence[Module], places: Iterable[Origin | None]) -> str | None:
    """Return the text of one module if the instructions at these places lie there: an edited module prints on other
    lines."""
    spans = {place for place in places if isinstance(place, Span)}
    if len(modules) > 1 or not spans:
        return None
    text = emit(modules[0])
    lines = text.split("\n")
    for node in visit(modules[0]):
        span = opcode_span(node) if isinstance(node, Instruction) else None
        if span is None or span not in spans or not isinstance(node, Instruction):
            continue
        if span.line > len(lines) or not lines[span.line - 1].startswith(node.full_opcode, span.col - 1):
            return None
    return text


@dataclass(frozen=True, slots=True)
class SourceLines:
    """What every line of a PTX text comes from: `axpy.cu:12`, with the lines it was inlined through."""

    of_line: dict[tuple[str | None, int], str]

    def of(self, origin: Origin | None) -> str:
        """Return where a place comes from, empty where nothing says so."""
        return self.of_line.get((origin.file, origin.line), "") if isinstance(origin, Span) else ""

    def cited(self, found: Diagnostic) -> Diagnostic:
        """Return a diagnostic whose place, and the places that its notes name, have their source lines."""
        notes = tuple(self._named(note) for note in found.notes)
        own = self.of(found.origin)
        details = tuple(self._named(line) for line in found.details)
        first = notes[:1] if found.other is not None else ()
        said = [f"it comes from {own}"] if own else []
        return replace(found, notes=(*first, *said, *notes[len(first) :]), details=details)

    def cite(self, finding: Finding) -> None:
        """Let a finding say where its two places come from."""
        own, other = self.of(finding.place.origin), self.of(finding.other.origin if finding.other else None)
        said = [f"it comes from {own}"] * bool(own) + [f"the other place comes from {other}"] * bool(other)
        if said:
            finding.notes = ("; ".join(said), *finding.notes)

    def _named(self, note: str) -> str:
        """Return a note with the source line behind every place, as `Span` writes places."""

        def with_source(place: re.Match[str]) -> str:
            name = place["file"]
            found = self.of_line.get((None if name == "<ptx>" else name, int(place["line"])), "")
            return f"{place[0]} ({found})" if found else place[0]

        return re.sub(r"(?P<file><ptx>|[^\s`]+):(?P<line>\d+):\d+", with_source, note)


def source_lines(module: Module, *others: Module) -> SourceLines:
    """Read what `.loc` says of the instructions of modules; a place that two of them have comes from nowhere."""
    found = _of_one(module)
    for other in others:
        lines = _of_one(other).of_line
        for line in lines.keys() & found.of_line.keys():
            found.of_line[line] = lines[line] if lines[line] == found.of_line[line] else ""
        found.of_line.update((line, name) for line, name in lines.items() if line not in found.of_line)
    return found


def _of_one(module: Module) -> SourceLines:
    files = {node.index: node.path for node in visit(module) if isinstance(node, FileDirective)}
    made = SourceLines({})
    at: LocDirective | None = None
    callers: dict[_Loc, _Loc | None] = {}
    for node in visit(module):
        if isinstance(node, Function):
            at = None
            callers.clear()
        elif isinstance(node, LocDirective):
            at = node
            callers[node.file, node.line, node.column] = node.inlined_at
        elif at is not None and isinstance(node, Instruction) and isinstance(node.origin, Span):
            made.of_line[node.origin.file, node.origin.line] = _named(at, callers, files)
    return made


def _named(at: LocDirective, callers: dict[_Loc, _Loc | None], files: dict[int, str]) -> str:
    """Return the kernel's own line first, then what was inlined there, header by header."""
    chain: list[_Loc] = [(at.file, at.line, at.column)]
    caller = at.inlined_at
    while caller is not None and caller not in chain and len(chain) < _MOST_CALLERS:
        chain.append(caller)
        caller = callers.get(caller)
    (file, line, _), *inner = reversed(chain)
    first = f"{files.get(file, f'file {file}')}:{line}"
    names = [f"{PurePosixPath(files.get(file, f'file {file}')).name}:{line}" for file, line, _ in inner]
    return f"{first}, by {', '.join(names)}" if names else first
