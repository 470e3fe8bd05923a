"""The spellings that conformance covers: those that compute registers from registers and numbers, one case each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import islice
from typing import Any

from numpy.typing import NDArray

from pyptx.isa import lookup
from pyptx.isa.model import Form, Kind, Match, Operand
from pyptx.isa.targets import FIRST_PTX, Target, Version, find_target
from tools.isa.audit_spellings import list_first_places
from tools.isa.synthesize import Registers, operand, register_class

Array = NDArray[Any]
SECTIONS = (
    "integer", "extended_precision", "floating_point", "half_precision", "mixed_precision", "comparison", "logic",
    "data_movement", "conversion", "video", "mma", "matrix_move", "synchronization",
)  # fmt: skip
_PLAIN = frozenset((Kind.VALUE, Kind.REGISTER, Kind.IMMEDIATE, Kind.PIPE, Kind.MOVABLE, Kind.SINK))
_LEFT_OUT = {
    "activemask": "the hardware chooses which lanes execute together",
    "cvta": "makes addresses",
    "mapa": "makes addresses",
    "isspacep": "asks about addresses",
    "getctarank": "asks about addresses",
    "elect": "the hardware chooses the elected lane",
    "bar": "its barrier is not a value",
    "barrier": "its barrier is not a value",
    "createpolicy": "its result is opaque",
    "fns": "its result is not defined for every operand",
}


@dataclass(frozen=True)
class Column:
    """A register that a case loads before the instruction, or stores after it."""

    register: str
    kind: str
    """The class of the register."""
    type: str | None
    """The type the instruction reads it as."""
    name: str


@dataclass(frozen=True)
class Case:
    """One instruction: its text, a target and version where it is legal, and its operands."""

    opcode: str
    text: str
    target: Target
    version: Version
    inputs: tuple[Column, ...]
    outputs: tuple[Column, ...]
    before: tuple[str, ...] = ()
    """Instructions between the loads and the instruction."""
    after: tuple[str, ...] = ()
    """Instructions between the instruction and the stores."""

    @property
    def modifiers(self) -> tuple[str, ...]:
        """The modifiers without their dots."""
        return tuple(self.text.split(" ", 1)[0].split(".")[1:])

    @property
    def carries(self) -> bool:
        """Return whether the instruction uses the carry flag."""
        return self.opcode in ("addc", "subc", "madc") or ".cc" in self.text.split(" ", 1)[0]


def cases(sections: Iterable[str] = SECTIONS, arch: str = "sm_90a") -> Iterator[Case]:
    """Yield a case for every spelling, for this architecture if it is legal there."""
    for section in sections:
        for row in import_module(f"pyptx.isa.table.{section}").FORMS:
            if row.opcode not in _LEFT_OUT:
                yield from _of_row(row, find_target(arch))


def _of_row(row: Form, preference: Target) -> Iterator[Case]:
    for bindings in islice(lookup.spellings(row), 100_000):
        match = lookup.match_of(row, bindings)
        case = next((_case(match, s, preference) for s in match.signatures if _plain(s)), None)
        if case is not None:
            yield from _tables(case) if case.opcode == "lop3" else [case]


def _tables(case: Case) -> Iterator[Case]:
    """Yield a case of lop3 with several tables in place of the empty one."""
    for table in (0, 0x80, 0xE8, 0x96, 0xCA, 0x1D, 0x6B, 0xFE):
        yield replace(case, text=re.sub(r", 0\b", f", {table}", case.text, count=1))


def _plain(signature: tuple[Operand, ...]) -> bool:
    return all(o.kind in _PLAIN and all(p.kind in _PLAIN for p in o.parts) for o in signature)


def _case(match: Match, signature: tuple[Operand, ...], preference: Target) -> Case | None:
    place = place_of(match, preference)
    if place is None:
        return None
    target, version = place
    registers, inputs, outputs = Registers(), list[Column](), list[Column]()
    texts = [_operand(o, registers, inputs, outputs) for o in signature]
    head = ".".join((match.form.opcode, *match.modifiers))
    reads, writes = tuple(_unique(inputs)), tuple(_unique(outputs))
    if not writes:
        return None
    return Case(match.form.opcode, f"{head} {', '.join(texts)};", target, version, reads, writes)


def place_of(match: Match, preference: Target) -> tuple[Target, Version] | None:
    """Return a target for a spelling: the preferred one if legal, or else one that has it, or None."""
    firsts = [need.find_first_version(preference) for need in match.needs]
    removal = match.form.removed
    version = max([FIRST_PTX[preference.name], (7, 0), *(first for first in firsts if first)])
    if None in firsts or (removal and removal.on(preference, version)):
        places = list_first_places(match.needs, removal)
        if not places:
            return None
        return places[0].target, places[0].version
    return preference, version


def _operand(o: Operand, registers: Registers, inputs: list[Column], outputs: list[Column]) -> str:
    """Return the text of an operand and record its registers."""
    if o.kind is Kind.PIPE:
        return "|".join(_operand(part, registers, inputs, outputs) for part in o.parts)
    if o.name == "membermask":
        return "-1"
    text = operand(o, registers)
    for name in text.strip("{}").split(", "):
        if name.startswith("q_"):
            column = Column(
                name, name[2:].rpartition("_")[0] if "b8" in name else register_class(o.type), o.type, o.name
            )
            if "r" in o.access:
                inputs.append(column)
            if "w" in o.access:
                outputs.append(column)
    return text


def _unique(columns: list[Column]) -> list[Column]:
    return list({column.register: column for column in columns}.values())
