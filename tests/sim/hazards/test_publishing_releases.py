"""A release covers only earlier accesses: a write after the arrive is not published, whatever the kind of release."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pyptx.sim.hazards import Scope, Sem
from tests.sim.hazards.patterns import GLOBAL, buffers
from tests.sim.hazards.trace import Pattern, Role, Trace, find_codes, list_schedules

DATA = 1 << 20


def _pair(t: Trace, cluster: int = 1) -> tuple[Role, Role]:
    buffers(t)
    grid = t.add_grid(32, 2, cluster)
    return t.add_role(grid, range(32), 0), t.add_role(grid, range(32), 1)


def by_flag(t: Trace, late: bool) -> None:
    a, b = _pair(t)
    writer = a.leader()
    _around(writer, late, lambda: writer.set_flag("release", GLOBAL, Sem.RELEASE, Scope.GPU))
    a.actions = writer.actions
    reader = b.leader()
    reader.see_flag("acquire", GLOBAL, Sem.ACQUIRE, Scope.GPU)
    reader.gld("read", DATA, per_thread=False)
    b.actions = reader.actions


def by_fence(t: Trace, late: bool) -> None:
    a, b = _pair(t)
    writer, reader = a.leader(), b.leader()
    _around(writer, late, lambda: writer.fence("fence", Sem.ACQ_REL, Scope.GPU))
    writer.set_flag("flag", GLOBAL, Sem.RELAXED, Scope.GPU)
    a.actions = writer.actions
    reader.see_flag("acquire", GLOBAL, Sem.ACQUIRE, Scope.GPU)
    reader.gld("read", DATA, per_thread=False)
    b.actions = reader.actions


def by_cluster(t: Trace, late: bool) -> None:
    a, b = _pair(t, 2)
    _around(a, late, lambda: a.cluster_arrive("arrive"))
    a.cluster_wait("a waits")
    b.cluster_arrive("b arrives")
    b.cluster_wait("b waits")
    b.gld("read", DATA, per_thread=False)


def by_mbarrier(t: Trace, late: bool) -> None:
    buffers(t)
    grid = t.add_grid(64)
    a, b = t.add_role(grid, range(32)), t.add_role(grid, range(32, 64))
    leader = a.leader()
    leader.init("init", 0, 32)
    a.actions = leader.actions
    for role in (a, b):
        role.bar("initialized")
    _around(a, late, lambda: a.arrive("arrive", 0))
    b.wait("wait", 0, 0)
    b.gld("read", DATA, per_thread=False)


def by_named_barrier(t: Trace, late: bool) -> None:
    buffers(t)
    grid = t.add_grid(64)
    a, b = t.add_role(grid, range(32)), t.add_role(grid, range(32, 64))
    _around(a, late, lambda: a.bar("arrive", 1, 64, "arrive"))
    b.bar("sync", 1, 64)
    b.gld("read", DATA, per_thread=False)


def by_warp_sync(t: Trace, late: bool) -> None:
    buffers(t)
    role = t.add_role(t.add_grid(32), range(32))
    leader, last = role.leader(), Role(t, role.grid, 0, role.group[[31]])
    _around(leader, late, lambda: None)
    if late:
        role.warp_sync("sync")
        role.actions += leader.actions
    else:
        role.actions += leader.actions
        role.warp_sync("sync")
    last.gld("read", DATA, per_thread=False)
    role.actions += last.actions


def _around(role: Role, late: bool, release: Callable[[], object]) -> None:
    leader = role.leader()
    leader.gst("write", DATA, per_thread=False)
    if not late:
        role.actions += leader.actions
    release()
    if late:
        role.actions += leader.actions


KINDS = [by_flag, by_fence, by_cluster, by_mbarrier, by_named_barrier, by_warp_sync]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
def test_only_what_comes_before_a_release_is_handed_on(kind: Callable[[Trace, bool], None], late: bool) -> None:
    for lazy, seed, reverse in list_schedules():
        trace = Trace("", lazy, seed, reverse)
        kind(trace, late)
        trace.run()
        codes = {finding.rule.code for finding in trace.engine.findings}
        assert bool(codes) == late
        assert codes <= {"PTX0901", "PTX0902"}


def stores_in_flight(pending: int) -> Pattern:
    def pattern(t: Trace) -> None:
        buffers(t)
        role = t.add_role(t.add_grid(32), [0])
        for step in range(3):
            role.st_one(f"stage {step}", 1024 + 16 * step, 16)
            role.proxy_fence(f"fence {step}")
            role.tma_store(f"store {step}", 1024 + 16 * step, 16, (2 << 20) + 16 * step)
            role.commit_bulk(f"commit {step}")
        role.wait_bulk("wait", pending)
        role.st_one("stage again", 1024 + 16, 16)

    return pattern


@pytest.mark.parametrize("pending", range(4))
def test_a_wait_for_bulk_groups_covers_all_but_the_last(pending: int) -> None:
    assert ("PTX0942" in find_codes(stores_in_flight(pending))) == (pending > 1)
