"""Lines and columns of positions in a text."""

from __future__ import annotations

from pyptx.diagnostics import Span
from pyptx.ir.base import COLUMN_BITS


def make_span(source: str, start: int, length: int = 1) -> Span:
    """Return the place of an offset by scanning the text once."""
    return Span(source.count("\n", 0, start) + 1, start - source.rfind("\n", 0, start), length)


class Lines:
    """Computes the line and column of increasing offsets, scanning each character once."""

    __slots__ = ("line", "line_start", "position", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.line = 1
        self.line_start = 0

    def locate(self, offset: int) -> int:
        """Return `line << COLUMN_BITS | column` of an offset not before the line of the previous one."""
        newlines = self.text.count("\n", self.position, offset)
        if newlines:
            self.line += newlines
            self.line_start = self.text.rindex("\n", self.position, offset) + 1
        self.position = max(self.position, offset)
        return self.line << COLUMN_BITS | offset - self.line_start + 1
