"""Words as numbers, for the references of all families."""

from __future__ import annotations

from collections.abc import Callable

from tools.conformance.forms import Case

Scalar = Callable[..., "int | tuple[int, ...]"]
"""A function of the bits of the inputs; it returns the bits of each output."""
Builder = Callable[[tuple[str, ...], Case], Scalar | None]
"""Takes the modifiers of a spelling; returns its function, or None if it has no reference."""
Unary = Callable[[int], int]
Binary = Callable[[int, int], int]
Function = Unary | Binary


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


def clamp(value: int, name: str) -> int:
    """Return the nearest value of a type."""
    bits = bits_of(name)
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if name[0] == "s" else (0, (1 << bits) - 1)
    return min(max(value, low), high)
