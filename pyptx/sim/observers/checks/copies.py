"""Asynchronous copies: cp.async and its groups, bulk and tensor copies, st.async and red.async."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from pyptx.check.body import Step
from pyptx.isa.traits import Trait
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.engines.issuing import locate_objects, select_lanes
from pyptx.sim.execution.machine import Batch
from pyptx.sim.hazards import Access, Bytes, Family, Group, Place, Scope, Sem, Space
from pyptx.sim.observers.checks import dependents, unread
from pyptx.sim.observers.checks.accesses import split_modifiers
from pyptx.sim.observers.checks.objects import group_by_object
from pyptx.sim.observers.checks.session import Session, find_session, locate_session, make_place
from pyptx.sim.semantics.access import as_tuple
from pyptx.sim.state.memory import Site

Inner = Callable[..., None]


def hook(step: Step, inner: Inner) -> Inner | None:
    """Return a function that runs a copy of lanes, or an arrival of copies, and reports it."""
    if step.traits.get(Trait.ISSUES) == "store":
        return partial(_store_and_signal, inner, make_place(step.instruction), Trait.UPDATES in step.traits)
    if Trait.SIGNALS in step.traits:
        return partial(_arrive, inner, "noinc" in split_modifiers(step.instruction))
    names = [operand.name for operand in step.plan.signature] if step.plan is not None else []
    place = make_place(step.instruction)
    return partial(_copy, inner, place, "ignore" in names, "from" in names)


@cache
def _make_accesses(place: Place, size: int) -> tuple[Access, Access]:
    """Return the accesses of cp.async to its target and its source."""
    target = Access(place, Space.SHARED, size, True, False, family=Family.CP_ASYNC)
    return target, Access(place, Space.GLOBAL, size, False, family=Family.CP_ASYNC)


def _copy(
    inner: Inner, place: Place, ignores: bool, partly: bool, site: Site, lanes: Lanes, mask: Any,
    target_space: str, target: Any, source_space: str, source: Any, outs: Any, size: Any, *optional: Any,
) -> None:  # fmt: skip
    checks, _ = locate_session(site)
    copy_size = int(size)
    active, (target_addresses, source_addresses, extra) = select_lanes(
        lanes, mask, target, source, optional[0] if optional else np.array(0)
    )
    if active is not None:
        _, offsets = site.memory.resolve(site, target_space, active, target_addresses, copy_size, "silent")
        targets = np.broadcast_to(offsets, active.n)
        reads_source = (extra == 0) if ignores else (extra != 0) if partly else np.ones(active.n, np.bool_)
        writes, reads = _make_accesses(place, copy_size)
        checks.engine.copies.cp_async(checks.group_lanes(active), writes, targets)
        _record_copied_bytes(
            site,
            active,
            targets,
            extra if partly else np.where(extra != 0, 0, copy_size) if ignores else None,
            copy_size,
        )
        if reads_source.any():
            reading = active if reads_source.all() else active.shape.select_index(active.index[reads_source])
            checks.engine.copies.cp_async(
                checks.group_lanes(reading), reads, source_addresses[reads_source].astype(np.int64)
            )
            dependents.check_accesses(
                site, reading, source_addresses[reads_source].astype(np.int64), copy_size, writes=False
            )
    inner(site, lanes, mask, target_space, target, source_space, source, outs, size, *optional)


def _record_copied_bytes(site: Site, lanes: Lanes, targets: Array, counts: Array | None, size: int) -> None:
    """Record that each lane copies the first `counts` bytes of `size`, all of them without counts; the rest is fill."""
    if unread.find_unread(site) is not None:
        cells, is_copied = targets[:, None] + np.arange(size), np.ones((lanes.n, size), np.bool_)
        if counts is not None:
            is_copied = np.arange(size) < counts[:, None]
        unread.record_bytes(site, lanes, cells[is_copied], int(is_copied.sum()))


def _arrive(
    inner: Inner, is_counted: bool, site: Site, lanes: Lanes, mask: Any, space: str, address: Any, outs: Any
) -> None:
    """Run an arrival that occurs when earlier copies have landed. Until then, one that `init` did not count is also
    pending."""
    checks, place = locate_session(site)
    objects = list(group_by_object(checks, site, lanes, mask, space, address))
    copies = checks.engine.copies
    for group, object_address, _ in objects:
        if not is_counted:
            copies.hold_cp_arrivals(group, place, object_address)

    def report_landing() -> None:
        for group, object_address, _ in objects:
            copies.cp_arrive(group, place, object_address, True)

    checks.run_issue(report_landing, lambda: inner(site, lanes, mask, space, address, outs))


def _store_and_signal(
    inner: Inner, place: Place, reduces: bool, site: Site, lanes: Lanes, mask: Any, space: str, address: Any,
    bar_space: str, bar: Any, outs: Any, *values: Any,
) -> None:  # fmt: skip
    """Run a store or reduction that signals its bytes to an mbarrier."""
    checks, _ = locate_session(site)
    active, (addresses, bars) = select_lanes(lanes, mask, address, bar)
    numbers: list[int] = []
    if active is not None:
        size = sum(np.asarray(value).dtype.itemsize for value in as_tuple(values[0]))
        _, offsets = site.memory.resolve(site, space, active, addresses, size, "silent")
        targets = np.broadcast_to(offsets, active.n)
        access = _make_store_access(place, size, reduces)
        threads = checks.threads[active.sel]
        objects_at = locate_objects(site, active, bar_space, bars)
        for barrier in np.unique(objects_at).tolist():
            mine = objects_at == barrier
            numbers.append(checks.engine.copies.st_async(Group(threads[mine]), access, targets[mine], barrier))

    def report_landing() -> None:
        for number in numbers:
            checks.engine.copies.land_st(number)

    checks.run_issue(report_landing, lambda: inner(site, lanes, mask, space, address, bar_space, bar, outs, *values))


@cache
def _make_store_access(place: Place, size: int, reduces: bool) -> Access:
    if reduces:
        return Access(place, Space.SHARED, size, True, True, Sem.RELAXED, Scope.CLUSTER, family=Family.ST_ASYNC)
    return Access(place, Space.SHARED, size, True, False, family=Family.ST_ASYNC)


def hook_request(step: Step, inner: Inner) -> Inner:
    """Return a function that runs a request to cancel a cluster's launch, whose response is written like a bulk
    copy."""
    return partial(_request, inner, ".multicast::cluster::all" in step.instruction.modifiers)


def _request(
    inner: Inner,
    everywhere: bool,
    site: Site,
    lanes: Lanes,
    mask: Any,
    space: str,
    address: Any,
    bar_space: str,
    bar: Any,
    *outs: Any,
) -> None:
    checks, place = locate_session(site)
    active, (addresses, bars) = select_lanes(lanes, mask, address, bar)
    numbers: list[int] = []
    if active is not None:
        _, offsets = site.memory.resolve(site, space, active, addresses, 16, "silent")
        objects_at = locate_objects(site, active, bar_space, bars)
        threads = checks.threads[active.sel].tolist()
        for thread, offset, barrier in zip(threads, np.broadcast_to(offsets, active.n), objects_at, strict=True):
            targets = [
                (Bytes.run(Space.SHARED, begin, 16), end)
                for begin, end in zip(
                    _list_cluster_offsets(site, int(offset), everywhere),
                    _list_cluster_offsets(site, int(barrier), everywhere),
                    strict=True,
                )
            ]
            numbers.append(checks.engine.copies.bulk_load(thread, place, None, targets))

    def report_landing(positions: Array) -> None:
        for position in positions:
            checks.engine.copies.land(numbers[int(position)])

    run = partial(inner, site, lanes, mask, space, address, bar_space, bar, *outs)
    if everywhere and numbers:
        checks.run_issues(report_landing, run)
    else:
        checks.run_issue(lambda: report_landing(np.arange(len(numbers))), run)


def _list_cluster_offsets(site: Site, offset: int, everywhere: bool) -> list[int]:
    """Return an offset in shared memory, or the same one in every CTA of its cluster."""
    if not everywhere:
        return [offset]
    stride, size = site.memory.shape.shared_stride, site.memory.cluster
    first = offset // stride // size * size
    return [(first + rank) * stride + offset % stride for rank in range(size)]


def make_group_event(step: Step) -> Callable[..., None] | None:
    """Return the function that reports the end of a group, or a wait for groups; an arrival of copies has a hook."""
    place = make_place(step.instruction)
    match step.traits:
        case {Trait.SIGNALS: _}:
            return None
        case {Trait.COMMITS: "bulk"}:
            return partial(_commit_bulk, place)
        case {Trait.COMMITS: "cp.async"}:
            return _commit
        case {Trait.LANDS: "bulk"}:
            return partial(_wait_bulk, place, "read" in split_modifiers(step.instruction))
        case {Trait.LANDS: "cp.async"}:
            return _wait if step.instruction.operands else _wait_for_all
        case _:
            return None


def _mask_lanes(machine: Batch, lanes: Lanes, mask: Any) -> tuple[Session, Lanes | None]:
    checks = find_session(machine)
    return checks, checks.select_active(lanes, mask)


def _commit_bulk(place: Place, machine: Batch, lanes: Lanes, mask: Any) -> None:
    checks, active = _mask_lanes(machine, lanes, mask)
    if active is not None:
        checks.engine.copies.commit_bulk(checks.group_lanes(active), place)


def _wait_bulk(place: Place, read: bool, machine: Batch, lanes: Lanes, mask: Any, pending: Any) -> None:
    checks, active = _mask_lanes(machine, lanes, mask)
    if active is not None:
        checks.engine.copies.wait_bulk(checks.group_lanes(active), place, int(pending), read)


def _commit(machine: Batch, lanes: Lanes, mask: Any) -> None:
    checks, active = _mask_lanes(machine, lanes, mask)
    if active is not None:
        checks.engine.copies.commit_cp(checks.group_lanes(active))


def _wait(machine: Batch, lanes: Lanes, mask: Any, pending: Any) -> None:
    checks, active = _mask_lanes(machine, lanes, mask)
    if active is not None:
        checks.engine.copies.wait_cp(checks.group_lanes(active), int(pending))


def _wait_for_all(machine: Batch, lanes: Lanes, mask: Any) -> None:
    checks, active = _mask_lanes(machine, lanes, mask)
    if active is not None:
        checks.engine.copies.wait_cp(checks.group_lanes(active), everything=True)
