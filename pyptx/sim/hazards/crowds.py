"""The threads of one reference to a record, if they are more than the lanes of a warp."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from pyptx.sim.base.events import Ints, Mask


class Crowds:
    """Per record, the columns of its threads in the clocks, and when each accessed."""

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
        at = bisect_right(self._firsts, record) - 1
        columns, ends, time = self._like[at]
        which = record - self._firsts[at]
        mine = columns[int(ends[which - 1]) if which else 0 : int(ends[which])]
        return mine, np.full(len(mine), time)

    def add(self, first: int, columns: Ints, ends: Ints, time: int) -> None:
        """Add records from a first one, newer than all previous ones, each with its columns up to an end."""
        self._firsts.append(first)
        self._like.append((columns, ends, time))

    def repeat(self, old: Ints, new: Ints) -> Mask:
        """Tell which records have the same threads, added in the same order, as others."""
        repeats = np.zeros(len(old), np.bool_)
        left = np.arange(len(old))
        while len(left):
            at = int(left[0])
            first, then = (bisect_right(self._firsts, int(records[at])) - 1 for records in (old, new))
            alike = min(first, then) >= 0 and self._like[first][0] is self._like[then][0]
            mine, theirs = (records[left] - self._firsts[which] for records, which in ((old, first), (new, then)))
            count = len(self._like[first][1])
            here = (mine >= 0) & (mine < count) & (theirs >= 0) & (theirs < len(self._like[then][1]))
            here[0] = True
            repeats[left[here & (mine == theirs) & (mine < count)]] = alike
            left = left[~here]
        return repeats
