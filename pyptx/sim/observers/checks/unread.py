"""Tells what copies bring into shared memory and what engines read of it, where `check="unused"` asks who reads it."""

from __future__ import annotations

import numpy as np

from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.hazards import Bytes
from pyptx.sim.hazards.unread import Unread
from pyptx.sim.observers.checks.session import checks_of
from pyptx.sim.state.memory import Site


def of(site: Site) -> Unread | None:
    """Return what follows the bytes that nobody has read, None where nobody asks."""
    return checks_of(site)[0].unread


def bring(site: Site, one: Lanes, cells: Array, size: int) -> None:
    """A copy of `size` bytes brings these of the batch's shared memory."""
    unread = of(site)
    if unread is not None:
        checks, place = checks_of(site)
        unread.bring(place, checks.group(one).first, cells, size)


def bring_box(site: Site, one: Lanes, units: Array, unit: int, ends: list[int], size: int) -> None:
    """A tensor copy brings the units of a box that lie inside the tensor: fill and padding are nobody's."""
    if of(site) is not None:
        within = (units[:, None] + np.arange(unit)).reshape(-1) - site.memory.shared.low
        stride = site.memory.shape.shared_stride
        for end in ends:
            bring(site, one, within + end // stride * stride, size)


def bring_boxes(site: Site, lanes: Lanes, units: Array, unit: int, ends: list[Array], size: int) -> None:
    """Lanes copy a box each, all of it inside the tensor, to one or several CTAs; `units` count from a box's start."""
    if of(site) is not None:
        within = (units[:, None] * unit + np.arange(unit)).reshape(-1)
        for at, lane in enumerate(lanes.index.tolist()):
            one = lanes.shape.range(lane, lane + 1)
            for end in ends:
                bring(site, one, within + int(end[at]), size)


def read(site: Site, where: Bytes) -> None:
    """An engine reads bytes."""
    unread = of(site)
    if unread is not None:
        unread.read(where)
