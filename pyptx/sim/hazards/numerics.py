"""Findings about values: first NaN and infinity, wrapped addresses, lossy conversions. The machine computes and
compares; this module writes the messages."""

from __future__ import annotations

from collections.abc import Iterable

from pyptx.diagnostics import Rule
from pyptx.sim import rules
from pyptx.sim.base.events import Place
from pyptx.sim.hazards.state import State

Operands = Iterable[tuple[str, object]]
"""The names and values of an instruction's operands in the reported lane."""


class Numerics:
    """Findings about values. `count` is the number of lanes, or elements of matrices."""

    def __init__(self, state: State) -> None:
        self.state = state

    def report_nonfinite(
        self, place: Place, thread: int, nan: bool, operands: Operands, result: object, count: int, location: str = ""
    ) -> None:
        """Report a NaN result without NaN operands, or an infinite result of finite operands."""
        rule = rules.NAN if nan else rules.INFINITY
        of = f" in {location}" if location else ""
        self._report(rule, place, thread, f"{_format_operands(operands)}: the result is {result}{of}", count)

    def report_overflow(
        self, place: Place, thread: int, exact: int, kind: str, operands: Operands, result: int, count: int
    ) -> None:
        """Report address arithmetic whose exact result does not fit; `kind` is the type that reads the value."""
        detail = f"{_format_operands(operands)}: {exact} does not fit {kind}, {result} becomes part of an address"
        self._report(rules.ADDRESS_OVERFLOW, place, thread, detail, count)

    def report_narrowing(
        self, place: Place, thread: int, value: int, kind: str, result: int, used: bool, count: int
    ) -> None:
        """Report an integer that loses bits other than copies of its sign."""
        detail = f"{value} becomes {result} as {kind}{', and becomes part of an address' if used else ''}"
        self._report(rules.NARROWED, place, thread, detail, count)

    def report_inexact(self, place: Place, thread: int, value: int, kind: str, result: object, count: int) -> None:
        """Report an integer that a floating-point type cannot represent."""
        self._report(rules.INEXACT, place, thread, f"{value} becomes {result} as {kind}", count)

    def report_out_of_range(
        self, place: Place, thread: int, value: object, kind: str, result: object, count: int
    ) -> None:
        """Report a floating-point number, or NaN, that an integer type cannot represent."""
        self._report(rules.OUT_OF_RANGE, place, thread, f"{value} becomes {result} as {kind}", count)

    def report_unwritten(self, place: Place, name: str, index: str, missing: int, size: int, help: str) -> None:
        """Report unwritten elements of an output."""
        detail = f"`{name}`: {missing} of {size}, the first at {index}" if missing < size else f"`{name}`: all {size}"
        self.state.report(rules.UNWRITTEN, place, detail, where=name, count=missing, help=help)

    def _report(self, rule: Rule, place: Place, thread: int, detail: str, count: int) -> None:
        self.state.report(rule, place, detail, thread=thread, count=count)


def _format_operands(operands: Operands) -> str:
    return ", ".join(f"{name} = {value}" for name, value in operands)
