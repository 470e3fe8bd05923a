"""Python lines in a finished module: `.file`/`.loc` for profilers, comments for readers, and the mapping from lines of
the PTX text back to Python."""

from __future__ import annotations

import linecache
from collections.abc import Iterator, Sequence
from types import CodeType

from pyptx.diagnostics import Origin, PythonFrame
from pyptx.dsl.origin import list_lines
from pyptx.emitter import DEFAULT, emit_statement
from pyptx.emitter.styles import compute_default_gaps
from pyptx.ir.base import tokens
from pyptx.ir.directives import FileDirective, LocDirective, Module, Section, SectionData, SectionLabel
from pyptx.ir.kinds import ScalarType
from pyptx.ir.layout import layout_of
from pyptx.ir.nodes import Block, Function, Instruction, IntrinsicScope, Label, Statement
from pyptx.isa.targets import Version

Place = tuple[str, int, int]


class _Places:
    """Resolves frames, reading each code object's line table once."""

    def __init__(self) -> None:
        self._tables: dict[int, list[tuple[int, int]]] = {}
        self._codes: list[CodeType] = []

    def locate(self, frame: PythonFrame) -> Place:
        table = self._tables.get(id(frame.code))
        if table is None:
            table = self._tables[id(frame.code)] = list_lines(frame.code)
            self._codes.append(frame.code)
        line, column = table[frame.lasti // 2] if frame.lasti // 2 < len(table) else (frame.code.co_firstlineno, 1)
        return frame.code.co_filename, line, column


INLINED_SINCE: Version = (7, 2)
DEEPEST_CHAIN = 8
"""Maximum callers per line. ptxas 13.5 takes minutes for chains of several hundred."""


def add_line_information(module: Module, *, fixed: bool = False) -> Module:
    """Return the module with `.file` and `.loc`. A helper's line records where it was inlined, which needs PTX 7.2: the
    module gets that version unless its own is `fixed`."""
    version = module.version
    old = (int(version.major), int(version.minor)) < INLINED_SINCE
    writer = _LineWriter(module, chains=not (old and fixed))
    functions = [writer.write_function(s) if isinstance(s, Function) else s for s in module.directives]
    files = [FileDirective(index, path) for path, index in writer.files.items()]
    if old and writer.functions:
        version = version.replace(major=INLINED_SINCE[0], minor=INLINED_SINCE[1])
    return module.replace(version=version, directives=(*files, *functions, *writer.build_names_section()))


class _LineWriter:
    def __init__(self, module: Module, *, chains: bool) -> None:
        self.places, self.chains = _Places(), chains
        self.first = 1 + max((s.index for s in module.directives if isinstance(s, FileDirective)), default=0)
        self.files: dict[str, int] = {}
        self.indices: dict[str, int] = {}
        self.of_frames: dict[int, tuple[LocDirective, ...]] = {}
        """The lines of each frame, by identity: the module keeps the frames alive."""
        self.locs: dict[tuple[object, ...], LocDirective] = {}
        self.functions: dict[str, int] = {}
        self.size = 0

    def write_function(self, function: Function) -> Function:
        return function.replace(body=tuple(self._write_body(function.body)))

    def _write_body(self, statements: Sequence[Statement]) -> Iterator[Statement]:
        last: LocDirective | None = None
        for statement in statements:
            origin = statement.origin  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]
            if isinstance(statement, Block | IntrinsicScope):
                yield statement.replace(body=tuple(self._write_body(statement.body)))
                last = None
                continue
            if isinstance(statement, Instruction) and isinstance(origin, PythonFrame):
                locs = self.of_frames.get(id(origin))
                if locs is None:
                    locs = self.of_frames[id(origin)] = tuple(self._list_locs(origin))
                for loc in locs:
                    if loc is not last:
                        yield loc
                    last = loc
            yield statement

    def _list_locs(self, frame: PythonFrame) -> Iterator[LocDirective]:
        """Yield the lines of the callers, outermost first, then the frame's own, each inlined at the previous one."""
        chain = [frame]
        while self.chains and chain[-1].caller is not None and len(chain) < DEEPEST_CHAIN:
            chain.append(chain[-1].caller)
        outer: PythonFrame | None = None
        for inner in reversed(chain):
            place = None if outer is None else self.places.locate(outer)
            yield self._make_loc(inner, None if place is None else (self._number_file(place[0]), place[1], place[2]))
            outer = inner

    def _make_loc(self, frame: PythonFrame, call_site: tuple[int, int, int] | None) -> LocDirective:
        file, line, column = self.places.locate(frame)
        start = None if call_site is None else self._add_name(frame.code.co_name)
        key = self._number_file(file), line, column, start, call_site
        loc = self.locs.get(key)
        if loc is None:
            name = None if start is None else SectionLabel("$pyptx_functions", start)
            loc = self.locs[key] = LocDirective(key[0], line, column, name, call_site)
        return loc

    def _number_file(self, path: str) -> int:
        index = self.indices.get(path)
        if index is None:
            name = "".join(c if " " <= c <= "~" and c not in '"\\' else "?" for c in path)
            index = self.indices[path] = self.files.setdefault(name, self.first + len(self.files))
        return index

    def _add_name(self, name: str) -> int:
        """Return the offset of the name of an inlined function in `.debug_str`."""
        if name not in self.functions:
            self.functions[name] = self.size
            self.size += len(name.encode()) + 1
        return self.functions[name]

    def build_names_section(self) -> list[Statement]:
        """Return the section with the names of inlined functions."""
        if not self.functions:
            return []
        data = [SectionData(ScalarType.B8, (*name.encode(), 0)) for name in self.functions]
        return [Section(".debug_str", (Label("$pyptx_functions"), *data))]


