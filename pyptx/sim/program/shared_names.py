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
        place = self._find_place(address)
        if place is None:
            return f"shared {address:#x}"
        start, name = place
        return f"`{name}`+{address - start}" if address > start else f"`{name}`"

    def find_name(self, address: int) -> str:
        """Return the name of the last place that starts at or before an address, or an empty string."""
        return (self._find_place(address) or (0, ""))[1]

    def find_part(self, symbol: str, offset: int) -> str:
        """Return the name of the variable or part `offset` bytes after a symbol, or of a symbol that is no variable in
        shared memory."""
        start = next((start for start, name in self.places if name == symbol), None)
        return symbol if start is None else self.find_name(start + offset)

    def _find_place(self, address: int) -> tuple[int, str] | None:
        """Return the last place that starts at or before an address."""
        before = [(start, index) for index, (start, _) in enumerate(self.places) if start <= address]
        return self.places[max(before)[1]] if before else None

    def find_extent(self, symbol: str, offset: int, end: int) -> tuple[str, int, int]:
        """Return the name, start and end of the variable or part `offset` bytes after a symbol; `end` is the end of
        shared memory."""
        address = next(start for start, name in self.places if name == symbol) + offset
        start, index = max((start, index) for index, (start, _) in enumerate(self.places) if start <= address)
        size = self.sizes.get(start)
        following = min((next_start for next_start, _ in self.places if next_start > start), default=end)
        return self.places[index][1], start, following if size is None else start + size
