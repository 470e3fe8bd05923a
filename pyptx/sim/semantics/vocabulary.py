"""The vocabulary of semantics: kinds of operation, and small helpers of many bodies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from pyptx.isa.model import Match, Operand
from pyptx.sim.base.formats import Array


class Kind(Enum):
    """How generated code calls the function of an operation."""

    INTO = "into"
    """`f(inputs…, out)`, or `f(inputs…)` for the value: a NumPy ufunc."""
    VALUE = "value"
    """`f(inputs…)` returns the result, a tuple for several."""
    LANES = "lanes"
    """`f(machine, lanes, inputs…)` returns the result: it needs the executing lanes."""
    MEMORY = "memory"
    """`f(site, lanes, mask, address, outs, inputs…)` reads and writes memory and the outputs itself."""
    NOTHING = "nothing"
    """No effect on results: hints, and fences while lanes run in program order."""


@dataclass(frozen=True, slots=True)
class Operation:
    """The operation of one spelling. `carry` says whether it reads (`r`) or writes (`w`) the carry flag, which is then
    the last input or output. `selects`: the function also takes the parts that operands select, of the destination
    (`into`), or of destination and sources, which are then whole registers (`all`)."""

    kind: Kind
    function: Callable[..., Any] | None = None
    carry: str = ""
    selects: str = ""


@dataclass(frozen=True, slots=True)
class Selected:
    """Bytes (`b`) or halves (`h`) of an operand, the one for the lowest lane first."""

    unit: str
    digits: tuple[int, ...]


Body = (
    Callable[[], Any]
    | Callable[[Array], Any]
    | Callable[[Array, Array], Any]
    | Callable[[Array, Array, Array], Any]
    | Callable[[Array, Array, Array, Array], Any]
    | Callable[[Array, Array, Array, Array, Array], Any]
)
"""A function of the values of the source operands, one lane's value to an element."""

Signature = tuple[Operand, ...]
Builder = Callable[[Match, Signature], "Operation | None"]
"""Returns the operation of a spelling of its opcode, None without semantics."""

NOTHING = Operation(Kind.NOTHING)
COPY = Operation(Kind.VALUE)
"""The result is the input."""


def into(function: Callable[..., Any]) -> Operation:
    """Return the operation of a ufunc."""
    return Operation(Kind.INTO, function)


def value(function: Body, carry: str = "") -> Operation:
    """Return the operation of a function of values."""
    return Operation(Kind.VALUE, function, carry)


def parts(function: Callable[..., Any], selects: str = "all") -> Operation:
    """Return the operation of a function that also gets the parts its operands select."""
    return Operation(Kind.VALUE, function, selects=selects)


def lanes(function: Callable[..., Any]) -> Operation:
    """Return the operation of a function of lanes and values."""
    return Operation(Kind.LANES, function)


def memory(function: Callable[..., Any]) -> Operation:
    """Return the operation of a function that accesses memory."""
    return Operation(Kind.MEMORY, function)


def find_type(match: Match) -> str:
    """Return the modifier chosen as `type`, or the last one."""
    return match.chosen.get("type") or match.modifiers[-1]
