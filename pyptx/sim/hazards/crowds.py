"""Crowds: the threads of a reference that stands for more than the lanes of a warp."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from pyptx.sim.base.events import Ints


class Crowds:
    """Per record: the columns of its threads in the clocks, and the time of each access."""

    def __init__(self) -> None:
        self._single: dict[int, tuple[Ints, Ints]] = {}
        self._firsts: list[int] = []
        self._like: list[tuple[Ints, Ints, int]] = []
        self._origins = np.zeros((16, 3), np.int64)
        """Per call of `add`: its first record, its count, and the first record of the same columns."""
        self._earliest: dict[int, int] = {}

    def __setitem__(self, record: int, members: tuple[Ints, Ints]) -> None:
        self._single[record] = members

    def __getitem__(self, record: int) -> tuple[Ints, Ints]:
        crowd = self._single.get(record)
        if crowd is not None:
            return crowd
        at = bisect_right(self._firsts, record) - 1
        columns, ends, time = self._like[at]
        index = record - self._firsts[at]
        members = columns[int(ends[index - 1]) if index else 0 : int(ends[index])]
        return members, np.full(len(members), time)

    def add(self, first: int, columns: Ints, ends: Ints, time: int) -> None:
        """Add consecutive records from `first`, newer than all others; each has the columns up to its end."""
        if len(self._like) == len(self._origins):
            self._origins = np.concatenate([self._origins, np.zeros_like(self._origins)])
        earliest = self._earliest.setdefault(id(columns), first)
        self._origins[len(self._like)] = first, len(ends), earliest
        self._firsts.append(first)
        self._like.append((columns, ends, time))

    def identify(self, records: Ints) -> Ints:
        """Return the first record with the same threads as each record, by the calls of `add`: of those with the same
        array of columns."""
        firsts, counts, earliest = self._origins[: len(self._like)].T
        if not len(firsts):
            return records
        part = np.searchsorted(firsts, records, "right") - 1
        rank = records - firsts[part]
        return np.where((part >= 0) & (rank < counts[part]), earliest[part] + rank, records)
