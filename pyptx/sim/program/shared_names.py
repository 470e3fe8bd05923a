"""The names of addresses in shared memory: variables, and parts of dynamic memory that the caller names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SharedNames:
    """The start of each named place, and its size if known."""

    places: tuple[tuple[int, str], ...]
    sizes: Mapping[int, int]

    def format_address(self, address: int) -> str:
        """Format an address as an offset from the last variable that starts at or before it."""
        before = [(start, at, name) for at, (start, name) in enumerate(self.places) if start <= address]
        if not before:
            return f"shared {address:#x}"
        start, _, name = max(before)
        return f"`{name}`+{address - start}" if address > start else f"`{name}`"

    def find_extent(self, symbol: str, offset: int, end: int) -> tuple[str, int, int]:
        """Return the name, start and end of the variable or part `offset` bytes after a symbol; `end` is the end of
        shared memory."""
        address = next(start for start, name in self.places if name == symbol) + offset
        start, at = max((start, at) for at, (start, _) in enumerate(self.places) if start <= address)
        size = self.sizes.get(start)
        following = min((next_start for next_start, _ in self.places if next_start > start), default=end)
        return self.places[at][1], start, following if size is None else start + size
