"""Exits of CTAs whose memory others use: which operations are complete when a CTA ends, and which are not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pyptx.diagnostics import Span
from pyptx.sim.base.events import Runs
from pyptx.sim.hazards import Bytes, Group, Hazards, Place, Space, copies_together, load, store
from pyptx.sim.hazards.state import Grid
from tests.sim.hazards.trace import may_cluster_pass

GLOBAL = 1 << 20


def place(line: int) -> Place:
    return Place(Span(line, 1), f"line {line}")


def pair() -> tuple[Hazards, Grid, list[Group], list[int]]:
    """Return a cluster of two CTAs of two warps each, in step, with an mbarrier at the start of each one's memory. A
    grid of half a CTA has run before."""
    engine = Hazards()
    engine.finish(engine.launch(place(1), 32))
    grid = engine.launch(place(1), 64, slots=2, cluster=2, shared_bytes=1024, tensor=True)
    engine.start(grid, [0, 1], [0, 1])
    ctas, barriers = (
        [Group(grid.list_threads(slot)) for slot in (0, 1)],
        [grid.find_shared_base(slot) for slot in (0, 1)],
    )
    for group, address in zip(ctas, barriers, strict=True):
        engine.mbarriers.init(group.first, place(2), address, 1)
    for group in ctas:
        engine.barriers.cluster_arrive(group, place(3))
    for group in ctas:
        engine.barriers.cluster_wait(group, place(4))
    return engine, grid, ctas, barriers


def codes(engine: Hazards) -> list[str]:
    return sorted({finding.rule.code for finding in engine.findings})


@pytest.mark.parametrize(
    ("commits", "waits", "rule_codes"), [(1, 1, []), (2, 2, []), (2, 1, ["PTX0981"]), (1, 0, ["PTX0981"])]
)
def test_a_multicast_commit_that_the_exiting_cta_has_observed_is_over(
    commits: int, waits: int, rule_codes: list[str]
) -> None:
    engine, _, ctas, barriers = pair()
    for index in range(commits):
        number = engine.tensor.commit(ctas[0].first, place(5), barriers)
        if index < waits:
            engine.tensor.land_commit(number)
            for group, address in zip(ctas, barriers, strict=True):
                engine.mbarriers.wait(group, place(6), address, index & 1)
    engine.exit(ctas[1], place(7))
    assert codes(engine) == rule_codes


def load_into(
    engine: Hazards, grid: Grid, threads: list[int], slot: int, barriers: list[int], together: bool
) -> Callable[[], None]:
    """Let threads load 128 bytes each to a CTA's memory, and return a function that lands them."""
    targets = [grid.find_shared_base(slot) + 512 + 128 * index for index in range(len(threads))]
    if together:
        source = Runs(np.array([[GLOBAL]] * len(threads)), 128, GLOBAL, GLOBAL + 128)
        starts, ends = np.array(targets)[:, None], np.array(barriers)[:, None]
        numbers = copies_together.bulk_load_all(engine.copies, np.array(threads), place(6), source, starts, ends, 128)
        assert numbers is not None
        return lambda: copies_together.land_all(engine.copies, numbers)
    singles = [
        engine.copies.bulk_load(thread, place(6), None, [(Bytes.run(Space.SHARED, target, 128), barrier)])
        for thread, target, barrier in zip(threads, targets, barriers, strict=True)
    ]

    def land() -> None:
        for number in singles:
            engine.copies.land(number)

    return land


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize(
    ("waits", "leaver", "rule_codes"), [(True, 1, []), (False, 1, ["PTX0982"]), (True, 0, []), (False, 0, ["PTX0981"])]
)
def test_bytes_that_the_leader_of_the_pair_waited_for_have_landed(
    waits: bool, leaver: int, rule_codes: list[str], together: bool
) -> None:
    engine, grid, ctas, barriers = pair()
    engine.mbarriers.arrive(Group(ctas[0].threads[:1]), place(5), barriers[0], expect=128)
    load_into(engine, grid, [ctas[1].first], 1, barriers[:1], together)()
    if waits:
        engine.mbarriers.wait(ctas[0], place(7), barriers[0], 0)
    engine.exit(ctas[leaver], place(8))
    assert codes(engine) == rule_codes


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("owner", [0, 1])
@pytest.mark.parametrize("waits", [True, False])
def test_bytes_that_a_peer_loads_have_landed_when_the_owner_has_waited(waits: bool, owner: int, together: bool) -> None:
    engine, grid, ctas, barriers = pair()
    engine.mbarriers.arrive(Group(ctas[owner].threads[:1]), place(5), barriers[owner], expect=256)
    threads = [ctas[0].first, ctas[1].first]
    load_into(engine, grid, threads, owner, [barriers[owner]] * 2, together)()
    if waits:
        engine.mbarriers.wait(ctas[owner], place(7), barriers[owner], 0)
    engine.exit(ctas[owner], place(8))
    assert codes(engine) == ([] if waits else ["PTX0981", "PTX0982"])


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("issuer", [0, 1])
def test_a_load_to_a_peer_that_signals_its_own_cta_uses_the_peer(issuer: int, together: bool) -> None:
    engine, grid, ctas, barriers = pair()
    engine.mbarriers.arrive(Group(ctas[issuer].threads[:1]), place(5), barriers[issuer], expect=128)
    load_into(engine, grid, [ctas[issuer].first], 1 - issuer, [barriers[issuer]], together)
    engine.exit(ctas[1 - issuer], place(8))
    found = [(finding.rule.code, str(finding.other)) for finding in engine.findings]
    assert found == [("PTX0982", str(place(6))), ("PTX0981", str(place(6)))]


