"""A finding that does not know its place yet: checks of one instruction make it, the walk gives it its span."""

from __future__ import annotations

from dataclasses import dataclass

from pyptx.diagnostics import Rule


@dataclass(frozen=True, slots=True)
class Complaint:
    """The rule, what to say, and which modifier or operand (by index) it is about; neither: the whole instruction."""

    rule: Rule
    message: str
    help: str | None = None
    modifier: int | None = None
    operand: int | None = None
