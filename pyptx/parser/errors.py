"""The syntax error. It carries every diagnostic of the text, not only the first."""

from __future__ import annotations

from collections.abc import Sequence

from pyptx.diagnostics import Diagnostic, PtxError, Span
from pyptx.parser import rules


class PtxSyntaxError(PtxError):
    """Raised for text that is not valid PTX. `line` and `col` are those of the first diagnostic."""

    def __init__(
        self,
        message: str,
        line: int = 0,
        col: int = 0,
        *,
        diagnostics: Sequence[Diagnostic] = (),
        source: str | None = None,
    ) -> None:
        findings = diagnostics or (rules.UNEXPECTED.report(Span(line, col) if line else None, message),)
        super().__init__(findings, source)
        self.message = message
        self.line = findings[0].line
        self.col = findings[0].col


LexError = ParseError = PtxSyntaxError


class Failure(Exception):
    """Why a statement could not be parsed: a rule, a place in the text, and a message. Never leaves the parser."""

    def __init__(self, rule: rules.Rule, start: int, length: int, message: str, help: str | None = None) -> None:
        super().__init__(message)
        self.rule = rule
        self.start = start
        self.length = length
        self.message = message
        self.help = help
