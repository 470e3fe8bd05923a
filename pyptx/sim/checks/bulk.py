"""Bulk and tensor copies: `sim.bulk` calls these when it issues one. Knows bytes, not how addresses become them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pyptx.sim.checks.session import Checks, checks_of
from pyptx.sim.formats import Array
from pyptx.sim.hazards import Bytes, Place, Space
from pyptx.sim.lanes import Lanes

if TYPE_CHECKING:
    from pyptx.sim.copies import Copy
    from pyptx.sim.memory import Region, Site


def region_bytes(region: Region, begin: int, size: int) -> Bytes:
    """Return a run of bytes of shared or global memory."""
    if region.space == "shared":
        return Bytes.run(Space.SHARED, begin, size)
    return Bytes.run(Space.GLOBAL, region.low + begin, size)


def written(region: Region, begin: int, kept: Array) -> Bytes:
    """Return the bytes of a run that a mask keeps."""
    if kept.all():
        return region_bytes(region, begin, len(kept))
    return Bytes(Space.GLOBAL, region.low + begin + np.flatnonzero(kept), 1)


def units(made: Copy) -> Bytes:
    """Return the bytes of a tensor that a copy touches."""
    return Bytes(Space.GLOBAL, made.address if made.inside is None else made.address[made.inside], made.unit)


def held(made: Copy, shared: Region, begin: int, size: int) -> Bytes:
    """Return the shared bytes that a copy to a tensor reads: those of elements inside the tensor."""
    if made.inside is None:
        return Bytes.run(Space.SHARED, begin, size)
    first = int(made.shared.min()) - begin
    return Bytes(Space.SHARED, made.shared[made.inside] - first, made.unit)


def load_issued(
    site: Site, one: Lanes, source: Bytes, targets: list[tuple[Bytes, int]], tensor_map: Any = None
) -> Callable[[], None]:
    """A bulk copy to shared memory is issued; return what tells that it has landed."""
    if site.memory.checks is None:
        return _nothing
    checks, place = checks_of(site)
    thread = checks.group(one).first
    number = checks.engine.copies.bulk_load(thread, place, source, targets)
    _uses(checks, place, site, thread, tensor_map, number)
    return partial(checks.engine.copies.land, number)


def _nothing() -> None:
    pass


def store_issued(
    site: Site, one: Lanes, source: Bytes, target: Bytes, reduces: int, seen: set[bytes], tensor_map: Any = None
) -> None:
    """A bulk copy to global memory is issued; `reduces`: the bytes of an element that is reduced, else 0. `seen` are
    the copies of the same instruction so far: lanes that write the same bytes from the same bytes write the same."""
    if site.memory.checks is None:
        return
    key = source.starts.tobytes() + target.starts.tobytes()
    if not reduces and key in seen:
        return
    seen.add(key)
    checks, place = checks_of(site)
    thread = checks.group(one).first
    number = checks.engine.copies.bulk_store(thread, place, source, target, reduces)
    _uses(checks, place, site, thread, tensor_map, number)


def _uses(checks: Checks, place: Place, site: Site, thread: int, tensor_map: Any, operation: int) -> None:
    """A copy uses a map; one in a parameter or in constant memory cannot change."""
    if tensor_map is None:
        return
    region = site.memory.region_at(int(tensor_map))
    if region is not None and region.space == "global" and int(tensor_map) < region.low + region.size:
        checks.engine.maps.use(thread, place, int(tensor_map), operation)
