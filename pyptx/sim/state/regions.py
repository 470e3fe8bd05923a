"""Regions: bytes of one state space with one owner."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyptx.sim.base.formats import Array


class Region:
    """Bytes with one owner, and their views by dtype. `low` is the address of the first byte. Bytes that the caller
    lent (`lent`) are copied before the first write; `fresh` ones are uninitialized until then, except those that
    `initial` marks."""

    __slots__ = ("_views", "data", "fresh", "initial", "lent", "low", "name", "size", "space", "writable")

    def __init__(
        self, name: str, space: str, low: int, size: int, data: Array, writable: bool = True, lent: bool = False,
        fresh: bool = False,
    ) -> None:  # fmt: skip
        self.name, self.space, self.low, self.size, self.data = name, space, low, size, data
        self.writable, self.lent, self.fresh = writable, lent, fresh
        self.initial: Array | None = None
        self._views: dict[tuple[np.dtype[Any], int], Array] = {}

    def view(self, dtype: np.dtype[Any], element: int) -> Array:
        """Return the bytes as elements of a dtype, starting at an element."""
        view = self._views.get((dtype, element))
        if view is None:
            size = len(self.data) // dtype.itemsize * dtype.itemsize
            view = self._views[dtype, element] = self.data[:size].view(dtype)[element:]
        return view

    def copy_data(self) -> None:
        """Replace lent bytes by a copy."""
        self.data, self.lent = self.data.copy(), False
        self._views.clear()
