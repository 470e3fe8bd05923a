"""Edits of tensor maps, in shared and global memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from pyptx.check.body import Step
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.engines.issuing import chosen
from pyptx.sim.hazards import Access, Place, Space
from pyptx.sim.observers.checks.session import Session, checks_of, place_of
from pyptx.sim.state.memory import Site
from pyptx.tensormap import SIZE

Inner = Callable[..., None]
_UNIT = 16


def hook(step: Step, inner: Inner) -> Inner:
    """Return what edits or copies a map and tells of it."""
    place = place_of(step.instruction)
    return partial(_copy if ".cp_fenceproxy" in step.instruction.modifiers else _replace, inner, place)


def _record_accesses(
    checks: Session, site: Site, place: Place, by: Lanes, space: str, address: Any, kind: str
) -> int | None:
    """Tell of all bytes of a map in shared memory, for each of these lanes; return the address of one in global
    memory."""
    one = by.shape.of(by.index[:1])
    region, offsets = site.memory.resolve(site, space, one, np.array([address]), 64, "told")
    begin = int(np.atleast_1d(offsets)[0])
    if region.space != "shared":
        return region.low + begin
    access = Access(place, Space.SHARED, _UNIT, "w" in kind, "r" in kind)
    for at in range(begin, begin + SIZE, _UNIT):
        checks.engine.access(access, checks.group(by), np.full(by.n, at))
    return None


def _replace(
    inner: Inner, place: Place, site: Site, lanes: Lanes, mask: Any, space: str, address: Any, outs: Any, *given: Any
) -> None:
    checks, _ = checks_of(site)
    active, (where,) = chosen(lanes, mask, address)
    for at in range(0 if active is None else active.n):
        one = lanes.shape.of(active.index[at : at + 1])  # pyright: ignore[reportOptionalMemberAccess]
        address_in_global = _record_accesses(checks, site, place, one, space, where[at], "rw")
        if address_in_global is not None:
            _record_edit(checks, place, checks.group(one).first, address_in_global)
    inner(site, lanes, mask, space, address, outs, *given)


def _record_edit(checks: Session, place: Place, thread: int, address: int) -> None:
    checks.engine.maps.replace(thread, place, address, checks.engine.copies.unfinished())


def _copy(
    inner: Inner, place: Place, site: Site, lanes: Lanes, mask: Any, to: str, target: Any, of: str, source: Any,
    outs: Any, *size: Any,
) -> None:  # fmt: skip
    """A warp copies a map and releases it."""
    checks, _ = checks_of(site)
    active, (there, here) = chosen(lanes, mask, target, source)
    if active is not None:
        checks.aligned(active, place)
        _, firsts = np.unique(active.shape.warp[active.sel], return_index=True)
        for at in firsts.tolist():
            one = lanes.shape.of(active.index[at : at + 1])
            warp = active.subset(active.shape.warp[active.sel] == active.shape.warp[active.sel][at])
            assert warp is not None
            _record_accesses(checks, site, place, warp, of, here[at], "r")
            address_in_global = _record_accesses(checks, site, place, one, to, there[at], "w")
            if address_in_global is not None:
                _record_edit(checks, place, checks.group(one).first, address_in_global)
                checks.engine.maps.release(address_in_global)
    inner(site, lanes, mask, to, target, of, source, outs, *size)
