"""Report what copies write to shared memory and what engines read of it, for `check="unused"`."""

from __future__ import annotations

import numpy as np

from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.hazards import Bytes
from pyptx.sim.hazards.unread import Unread
from pyptx.sim.observers.checks.session import locate_session
from pyptx.sim.state.memory import Site


def find_unread(site: Site) -> Unread | None:
    """Return the record of unread bytes, None if not selected."""
    return locate_session(site)[0].unread


def record_bytes(site: Site, lane: Lanes, cells: Array, size: int) -> None:
    """Record the cells of the batch's shared memory that a copy of `size` bytes writes."""
    unread = find_unread(site)
    if unread is not None:
        checks, place = locate_session(site)
        unread.record_copy(place, checks.group_lanes(lane).first, cells, size)


def record_box(site: Site, lane: Lanes, units: Array, unit: int, ends: list[int], size: int) -> None:
    """Record the units of a tensor copy's box inside the tensor: fill and padding do not count."""
    if find_unread(site) is not None:
        within = (units[:, None] + np.arange(unit)).reshape(-1) - site.memory.shared.low
        stride = site.memory.shape.shared_stride
        for end in ends:
            record_bytes(site, lane, within + end // stride * stride, size)


def record_boxes(site: Site, lanes: Lanes, units: Array, unit: int, ends: list[Array], size: int) -> None:
    """Record one box per lane, all inside the tensor, in one or several CTAs; `units` count from the start of a box."""
    if find_unread(site) is not None:
        within = (units[:, None] * unit + np.arange(unit)).reshape(-1)
        for position, lane in enumerate(lanes.index.tolist()):
            issuer = lanes.shape.select_range(lane, lane + 1)
            for end in ends:
                record_bytes(site, issuer, within + int(end[position]), size)


def record_read(site: Site, extent: Bytes) -> None:
    """Record that an engine reads bytes."""
    unread = find_unread(site)
    if unread is not None:
        unread.record_read(extent)
