"""Effects of many lanes that are issued as one: they land together, or for those lanes alone that are due."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from pyptx.sim.effects import Effects

LANES = 8


class Record:
    """Effects of four lanes each, and in what order they landed for whom."""

    def __init__(self, eager: bool = False) -> None:
        self.effects = Effects(eager)
        self.landed: list[tuple[str, list[int]]] = []

    def issue(self, name: str, lanes: list[int], grouped: bool = True) -> None:
        def land(positions: Any) -> None:
            self.landed.append((name, [lanes[at] for at in positions]))

        self.effects.issue_each("copy", np.array(lanes), LANES, land, grouped)


def test_eager_ones_land_at_once() -> None:
    record = Record(eager=True)
    record.issue("a", [0, 2, 4, 6])
    assert record.landed == [("a", [0, 2, 4, 6])]
    assert not record.effects.pending


def test_a_wait_lands_what_its_own_lanes_issued() -> None:
    record = Record()
    record.issue("a", [0, 2, 4, 6])
    record.effects.commit("copy", np.arange(LANES), LANES)
    record.issue("b", [0, 2, 4, 6])
    record.effects.wait("copy", np.array([2, 3]), LANES, 0)
    assert record.landed == [("a", [2])]
    record.effects.wait("copy", np.array([0, 2]), LANES, 0)
    record.effects.commit("copy", np.arange(LANES), LANES)
    record.effects.wait("copy", np.arange(LANES), LANES, 1)
    assert record.landed == [("a", [2]), ("a", [0]), ("a", [4, 6])]
    record.effects.land_all()
    assert record.landed[3:] == [("b", [0, 2, 4, 6])]


def test_the_oldest_of_every_lane_lands_first() -> None:
    record = Record()
    record.issue("a", [0, 2], grouped=False)
    record.issue("b", [0, 2, 4], grouped=False)
    assert record.effects.land_oldest()
    assert record.landed == [("a", [0, 2]), ("b", [4])]
    assert record.effects.land_oldest()
    assert record.landed[2:] == [("b", [0, 2])]
    assert not record.effects.land_oldest()


def test_at_random_every_lane_lands_once_and_sometimes_by_itself() -> None:
    parts = set[int]()
    for seed in range(300):
        record = Record()
        for name in "abc":
            record.issue(name, [0, 2, 4, 6], grouped=False)
        chance = Random(seed)
        while record.effects.pending:
            record.effects.land_some(chance, 2)
        for name in "abc":
            lanes = [lane for one, landed in record.landed for lane in landed if one == name]
            assert sorted(lanes) == [0, 2, 4, 6]
        parts |= {len(landed) for _, landed in record.landed}
    assert 4 in parts
    assert parts & {1, 2, 3}
