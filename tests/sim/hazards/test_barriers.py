"""Rounds of the barriers of a CTA: which arrivals complete them."""

from __future__ import annotations

import numpy as np
import pytest

from pyptx.diagnostics import Span
from pyptx.sim.hazards import Group, Hazards, Place, Sem
from pyptx.sim.hazards.state import Grid

FIRST, SECOND = (Group(np.arange(32) + warp * 32) for warp in range(2))


def place(line: int = 1) -> Place:
    return Place(Span(line, 1), f"line {line}")


def start() -> tuple[Hazards, Grid]:
    engine = Hazards()
    grid = engine.launch(place(), 64)
    engine.start(grid, [0], [0])
    return engine, grid


def test_a_warp_may_arrive_for_another_one_and_then_wait() -> None:
    engine, _ = start()
    assert engine.barriers.bar(FIRST, place(2), 1, 64, "arrive") == []
    assert engine.barriers.bar(FIRST, place(3), 1, 64, "sync") == FIRST.thread_list
    assert engine.barriers.bar(SECOND, place(4), 1, 64, "arrive") == []
    assert engine.barriers.bar(FIRST, place(3), 1, 64, "sync") == FIRST.thread_list
    assert not engine.findings


def test_a_warp_that_does_not_wait_arrives_once() -> None:
    engine, _ = start()
    for line in (2, 3):
        engine.barriers.bar(FIRST, place(line), 1, 64, "arrive")
    assert [finding.rule.code for finding in engine.findings] == ["PTX0972"]
    assert not engine.barriers.rounds


def test_parts_of_a_warp_arrive_once() -> None:
    engine, _ = start()
    for lanes in (slice(16), slice(16, 32)):
        assert engine.barriers.bar(Group(FIRST.threads[lanes]), place(2), 1, 64, "sync") == []
    assert len(engine.barriers.bar(SECOND, place(3), 1, 64, "sync")) == 64
    assert not engine.findings


class Pair:
    """Two CTAs of a cluster, of which the peer uses an mbarrier that the owner initializes."""

    def __init__(self) -> None:
        self.engine = Hazards()
        grid = self.engine.launch(place(1), 32, slots=2, cluster=2, shared_bytes=64)
        self.engine.start(grid, [0, 1], [0, 1])
        self.owner, self.peer = (Group(grid.list_threads(slot)) for slot in range(2))

    def init(self, line: int, fences: bool) -> None:
        self.engine.mbarriers.init(self.owner.first, place(line), 0, 1)
        if fences:
            self.engine.barriers.fence_inits(self.owner)

    def arrive(self) -> None:
        for group in (self.owner, self.peer):
            self.engine.barriers.cluster_arrive(group, place(2), Sem.RELAXED)

    def meet(self) -> None:
        self.arrive()
        for group in (self.owner, self.peer):
            self.engine.barriers.cluster_wait(group, place(2))

    def use(self, line: int) -> None:
        self.engine.mbarriers.arrive(self.peer[[0]], place(line), 0)

    def list_codes(self) -> list[str]:
        return [finding.rule.code for finding in self.engine.findings]


@pytest.mark.parametrize("fences", [True, False])
@pytest.mark.parametrize("meets", [True, False], ids=["after a barrier", "at once"])
def test_each_initialization_of_an_mbarrier_needs_its_own_fence(meets: bool, fences: bool) -> None:
    pair = Pair()
    pair.init(3, fences=True)
    if meets:
        pair.meet()
        pair.use(4)
    assert not pair.engine.findings
    pair.engine.mbarriers.inval(pair.owner.first, place(5), 0)
    pair.init(6, fences)
    pair.meet()
    pair.use(7)
    assert pair.list_codes() == ([] if fences else ["PTX0928"])


@pytest.mark.parametrize("waits", [True, False])
def test_an_initialization_is_visible_after_the_wait_for_its_own_round(waits: bool) -> None:
    pair = Pair()
    pair.meet()
    pair.init(3, fences=True)
    pair.arrive()
    if waits:
        pair.engine.barriers.cluster_wait(pair.peer, place(4))
    pair.use(5)
    assert pair.list_codes() == ([] if waits else ["PTX0928"])
