"""The names of places in shared memory: variables, and the parts of dynamic memory that a caller has named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SharedNames:
    """Where each named place starts, and the sizes of those that have one."""

    places: tuple[tuple[int, str], ...]
    sizes: Mapping[int, int]

    def name(self, address: int) -> str:
        """Name a place by the variable that it lies in or behind."""
        before = [(start, at, name) for at, (start, name) in enumerate(self.places) if start <= address]
        if not before:
            return f"shared {address:#x}"
        start, _, name = max(before)
        return f"`{name}`+{address - start}" if address > start else f"`{name}`"

    def extent(self, symbol: str, offset: int, end: int) -> tuple[str, int, int]:
        """Return the variable or part that holds the place so many bytes behind a symbol: its name, its start and its
        end; `end` is that of all shared memory."""
        address = next(start for start, name in self.places if name == symbol) + offset
        start, at = max((start, at) for at, (start, _) in enumerate(self.places) if start <= address)
        size = self.sizes.get(start)
        following = min((other for other, _ in self.places if other > start), default=end)
        return self.places[at][1], start, following if size is None else start + size
