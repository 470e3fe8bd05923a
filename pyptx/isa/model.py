"""The vocabulary of the instruction table: rows, modifier positions, choices and operands.

Contains no facts about any instruction and no notation; `notation` builds these from the manual's syntax lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache

from pyptx.isa.targets import Availability
from pyptx.isa.traits import Traits


class Kind(StrEnum):
    """The kind of an operand."""

    VALUE = "val"
    """A register or an immediate."""
    REGISTER = "reg"
    IMMEDIATE = "imm"
    ADDRESS = "addr"
    """`[...]`, with one or several parts."""
    PIPE = "pipe"
    """`d|p`: two destinations."""
    MOVABLE = "mov"
    """Anything that `mov` takes: a register, an immediate, a special register, an address of a variable or function."""
    VARIABLE = "var"
    """The name of a variable, parameter or opaque reference, or a register that holds its handle."""
    LABEL = "label"
    FUNCTION = "func"
    """The name of a function or a register with its address."""
    LIST = "list"
    """`(a, b, ...)`: arguments of a call."""
    SPECIAL = "sreg"
    SINK = "sink"
    """Only `_`: the result cannot be read."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One legal spelling at a modifier position: the modifiers it consists of (usually one) and its availability."""

    modifiers: tuple[str, ...]
    available: Availability | None = None

    @property
    def text(self) -> str:
        return ".".join(self.modifiers)

    @property
    def number(self) -> int:
        """The count that the spelling carries (`v4`, `x16`, `3d`), for operands of that many registers."""
        digits = "".join(c for c in self.modifiers[0] if c.isdigit())
        return int(digits) if digits else 1


@dataclass(frozen=True, slots=True)
class Slot:
    """A modifier position. A literal is a slot with one choice and no name."""

    name: str
    choices: tuple[Choice, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Modifier positions that are present together or, if `optional`, absent together."""

    items: tuple[Slot | Group, ...]
    optional: bool


@dataclass(frozen=True, slots=True)
class OperandPattern:
    """An operand as written in the row; its type, count and space may name modifier positions."""

    name: str
    kind: Kind
    access: str
    type: str | None = None
    count: tuple[str, ...] = ()
    bounds: tuple[int, int, int] | None = None
    space: str | None = None
    negatable: bool = False
    discardable: bool = False
    widenable: bool = False
    selectable: str | None = None
    minus: bool = False
    braceable: bool = False
    parts: tuple[OperandPattern, ...] = ()
    optional_parts: int = 0
    condition: str | None = None
    """For a part of an address: the position or literal that requires it."""


@dataclass(frozen=True, slots=True)
class OperandGroup:
    """Operands present together; `condition` names the modifier position or literal that requires them."""

    items: tuple[OperandPattern | OperandGroup, ...]
    optional: bool
    condition: str | None = None


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand of one matched spelling, fully resolved. `count` 0 is a scalar, n a vector of n elements.

    `selectable` are the register parts that may be named (`b0`, `h10`); `minus`: it may be preceded by `-`.
    `braceable`: a scalar may be written in braces, `{a}`.
    """

    name: str
    kind: Kind
    access: str
    type: str | None
    count: int
    bounds: tuple[int, int, int] | None
    space: str | None
    negatable: bool
    discardable: bool
    widenable: bool
    selectable: tuple[str, ...]
    minus: bool
    braceable: bool
    parts: tuple[Operand, ...]
    optional_parts: int

    def scalar(self) -> Operand:
        """Return one element of this vector: the same object each time."""
        return _make_element(self)

    def __str__(self) -> str:
        text = self.name
        if self.kind is Kind.ADDRESS:
            return f"[{', '.join(str(part) for part in self.parts)}]"
        if self.kind is Kind.PIPE:
            return "|".join(str(part) for part in self.parts)
        if self.kind is Kind.LIST:
            return f"({text}, ...)"
        if self.count:
            text = "{" + f"{self.name} x{self.count}" + "}"
        return text + (f":.{self.type}" if self.type else "")


@cache
def _make_element(vector: Operand) -> Operand:
    return replace(vector, count=0)


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """One row: a syntax line of the manual with its choice sets, where it is available, and where it is described.

    `quirk` marks a row with a rule that the notation cannot express; tidy counts them.
    """

    line: str
    choices: Mapping[str, str]
    see: str
    available: Availability
    removed: Availability | None = None
    quirk: str | None = None

    @property
    def opcode(self) -> str:
        return self.line.split(None, 1)[0].split("{", 1)[0].split(".", 1)[0]

    def __repr__(self) -> str:
        return f"form({self.line!r})"


@dataclass(frozen=True, slots=True)
class Match:
    """A spelling that a row allows: the choice at each named position, its operand lists, and its requirements.

    `signatures` has one operand list per legal operand count; `traits` describe its effects beyond computing.
    `canonical` is the manual's order of the modifiers when the text had them in another order or twice, else None.
    """

    form: Form
    chosen: Mapping[str, str]
    modifiers: tuple[str, ...]
    signatures: tuple[tuple[Operand, ...], ...]
    needs: tuple[Availability, ...]
    traits: Traits
    canonical: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Mismatch:
    """No row allows the spelling: the index of the first mismatched modifier, and what is expected there.

    `position == len(modifiers)` means that something is missing at the end. `known` is False for an unknown opcode.
    """

    opcode: str
    modifiers: tuple[str, ...]
    position: int
    expected: tuple[str, ...]
    known: bool = True
