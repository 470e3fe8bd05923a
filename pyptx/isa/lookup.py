"""Looks up a spelling in the table: (opcode, modifiers) -> Match or Mismatch.

Matches the rows of an opcode in parallel, one modifier at a time, so that a mismatch can report what is legal at its
position. Every result is cached: a module repeats few spellings often.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from itertools import product

from pyptx.isa import notation, table
from pyptx.isa.model import (
    Choice,
    Form,
    Group,
    Kind,
    Match,
    Mismatch,
    Operand,
    OperandGroup,
    OperandPattern,
    Slot,
)
from pyptx.isa.reading import DOTTED_NAMES, REPEATABLE
from pyptx.isa.traits import Traits, read
from pyptx.types import ALL

Bindings = tuple[tuple[str, Choice], ...]
"""Positions in the order they were filled; a literal has the name ''."""

_TYPE_NAMES = frozenset(t.name for t in ALL)
STATE_SPACES = frozenset(
    "reg sreg const global local param param::entry param::func shared shared::cta shared::cluster tex".split()
)


@lru_cache(maxsize=16384)
def lookup(opcode: str, modifiers: tuple[str, ...]) -> Match | Mismatch:
    """Return the match or mismatch of a spelling; modifiers are passed without dots.

    Canonical order is preferred; otherwise the modifiers may be in any order or repeated, as ptxas accepts them.
    """
    matches = find_matches(opcode, modifiers)
    return matches[0] if matches else _make_mismatch(opcode, modifiers)


@lru_cache(maxsize=16384)
def find_matches(opcode: str, modifiers: tuple[str, ...]) -> tuple[Match, ...]:
    """Return every row's match of a spelling (rows may share a spelling and differ in operands or targets)."""
    rows = table.find_rows(opcode)
    exact = tuple(_make_match(row, bindings, None) for row in rows for bindings in _walk(row, modifiers))
    if exact:
        return exact
    return tuple(
        _make_match(row, bindings, tuple(m for _, choice in bindings for m in choice.modifiers))
        for row in rows
        for bindings in _fill_reordered(row, modifiers)
    )


@cache
def list_sequences(row: Form) -> tuple[tuple[Slot, ...], ...]:
    """Return the row's sequences of positions: one for each way to omit optional groups, the longest first."""
    return tuple(_list_sequences(notation.parse_head(row)))


def _list_sequences(group: Group) -> Iterator[tuple[Slot, ...]]:
    parts = [[(item,)] if isinstance(item, Slot) else list(_list_sequences(item)) for item in group.items]
    for combination in product(*parts):
        yield tuple(slot for part in combination for slot in part)
    if group.optional:
        yield ()


def spellings(row: Form) -> Iterator[Bindings]:
    """Yield every spelling that the row allows."""
    for sequence in list_sequences(row):
        names = [slot.name for slot in sequence]
        for choices in product(*(slot.choices for slot in sequence)):
            yield tuple(zip(names, choices, strict=True))


def match_of(row: Form, bindings: Bindings) -> Match:
    """Return the match that results from filling the row's positions this way."""
    return _make_match(row, bindings, None)


def _walk(row: Form, modifiers: tuple[str, ...]) -> Iterator[Bindings]:
    for steps in _make_steps(row):
        if len(steps) <= len(modifiers):
            yield from _fill(steps, modifiers)


Step = tuple[str, dict[str, list[Choice]]]
"""A position's name and its choices by their first modifier."""


@cache
def _make_steps(row: Form) -> tuple[tuple[Step, ...], ...]:
    """Return the row's sequences, prepared for matching."""
    return tuple(tuple((slot.name, _index_by_first(slot)) for slot in sequence) for sequence in list_sequences(row))


@cache
def _index_by_first(slot: Slot) -> dict[str, list[Choice]]:
    by_first: dict[str, list[Choice]] = {}
    for choice in slot.choices:
        by_first.setdefault(choice.modifiers[0], []).append(choice)
    return by_first


def _fill(steps: tuple[Step, ...], modifiers: tuple[str, ...]) -> Iterator[Bindings]:
    open_paths: list[tuple[int, Bindings]] = [(0, ())]
    for name, choices in steps:
        open_paths = [
            (position + len(choice.modifiers), (*bindings, (name, choice)))
            for position, bindings in open_paths
            if position < len(modifiers)
            for choice in choices.get(modifiers[position], ())
            if modifiers[position : position + len(choice.modifiers)] == choice.modifiers
        ]
        if not open_paths:
            return
    for position, bindings in open_paths:
        if position == len(modifiers):
            yield bindings


