"""Place overlapping items of a track in separate rows: neither a trace viewer nor a page draws bars over bars."""

from __future__ import annotations

from collections.abc import Sequence

from pyptx.sim.observers.timeline.records import Transfer


def pack_rows(transfers: Sequence[Transfer]) -> tuple[list[int], dict[int, int]]:
    """Return the row of every transfer on its track, and the number of rows of each track."""
    ends: dict[int, list[int]] = {}
    rows = [0] * len(transfers)
    for index in sorted(range(len(transfers)), key=lambda n: (transfers[n].start, n)):
        item = transfers[index]
        row_ends = ends.setdefault(item.track, [])
        free = next((row for row, end in enumerate(row_ends) if end <= item.start), len(row_ends))
        row_ends[free:] = [item.end, *row_ends[free + 1 :]]
        rows[index] = free
    return rows, {track: len(track_ends) for track, track_ends in ends.items()}
