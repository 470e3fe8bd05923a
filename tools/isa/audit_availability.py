"""Audits the availability and vector widths of rows against ptxas: both must agree exactly.

    python -m tools.isa.audit_availability [--opcode ld] [--seed 1] [--show 40]

Tries one spelling per row, and one per choice with further requirements, on every target of the newest PTX version, at
the first version and target that have it, and just below; and every vector in every other width. `audit_spellings`
tries every spelling at its first version and target; only this audit finds rows that offer too little.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections.abc import Iterator, Mapping, Sequence

from pyptx.isa import lookup, table
from pyptx.isa.model import Choice, Form, Match, Slot
from pyptx.isa.targets import NEWEST_PTX, find_target
from tools.isa.audit_mutants import our_verdicts
from tools.isa.audit_spellings import TARGETS, Place, list_first_places, places_below
from tools.isa.ptxas import Case, verdicts
from tools.isa.synthesize import instruction

WIDTHS = (2, 4, 8)
_VECTOR = re.compile(r"v([248])")
_BRACES = re.compile(r"\{(\w+?_)\d+(?:, \w+)*\}")
_BYTES = frozenset("b8 u8 s8 b16 u16 s16".split())


def bindings(row: Form, draw: random.Random) -> Iterator[lookup.Bindings]:
    """Yield one spelling with only the row's requirements, and one per choice with further requirements."""
    sequences = lookup.list_sequences(row)
    plain = [sequence for sequence in sequences if all(_list_choices_without_requirement(slot) for slot in sequence)]
    yield _bind_slots(draw.choice(plain or sequences), None, draw)
    sequence_of = {
        (slot.name, choice): sequence
        for sequence in sequences for slot in sequence for choice in slot.choices if choice.available
    }  # fmt: skip
    for (name, choice), sequence in sequence_of.items():
        yield _bind_slots(sequence, (name, choice), draw)


def _list_choices_without_requirement(slot: Slot) -> list[Choice]:
    return [choice for choice in slot.choices if choice.available is None]


def _bind_slots(
    sequence: tuple[Slot, ...], pin: tuple[str, Choice] | None, draw: random.Random
) -> lookup.Bindings:  # fmt: skip
    """Return a spelling with one position fixed and the fewest requirements in the others."""
    return tuple(
        pin if pin is not None and slot.name == pin[0] and pin[1] in slot.choices
        else (slot.name, draw.choice(_list_choices_without_requirement(slot) or slot.choices))
        for slot in sequence
    )  # fmt: skip


def places(match: Match) -> Iterator[Place]:
    """Yield every target of the newest PTX version, the first places that have a spelling, and those just below."""
    removal = match.form.removed
    for name in TARGETS:
        yield Place(find_target(name), NEWEST_PTX)
    for place in list_first_places(match.needs, removal):
        yield place
        yield from places_below(match.needs, place, removal)


def offers(match: Match, place: Place) -> bool:
    """Return whether the table offers a spelling at a place."""
    removal = match.form.removed
    is_removed = removal is not None and removal.on(place.target, place.version)
    return not is_removed and all(need.on(place.target, place.version) for need in match.needs)


def expect_offers(rows: Sequence[Form], draw: random.Random, targets: Sequence[str] = TARGETS) -> dict[Case, bool]:
    """Return spellings of rows at each of their places, and whether the table offers them there."""
    expected: dict[Case, bool] = {}
    for row in rows:
        for binding in bindings(row, draw):
            match = lookup.match_of(row, binding)
            text = instruction(match, match.signatures[0])
            for place in places(match):
                if place.target.name not in targets:
                    continue
                expected[_case(text, match, place)] = offers(match, place)
    return expected


def _case(text: str, match: Match, place: Place) -> Case:
    group = f"{match.form.opcode}{match.chosen.get('cta_group', '')}"
    return Case(text, place.target.name, place.version, group)


def expect_acceptance(rows: Sequence[Form], draw: random.Random) -> dict[Case, bool]:
    """Return a spelling of every vector of every row, in every width, and whether `check` accepts it."""
    cases: dict[Case, None] = {}
    for row in rows:
        for binding in _vectors(row, draw):
            match = lookup.match_of(row, binding)
            text = instruction(match, match.signatures[0])
            place = Place(list_first_places(match.needs, row.removed)[0].target, NEWEST_PTX)
            if offers(match, place):
                cases |= dict.fromkeys(_case(variant, match, place) for variant in _vary_width(text))
    return {case: why is None for case, why in our_verdicts(list(cases)).items()}


def has_vectors(row: Form) -> bool:
    """Return whether a row has a vector whose width is one of its modifiers."""
    return any(_has_width(slot) for sequence in lookup.list_sequences(row) for slot in sequence)


def _has_width(slot: Slot) -> bool:
    return any(_VECTOR.fullmatch(choice.modifiers[0]) for choice in slot.choices)


def _vectors(row: Form, draw: random.Random) -> Iterator[lookup.Bindings]:
    sequence = draw.choice(lookup.list_sequences(row))
    for slot in sequence:
        if not _has_width(slot):
            continue
        types = next((type_slot for type_slot in sequence if type_slot.name == "type"), slot)
        for choice in slot.choices:
            for type in types.choices if types is not slot else [choice]:
                pins = {slot: choice, types: type}
                binding = _bind_slots(sequence, None, draw)
                yield tuple(
                    (name, pins.get(part, default)) for part, (name, default) in zip(sequence, binding, strict=True)
                )


def _vary_width(text: str) -> Iterator[str]:
    width, vector = re.search(r"\.v([248])\b", text), _BRACES.search(text)
    if width is None or vector is None or vector[0].count(",") + 1 != int(width[1]):
        return
    opcode, byte = text.split(".")[0], any(modifier in _BYTES for modifier in text.split(" ")[0].split("."))
    if opcode == "mov":
        return  # A special register of several elements is a vector under one name.
    for size in WIDTHS:
        if size < 8 or not byte:  # ptxas parses these, and corrupts its own memory when it compiles them.
            elements = "{" + ", ".join(f"{vector[1]}{index}" for index in range(size)) + "}"
            yield text.replace(vector[0], elements, 1).replace(width[0], f".v{size}", 1)
    if opcode != "sust":  # ptxas accepts one register in place of a vector.
        yield text.replace(vector[0], f"{vector[1]}0", 1).replace(width[0], "", 1)


def disagreements(expected: Mapping[Case, bool]) -> list[str]:
    """Return the cases on which ptxas disagrees."""
    return [
        f"{case.text[:150]}   PTX {case.version[0]}.{case.version[1]} {case.target}: ptxas: {why or 'accepted'}"
        for case, why in verdicts(expected)
        if (why is None) != expected[case]
    ]


def main(argv: list[str] | None = None) -> int:
    """Run the audit; exit 1 when ptxas disagrees."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--opcode")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--show", type=int, default=40, help="how many disagreements to print")
    arguments = options.parse_args(argv)
    rows = [row for row in table.list_all_rows() if arguments.opcode in (None, row.opcode)]
    draw = random.Random(arguments.seed)
    expected = expect_offers(rows, draw) | expect_acceptance(rows, draw)
    wrong = disagreements(expected)
    for line in wrong[: arguments.show]:
        print(line)
    print(f"{len(rows)} rows, {len(expected)} cases, {len(wrong)} disagreements with ptxas")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
