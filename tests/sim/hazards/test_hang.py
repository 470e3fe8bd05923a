"""Runs that stop: the report names the guilty barrier, its line, the missing arrivals and who could have provided
them."""

from __future__ import annotations

import json

import pytest

from pyptx.sim.hazards import HangReport, Scope, Sem, Waiting
from pyptx.sim.reports.graph import Node, blame
from tests.sim.hazards.patterns import buffers, warps
from tests.sim.hazards.trace import Pattern, Role, Trace


def hang(build: Pattern) -> tuple[HangReport, Trace]:
    trace = Trace()
    build(trace)
    trace.run()
    assert trace.report is not None, "nothing hangs"
    assert [f.rule.code for f in trace.engine.findings if f.rule.code == "PTX0990"] == ["PTX0990"]
    return trace.report, trace


def _init(t: Trace, count: int, threads: int = 64) -> list[Role]:
    grid = t.add_grid(threads)
    roles = warps(t, grid, threads // 32)
    leader = roles[0].leader()
    leader.init("init", 0, count)
    roles[0].actions += leader.actions
    for role in roles:
        role.bar("initialized")
    return roles


def missing_arrive(t: Trace) -> None:
    a, b = _init(t, 2)
    leader = a.leader()
    leader.arrive("arrive", 0)
    a.actions += leader.actions
    a.exit()
    b.wait("wait", 0, 0)


def wrong_parity(t: Trace) -> None:
    a, b = _init(t, 1)
    leader = a.leader()
    leader.arrive("arrive", 0)
    a.actions += leader.actions
    b.wait("wait", 0, 0)
    b.wait("wait the next", 0, 1)


def lost_bytes(t: Trace) -> None:
    buffers(t)
    a, b = _init(t, 1)
    leader = a.leader()
    leader.arrive("expect", 0, expect=4096)
    leader.tma_load("load", 1024, 2048, 0)
    a.actions += leader.actions
    b.wait("wait", 0, 0)


def unexpected_bytes(t: Trace) -> None:
    buffers(t)
    a, b = _init(t, 2)
    leader = a.leader()
    leader.arrive("expect", 0, expect=1024)
    leader.tma_load("load", 1024, 2048, 0)
    a.actions += leader.actions
    b.wait("wait", 0, 0)


def nothing_copied(t: Trace) -> None:
    a, b = _init(t, 1)
    leader = a.leader()
    leader.arrive("expect", 0, expect=4096)
    a.actions += leader.actions
    b.wait("wait", 0, 0)


def exited_producer(t: Trace) -> None:
    a, b = _init(t, 1)
    a.exit("return early")
    b.wait("wait", 0, 0)


def count_too_high(t: Trace) -> None:
    a, b = _init(t, 33)
    a.arrive("arrive", 0)
    b.wait("wait", 0, 0)


def circular(t: Trace) -> None:
    grid = t.add_grid(64)
    a, b = warps(t, grid, 2)
    leader = a.leader()
    leader.init("init one", 0, 1)
    leader.init("init two", 8, 1)
    a.actions += leader.actions
    for role in (a, b):
        role.bar("initialized")
    a.wait("wait one", 0, 0)
    a.arrive("arrive two", 8)
    b.wait("wait two", 8, 0)
    b.arrive("arrive one", 0)


def warp_skips_bar(t: Trace) -> None:
    a, b = warps(t, t.add_grid(64), 2)
    a.bar("bar")
    b.bar("other bar", 1)


def bar_count(t: Trace) -> None:
    a, b = warps(t, t.add_grid(64), 2)
    a.bar("bar", 1, 96)
    b.bar("bar", 1, 96)


def bar_ids(t: Trace) -> None:
    a, b = warps(t, t.add_grid(64), 2)
    a.bar("bar one", 1, 64)
    b.bar("bar two", 2, 64)


def cluster_mismatch(t: Trace) -> None:
    grid = t.add_grid(32, 2, 2)
    a, b = t.add_role(grid, range(32), 0), t.add_role(grid, range(32), 1)
    a.cluster_sync("cluster")
    b.init("init", 0, 1)
    b.wait("wait", 0, 0)


def cluster_wait_only(t: Trace) -> None:
    grid = t.add_grid(32, 2, 2)
    a, b = t.add_role(grid, range(32), 0), t.add_role(grid, range(32), 1)
    a.cluster_wait("wait without arrive")
    b.cluster_sync("cluster")


def unset_flag(t: Trace) -> None:
    buffers(t)
    grid = t.add_grid(32, 2)
    t.add_role(grid, [0], 0).exit("return")
    t.add_role(grid, [0], 1).see_flag("spin", 3 << 20, Sem.ACQUIRE, Scope.GPU)


def half_cp_async(t: Trace) -> None:
    buffers(t)
    a, b = _init(t, 64)
    a.cp_async("copy", 1024)
    a.cp_arrive("arrive", 0)
    b.wait("wait", 0, 0)


def commit_elsewhere(t: Trace) -> None:
    grid = t.add_grid(64)
    a, b = warps(t, grid, 2)
    leader = a.leader()
    leader.init("init done", 0, 1)
    leader.init("init other", 8, 1)
    a.actions += leader.actions
    a.alloc("alloc", 0, 32)
    issue = a.leader()
    issue.mma("mma", [], 0, 32)
    issue.tc_commit("commit", 8)
    for role in (a, b):
        role.bar("set up")
    a.actions += issue.actions
    b.wait("wait", 0, 0)


def lost_bytes_and_others(t: Trace) -> None:
    buffers(t)
    a, b, c = _init(t, 1, 96)
    leader = a.leader()
    leader.arrive("expect", 0, expect=4096)
    a.actions += leader.actions
    c.bar("bar of the rest", 1, 64)
    b.wait("wait", 0, 0)
    b.bar("bar of the rest", 1, 64)


CASES: dict[Pattern, tuple[str, str, str]] = {
    lost_bytes_and_others: ("mbarrier at shared 0x0 of CTA 0, phase 0", "4096 expected bytes not copied", "wait"),
    missing_arrive: ("mbarrier at shared 0x0 of CTA 0, phase 0", "1 of 2 arrivals missing", "wait"),
    wrong_parity: ("mbarrier at shared 0x0 of CTA 0, phase 1", "1 of 1 arrivals missing", "wait the next"),
    lost_bytes: ("mbarrier at shared 0x0 of CTA 0, phase 0", "2048 expected bytes not copied", "wait"),
    unexpected_bytes: ("mbarrier at shared 0x0 of CTA 0, phase 0", "1024 bytes copied but not expected", "wait"),
    nothing_copied: ("mbarrier at shared 0x0 of CTA 0, phase 0", "4096 expected bytes not copied", "wait"),
    exited_producer: ("mbarrier at shared 0x0 of CTA 0, phase 0", "1 of 1 arrivals missing", "wait"),
    count_too_high: ("mbarrier at shared 0x0 of CTA 0, phase 0", "1 of 33 arrivals missing", "wait"),
    circular: ("mbarrier at shared 0x0 of CTA 0, phase 0", "1 of 1 arrivals missing", "wait one"),
    warp_skips_bar: ("barrier 0 of CTA 0", "1 of 2 warps have arrived", "bar"),
    bar_count: ("barrier 1 of CTA 0", "2 of 3 warps have arrived, only 2 warps are live", "bar"),
    bar_ids: ("barrier 1 of CTA 0", "1 of 2 warps have arrived", "bar one"),
    cluster_mismatch: ("cluster barrier of CTAs [0, 1]", "32 threads have not arrived: CTA 1 warp 0", "cluster"),
    cluster_wait_only: ("cluster barrier of CTAs [0, 1]", "32 threads have not arrived", "wait without arrive"),
    unset_flag: ("a change at 0x300000", "no thread that can still run writes it", "spin"),
    half_cp_async: ("mbarrier at shared 0x0 of CTA 0, phase 0", "32 of 64 arrivals missing", "wait"),
    commit_elsewhere: ("mbarrier at shared 0x0 of CTA 0, phase 0", "1 of 1 arrivals missing", "wait"),
}


@pytest.mark.parametrize("build", list(CASES), ids=lambda build: build.__name__)
def test_the_guilty_barrier_is_named_with_its_line(build: Pattern) -> None:
    report, trace = hang(build)
    name, missing, label = CASES[build]
    assert report.guilty is not None
    assert report.guilty.what == name
    assert missing in report.guilty.missing
    finding = next(f for f in trace.engine.findings if f.rule.code == "PTX0990")
    assert finding.place.text == label
    assert finding.place.origin is not None
    assert finding.place.origin.line == trace.labels.index(label) + 1
    assert json.loads(json.dumps(report.as_json()))["guilty"] == name


ADVICE: dict[Pattern, str] = {
    lost_bytes: "`expect_tx` expects 2048 bytes that no copy delivered",
    unexpected_bytes: "expect 1024 more bytes",
    count_too_high: "`mbarrier.init` counts 33 arrivals, of which 32 occurred",
    exited_producer: "correct the parity",
    warp_skips_bar: "let every warp that the barrier counts arrive",
    cluster_mismatch: "let every thread of every CTA of the cluster",
    unset_flag: "lists who waits for whom",
}


@pytest.mark.parametrize("build", list(ADVICE), ids=lambda build: build.__name__)
def test_the_help_is_about_what_is_missing(build: Pattern) -> None:
    _, trace = hang(build)
    finding = next(f for f in trace.engine.findings if f.rule.code == "PTX0990")
    assert ADVICE[build] in str(finding.diagnostic().help)


def test_of_a_circle_what_came_in_part_is_to_blame() -> None:
    def node(text: str, target: str, has_begun: bool) -> Node:
        return Node(text, "mbarrier", "1 of 2 arrivals missing", [], [], waits_for=[target], has_begun=has_begun)

    nodes = [node("empty", "full", False), node("full", "empty", True)]
    guilty, cycle = blame(nodes)
    assert guilty is nodes[1]
    assert cycle == ["full", "empty", "full"]


def test_the_words_of_a_node_do_not_make_it_guilty() -> None:
    missing = "1 thread has not arrived: CTA 0 warp 0 of `copy_bytes`"
    nodes = [Node("cluster barrier", "cluster", missing, [], [], waits_for=["barrier 0"])]
    nodes.append(Node("barrier 0", "bar", "1 of 2 warps have arrived", [], []))
    assert blame(nodes) == (nodes[1], [])
    nodes[0].is_broken = True
    assert blame(nodes) == (nodes[0], [])


def test_a_circular_wait_is_shown_as_a_cycle() -> None:
    report, _ = hang(circular)
    assert report.cycle[0] == report.cycle[-1]
    assert len(set(report.cycle)) == 2


def test_who_exited_and_where_is_told() -> None:
    report, _ = hang(exited_producer)
    assert "CTA 0 warp 0 exited after `return early`" in str(report)


def test_what_happened_so_far_is_told() -> None:
    report, _ = hang(lost_bytes)
    assert "expect 4096 bytes by CTA 0 warp 0 lane 0 at `expect`" in str(report)
    assert "2048 bytes complete" in str(report)


def test_an_engine_explains_waits_for_what_it_has_not_seen() -> None:
    """A machine may report a wait of lanes of a warp, for a barrier without a round, or for a phase that is over."""
    trace = Trace()
    warps(trace, trace.add_grid(64), 2)
    engine, place = trace.engine, trace.make_place("wait")
    threads = tuple(range(32))
    engine.mbarriers.init(0, place, 64, 3)
    waits = [
        (Waiting(threads, place, "bar", 3), "barrier 3 of CTA 0", "no round has begun", False),
        (Waiting(threads, place, "mbarrier", 128, 0), "mbarrier at shared 0x80 of CTA 0", "it is not initialized",
         True),
        (Waiting(threads, place, "mbarrier", 64, 1), "mbarrier at shared 0x40 of CTA 0, phase 0",
         "3 of 3 arrivals missing, parity 1 is that of the previous phase, so this wait already passes", False),
        (Waiting(threads[:16], place, "warp", 0xFFFF0000), "bar.warp.sync", "lanes 0xffff0000 have not arrived", False),
    ]  # fmt: skip
    for wait, what, missing, is_broken in waits:
        (node,) = engine.hangs.explain([wait]).nodes
        assert (node.what, node.missing, node.is_broken) == (what, missing, is_broken)
    halves = [Waiting(tuple(range(first, first + 16)), place, "warp", 0xFFFFFFFF) for first in (0, 16, 32)]
    assert [len(node.waiters) for node in engine.hangs.explain(halves).nodes] == [2, 1]
    assert engine.hangs.explain([]).guilty is None
    assert [finding.rule.code for finding in engine.findings.errors] == ["PTX0990"] * 4
    assert engine.findings.warnings == []
