"""A finding without a place: checks of one instruction create it, and the walk adds its span."""

from __future__ import annotations

from dataclasses import dataclass

from pyptx.diagnostics import Rule


@dataclass(frozen=True, slots=True)
class Complaint:
    """A rule, a message, and the index of the modifier or operand concerned; with neither, the whole instruction."""

    rule: Rule
    message: str
    help: str | None = None
    modifier: int | None = None
    operand: int | None = None