def _fill_reordered(row: Form, modifiers: tuple[str, ...]) -> Iterator[Bindings]:
    """Yield the fillings that use every modifier of the text, in any order, with flags possibly repeated."""
    if len(modifiers) > _LONGEST_REORDERED:
        return
    remaining = list(modifiers)
    for sequence in list_sequences(row):
        bindings: list[tuple[str, Choice]] = []
        rest = list(remaining)
        for slot in sequence:
            choice = _find_first_fitting(slot, rest)
            if choice is None:
                break
            bindings.append((slot.name, choice))
            for m in choice.modifiers:
                rest.remove(m)
        else:
            used = tuple(m for _, choice in bindings for m in choice.modifiers)
            head = _count_head(row.opcode, used)
            if modifiers[:head] != used[:head] or _count_head(row.opcode, modifiers) != head:
                continue
            if _select_ordered(modifiers) != _select_ordered(used):
                continue
            if all(m in used and m in REPEATABLE for m in rest):
                yield tuple(bindings)


def _select_ordered(modifiers: tuple[str, ...]) -> tuple[list[str], ...]:
    """Return the modifiers whose order matters for the operands, by kind: types, state spaces and layouts."""
    return tuple([m for m in modifiers if m in kind] for kind in (_TYPE_NAMES, STATE_SPACES, ("row", "col")))


def _count_head(opcode: str, modifiers: tuple[str, ...]) -> int:
    """Return how many leading modifiers belong to the instruction's name, which ptxas reads before any modifier."""
    longest, name = 0, opcode
    for count, modifier in enumerate(modifiers[:4], 1):
        name = f"{name}.{modifier}"
        if name in DOTTED_NAMES:
            longest = count
    return longest


_LONGEST_REORDERED = 16


def _find_first_fitting(slot: Slot, remaining: list[str]) -> Choice | None:
    """Return the choice whose first modifier occurs earliest in the text, the longest of several: types keep their
    relative order."""
    fitting = [c for c in slot.choices if all(remaining.count(m) >= c.modifiers.count(m) for m in c.modifiers)]
    return min(
        fitting,
        key=lambda c: (remaining.index(c.modifiers[0]), -len(c.modifiers), *map(remaining.index, c.modifiers)),
        default=None,
    )


def _make_mismatch(opcode: str, modifiers: tuple[str, ...]) -> Mismatch:
    rows = table.find_rows(opcode)
    if not rows:
        return Mismatch(opcode, modifiers, 0, (), known=False)
    furthest, expectations = 0, set[str]()
    for row in rows:
        for sequence in list_sequences(row):
            position, next_ones = _measure_progress(sequence, modifiers)
            if position > furthest:
                furthest, expectations = position, set[str]()
            if position == furthest:
                expectations |= next_ones
    return Mismatch(opcode, modifiers, furthest, tuple(sorted(expectations)))


def _measure_progress(sequence: tuple[Slot, ...], modifiers: tuple[str, ...]) -> tuple[int, set[str]]:
    """Return how far the text matches this sequence, and what the sequence expects there."""
    position = 0
    for slot in sequence:
        fitting = [c for c in slot.choices if modifiers[position : position + len(c.modifiers)] == c.modifiers]
        if not fitting:
            return position, {c.text for c in slot.choices}
        position += max(len(c.modifiers) for c in fitting)
    return position, {""}


def _make_match(row: Form, bindings: Bindings, canonical: tuple[str, ...] | None) -> Match:
    choices = {name: choice.text for name, choice in bindings if name}
    needs = [row.available] + [choice.available for _, choice in bindings if choice.available]
    modifiers = tuple(m for _, choice in bindings for m in choice.modifiers)
    numbers = {name: choice.number for name, choice in bindings if name}
    present = {name for name, _ in bindings} | set(modifiers)
    resolver = _Resolver(row, choices, numbers, modifiers, present)
    signatures = tuple(
        tuple(resolver.resolve(p) for p in flat) for flat in _flatten(notation.parse_operands(row), present)
    )
    return Match(
        row, choices, modifiers, signatures, tuple(dict.fromkeys(needs)), find_traits(row.opcode, modifiers), canonical
    )  # fmt: skip


