"""Sets of lanes that run together: a contiguous range, which slices registers, or sorted indices.

Lane `t * ctas + c` is thread `t` of the batch's CTA `c`. Knows no instruction and no schedule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pyptx.sim.base.formats import Array, Value


class Shape:
    """The lanes of a batch: how many threads and CTAs it has, and where each lane is."""

    def __init__(
        self, block: tuple[int, int, int], ctas: int, shared_size: int = 0, cluster: int = 1, pair_bit: int = 0
    ) -> None:
        """`shared_size` is the size of a CTA's shared memory; its addresses contain `pair_bit` in the CTAs of a
        cluster with an odd rank."""
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
        self.shared_stride = -(-max(shared_size, 16) // 16) * 16
        """The distance between the shared memories of neighboring CTAs."""
        self.shared_base = self.cta * self.shared_stride
        """Where each lane's shared memory starts in that of the batch."""
        self.pair = (self.cta % cluster & 1).astype(np.uint32) * np.uint32(pair_bit)
        """The upper bits of addresses in a lane's own shared memory."""
        self._ranges: dict[tuple[int, int], Lanes] = {}

    def select_range(self, lo: int, hi: int) -> Lanes:
        """Return the lanes lo … hi-1, as the same object each time."""
        lanes = self._ranges.get((lo, hi))
        if lanes is None:
            lanes = self._ranges[lo, hi] = Lanes(self, lo, hi, None)
        return lanes

    def select_all(self) -> Lanes:
        """Return every lane."""
        return self.select_range(0, self.lanes)

    def select_index(self, index: Array) -> Lanes:
        """Return the lanes of a sorted, non-empty index."""
        lo, hi = int(index[0]), int(index[-1]) + 1
        return self.select_range(lo, hi) if hi - lo == len(index) else Lanes(self, lo, hi, index)

    def merge(self, groups: list[Lanes]) -> Lanes:
        """Return the union of disjoint groups."""
        if len(groups) == 1:
            return groups[0]
        return self.select_index(np.sort(np.concatenate([group.index for group in groups])))


class Lanes:
    """A set of lanes that run together. `positions` is None for a range."""

    __slots__ = ("_cache", "closures", "hi", "lo", "n", "positions", "sel", "shape")

    def __init__(self, shape: Shape, lo: int, hi: int, positions: Array | None) -> None:
        self.shape, self.lo, self.hi, self.positions = shape, lo, hi, positions
        self.n = hi - lo if positions is None else len(positions)
        self.sel: Any = slice(lo, hi) if positions is None else positions
        self.closures: dict[int, Callable[[], int]] = {}
        self._cache: dict[str, Any] = {}

    @property
    def index(self) -> Array:
        """The lanes' numbers."""
        return self.shape.index[self.lo : self.hi] if self.positions is None else self.positions

    def select_values(self, name: str, values: Array) -> Array:
        """Return these lanes' values of a constant per-lane array, cached by name."""
        lane_values = self._cache.get(name)
        if lane_values is None:
            lane_values = self._cache[name] = values[self.sel]
        return lane_values

    def compute_once(self, key: str, make: Callable[[], Any]) -> Value:
        """Return the result of `make`, cached by key."""
        result = self._cache.get(key)
        if result is None:
            result = self._cache[key] = make()
        return result

    @property
    def cta(self) -> Array:
        return self.select_values("cta", self.shape.cta)

    def broadcast(self, values: Any) -> Array:
        """Return one value per lane, from an array of them or one value for all."""
        if np.shape(values) == (self.n,):
            return values
        return np.broadcast_to(values, self.n)

    def subset(self, mask: Array) -> Lanes | None:
        """Return the lanes whose mask is set, or None without any."""
        indices = self.index[mask]
        return self.shape.select_index(indices) if len(indices) else None

    def split(self, mask: Array) -> tuple[Lanes | None, Lanes | None]:
        """Return the lanes whose mask is set, and those whose mask is clear."""
        return self.subset(mask), self.subset(~mask)
