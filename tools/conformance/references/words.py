"""Words as numbers: what the references of all families share."""

from __future__ import annotations

from collections.abc import Callable

from tools.conformance.forms import Case

Scalar = Callable[..., "int | tuple[int, ...]"]
"""A function of the bits of the inputs; it returns the bits of each output."""
Builder = Callable[[tuple[str, ...], Case], Scalar | None]
"""Returns the function of a spelling's modifiers, None for one that has no reference."""
One = Callable[[int], int]
Two = Callable[[int, int], int]
Few = One | Two


def bits_of(name: str) -> int:
    """Return the bits of a type such as `s32`."""
    return int("".join(c for c in name.partition("x")[0] if c.isdigit()))


def signed(value: int, bits: int) -> int:
    """Read bits as two's complement."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def read(value: int, name: str) -> int:
    """Read bits as a type."""
    bits = bits_of(name)
    return signed(value, bits) if name[0] == "s" else value & ((1 << bits) - 1)


def clamped(value: int, name: str) -> int:
    """Return the nearest value that a type has."""
    bits = bits_of(name)
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if name[0] == "s" else (0, (1 << bits) - 1)
    return min(max(value, low), high)
