"""Changes of tensor maps, in shared and global memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from pyptx.check.body import Step
from pyptx.isa.traits import Trait
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.engines.issuing import select_lanes
from pyptx.sim.hazards import Access, Place, Space
from pyptx.sim.observers.checks.session import Session, locate_session, make_place
from pyptx.sim.state.memory import Site
from pyptx.tensormap import SIZE

Inner = Callable[..., None]
_UNIT = 16


def hook(step: Step, inner: Inner) -> Inner:
    """Return a function that changes or copies a map and reports it."""
    place = make_place(step.instruction)
    return partial(_copy if Trait.ORDERS in step.traits else _replace, inner, place)


def _record_accesses(
    checks: Session, site: Site, place: Place, by: Lanes, space: str, address: Any, kind: str
) -> int | None:
    """Report all bytes of a map in shared memory, for each of these lanes; return the address of one in global
    memory."""
    lane = by.shape.select_index(by.index[:1])
    region, offsets = site.memory.resolve(site, space, lane, np.array([address]), 64, "silent")
    begin = int(np.atleast_1d(offsets)[0])
    if region.space != "shared":
        return region.low + begin
    access = Access(place, Space.SHARED, _UNIT, "w" in kind, "r" in kind)
    for offset in range(begin, begin + SIZE, _UNIT):
        checks.engine.access(access, checks.group_lanes(by), np.full(by.n, offset))
    return None


def _replace(
    inner: Inner, place: Place, site: Site, lanes: Lanes, mask: Any, space: str, address: Any, outs: Any, *operands: Any
) -> None:
    checks, _ = locate_session(site)
    active, (addresses,) = select_lanes(lanes, mask, address)
    for position, index in enumerate(() if active is None else active.index.tolist()):
        lane = lanes.shape.select_range(index, index + 1)
        address_in_global = _record_accesses(checks, site, place, lane, space, addresses[position], "rw")
        if address_in_global is not None:
            _record_edit(checks, place, checks.group_lanes(lane).first, address_in_global)
    inner(site, lanes, mask, space, address, outs, *operands)


def _record_edit(checks: Session, place: Place, thread: int, address: int) -> None:
    checks.engine.maps.replace(thread, place, address, checks.engine.copies.list_unfinished())


def _copy(
    inner: Inner, place: Place, site: Site, lanes: Lanes, mask: Any, target_space: str, target: Any,
    source_space: str, source: Any, outs: Any, *size: Any,
) -> None:  # fmt: skip
    """Report that a warp copies a map and releases it."""
    checks, _ = locate_session(site)
    active, (target_addresses, source_addresses) = select_lanes(lanes, mask, target, source)
    if active is not None:
        _, firsts = np.unique(active.shape.warp[active.sel], return_index=True)
        for position in firsts.tolist():
            lane = lanes.shape.select_index(active.index[position : position + 1])
            warp = active.subset(active.shape.warp[active.sel] == active.shape.warp[active.sel][position])
            assert warp is not None
            _record_accesses(checks, site, place, warp, source_space, source_addresses[position], "r")
            address_in_global = _record_accesses(
                checks, site, place, lane, target_space, target_addresses[position], "w"
            )
            assert address_in_global is not None
            _record_edit(checks, place, checks.group_lanes(lane).first, address_in_global)
            checks.engine.maps.release(address_in_global)
    inner(site, lanes, mask, target_space, target, source_space, source, outs, *size)
