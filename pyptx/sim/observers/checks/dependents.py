"""Report accesses of copies to global memory, if `check="dependents"` asks which precede `griddepcontrol.wait`."""

from __future__ import annotations

from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.hazards import Bytes, Space
from pyptx.sim.observers.checks.session import locate_session
from pyptx.sim.state.memory import Site


def check_access(site: Site, lanes: Lanes, extent: Bytes, *, writes: bool) -> None:
    """Report a copy of a lane if its bytes are in global memory. It counts at issue, whenever it lands."""
    if extent.space is Space.GLOBAL and len(extent.starts):
        check_accesses(site, lanes, extent.starts[:1], extent.length, writes=writes)


def check_accesses(site: Site, lanes: Lanes, addresses: Array, size: int, *, writes: bool) -> None:
    """Report copies of global memory, from one address per lane."""
    checks, place = locate_session(site)
    if checks.early is not None:
        checks.early.access(place, checks.group_lanes(lanes).threads, addresses, size, writes=writes)
