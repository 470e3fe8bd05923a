"""Source lines of places in PTX, from `.loc`: of CUDA C++ or another compiled language; and the findings and errors
that name them. Traced text needs none: its places are Python lines already."""

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
    """Return the text of the one module that contains the instructions at these places: an edited module prints on
    other lines."""
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
    """The source of every line of a PTX text: `axpy.cu:12`, with the lines through which it was inlined."""

    of_line: dict[tuple[str | None, int], str]

    def of(self, origin: Origin | None) -> str:
        """Return the source line of a place, empty if unknown."""
        return self.of_line.get((origin.file, origin.line), "") if isinstance(origin, Span) else ""

    def cited(self, diagnostic: Diagnostic) -> Diagnostic:
        """Return a diagnostic with the source lines of its place and of the places in its notes."""
        notes = tuple(self._named(note) for note in diagnostic.notes)
        own = self.of(diagnostic.origin)
        details = tuple(self._named(line) for line in diagnostic.details)
        first = notes[:1] if diagnostic.other is not None else ()
        source = [f"it comes from {own}"] if own else []
        return replace(diagnostic, notes=(*first, *source, *notes[len(first) :]), details=details)

    def cite(self, finding: Finding) -> None:
        """Add the source lines of its two places to a finding."""
        own, other = self.of(finding.place.origin), self.of(finding.other.origin if finding.other else None)
        sources = [f"it comes from {own}"] * bool(own) + [f"the other place comes from {other}"] * bool(other)
        if sources:
            finding.notes = ("; ".join(sources), *finding.notes)

    def _named(self, note: str) -> str:
        """Return a note with the source line after every place, as `Span` writes places."""

        def with_source(place: re.Match[str]) -> str:
            name = place["file"]
            source = self.of_line.get((None if name == "<ptx>" else name, int(place["line"])), "")
            return f"{place[0]} ({source})" if source else place[0]

        return re.sub(r"(?P<file><ptx>|[^\s`]+):(?P<line>\d+):\d+", with_source, note)


def source_lines(module: Module, *others: Module) -> SourceLines:
    """Read the `.loc` of the instructions of modules; a place in two of them has no source line."""
    merged = _of_one(module)
    for other in others:
        lines = _of_one(other).of_line
        for line in lines.keys() & merged.of_line.keys():
            merged.of_line[line] = lines[line] if lines[line] == merged.of_line[line] else ""
        merged.of_line.update((line, name) for line, name in lines.items() if line not in merged.of_line)
    return merged


def _of_one(module: Module) -> SourceLines:
    files = {node.index: node.path for node in visit(module) if isinstance(node, FileDirective)}
    source = SourceLines({})
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
            source.of_line[node.origin.file, node.origin.line] = _named(at, callers, files)
    return source


def _named(at: LocDirective, callers: dict[_Loc, _Loc | None], files: dict[int, str]) -> str:
    """Return the kernel's own line first, then the inlined lines, header by header."""
    chain: list[_Loc] = [(at.file, at.line, at.column)]
    caller = at.inlined_at
    while caller is not None and caller not in chain and len(chain) < _MOST_CALLERS:
        chain.append(caller)
        caller = callers.get(caller)
    (file, line, _), *inner = reversed(chain)
    first = f"{files.get(file, f'file {file}')}:{line}"
    names = [f"{PurePosixPath(files.get(file, f'file {file}')).name}:{line}" for file, line, _ in inner]
    return f"{first}, by {', '.join(names)}" if names else first
