"""Turns any module into the plan of an exactly equivalent Python file: one call per statement.

If the module's style does not determine a statement's spacing, a `ptx.layout` precedes it. The plan obeys the contract
of `plan.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyptx.codegen.frame import build_frame
from pyptx.codegen.names import Names, make_identifier
from pyptx.codegen.operands import NONE
from pyptx.codegen.plan import (
    Attribute,
    Blank,
    Block,
    Call,
    Define,
    Dict,
    End,
    Expr,
    Line,
    Literal,
    Name,
    Plan,
    Step,
    Tuple,
    build_path,
    list_emitted,
)
from pyptx.codegen.regions import DEEPEST, Item, list_gaps, split_into_items
from pyptx.codegen.scopes import Scope
from pyptx.codegen.statements import Statements
from pyptx.codegen.styles import Comparison, detect_style
from pyptx.emitter import emit_statement
from pyptx.emitter.spacing import get_kind, list_files
from pyptx.emitter.styles import DEFAULT, Style
from pyptx.ir.directives import Module, Section
from pyptx.ir.nodes import Function, Instruction, Label, RegDecl, Statement, VarDecl
from pyptx.ir.walk import body_of
from pyptx.isa.targets import FIRST_PTX, PTX_VERSIONS, find_target

LAYOUT, ASM, BLOCK = build_path("ptx.layout"), Call(build_path("ptx.inline_asm")), Call(build_path("ptx.block"))
OPEN, CLOSE = Call(build_path("ptx.open_block")), Call(build_path("ptx.close_block"))


def build_plain_plan(module: Module, *, kernel_name: str, source: str, newline: str = "\n", bare: bool = False) -> Plan:
    """Return the plan of the plain file; a `bare` plan leaves spacing and instructions to the caller."""
    style = DEFAULT if bare else detect_style(module)
    writer = _Writer(module, style, kernel_name, bare)
    body = writer.write_module(module)
    return build_frame(module, style, source, newline, body, writer.statements.operands.types)


class _Frame:
    """A body being written: its remaining items, its steps so far, its scope, and what it will become."""

    __slots__ = ("declarations", "end", "items", "kind", "node", "scope", "steps")

    def __init__(
        self, items: Iterator[Item], scope: Scope, kind: str, node: Statement | None, end: tuple[str, ...] = ()
    ) -> None:
        self.items, self.scope, self.kind, self.node, self.end = items, scope, kind, node, end
        self.steps: list[Step] = []
        self.declarations: list[tuple[int, list[Name]]] = []


class _Writer:
    """Writes one module."""

    def __init__(self, module: Module, style: Style, kernel_name: str, bare: bool) -> None:
        self.bare = bare
        version = int(module.version.major), int(module.version.minor)
        first = module.target.targets[0] if module.target.targets else ""
        is_known = first in FIRST_PTX and version in PTX_VERSIONS
        self.names = Names()
        self.names.used_names.update(("STYLE", "ORIGINAL"))
        self.statements = Statements(find_target(first) if is_known else None, version, "module")
        self.compare = Comparison(style, list_files(module.directives))
        self.place = self.compare.place
        self.kernel_name: str | None = kernel_name

    def write_module(self, module: Module) -> tuple[Step, ...]:
        """Return the steps of everything after the header."""
        top = _Frame(iter(split_into_items(module.directives)[0]), Scope(self.names), "module", None)
        frames = [top]
        while True:
            frame = frames[-1]
            inner: _Frame | None = None
            for item in frame.items:
                inner = self._write_item(item, frame)
                if inner is not None:
                    break
            if inner is not None and inner is not frame:
                frames.append(inner)
                continue
            frames.pop()
            self._settle_targets(frame)
            if not frames:
                return tuple(frame.steps)
            self._close(frame, frames[-1])

    def _write_item(self, item: Item, frame: _Frame) -> _Frame | None:
        """Write one item; return the frame of its body if it has one, or the frame itself at its end."""
        node, place = item.node, self.place
        if node is None:
            self._mark_layout(item, frame)
            if item.mark == "asm":
                place.begin()
                return _Frame(frame.items, frame.scope, "asm", None)
            place.end()
            return frame
        if not isinstance(node, Section):
            self._write_layout(node, list_gaps(node, item.before), frame)
        if type(node) is Instruction:
            expression = NONE if self.bare else self.statements.build_instruction(node, frame.scope)
            if self.statements.operands.pending:
                self._write_pending(frame)
            frame.steps.append(Line(expression, (node,)))
            place.last = "inst"
            return None
        if isinstance(node, Section):
            self._write_section(node, frame)
            return None
        inside = body_of(node)
        if inside is None:
            self._write_simple(node, frame)
            place.last = get_kind(node)
            return None
        return self._open(node, inside, frame)

    def _write_simple(self, node: Statement, frame: _Frame) -> None:
        inside = frame.scope.outer is not None
        statements, scope = self.statements, frame.scope
        if isinstance(node, RegDecl):
            variables = scope.declare(node)
            frame.declarations.append((len(frame.steps), variables))
            expr = statements.build_registers(node, inside)
        elif isinstance(node, VarDecl):
            expr = statements.build_variable(node, scope, inside)
        elif isinstance(node, Label):
            expr = statements.build_label(node, inside)
        elif isinstance(node, Function):
            expr = statements.build_header(node)
        else:
            expr = statements.build_directive(node, inside)
        if statements.operands.pending:
            self._write_pending(frame)
        frame.steps.append(Line(expr, (node,)))

    def _write_section(self, node: Section, frame: _Frame) -> None:
        """Write a section of debug data as text: nobody reads it line by line."""
        if self.bare:
            lines: list[Any] = [line.replace(layout=None) for line in node.body]
            text = emit_statement(node.replace(body=tuple(lines), layout=None, closing=None))
        else:
            text = emit_statement(node)
        function = Attribute(self.statements.module, "section_text")
        frame.steps.append(Line(Call(function, (Literal(text, dense=True),)), tuple(list_emitted((node,)))))
        self.place.last = f"{get_kind(node)}}}"

    def _write_pending(self, frame: _Frame) -> None:
        """Write the lines that a deep expression needs, before the layout of its statement, if any."""
        pending = self.statements.operands.pending
        index = len(frame.steps)
        frame.steps[index:index] = pending
        pending.clear()

    def _open(self, node: Statement, inside: Sequence[Statement], frame: _Frame) -> _Frame:
        first, last = getattr(node, "closing", None) or ("", "")
        place = self.place
        place.open()
        inner, gap = split_into_items(inside, first, place.depth)
        if isinstance(node, Function):
            scope, noun = Scope(self.names.open_function(), frame.scope), "function"
        else:
            scope, noun = frame.scope.open_block(), "block" if place.depth <= DEEPEST else "open"
        inner_frame = _Frame(iter(inner), scope, noun, node, (gap, last))
        if noun == "open":
            frame.steps.append(Line(OPEN, (node,)))
            inner_frame.steps = frame.steps
        return inner_frame

    def _close(self, frame: _Frame, outer: _Frame) -> None:
        node = frame.node
        if node is None:
            outer.steps.append(Block(ASM, tuple(frame.steps)))
            return
        place = self.place
        place.leave()
        kind = f"{get_kind(node)}}}"
        self._write_closing_layout(frame, place.choose_closing(kind))
        place.last = kind
        if frame.kind in ("block", "open"):
            frame.scope.names.leave()
        if frame.kind == "open":
            outer.steps.append(Line(CLOSE, (End(node),)))
            return
        body = tuple(frame.steps)
        if frame.kind == "block":
            outer.steps.append(Block(BLOCK, body, (node,), (End(node),)))
        elif isinstance(node, Function):
            self._write_function(node, body, outer)

    def _write_function(self, node: Function, body: tuple[Step, ...], outer: _Frame) -> None:
        stem = make_identifier(node.name)
        if node.is_entry and self.kernel_name:
            stem, self.kernel_name = self.kernel_name, None
        name = self.names.make_name(stem)
        decorator = self.statements.build_header(node)
        layout = outer.steps.pop() if outer.steps and _is_layout(outer.steps[-1]) else None
        outer.steps += [Blank(2), *([layout] if layout is not None else []),
                        Define(name, body, (decorator,), (node,), (End(node),)), Blank(2)]  # fmt: skip

    def _settle_targets(self, frame: _Frame) -> None:
        """Assign declarations to variables, except those that nothing reads."""
        used = frame.scope.used
        for index, variables in frame.declarations:
            if not any(variable.id in used for variable in variables):
                continue
            step = frame.steps[index]
            assert isinstance(step, Line)
            read = [variable if variable.id in used else Name("_") for variable in variables]
            target: Expr = read[0] if len(read) == 1 else Tuple(tuple(read))
            frame.steps[index] = Line(step.value, step.emits, target)

    def _write_layout(self, node: Statement, gaps: tuple[str, ...], frame: _Frame) -> None:
        difference = () if self.bare else self.compare.find_deviation(node, gaps)
        if not difference:
            return
        head = 0
        if isinstance(node, Instruction):
            head = 1 + len(node.modifiers) + (0 if node.predicate is None else 2 + node.predicate.negated)
        inner: list[tuple[Expr, Expr]] = []
        keywords: dict[str, Expr] = {}
        for position, gap in difference:
            if position == 0:
                keywords["before"] = Literal(gap)
            elif position == -1:
                keywords["after"] = Literal(gap)
            else:
                inner.append((Literal(head if position == "op" else position), Literal(gap)))
        if inner:
            keywords["inner"] = Dict(tuple(inner))
        frame.steps.append(self._build_layout_line(frame, keywords))

    def _build_layout_line(self, frame: _Frame, keywords: dict[str, Expr]) -> Line:
        inside = frame.scope.outer is not None
        function = LAYOUT if inside else Attribute(self.statements.module, "layout")
        return Line(Call(function, (), tuple(keywords.items())))

    def _mark_layout(self, item: Item, frame: _Frame) -> None:
        if item.before != self.place.choose_before(item.mark):
            frame.steps.append(self._build_layout_line(frame, {"before": Literal(item.before)}))

    def _write_closing_layout(self, frame: _Frame, usual: Sequence[str]) -> None:
        before, after = frame.end
        keywords: dict[str, Expr] = {}
        if before != usual[0]:
            keywords["before"] = Literal(before)
        if after != usual[1]:
            keywords["after"] = Literal(after)
        if keywords:
            frame.steps.append(self._build_layout_line(frame, keywords))


def _is_layout(step: Step) -> bool:
    function = step.value.function if isinstance(step, Line) and isinstance(step.value, Call) else None
    return isinstance(function, Attribute) and function.name == "layout"