def test_bytes_of_the_own_barrier_have_to_be_waited_for_by_the_own_cta() -> None:
    engine, grid, ctas, barriers = pair()
    target = Bytes.run(Space.SHARED, grid.find_shared_base(1) + 512, 128)
    engine.mbarriers.arrive(Group(ctas[1].threads[:1]), place(5), barriers[1], expect=128)
    engine.copies.land(engine.copies.bulk_load(ctas[1].first, place(6), None, [(target, barriers[1])]))
    engine.exit(Group(np.array([ctas[1].first])), place(7))
    engine.exit(Group(ctas[1].threads[1:]), place(8))
    assert codes(engine) == ["PTX0982"]


def test_a_cta_that_ends_reports_bytes_that_never_came() -> None:
    engine, _, ctas, barriers = pair()
    engine.mbarriers.arrive(Group(ctas[0].threads[:1]), place(5), barriers[0], expect=128)
    for group in ctas:
        engine.exit(group, place(7))
    found = [(finding.rule.code, finding.what, str(finding.place), str(finding.other)) for finding in engine.findings]
    words = "0 bytes arrived in phase 0 of shared 0x0 of CTA 0, which expects 128"
    assert found == [("PTX0955", words, "`line 5` at <ptx>:5:1", "`line 2` at <ptx>:2:1")]


def test_the_exit_of_the_last_thread_completes_a_cluster_barrier() -> None:
    engine = Hazards()
    engine.state.add_buffer(1 << 20, 64, "data")
    grid = engine.launch(place(1), 64, slots=2, cluster=2, shared_bytes=64)
    engine.start(grid, [0, 1], [0, 1])
    first, second = (Group(grid.list_threads(slot)) for slot in (0, 1))
    engine.access(store(place(2), Space.GLOBAL, 4), first[[0]], np.array([1 << 20]))
    engine.barriers.cluster_arrive(first[list(range(63))], place(3))
    engine.barriers.cluster_arrive(second, place(3))
    assert not may_cluster_pass(engine, second.first)
    engine.exit(first[[63]], place(4))
    assert may_cluster_pass(engine, second.first)
    engine.barriers.cluster_wait(second, place(5))
    engine.access(load(place(6), Space.GLOBAL, 4), second[[0]], np.array([1 << 20]))
    assert not len(engine.findings)
