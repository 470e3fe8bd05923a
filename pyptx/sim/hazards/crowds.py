"""Crowds: the threads of a reference that stands for more than the lanes of a warp."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from pyptx.sim.base.events import Ints, Mask


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
        at = bisect_right(self._firsts, record) - 1
        columns, ends, time = self._like[at]
        index = record - self._firsts[at]
        members = columns[int(ends[index - 1]) if index else 0 : int(ends[index])]
        return members, np.full(len(members), time)

    def add(self, first: int, columns: Ints, ends: Ints, time: int) -> None:
        """Add consecutive records from `first`, newer than all others; each has the columns up to its end."""
        self._firsts.append(first)
        self._like.append((columns, ends, time))

    def find_repeats(self, old: Ints, new: Ints) -> Mask:
        """Tell which old records have the same threads as the new ones, by the calls of `add`."""
        repeats = np.zeros(len(old), np.bool_)
        remaining = np.arange(len(old))
        while len(remaining):
            at = int(remaining[0])
            old_part, new_part = (bisect_right(self._firsts, int(records[at])) - 1 for records in (old, new))
            alike = min(old_part, new_part) >= 0 and self._like[old_part][0] is self._like[new_part][0]
            old_rank, new_rank = (
                records[remaining] - self._firsts[part] for records, part in ((old, old_part), (new, new_part))
            )
            count = len(self._like[old_part][1])
            in_parts = (
                (old_rank >= 0) & (old_rank < count) & (new_rank >= 0) & (new_rank < len(self._like[new_part][1]))
            )
            in_parts[0] = True
            repeats[remaining[in_parts & (old_rank == new_rank) & (old_rank < count)]] = alike
            remaining = remaining[~in_parts]
        return repeats