@lru_cache(maxsize=16384)
def find_traits(opcode: str, modifiers: tuple[str, ...]) -> Traits:
    """Return the traits of a spelling; modifiers may have their dots or not."""
    bare = tuple(modifier.removeprefix(".") for modifier in modifiers)
    return read(table.find_traits((opcode, *bare)), bare)


def _flatten(group: OperandGroup, present: set[str]) -> Iterator[tuple[OperandPattern, ...]]:
    parts: list[list[tuple[OperandPattern, ...]]] = []
    for item in group.items:
        parts.append([(item,)] if isinstance(item, OperandPattern) else list(_flatten(item, present)))
    if group.condition is None or group.condition in present:
        for combination in product(*parts):
            yield tuple(operand for part in combination for operand in part)
    if group.optional and (group.condition is None or group.condition not in present):
        yield ()


class _Resolver:
    """Replaces the positions that an operand refers to by their values in one spelling."""

    def __init__(
        self,
        row: Form,
        choices: Mapping[str, str],
        numbers: Mapping[str, int],
        modifiers: tuple[str, ...],
        present: set[str],
    ) -> None:
        self.row, self.choices, self.numbers, self.present = row, choices, numbers, present
        types = [m for m in modifiers if m in _TYPE_NAMES]
        self.default_type = choices.get("type") or (types[-1] if types else None)
        spaces = [m for m in modifiers if m in STATE_SPACES]
        self.default_space = choices.get("ss") or (spaces[0] if spaces else None)

    def resolve(self, p: OperandPattern) -> Operand:
        """Return the operand for a pattern."""
        composite = p.kind in (Kind.ADDRESS, Kind.PIPE)
        return Operand(
            p.name,
            p.kind,
            p.access,
            self._resolve_type(p),
            0 if composite else self._resolve_count(p.count),
            p.bounds,
            self._resolve_space(p) if p.kind is Kind.ADDRESS else None,
            p.negatable,
            p.discardable,
            p.widenable,
            self._find_selectors(p.selectable),
            p.minus,
            p.braceable,
            tuple(self.resolve(part) for part in p.parts if part.condition is None or part.condition in self.present),
            p.optional_parts,
        )

    def _find_selectors(self, name: str | None) -> tuple[str, ...]:
        return tuple(c.text for c in notation.parse_choices(self.row.choices[name])) if name else ()

    def _resolve_type(self, p: OperandPattern) -> str | None:
        if p.type is None:
            return self.default_type if p.kind in (Kind.VALUE, Kind.REGISTER, Kind.MOVABLE, Kind.ADDRESS) else None
        name, _, index = p.type.partition("/")
        if name in self.row.choices:
            name = self.choices[name].split(".")[int(index) if index else 0]
        return name

    def _resolve_count(self, factors: tuple[str, ...]) -> int:
        count = 1 if factors else 0
        for factor in factors:
            name, side, operator, by = _parse_factor(factor)
            if name.isdigit():
                number = int(name)
            elif name in self.numbers:
                number = _get_side(self.choices[name], side) if side else self.numbers[name]
            elif name in self.row.choices:
                return 0
            else:
                raise notation.NotationError(f"*{factor} names no position of {self.row!r}")
            count *= number - by if operator == "-" else max(1, number // by)
        return count

    def _resolve_space(self, p: OperandPattern) -> str | None:
        if p.space is None:
            return self.default_space
        if p.space == "generic":
            return None
        return self.choices.get(p.space) if p.space in self.row.choices else p.space


@cache
def _parse_factor(text: str) -> tuple[str, str, str, int]:
    """Parse `vec`, `dim-2`, `shape.n/2` of a vector's count: position, side of a shape, operator, number."""
    match = re.fullmatch(r"(\w+)(?:\.([mnk]))?(?:([-/])(\d+))?", text)
    assert match is not None, text
    by = int(match[4]) if match[4] else 0 if match[3] == "-" else 1
    return match[1], match[2] or "", match[3] or "", by


def _get_side(shape: str, side: str) -> int:
    """Return the rows (m), columns (n) or depth (k) of a shape such as `m64n256k16`."""
    match = re.search(rf"{side}(\d+)", shape)
    assert match is not None, shape
    return int(match[1])
