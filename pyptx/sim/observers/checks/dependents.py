"""Tells what copies touch of global memory, where `check="dependents"` asks what comes before `griddepcontrol.wait`."""

from __future__ import annotations

from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.hazards import Bytes, Space
from pyptx.sim.observers.checks.session import checks_of
from pyptx.sim.state.memory import Site


def touch(site: Site, lanes: Lanes, where: Bytes, *, writes: bool) -> None:
    """A lane copies bytes, if they are of global memory; it does so now, whenever they land."""
    if where.space is Space.GLOBAL and len(where.starts):
        touch_each(site, lanes, where.starts[:1], where.length, writes=writes)


def touch_each(site: Site, lanes: Lanes, addresses: Array, size: int, *, writes: bool) -> None:
    """Lanes copy bytes of global memory from an address each."""
    checks, place = checks_of(site)
    if checks.early is not None:
        checks.early.access(place, checks.group(lanes).threads, addresses, size, writes=writes)
