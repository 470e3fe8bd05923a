"""Which Python function answers a driver function, and the kinds of its parameters.

A kind is one word: `pointer` (also handles and device addresses), `result` (a pointer that must not be null), `size`,
`int`, `uint`, `ushort`, `byte`, `handle` (a structure of 64 bytes, whose address the answer gets).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

PER_THREAD = 1 << 16
"""Added to the number of an entry if stream 0 is the default stream of the calling thread."""
KINDS = {
    "pointer": "Q", "result": "Q", "size": "Q", "int": "i4x", "uint": "I4x", "ushort": "H6x", "byte": "B7x",
    "handle": "Q",
}  # fmt: skip
C_TYPES = {
    "pointer": "uintptr_t", "result": "uintptr_t", "size": "size_t", "int": "int", "uint": "unsigned",
    "ushort": "unsigned short", "byte": "unsigned char", "handle": "Handle",
}  # fmt: skip


def write_parameters(kinds: Sequence[str], types: Mapping[str, str] = C_TYPES) -> str:
    """Return the parameters of a C function, named a0, a1 …"""
    return ", ".join(f"{types[kind]} a{index}" for index, kind in enumerate(kinds)) or "void"


@dataclass(frozen=True, slots=True)
class Entry:
    """A driver function that the simulation answers: its symbol, the kinds of its parameters, the answer, which takes
    the calling thread and the arguments, and whether it may be called before `cuInit`."""

    symbol: str
    kinds: tuple[str, ...]
    answer: Callable[..., object]
    is_early: bool
    arguments: struct.Struct = field(init=False)

    def __post_init__(self) -> None:
        layout = struct.Struct("<" + "".join(KINDS[kind] for kind in self.kinds))
        object.__setattr__(self, "arguments", layout)


ENTRIES: dict[str, Entry] = {}
"""The entries by symbol. Their numbers in the library are in alphabetical order."""


def entry(
    symbols: str, kinds: str = "", *, is_early: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the answer to driver functions with the same parameters."""

    def register(answer: Callable[..., Any]) -> Callable[..., Any]:
        for symbol in symbols.split():
            ENTRIES[symbol] = Entry(symbol, tuple(kinds.split()), answer, is_early)
        return answer

    return register
