"""The instructions that compute one value of one type from other values, collected from the table's sections of
arithmetic and logic: their types, operands and modifiers. Lists no instruction."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import NamedTuple

from pyptx.isa import lookup
from pyptx.isa.model import Form, Kind, Match, Slot
from pyptx.types import ALL

SECTIONS = ("integer", "floating_point", "half_precision", "mixed_precision", "logic")
_KEYWORDS = {"rnd": "rounding"}
"""Names of positions that are Python keywords, with the spelling used instead."""
_TYPES = frozenset(t.name for t in ALL)
_VALUES = (Kind.VALUE, Kind.REGISTER, Kind.IMMEDIATE)


class Computation(NamedTuple):
    """One opcode: the types it computes, the names of its source operands for each operand count, and its modifiers in
    PTX order: positions with their choices, where there are several, and optional flags."""

    opcode: str
    types: frozenset[str]
    sources: tuple[tuple[str, ...], ...]
    positions: dict[str, tuple[str, ...]]
    flags: tuple[str, ...]


@cache
def computations() -> dict[str, Computation]:
    """Return every opcode that computes one value of one type, in the manual's order."""
    rows = [row for section in SECTIONS for row in import_module(f"pyptx.isa.table.{section}").FORMS]
    by_opcode = {opcode: _find_computation(opcode, rows) for opcode in dict.fromkeys(row.opcode for row in rows)}
    return {opcode: computation for opcode, computation in by_opcode.items() if computation is not None}


def _find_computation(opcode: str, rows: list[Form]) -> Computation | None:
    sequences = [(row, slots) for row in rows if row.opcode == opcode for slots in lookup.list_sequences(row)]
    plain = [
        (slots, match) for row, slots in sequences for match in [_find_first(row, slots)] if _is_plain(slots, match)
    ]
    if not plain:
        return None
    heads = [slot for slots, _ in plain for slot in slots[:-1]]
    several: dict[str, dict[str, None]] = {slot.name: {} for slot in heads if len(slot.choices) > 1}
    for slot in heads:
        several.get(slot.name, {}).update(dict.fromkeys(choice.text for choice in slot.choices))
    places = sorted((position, slot.choices[0].text) for slots, _ in plain for position, slot in enumerate(slots[:-1]))
    last = {word: position for position, word in places}
    words = sorted((s.choices[0].text for s in heads if s.name not in several), key=lambda word: (last[word], word))
    modifiers_of_positions = {text for texts in several.values() for text in texts}
    sources = {tuple(operand.name for operand in signature[1:]) for _, match in plain for signature in match.signatures}
    return Computation(
        opcode,
        frozenset(choice.text for slots, _ in plain for choice in slots[-1].choices),
        tuple(sorted(sources, key=len)),
        {_KEYWORDS.get(name, name): tuple(texts) for name, texts in several.items()},
        tuple(word for word in dict.fromkeys(words) if word not in modifiers_of_positions),
    )


def _find_first(row: Form, slots: tuple[Slot, ...]) -> Match:
    return lookup.match_of(row, tuple((slot.name, slot.choices[0]) for slot in slots))


def _is_plain(slots: tuple[Slot, ...], match: Match) -> bool:
    """Tell whether one type is the last modifier, and the operands are one destination followed by values."""
    type_slots = [slot for slot in slots if any(word in _TYPES for choice in slot.choices for word in choice.modifiers)]
    if type_slots != [slots[-1]] or any(len(choice.modifiers) > 1 for choice in slots[-1].choices):
        return False
    return all(
        operand.kind in _VALUES and not operand.count and operand.access == ("r" if place else "w")
        for signature in match.signatures
        for place, operand in enumerate(signature)
    )