def add_line_comments(module: Module) -> Module:
    """Return the module with the Python line after each instruction where it changes."""
    places = _Places()
    functions = [
        s.replace(body=tuple(_add_comments(s.body, places, 1))) if isinstance(s, Function) else s
        for s in module.directives
    ]
    return module.replace(directives=tuple(functions))


def _add_comments(statements: Sequence[Statement], places: _Places, depth: int) -> Iterator[Statement]:
    last: Place | None = None
    for statement in statements:
        if isinstance(statement, Block | IntrinsicScope):
            yield statement.replace(body=tuple(_add_comments(statement.body, places, depth + 1)))
            last = None
            continue
        if not isinstance(statement, Instruction) or not isinstance(statement.origin, PythonFrame):
            yield statement
            continue
        file, line, _ = places.locate(statement.origin)
        if last == (file, line, 0):
            yield statement
            continue
        last = (file, line, 0)
        # ptxas accepts only ASCII, even in comments.
        source = "".join(c if " " <= c <= "~" else "?" for c in linecache.getline(file, line).strip())
        gaps = compute_default_gaps(statement, tokens(statement), DEFAULT, depth)
        gaps[-1] = f"  // {line}: {source}\n"
        yield statement.replace(layout=layout_of(gaps))


def map_origins(module: Module) -> dict[int, Origin | None]:
    """Return the origin of each line of the module's text."""
    return {line: node.origin for line, node in map_statements(module).items()}  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]


def map_statements(module: Module) -> dict[int, Statement]:
    """Return the statement of each line of the module's text. Without layouts, a statement is one line."""
    statements: dict[int, Statement] = {}
    line = len([s for s in (module.version, module.target, module.address_size) if s is not None]) + 1
    for statement in module.directives:
        if isinstance(statement, Function):
            head = emit_statement(statement.replace(body=())).count("\n") - 1
            line = _number_lines(statement.body, line + head, statements) + 1
        elif isinstance(statement, Section):
            line += emit_statement(statement).count("\n")
        else:
            statements[line] = statement
            line += 1
    return statements


def _number_lines(statements: Sequence[Statement], line: int, by_line: dict[int, Statement]) -> int:
    for statement in statements:
        by_line[line] = statement
        line += 1
        if isinstance(statement, Block | IntrinsicScope):
            line = _number_lines(statement.body, line, by_line) + 1
    return line
