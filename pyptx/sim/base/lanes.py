"""Sets of lanes that run together: a contiguous range, which slices registers, or sorted indices.

Lane `t * ctas + c` is thread `t` of the batch's CTA `c`. Knows no instruction and no schedule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pyptx.sim.base.formats import Array, Value


class Shape:
    """The lanes of one batch: the number of threads and CTAs, and the position of each lane."""

    def __init__(self, block: tuple[int, int, int], ctas: int) -> None:
        self.block = block
        self.threads = block[0] * block[1] * block[2]
        self.ctas = ctas
        self.lanes = self.threads * ctas
        self.index = np.arange(self.lanes)
        self.thread, self.cta = np.divmod(self.index, ctas)
        self.warps = -(-self.threads // 32)
        self.warp = (self.thread // 32) * ctas + self.cta
        self.lane = (self.thread % 32).astype(np.uint32)
        self.warp_base = (self.thread // 32) * 32 * ctas + self.cta
        self.shared_base = np.zeros(self.lanes, np.int64)
        self.shared_stride = 0
        self.pair = np.zeros(self.lanes, np.uint32)
        """The upper bits of addresses in a lane's own shared memory."""
        """Where each lane's shared memory starts in that of the batch, and how far apart CTAs are: memory sets them."""
        self._ranges: dict[tuple[int, int], Lanes] = {}

    def range(self, lo: int, hi: int) -> Lanes:
        """Return the lanes lo … hi-1, always the same object for the same range."""
        found = self._ranges.get((lo, hi))
        if found is None:
            found = self._ranges[lo, hi] = Lanes(self, lo, hi, None)
        return found

    def all(self) -> Lanes:
        """Return every lane."""
        return self.range(0, self.lanes)

    def of(self, index: Array) -> Lanes:
        """Return the lanes of a sorted, non-empty index."""
        lo, hi = int(index[0]), int(index[-1]) + 1
        return self.range(lo, hi) if hi - lo == len(index) else Lanes(self, lo, hi, index)

    def merged(self, groups: list[Lanes]) -> Lanes:
        """Return the union of disjoint groups."""
        if len(groups) == 1:
            return groups[0]
        return self.of(np.sort(np.concatenate([group.index for group in groups])))


class Lanes:
    """Lanes at one place of the program. `positions` is None for a range."""

    __slots__ = ("_cache", "bound", "hi", "lo", "n", "positions", "sel", "shape")

    def __init__(self, shape: Shape, lo: int, hi: int, positions: Array | None) -> None:
        self.shape, self.lo, self.hi, self.positions = shape, lo, hi, positions
        self.n = hi - lo if positions is None else len(positions)
        self.sel: Any = slice(lo, hi) if positions is None else positions
        self.bound: dict[int, Callable[[], int]] = {}
        self._cache: dict[str, Any] = {}

    @property
    def index(self) -> Array:
        """The lanes' numbers."""
        return self.shape.index[self.lo : self.hi] if self.positions is None else self.positions

    def of(self, name: str, values: Array) -> Array:
        """Return the lanes' part of a constant per-lane array, cached by name."""
        found = self._cache.get(name)
        if found is None:
            found = self._cache[name] = values[self.sel]
        return found

    def remembered(self, key: str, make: Callable[[], Any]) -> Value:
        """Return the result of `make`, cached by key."""
        found = self._cache.get(key)
        if found is None:
            found = self._cache[key] = make()
        return found

    @property
    def cta(self) -> Array:
        return self.of("cta", self.shape.cta)

    def each(self, values: Any) -> Array:
        """Return a value for every lane, from one per lane or one for all."""
        if np.shape(values) == (self.n,):
            return values
        return np.broadcast_to(values, self.n)

    def subset(self, mask: Array) -> Lanes | None:
        """Return the lanes where the mask is set, None if there are none."""
        chosen = self.index[mask]
        return self.shape.of(chosen) if len(chosen) else None

    def split(self, mask: Array) -> tuple[Lanes | None, Lanes | None]:
        """Return the lanes where the mask is set and the others."""
        return self.subset(mask), self.subset(~mask)
