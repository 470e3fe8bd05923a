"""Mutates legal instructions into mostly illegal ones, on which the table must agree with ptxas.

Strata: `modifier` (replaced by another of the family, removed, repeated, swapped), `type`, `count` (one operand more or
fewer), `immediate` (a number for a register, another number, a register for a number), `target` (another header).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pyptx.isa import lookup, table
from pyptx.isa.targets import FIRST_PTX, PTX_VERSIONS, find_target
from pyptx.types import ALL
from tools.isa.audit_spellings import OLDEST_PTX, TARGETS, list_first_places
from tools.isa.ptxas import Case
from tools.isa.synthesize import instruction

_TYPES = [t.name for t in ALL if t.kind != "opaque"]
_NUMBERS = ("0", "1", "-1", "7", "16", "31", "32", "64", "255", "256", "1024", "65535", "0f3F800000", "1.5")


@dataclass(frozen=True)
class Mutant:
    """A mutated instruction, the stratum, and the legal instruction it came from."""

    case: Case
    stratum: str
    origin: str


@dataclass
class _Text:
    """An instruction split into opcode, modifiers and operands."""

    head: list[str]
    operands: list[str]

    def __str__(self) -> str:
        return ".".join(self.head) + (" " + ", ".join(self.operands) if self.operands else "") + ";"


def split(text: str) -> _Text:
    """Split a synthesized instruction; commas inside brackets do not separate operands."""
    head, _, operand_text = text.rstrip(";").partition(" ")
    operands: list[str] = []
    depth = 0
    for piece in operand_text.split(", ") if operand_text else ():
        if depth:
            operands[-1] += ", " + piece
        else:
            operands.append(piece)
        depth += sum(piece.count(c) for c in "{[(") - sum(piece.count(c) for c in "}])")
    return _Text(head.split("."), operands)


class Source:
    """Draws legal instructions, with all opcodes equally likely, and modifiers of their families."""

    def __init__(self, seed: int, opcodes: Sequence[str] = ()) -> None:
        self.random = random.Random(seed)
        self.opcodes = list(opcodes or table.list_opcodes())
        self.families = {opcode: _family(opcode) for opcode in self.opcodes}

    def legal(self) -> Case:
        """Return a legal instruction at one of its first targets or a newer one."""
        opcode = self.random.choice(self.opcodes)
        row = self.random.choice(table.find_rows(opcode))
        sequence = self.random.choice(lookup.list_sequences(row))
        binding = tuple((slot.name, self.random.choice(slot.choices)) for slot in sequence)
        match = lookup.match_of(row, binding)
        places = list_first_places([*match.needs], row.removed)
        if not places or not match.signatures:
            return self.legal()
        place = self.random.choice(places)
        text = instruction(match, self.random.choice(match.signatures))
        return Case(text, place.target.name, place.version, f"{opcode}{match.chosen.get('cta_group', '')}")

    def mutant(self, stratum: str) -> Mutant:
        """Return a mutant of this stratum."""
        while True:
            case = self.legal()
            mutation = _MUTATIONS[stratum](self, case)
            if mutation is not None and mutation != case:
                group = f"{mutation.group}{'.cta_group::2' * ('cta_group::2' in mutation.text)}"
                return Mutant(replace(mutation, group=group), stratum, case.text)

    def modifier(self, case: Case) -> Case | None:
        """Replace, remove, insert or swap a modifier that is not a type."""
        text = split(case.text)
        places = [i for i, m in enumerate(text.head) if i and m not in _TYPES]
        family = [m for m in self.families[text.head[0]] if m not in _TYPES]
        kind = self.random.choice(("replace", "replace", "drop", "insert", "swap"))
        if kind == "insert" and family:
            text.head.insert(self.random.randint(1, len(text.head)), self.random.choice(family))
        elif not places:
            return None
        elif kind == "drop":
            text.head.pop(self.random.choice(places))
        elif kind == "swap" and len(text.head) > 2:
            i, j = self.random.sample(range(1, len(text.head)), 2)
            text.head[i], text.head[j] = text.head[j], text.head[i]
        elif family:
            text.head[self.random.choice(places)] = self.random.choice(family)
        return replace(case, text=str(text))

    def type(self, case: Case) -> Case | None:
        """Replace a type modifier by another type, usually one that the opcode has."""
        text = split(case.text)
        places = [i for i, m in enumerate(text.head) if i and m in _TYPES]
        if not places:
            return None
        types = [m for m in self.families[text.head[0]] if m in _TYPES]
        text.head[self.random.choice(places)] = self.random.choice(types if self.random.random() < 0.7 else _TYPES)
        return replace(case, text=str(text))

    def count(self, case: Case) -> Case | None:
        """Remove, repeat or add an operand."""
        text = split(case.text)
        if text.operands and self.random.random() < 0.5:
            text.operands.pop(self.random.randrange(len(text.operands)))
        else:
            extra = self.random.choice(("q_b32_9", "q_b64_9", "q_f32_9", "1", "[q_b64_9]", "q_pred_9", *text.operands))
            text.operands.insert(self.random.randint(0, len(text.operands)), extra)
        return replace(case, text=str(text))

    def immediate(self, case: Case) -> Case | None:
        """Replace an operand by a number, or a number by a register."""
        text = split(case.text)
        if not text.operands:
            return None
        index = self.random.randrange(len(text.operands))
        is_number = text.operands[index][:1] in "-0123456789"
        swap = is_number and self.random.random() < 0.3
        text.operands[index] = "q_b32_9" if swap else self.random.choice(_NUMBERS)
        return replace(case, text=str(text))

    def target(self, case: Case) -> Case | None:
        """Move it to another legal header."""
        name = self.random.choice(TARGETS)
        versions = [v for v in PTX_VERSIONS if v >= max(OLDEST_PTX, FIRST_PTX[name])]
        candidate = replace(case, target=name, version=self.random.choice(versions))
        return candidate if _declarable(candidate) else None


def _declarable(case: Case) -> bool:
    """Return whether the registers of the instruction exist under its header."""
    arch = find_target(case.target).arch
    if "b128" in case.text and (case.version < (8, 3) or arch < 70):
        return False
    return "q_f16" not in case.text or (case.version >= (4, 2) and arch >= 53)


def _family(opcode: str) -> list[str]:
    slots = {slot for row in table.find_rows(opcode) for sequence in lookup.list_sequences(row) for slot in sequence}
    return sorted({m for slot in slots for choice in slot.choices for m in choice.modifiers})


_MUTATIONS: dict[str, Callable[[Source, Case], Case | None]] = {
    "modifier": Source.modifier,
    "type": Source.type,
    "count": Source.count,
    "immediate": Source.immediate,
    "target": Source.target,
}
STRATA = tuple(_MUTATIONS)
