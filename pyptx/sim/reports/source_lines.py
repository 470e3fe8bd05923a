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
_ASSEMBLY, _ASSEMBLY_END = "// begin inline asm", "// end inline asm"


def find_module_text(modules: Sequence[Module], places: Iterable[Origin | None]) -> str | None:
    """Return the text of the only module if its instructions are at these places, else None: an edited module prints
    on other lines."""
    spans = {place for place in places if isinstance(place, Span)}
    if len(modules) > 1 or not spans:
        return None
    (module,) = modules
    text = emit(module)
    lines = text.split("\n")
    for node in visit(module):
        if not isinstance(node, Instruction):
            continue
        span = opcode_span(node)
        if isinstance(span, Span) and span in spans:
            # An edited module may have fewer lines.
            line = "".join(lines[span.line - 1 : span.line])
            if not line.startswith(node.full_opcode, span.col - 1):
                return None
    return text


@dataclass(frozen=True, slots=True)
class SourceLines:
    """The source of every line of a PTX text: `axpy.cu:12`, with the lines through which it was inlined."""

    of_line: dict[tuple[str | None, int], str]

    def find(self, origin: Origin | None) -> str:
        """Return the source line of a place, empty if unknown."""
        return self.of_line.get((origin.file, origin.line), "") if isinstance(origin, Span) else ""

    def cite_diagnostic(self, diagnostic: Diagnostic) -> Diagnostic:
        """Return a diagnostic with the source lines of its place and of the places in its notes."""
        notes = tuple(self._annotate(note) for note in diagnostic.notes)
        own = self.find(diagnostic.origin)
        details = tuple(self._annotate(line) for line in diagnostic.details)
        first = notes[:1] if diagnostic.other is not None else ()
        source = [f"it comes from {own}"] if own else []
        return replace(diagnostic, notes=(*first, *source, *notes[len(first) :]), details=details)

    def cite_finding(self, finding: Finding) -> None:
        """Add the source lines of its two places to a finding."""
        own, other_source = self.find(finding.place.origin), self.find(finding.other.origin if finding.other else None)
        sources = [f"it comes from {own}"] * bool(own) + [f"the other place comes from {other_source}"] * bool(
            other_source
        )
        if sources:
            finding.notes = ("; ".join(sources), *finding.notes)

    def _annotate(self, note: str) -> str:
        """Return a note with the source line after every place, as `Span` writes places."""

        def with_source(place: re.Match[str]) -> str:
            name = place["file"]
            source = self.of_line.get((None if name == "<ptx>" else name, int(place["line"])), "")
            return f"{place[0]} ({source})" if source else place[0]

        return re.sub(r"(?P<file><ptx>|[^\s`]+):(?P<line>\d+):\d+", with_source, note)


def read_source_lines(module: Module, *other_modules: Module) -> SourceLines:
    """Read the `.loc` of the instructions of modules; a place in two of them has no source line."""
    sources = _read_module(module)
    for other_module in other_modules:
        for line, name in _read_module(other_module).of_line.items():
            sources.of_line[line] = name if sources.of_line.get(line, name) == name else ""
    return sources


def _read_module(module: Module) -> SourceLines:
    files = {node.index: node.path for node in visit(module) if isinstance(node, FileDirective)}
    source = SourceLines({})
    loc: LocDirective | None = None
    callers: dict[_Loc, _Loc | None] = {}
    in_assembly = has_line = False
    for node in visit(module):
        layout: tuple[str, ...] = getattr(node, "layout", ())
        comments = layout[0] if layout else ""
        if _ASSEMBLY in comments or _ASSEMBLY_END in comments:
            in_assembly, has_line = comments.rfind(_ASSEMBLY) > comments.rfind(_ASSEMBLY_END), False
        if isinstance(node, Function):
            loc, in_assembly, has_line = None, False, False
            callers.clear()
        elif isinstance(node, LocDirective):
            # LLVM adds 1 for each line of an inline assembly, although only its first is a line of the source.
            if not has_line:
                loc = node if node.line else None
                callers[node.file, node.line, node.column] = node.inlined_at
            has_line = in_assembly
        elif loc is not None and isinstance(node, Instruction) and isinstance(node.origin, Span):
            source.of_line[node.origin.file, node.origin.line] = _format_chain(loc, callers, files)
    return source


def _format_chain(loc: LocDirective, callers: dict[_Loc, _Loc | None], files: dict[int, str]) -> str:
    """Return the source line of a `.loc`: the kernel's own line first, then the inlined ones."""
    chain: list[_Loc] = [(loc.file, loc.line, loc.column)]
    caller = loc.inlined_at
    while caller is not None and caller not in chain and len(chain) < _MOST_CALLERS:
        chain.append(caller)
        caller = callers.get(caller)
    (file, line, _), *inner = reversed(chain)
    first = f"{files.get(file, f'file {file}')}:{line}"
    names = [f"{PurePosixPath(files.get(file, f'file {file}')).name}:{line}" for file, line, _ in inner]
    return f"{first}, by {', '.join(names)}" if names else first
