"""Packs named bit fields into one number, and unpacks them."""

from __future__ import annotations

from collections.abc import Mapping

Fields = Mapping[str, tuple[int, int]]
"""Name to (lowest bit, number of bits)."""


def pack(fields: Fields, values: Mapping[str, int]) -> int:
    """Return the number; ValueError if a value does not fit its field."""
    word = 0
    for name, value in values.items():
        low, width = fields[name]
        if not 0 <= value < 1 << width:
            raise ValueError(f"`{name}` has {width} bits; {value} does not fit")
        word |= value << low
    return word


def pack_attributes(fields: Fields, codes: Mapping[str, int], descriptor: object) -> int:
    """Return the number; fields without a code hold the descriptor's attributes of their names."""
    return pack(fields, {name: codes[name] if name in codes else getattr(descriptor, name) for name in fields})


def unpack(fields: Fields, word: int) -> dict[str, int]:
    """Return every field's value."""
    return {name: word >> low & ((1 << width) - 1) for name, (low, width) in fields.items()}


def mask(fields: Fields) -> int:
    """Return the bits that belong to any field."""
    return sum(((1 << width) - 1) << low for low, width in fields.values())
