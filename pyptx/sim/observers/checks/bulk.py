"""Bulk and tensor copies: `sim.bulk` calls these when it issues one. Knows bytes, not how addresses become them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from pyptx.sim.base.events import Runs
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.hazards import Bytes, Place, Space, copies_together
from pyptx.sim.observers.checks import dependents, unread
from pyptx.sim.observers.checks.session import Session, checks_of
from pyptx.sim.state.memory import Site


def load_issued(
    site: Site, one: Lanes, source: Bytes, targets: list[tuple[Bytes, int]], tensor_map: Any = None
) -> Callable[[], None]:
    """A bulk copy to shared memory is issued; return what tells that it has landed."""
    checks, place = checks_of(site)
    thread = checks.group(one).first
    unread.read(site, source)
    dependents.touch(site, one, source, writes=False)
    number = checks.engine.copies.bulk_load(thread, place, source, targets)
    _record_use(checks, place, site, thread, tensor_map, number)
    return partial(checks.engine.copies.land, number)


def sent(site: Site, one: Lanes, end: int) -> None:
    """A bulk copy from shared memory to that of another CTA is issued."""
    checks, place = checks_of(site)
    checks.engine.copies.to_peer(checks.group(one).first, place, end)


def store_issued(
    site: Site, one: Lanes, source: Bytes, target: Bytes, reduces: int, seen: set[bytes], tensor_map: Any = None
) -> None:
    """A bulk copy to global memory is issued; `reduces`: the bytes of an element that is reduced, else 0. `seen` are
    the copies of the same instruction so far: lanes that write the same bytes from the same bytes write the same."""
    unread.read(site, source)
    dependents.touch(site, one, target, writes=True)
    key = source.starts.tobytes() + target.starts.tobytes()
    if not reduces and key in seen:
        return
    seen.add(key)
    checks, place = checks_of(site)
    thread = checks.group(one).first
    number = checks.engine.copies.bulk_store(thread, place, source, target, reduces)
    _record_use(checks, place, site, thread, tensor_map, number)


def loads_issued(
    site: Site, lanes: Lanes, source: Runs, targets: Array, barriers: Array, size: int, tensor_map: Any
) -> Callable[[Array], None] | None:
    """Bulk copies to shared memory are issued by some lanes, with a row of what each reads, of its targets and of their
    barriers; return what tells that they have landed, by position. None, with nothing told, where `load_issued` has to
    look at one after the other."""
    checks, place = checks_of(site)
    threads = checks.group(lanes).threads
    dependents.touch_each(site, lanes, source.starts[:, 0], source.length, writes=False)
    numbers = copies_together.bulk_loads(checks.engine.copies, threads, place, source, targets, barriers, size)
    if numbers is None:
        return None
    for thread, number in zip(threads.tolist(), numbers, strict=True):
        if not _record_use(checks, place, site, thread, tensor_map, number):
            break

    def landed(those: Array) -> None:
        copies_together.landed(checks.engine.copies, [numbers[at] for at in those.tolist()])

    return landed


def stores_issued(site: Site, lanes: Lanes, sources: Array, size: int, target: Runs, tensor_map: Any) -> bool:
    """Bulk copies to global memory are issued by some lanes; say whether they could be told of as one."""
    checks, place = checks_of(site)
    threads = checks.group(lanes).threads
    unread.read(site, Bytes(Space.SHARED, sources, size))
    dependents.touch_each(site, lanes, target.starts[:, 0], target.length, writes=True)
    numbers = copies_together.bulk_stores(checks.engine.copies, threads, place, sources, size, target)
    for thread, number in zip(threads.tolist(), numbers or [], strict=numbers is not None):
        if not _record_use(checks, place, site, thread, tensor_map, number):
            break
    return numbers is not None


def _record_use(checks: Session, place: Place, site: Site, thread: int, tensor_map: Any, operation: int) -> bool:
    """A copy uses a map; one in a parameter or in constant memory cannot change. Say whether this one can."""
    if tensor_map is None:
        return False
    region = site.memory.space.region_at(int(tensor_map))
    if region is None or region.space != "global" or int(tensor_map) >= region.low + region.size:
        return False
    checks.engine.maps.use(thread, place, int(tensor_map), operation)
    return True
