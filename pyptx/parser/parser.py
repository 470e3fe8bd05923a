"""Parses text into nodes: `parse`. Keeps the open bodies in a list, parses runs of plain statements with `fast.py` and
the rest with `statements.py`, and continues with the next statement after an error."""

from __future__ import annotations

import re
from typing import Literal, cast, overload

from pyptx.diagnostics import Diagnostic, Origin, Span
from pyptx.ir.base import COLUMN_BITS
from pyptx.ir.collection import without_collector
from pyptx.ir.directives import AddressSize, Module, SkippedText, Target, Version
from pyptx.ir.layout import layout_of
from pyptx.ir.nodes import Statement
from pyptx.parser import rules, statements
from pyptx.parser.cursor import Cursor
from pyptx.parser.errors import Failure, PtxSyntaxError
from pyptx.parser.fast import TablesFull, get_tables
from pyptx.parser.operands import DEEPEST
from pyptx.parser.places import Lines
from pyptx.parser.sections import parse_section_statement
from pyptx.parser.statements import Opening

MOST_ERRORS = 1000
"""After this many errors, the rest of the text is skipped."""
_COLUMN = (1 << COLUMN_BITS) - 1


@overload
def parse(source: str, *, recover: Literal[False] = False) -> Module: ...
@overload
def parse(source: str, *, recover: Literal[True]) -> tuple[Module, tuple[Diagnostic, ...]]: ...
def parse(source: str, *, recover: bool = False) -> Module | tuple[Module, tuple[Diagnostic, ...]]:
    """Return the module of a PTX text; `emit` restores the text byte for byte.

    Raises PtxSyntaxError with every diagnostic. With `recover=True` it returns the module and the diagnostics instead;
    text that could not be parsed stays in it as `SkippedText`.
    """
    work = Parsing(source)
    with without_collector():
        module = work.parse_module()
    if recover:
        return module, tuple(work.diagnostics)
    if work.diagnostics:
        raise PtxSyntaxError(work.diagnostics[0].message, diagnostics=work.diagnostics, source=source)
    return module


