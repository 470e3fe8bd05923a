"""The lines of a module's text for its instructions, and their source lines: of Python for a traced kernel, of the file
that `.loc` names for compiled code."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import CodeType

from pyptx.diagnostics import PythonFrame
from pyptx.emitter import emit
from pyptx.ir import FileDirective, Function, Instruction, LocDirective, Module, opcode_span, visit
from pyptx.parser import parse

Source = tuple[str, int]


@dataclass(slots=True)
class Places:
    """A module's text, and the line of every instruction by its identity."""

    text: str
    line: dict[int, int] = field(default_factory=dict[int, int])
    source: dict[int, Source] = field(default_factory=dict[int, Source])
    files: set[str] = field(default_factory=set[str])
    """The files of traced instructions."""

    def find_line(self, instruction: Instruction) -> int:
        """Return the line of an instruction in the text, 0 if it has none."""
        return self.line.get(id(instruction), 0)

    def find_source(self, instruction: Instruction) -> Source | None:
        """Return the source file and line of an instruction."""
        return self.source.get(id(instruction))


def index_places(module: Module) -> Places:
    """Find the lines by writing the module and reading it back: a traced module has no text yet."""
    places = Places(emit(module))
    instructions = [node for node in visit(parse(places.text)) if isinstance(node, Instruction)]
    files = {node.index: node.path for node in visit(module) if isinstance(node, FileDirective)}
    loc: Source | None = None
    rows, tables = iter(instructions), dict[CodeType, list[int]]()
    for node in visit(module):
        if isinstance(node, Function):
            loc = None
        if isinstance(node, LocDirective):
            loc = (files.get(node.file, f"file {node.file}"), node.line)
        if not isinstance(node, Instruction):
            continue
        place = opcode_span(next(rows))
        places.line[id(node)] = place.line if place is not None else 0
        source = _find_source(node, tables)
        if source is not None:
            places.files.add(source[0])
        if source or loc:
            places.source[id(node)] = source or loc or ("", 0)
    return places


def _find_source(node: Instruction, tables: dict[CodeType, list[int]]) -> Source | None:
    """Return the Python line of a traced instruction. A code object yields all its positions at once, so keep them."""
    origin = node.origin
    if not isinstance(origin, PythonFrame):
        return None
    code = origin.code
    if code not in tables:
        tables[code] = [line or code.co_firstlineno for line, _, _, _ in code.co_positions()]
    return origin.file, tables[code][origin.lasti // 2]
