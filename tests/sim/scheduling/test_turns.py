"""The turns of grids in flight, by kind."""

from __future__ import annotations

import random

import pytest

from pyptx.sim.scheduling.turns import Turns, make_turns

ABLE = [False, True, False, True, True]


def make(kind: str) -> Turns:
    return Turns(kind, random.Random(0))


@pytest.mark.parametrize(("kind", "turns"), [
    ("newest", [4, 4, 4, 4]), ("oldest", [1, 1, 1, 1]), ("late", [1, 1, 1, 1]), ("alternate", [1, 3, 4, 1]),
])  # fmt: skip
def test_the_grid_that_runs_is_chosen_by_kind(kind: str, turns: list[int]) -> None:
    chooser = make(kind)
    assert [chooser.pick(ABLE, [True] * 5) for _ in turns] == turns
    assert chooser.short is (kind == "alternate")


@pytest.mark.parametrize(("kind", "starts"), [
    ("newest", [True, True, True]), ("oldest", [True, True, True]), ("alternate", [True, True, True]),
    ("late", [False, False, True]),
])  # fmt: skip
def test_when_the_next_grid_starts(kind: str, starts: list[bool]) -> None:
    states = [(True, True), (False, True), (False, False)]
    assert [make(kind).starts_next(*state) for state in states] == starts


def test_random_turns_choose_all_that_can_run_and_now_and_then_one_that_polls() -> None:
    turns, polling = make("random"), [True, True, False, False, False]
    counts = [0] * 5
    for _ in range(3000):
        counts[turns.pick(ABLE, polling)] += 1
    assert counts[2] == 0
    assert 800 < counts[0] < 1000
    assert all(600 < counts[number] < 800 for number in (1, 3, 4))


def test_a_random_grid_starts_late_when_nothing_else_runs_or_early() -> None:
    turns = make("random")
    assert all(turns.starts_next(False, False) for _ in range(100))
    early = [make_turns("random", seed).starts_next(False, True) for seed in range(1000)]
    assert 760 < sum(early) < 840
    busy = [make_turns("random", seed).starts_next(True, True) for seed in range(1000)]
    assert 430 < sum(busy) < 530