class Parsing:
    """A parse in progress: the text, the position, and the open bodies. Without `fast`, every statement uses the full
    grammar, with the same result."""

    def __init__(self, source: str, *, fast: bool = True) -> None:
        self.fast = fast
        self.text = source
        self.lines = Lines(source)
        self.cursor = Cursor(source)
        self.plain = get_tables()
        self.open: list[tuple[Opening, list[Statement]]] = []
        self.body: list[Statement] = []
        self.diagnostics: list[Diagnostic] = []
        self.headless = False
        self.clean = True
        self.adrift = False

    def parse_module(self) -> Module:
        """Parse the whole text."""
        header = self._parse_header()
        cursor = self.cursor
        while True:
            if self.clean and self.fast and self.open:
                self._parse_plain_statements()
            if cursor.kind == "END":
                if not self.open:
                    break
                self._report_unclosed()
                continue
            self.clean = self._parse_statement()
            if len(self.diagnostics) >= MOST_ERRORS:
                self._give_up()
        version, target, size = header
        return Module(version, target, size, tuple(self.body), layout_of((cursor.gap,)))

    def _give_up(self) -> None:
        """Skip the rest of the text: this is not PTX."""
        cursor = self.cursor
        start, gap_start = cursor.start, cursor.taken_end
        if cursor.kind != "END":
            cursor.skip_to(len(self.text))
            self.body.append(SkippedText(self.text[start:], layout_of((self.text[gap_start:start], ""))))
        while self.open:
            opening, outer = self.open.pop()
            outer.append(opening.make(**opening.fields, body=tuple(self.body), closing=layout_of(())))
            self.body = outer

    def _parse_plain_statements(self) -> None:
        """Parse as many plain statements as follow."""
        offset = self.cursor.taken_end
        if self.open[-1][0].kind == "section":
            offset = self.plain.run_data(self.text, offset, self.body.append, self.lines)
            if offset > self.cursor.taken_end:
                self.cursor.skip_to(offset)
            return
        while True:
            try:
                offset = self.plain.run(self.text, offset, self.body.append, self.lines)
            except TablesFull:
                offset = self.lines.position
                self.plain = get_tables(fresh=True)
            else:
                break
        if offset > self.cursor.taken_end:
            self.cursor.skip_to(offset)

    def _parse_header(self) -> tuple[Version, Target, AddressSize | None]:
        cursor = self.cursor
        place = self._find_place()
        try:
            version = statements.parse_version(cursor, place)
            place = self._find_place()
            target = statements.parse_target(cursor, place)
            if cursor.token != ".address_size":
                return version, target, None
            place = self._find_place()
            return version, target, statements.parse_address_size(cursor, place)
        except Failure as failure:
            self._report(failure)
            cursor.jump(0)
            self.lines = Lines(self.text)
            self.headless = True
            return Version(0, 0, implied=True), Target((), implied=True), None

    def _find_place(self) -> Origin:
        return cast("Origin", self.lines.locate(self.cursor.start))

    def _parse_statement(self) -> bool:
        """Parse one statement or closing brace; return False after an error. A body that follows at module level then
        belongs to the failed header."""
        cursor = self.cursor
        begin, start = cursor.taken_end, cursor.start
        try:
            if cursor.token == "}" and cursor.kind == "PUNCTUATION":
                self._close()
                return True
            place = self._find_place()
            if not self.open and self.headless and cursor.token in _LATE_HEADER:
                node = _LATE_HEADER[cursor.token](cursor, place)
            elif not self.open and cursor.token == "{" and not self.clean:
                node = statements.parse_body_statement(cursor, place)
            elif not self.open:
                node = statements.parse_module_statement(cursor, place)
            elif self.open[-1][0].kind == "section":
                node = parse_section_statement(cursor, place)
            else:
                node = statements.parse_body_statement(cursor, place)
            if isinstance(node, Opening):
                if len(self.open) >= DEEPEST:
                    message = f"blocks nested to more than {DEEPEST} levels"
                    raise Failure(rules.DEPTH, start, 1, message)
                self.open.append((node, self.body))
                self.body = []
                self.adrift = False
            else:
                self.body.append(node)
        except Failure as failure:
            self._report(failure)
            self._skip(begin, start, failure)
            return False
        return True

    def _close(self) -> None:
        cursor = self.cursor
        if not self.open:
            help = "remove it, or look for an extra `}` above"
            raise Failure(rules.BRACE, cursor.start, 1, "this `}` does not match any `{`", help)
        cursor.take()
        opening, outer = self.open.pop()
        outer.append(opening.make(**opening.fields, body=tuple(self.body), closing=cursor.finish()))
        self.body = outer

    def _report_unclosed(self) -> None:
        """Report a body that is open at the end of the text, and close it without a brace."""
        opening, outer = self.open.pop()
        message = f"the `{{` of this {opening.kind} is never closed"
        if not any(diagnostic.code == rules.UNTERMINATED.code for diagnostic in self.diagnostics[-1:]):
            place: int = opening.fields["origin"]
            span = Span(place >> COLUMN_BITS, place & _COLUMN)
            self.diagnostics.append(rules.BRACE.report(span, message, help="add the missing `}`"))
        outer.append(opening.make(**opening.fields, body=tuple(self.body), closing=layout_of(())))
        self.body = outer

    def _report(self, failure: Failure) -> None:
        """Turn a failure into a diagnostic; failures come in text order. A failed statement at module level is usually
        followed by the body it should have opened: errors in its statements and closing brace are not reported."""
        if not self.open:
            was_adrift, self.adrift = self.adrift, failure.rule is not rules.BRACE
            if was_adrift and failure.rule in (rules.PLACE, rules.BRACE):
                return
        place = self.lines.locate(failure.start)
        span = Span(place >> COLUMN_BITS, place & _COLUMN, failure.length)
        if self.diagnostics and self.diagnostics[-1].origin == span:
            return
        self.diagnostics.append(failure.rule.report(span, failure.message, help=failure.help))

    def _skip(self, begin: int, start: int, failure: Failure) -> None:
        """Skip the text of a bad statement, up to where the next one seems to start."""
        cursor = self.cursor
        text = self.text
        if cursor.kind == "STRAY":
            cursor.skip_to(_skip_stray(text, cursor.start))
        while cursor.kind != "END":
            token = cursor.token
            if cursor.start > start and _begins_statement(cursor, failure):
                break
            if cursor.kind == "STRAY":
                cursor.skip_to(_skip_stray(text, cursor.start))
                continue
            cursor.skip_to(cursor.end)
            if token == ";" or (token in ("{", "}") and begin == cursor.taken_end - 1):
                break
        cursor.gaps = []
        self.body.append(SkippedText(text[start : cursor.taken_end], layout_of((text[begin:start], ""))))


_LATE_HEADER = {
    ".version": statements.parse_version,
    ".target": statements.parse_target,
    ".address_size": statements.parse_address_size,
}
"""A misplaced header is reported once, and its parts are parsed where they are."""
_line_start_word = re.compile(r"[ \t]*+(?:[}{@]|\.[a-z]|[A-Za-z_$%][\w$]*+[ \t]*+(?:[:.;]|[ \t][%{\[(]))").match


def _begins_statement(cursor: Cursor, failure: Failure) -> bool:
    """Tell whether the next token, first on its line, looks like the start of a statement."""
    if cursor.token == "}" or cursor.token == "{":
        return True
    if "\n" not in cursor.gap:
        return False
    return _line_start_word(cursor.text, cursor.start) is not None


def _skip_stray(text: str, start: int) -> int:
    """Return where to continue after a character that does not start a token."""
    if text.startswith("/*", start) or text[start] == '"':
        return len(text)
    return start + 1
