"""Rounds of the barriers of a CTA: which arrivals complete them."""

from __future__ import annotations

import numpy as np

from pyptx.diagnostics import Span
from pyptx.sim.hazards import Group, Hazards, Place
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
