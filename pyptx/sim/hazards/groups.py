"""Sets of threads that execute an instruction together, with cached properties."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pyptx.sim.base.events import Clock, Ints


@dataclass(frozen=True, slots=True)
class Ctas:
    """The CTAs of a group: the position of each one's first thread, the CTA of each thread, the threads of each CTA."""

    first: Ints
    index: Ints
    members: list[Ints]


class Group:
    """Threads in the order of the machine's lanes. Create one per lane set and keep it: its properties are cached."""

    def __init__(self, threads: Ints) -> None:
        self.threads = np.asarray(threads, np.int64)
        self.epoch = -1
        self.tags = self.lives = self.threads
        self.columns: Clock = np.zeros(0, np.int32)
        self.floor_at: tuple[int, int] = (-1, -1)
        self.floor = 0
        self.whole_at = -1
        self.whole = False
        self.complete_at = -1
        self.rows_at = -1
        self.rows: Clock | slice[int, int, None] = np.zeros(0, np.int32)
        self._ctas: Ctas | None = None
        self.refs: dict[int, tuple[int, Clock]] = {}

    def __len__(self) -> int:
        return len(self.threads)

    @cached_property
    def lanes(self) -> Ints:
        return self.threads & 31

    @cached_property
    def _by_warp(self) -> tuple[Ints, Ints]:
        warps = self.threads >> 5
        first = int(warps[0])
        if (warps == first).all():
            return np.array([first], np.int64), np.zeros(len(warps), np.int64)
        unique, inverse = np.unique(warps, return_inverse=True)
        return unique, inverse.astype(np.int64)

    @property
    def warps(self) -> Ints:
        """The distinct warps."""
        return self._by_warp[0]

    @property
    def warp_index(self) -> Ints:
        """Per thread, the position of its warp in `warps`."""
        return self._by_warp[1]

    @cached_property
    def offsets(self) -> Clock:
        """Per thread, the offset of its reference from that of the first lane of the first warp."""
        return (self.warp_index * 64 + self.lanes).astype(np.int32)

    @cached_property
    def masks(self) -> Ints:
        """Per warp, the mask of its lanes."""
        lane_masks = np.zeros(len(self.warps), np.int64)
        np.bitwise_or.at(lane_masks, self.warp_index, np.int64(1) << self.lanes)
        return lane_masks

    @cached_property
    def first(self) -> int:
        return int(self.threads[0])

    def split_by_cta(self, first_thread: int, stride: int) -> Ctas:
        """Return the CTAs of the group."""
        if self._ctas is None:
            slots = (self.threads - first_thread) // stride
            _, first, index, counts = np.unique(slots, return_index=True, return_inverse=True, return_counts=True)
            index = index.reshape(-1)
            members = np.split(self.threads[np.argsort(index, kind="stable")], np.cumsum(counts)[:-1])
            self._ctas = Ctas(first, index, members)
        return self._ctas

    @cached_property
    def ends(self) -> tuple[Ints, Ints]:
        """Per warp, the positions of its first and last thread."""
        index, count = self.warp_index, len(self.warps)
        first, last = np.zeros(count, np.int64), np.zeros(count, np.int64)
        last[index] = np.arange(len(index))
        first[index[::-1]] = np.arange(len(index))[::-1]
        return first, last

    @cached_property
    def thread_list(self) -> list[int]:
        """The thread numbers as a list."""
        return self.threads.tolist()

    @cached_property
    def members(self) -> frozenset[int]:
        return frozenset(self.threads.tolist())

    def __getitem__(self, positions: Ints | list[int]) -> Group:
        return Group(self.threads[positions])
