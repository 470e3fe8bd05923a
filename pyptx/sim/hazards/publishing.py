"""Releases of many groups of threads at once, as when all CTAs arrive, each on its own mbarrier."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pyptx.sim.base.events import Clock, Ints
from pyptx.sim.hazards.clocks import (
    CROSS,
    CTA,
    FLOORED,
    ORDER,
    RAN,
    SEEN,
    WARP,
    Clocks,
    Stamp,
)

_OWN = np.array([*ORDER, RAN])[:, None]
_CROSSED = np.array(CROSS)[:, None]


def release_each(clocks: Clocks, groups: Sequence[Ints]) -> list[Stamp] | None:
    """Return `Clocks.release` of each group, all at one time. Return None, with nothing done, if the groups differ in
    shape, span clusters, or know other clusters or `cp.async` operations."""
    sizes = [len(threads) for threads in groups]
    threads, group = np.concatenate(groups), np.arange(len(groups)).repeat(sizes)
    thread_rows = clocks.row_of[threads]
    begins = np.flatnonzero(np.append(True, (thread_rows[1:] != thread_rows[:-1]) | (group[1:] != group[:-1])))
    rows, group_of_row = thread_rows[begins], group[begins]
    warps = clocks.row_warp[rows].astype(np.int64)
    domains, span = clocks.domain_of[warps], len(clocks.domain_of)
    starts = np.flatnonzero(np.append(True, group_of_row[1:] != group_of_row[:-1]))
    if clocks.foreign or clocks.copy_column[warps].any() or (domains != domains[starts][group_of_row]).any():
        return None
    rows_per_group = len(rows) // len(groups)
    if len(rows) % len(groups) or (starts != np.arange(0, len(rows), rows_per_group)).any():
        return None
    clock = clocks.table[rows[::rows_per_group]]
    for rank in range(1, rows_per_group):
        np.maximum(clock, clocks.table[rows[rank::rows_per_group]], out=clock)
    floors = clocks.floors[rows]
    if floors.any():
        alone = len(np.unique(group_of_row * span + warps)) == len(rows)
        _write_floors(clocks, clock, floors, warps, group_of_row, alone)
    columns = clocks.find_columns(threads)
    clock[group, _OWN, columns] = clocks.now
    if clocks.crossed_at:
        clock[group, _CROSSED, columns] = np.maximum(clock[group, _CROSSED, columns], clocks.crossed_own[threads].T)
    clocks.tick()
    return [Stamp(domain, part, {}) for domain, part in zip(domains[starts].tolist(), clock, strict=True)]


def _write_floors(clocks: Clocks, clock: Clock, floors: Clock, warps: Ints, group_of_row: Ints, distinct: bool) -> None:
    """Write the floors of warps and CTAs as columns. `distinct`: no two rows of a group belong to one
    warp."""
    first = clocks.first_thread[warps]
    lanes = (warps * 32 - first + 1)[:, None, None] + np.arange(32)
    cells = group_of_row[:, None, None], np.arange(FLOORED)[:, None], lanes
    if distinct:
        clock[cells] = np.maximum(clock[cells], floors[:, :, WARP, None])
    else:
        np.maximum.at(clock, cells, floors[:, :, WARP, None])
    spans = clocks.cta_span[warps]
    for low in np.unique(spans[:, 0]).tolist():
        group = np.flatnonzero(spans[:, 0] == low)
        starts = np.flatnonzero(np.append(True, group_of_row[group][1:] != group_of_row[group][:-1]))
        level = np.maximum.reduceat(floors[group, :, CTA], starts, axis=0)
        members, high = group_of_row[group][starts], int(spans[group[0], 1])
        part = np.maximum(clock[members, :FLOORED, low:high], level[:, :, None])
        clock[members, :FLOORED, low:high] = part
    clock[:, RAN] = np.maximum(clock[:, RAN], clock[:, SEEN])
