"""Puts what overlaps on one track into rows of its own: neither a trace viewer nor a page draws bars over bars."""

from __future__ import annotations

from collections.abc import Sequence

from pyptx.sim.observers.timeline.records import Transfer


def rows_of(transfers: Sequence[Transfer]) -> tuple[list[int], dict[int, int]]:
    """Return the row of every transfer on its track, and how many rows each track has."""
    ends: dict[int, list[int]] = {}
    rows = [0] * len(transfers)
    for at in sorted(range(len(transfers)), key=lambda n: (transfers[n].start, n)):
        item = transfers[at]
        taken = ends.setdefault(item.track, [])
        free = next((row for row, end in enumerate(taken) if end <= item.start), len(taken))
        taken[free:] = [item.end, *taken[free + 1 :]]
        rows[at] = free
    return rows, {track: len(taken) for track, taken in ends.items()}
