"""Releases of many groups of threads, computed at once: arrivals of all CTAs, each on its own mbarrier."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pyptx.sim.base.events import Clock, Ints
from pyptx.sim.hazards.clocks import (
    CLUSTER,
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
    """Return the result of `Clocks.release` for each group of a cluster's threads; None, with nothing done, if their
    knowledge is not of the simple kind."""
    sizes = [len(threads) for threads in groups]
    threads, group = np.concatenate(groups), np.arange(len(groups)).repeat(sizes)
    every = clocks.row_of[threads]
    begins = np.flatnonzero(np.append(True, (every[1:] != every[:-1]) | (group[1:] != group[:-1])))
    rows, whose = every[begins], group[begins]
    warps = clocks.row_warp[rows].astype(np.int64)
    domains, span = clocks.domain_of[warps], len(clocks.domain_of)
    starts = np.flatnonzero(np.append(True, whose[1:] != whose[:-1]))
    if clocks.foreign or clocks.copy_column[warps].any() or (domains != domains[starts][whose]).any():
        return None
    each = len(rows) // len(groups)
    if len(rows) % len(groups) or (starts != np.arange(0, len(rows), each)).any():
        return None
    known = clocks.table[rows[::each]]
    for rank in range(1, each):
        np.maximum(known, clocks.table[rows[rank::each]], out=known)
    floors = clocks.floors[rows]
    if floors.any():
        alone = len(np.unique(whose * span + warps)) == len(rows)
        _write_floors(clocks, known, floors, warps, whose, alone)
    columns = clocks.columns_of(threads)
    known[group, _OWN, columns] = clocks.now
    if clocks.crossed_at >= 0:
        known[group, _CROSSED, columns] = np.maximum(known[group, _CROSSED, columns], clocks.crossed_own[threads].T)
    clocks.tick()
    return [Stamp(domain, part, {}) for domain, part in zip(domains[starts].tolist(), known, strict=True)]


def _write_floors(clocks: Clocks, known: Clock, floors: Clock, warps: Ints, whose: Ints, alone: bool) -> None:
    """Write the floors of whole warps, CTAs and clusters as columns; `alone`: no two rows of a group are of one
    warp."""
    first = clocks.first_thread[warps]
    lanes = (warps * 32 - first + 1)[:, None, None] + np.arange(32)
    at = whose[:, None, None], np.arange(FLOORED)[:, None], lanes
    if alone:
        known[at] = np.maximum(known[at], floors[:, :, WARP, None])
    else:
        np.maximum.at(known, at, floors[:, :, WARP, None])
    spans = clocks.cta_span[warps]
    for low in np.unique(spans[:, 0]).tolist():
        group = np.flatnonzero(spans[:, 0] == low)
        starts = np.flatnonzero(np.append(True, whose[group][1:] != whose[group][:-1]))
        level = np.maximum.reduceat(floors[group, :, CTA], starts, axis=0)
        mine, high = whose[group][starts], int(spans[group[0], 1])
        part = np.maximum(known[mine, :FLOORED, low:high], level[:, :, None])
        known[mine, :FLOORED, low:high] = part
    wide = floors[:, :, CLUSTER]
    if wide.any():
        size = clocks.threads_of_cluster(int(warps[0])) + 1
        starts = np.flatnonzero(np.append(True, whose[1:] != whose[:-1]))
        level = np.maximum.reduceat(wide, starts, axis=0)[:, :, None]
        known[:, :FLOORED, 1:size] = np.maximum(known[:, :FLOORED, 1:size], level)
    known[:, RAN] = np.maximum(known[:, RAN], known[:, SEEN])
