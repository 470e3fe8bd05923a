"""Bulk and tensor copies: the listener calls these when one is issued. Knows bytes, not how addresses become them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from pyptx.sim.base.events import Runs
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.hazards import Bytes, Place, Space, copies_together
from pyptx.sim.observers.checks import dependents, unread
from pyptx.sim.observers.checks.session import Session, locate_session
from pyptx.sim.state.memory import Site


def report_load(
    site: Site, lane: Lanes, source: Bytes, targets: list[tuple[Bytes, int]], tensor_map: Any
) -> Callable[[], None]:
    """Report the issue of a bulk copy to shared memory; return a function that reports its completion."""
    checks, place = locate_session(site)
    thread = checks.group_lanes(lane).first
    unread.record_read(site, source)
    dependents.check_access(site, lane, source, writes=False)
    number = checks.engine.copies.bulk_load(thread, place, source, targets)
    _record_uses(checks, place, site, [thread], tensor_map, [number])
    return partial(checks.engine.copies.land, number)


def report_peer_copy(site: Site, lane: Lanes, end: int) -> None:
    """Report the issue of a bulk copy from shared memory to another CTA."""
    checks, place = locate_session(site)
    checks.engine.copies.check_peer(checks.group_lanes(lane).first, place, end)


def report_store(
    site: Site,
    lane: Lanes,
    source: Bytes,
    target: Bytes,
    reduces: int,
    earlier_copies: set[bytes],
    tensor_map: Any,
) -> None:
    """Report the issue of a bulk copy to global memory; `reduces` is the size of a reduced element, else 0.
    `earlier_copies` are those of the same instruction: equal sources and targets write equal bytes."""
    unread.record_read(site, source)
    dependents.check_access(site, lane, target, writes=True)
    key = source.starts.tobytes() + target.starts.tobytes()
    if not reduces and key in earlier_copies:
        return
    earlier_copies.add(key)
    checks, place = locate_session(site)
    thread = checks.group_lanes(lane).first
    number = checks.engine.copies.bulk_store(thread, place, source, target, reduces)
    _record_uses(checks, place, site, [thread], tensor_map, [number])


def report_loads(
    site: Site, lanes: Lanes, source: Runs, targets: Array, barriers: Array, size: int, tensor_map: Any
) -> Callable[[Array], None] | None:
    """Report the issue of bulk copies to shared memory, with one row each of source bytes, targets and mbarriers;
    return a function that reports completion by position. Return None, with nothing reported, if `report_load` must
    check them one by one."""
    checks, place = locate_session(site)
    threads = checks.group_lanes(lanes).threads
    dependents.check_accesses(site, lanes, source.starts[:, 0], source.length, writes=False)
    numbers = copies_together.bulk_load_all(checks.engine.copies, threads, place, source, targets, barriers, size)
    if numbers is None:
        return None
    _record_uses(checks, place, site, threads.tolist(), tensor_map, numbers)

    def land(positions: Array) -> None:
        copies_together.land_all(checks.engine.copies, [numbers[position] for position in positions.tolist()])

    return land


def report_stores(site: Site, lanes: Lanes, sources: Array, size: int, target: Runs, tensor_map: Any) -> bool:
    """Report the issue of bulk copies to global memory; tell whether they could be reported as one."""
    checks, place = locate_session(site)
    threads = checks.group_lanes(lanes).threads
    unread.record_read(site, Bytes(Space.SHARED, sources, size))
    dependents.check_accesses(site, lanes, target.starts[:, 0], target.length, writes=True)
    numbers = copies_together.bulk_store_all(checks.engine.copies, threads, place, sources, size, target)
    if numbers is None:
        return False
    _record_uses(checks, place, site, threads.tolist(), tensor_map, numbers)
    return True


def _record_uses(
    checks: Session, place: Place, site: Site, threads: list[int], tensor_map: Any, operations: list[int]
) -> None:
    """Record that copies use a map, unless it cannot change, as in a parameter or in constant memory."""
    if tensor_map is None:
        return
    region = site.memory.space.find_region(int(tensor_map))
    if region is None or region.space != "global" or int(tensor_map) >= region.low + region.size:
        return
    for thread, operation in zip(threads, operations, strict=True):
        checks.engine.maps.use(thread, place, int(tensor_map), operation)
