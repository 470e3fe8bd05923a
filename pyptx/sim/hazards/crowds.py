"""Crowds: the threads of a reference that stands for more than the lanes of a warp."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from pyptx.sim.base.events import Ints

_SPREAD = 0x9E3779B97F4A7C15 - (1 << 64)
"""A multiplier that spreads columns over all bits."""


def sign_crowds(columns: Ints, starts: Ints) -> Ints:
    """Return a number for each crowd, the same only for the same columns; it serves as the mask of its record."""
    bits = columns.astype(np.int64) * _SPREAD
    return np.add.reduceat((bits ^ bits >> 29) * _SPREAD, starts)


class Crowds:
    """Per record: the columns of its threads in the clocks, and the time of each access."""

    def __init__(self) -> None:
        self._single: dict[int, tuple[Ints, Ints]] = {}
        self._firsts: list[int] = []
        self._like: list[tuple[Ints, Ints, int]] = []

    def __setitem__(self, record: int, members: tuple[Ints, Ints]) -> None:
        self._single[record] = members

    def __getitem__(self, record: int) -> tuple[Ints, Ints]:
        crowd = self._single.get(record)
        if crowd is not None:
            return crowd
        position = bisect_right(self._firsts, record) - 1
        columns, ends, time = self._like[position]
        index = record - self._firsts[position]
        members = columns[int(ends[index - 1]) if index else 0 : int(ends[index])]
        return members, np.full(len(members), time)

    def add(self, first: int, columns: Ints, ends: Ints, time: int) -> None:
        """Add consecutive records from `first`, newer than all others; each has the columns up to its end."""
        self._firsts.append(first)
        self._like.append((columns, ends, time))
