"""Suggests corrections of a misspelled instruction: one modifier to insert, replace or remove."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher, get_close_matches
from functools import cache
from typing import NamedTuple

from pyptx.isa import lookup, table
from pyptx.isa.model import Choice, Slot
from pyptx.isa.targets import Target, Version

Words = tuple[str, ...]

_LONGEST = 32
_MOST_GIVEN = 3
_ALIKE = 0.6
_SAME_RANK = 0.1


class _Edit(NamedTuple):
    """An edit at word `position`: replace `length` words (possibly none) by one of `choices`, or remove a word if there
    are none."""

    position: int
    length: int
    choices: tuple[Choice, ...]


def find_similar(word: str, words: tuple[str, ...]) -> str | None:
    """Return the most similar word, ignoring case."""
    small = {candidate.lower(): candidate for candidate in reversed(words) if candidate}
    close = get_close_matches(word.lower(), small, 1, _ALIKE)
    return small[close[0]] if close else None


def suggest_corrections(opcode: str, words: Words, count: int, target: Target, version: Version) -> list[Words]:
    """Return the likeliest modifiers that are legal on this target, take this many operands, and are one edit away."""
    if len(words) > _LONGEST:
        return []
    edits = {
        edit
        for row in table.find_rows(opcode)
        for slots in lookup.list_sequences(row)
        for edit in _find_edits(slots, words)
    }
    every = (rank for edit in edits for rank in _rank_results(edit, words, _list_words(opcode)))
    ranking = sorted(every, key=lambda rank: (rank[0], rank[2].position, rank[1], rank[3]))
    likeliest: list[tuple[float, _Edit, Words]] = []
    for unlikely, _, edit, candidate in ranking:
        if likeliest and (edit.position != likeliest[0][1].position or unlikely > likeliest[0][0] + _SAME_RANK):
            continue
        if _is_legal(opcode, candidate, count, target, version) and candidate not in (
            spelling for _, _, spelling in likeliest
        ):
            likeliest.append((unlikely, edit, candidate))
    return [candidate for _, _, candidate in likeliest[:_MOST_GIVEN]]


def _is_legal(opcode: str, words: Words, count: int, target: Target, version: Version) -> bool:
    return any(
        all(need.on(target, version) for need in match.needs)
        and not (match.form.removed and match.form.removed.on(target, version))
        and any(len(signature) == count for signature in match.signatures)
        for match in lookup.find_matches(opcode, words)
    )


@cache
def _list_words(opcode: str) -> frozenset[str]:
    """Return every modifier that any form of the instruction has."""
    sequences = (slots for row in table.find_rows(opcode) for slots in lookup.list_sequences(row))
    return frozenset(m for slots in sequences for slot in slots for choice in slot.choices for m in choice.modifiers)


def _rank_results(edit: _Edit, words: Words, vocabulary: frozenset[str]) -> Iterator[tuple[float, int, _Edit, Words]]:
    """Yield the results of an edit, each with a penalty. Misspelled words that the instruction does not have come
    first, then a missing modifier, an extra one, and a wrong one."""
    before, after = words[: edit.position], words[edit.position + edit.length :]
    if not edit.choices:
        yield 0.8, 0, edit, before + after
    for order, choice in enumerate(edit.choices):
        unlikely = 0.5
        old_words = words[edit.position : edit.position + edit.length]
        if not set(old_words) < set(choice.modifiers):
            unlikely = 1 - SequenceMatcher(None, ".".join(old_words).lower(), choice.text.lower()).ratio()
            if vocabulary.issuperset(old_words) or unlikely > 1 - _ALIKE:
                unlikely += 0.6
        yield unlikely, order, edit, before + choice.modifiers + after


def _find_edits(slots: tuple[Slot, ...], words: Words) -> set[_Edit]:
    """Return the single edits that make the words match these slots."""
    if len(slots) > len(words) + 1:
        return set()
    states: set[tuple[int, _Edit | None]] = {(0, None)}
    for slot in slots:
        following: set[tuple[int, _Edit | None]] = set()
        for position, edit in _drop_one_word(states, words):
            if edit is None:
                following.add((position, _Edit(position, 0, slot.choices)))
            for choice in slot.choices:
                length = len(choice.modifiers)
                if words[position : position + length] == choice.modifiers:
                    following.add((position + length, edit))
                elif edit is None:
                    following |= {
                        (position + n, _Edit(position, n, (choice,))) for n in {1, length} if position + n <= len(words)
                    }
        states = following
    return {edit for position, edit in _drop_one_word(states, words) if edit is not None and position == len(words)}


def _drop_one_word(states: set[tuple[int, _Edit | None]], words: Words) -> set[tuple[int, _Edit | None]]:
    return states | {
        (position + 1, _Edit(position, 1, ())) for position, edit in states if edit is None and position < len(words)
    }
