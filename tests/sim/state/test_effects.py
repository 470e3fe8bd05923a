"""Effects of many lanes issued as one: they land together, or only for the lanes that are due."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from pyptx.sim.state.effects import BULK, TCGEN05, TENSOR_STORES, WGMMA, Choices, Effects

LANES = 8


class Record:
    """Effects of four lanes each, with the order and lanes in which they landed."""

    def __init__(self, eager: bool = False) -> None:
        self.effects = Effects(eager)
        self.landings: list[tuple[str, list[int]]] = []

    def issue(self, name: str, lanes: list[int], signals: bool = False) -> None:
        def land(positions: Any) -> None:
            self.landings.append((name, [lanes[position] for position in positions]))

        rows = np.zeros((len(lanes), 1), np.int64) if signals else None
        self.effects.issue_each("copy", np.array(lanes), LANES, land, rows)


def test_eager_ones_land_at_once() -> None:
    record = Record(eager=True)
    record.issue("a", [0, 2, 4, 6])
    assert record.landings == [("a", [0, 2, 4, 6])]
    assert not record.effects.pending


def test_a_wait_lands_what_its_own_lanes_issued() -> None:
    record = Record()
    record.issue("a", [0, 2, 4, 6])
    record.effects.commit("copy", np.arange(LANES), LANES)
    record.issue("b", [0, 2, 4, 6])
    record.effects.wait("copy", np.array([2, 3]), LANES, 0)
    assert record.landings == [("a", [2])]
    record.effects.wait("copy", np.array([0, 2]), LANES, 0)
    record.effects.commit("copy", np.arange(LANES), LANES)
    record.effects.wait("copy", np.arange(LANES), LANES, 1)
    assert record.landings == [("a", [2]), ("a", [0]), ("a", [4, 6])]
    record.effects.land_all()
    assert record.landings[3:] == [("b", [0, 2, 4, 6])]


def test_the_oldest_of_every_lane_lands_first() -> None:
    record = Record()
    record.issue("a", [0, 2], signals=True)
    record.issue("b", [0, 2, 4], signals=True)
    assert record.effects.land_oldest()
    assert record.landings == [("a", [0, 2]), ("b", [4])]
    assert record.effects.land_oldest()
    assert record.landings[2:] == [("b", [0, 2])]
    assert not record.effects.land_oldest()


def test_at_random_every_lane_lands_once_and_sometimes_by_itself() -> None:
    parts = set[int]()
    for seed in range(300):
        record = Record()
        for name in "abc":
            record.issue(name, [0, 2, 4, 6], signals=True)
        chance = Random(seed)
        while record.effects.pending:
            record.effects.land_some(chance, 2)
        for name in "abc":
            lanes = [lane for label, group in record.landings for lane in group if label == name]
            assert sorted(lanes) == [0, 2, 4, 6]
        parts |= {len(group) for _, group in record.landings}
    assert 4 in parts
    assert parts & {1, 2, 3}


class Engines:
    """Effects of several agents, each of which notifies an mbarrier or none, with the order in which they landed."""

    def __init__(self) -> None:
        self.effects = Effects(eager=False)
        self.landings: list[str] = []

    def issue(self, name: str, agent: str, lanes: list[int], row: int | None = None) -> None:
        def land() -> None:
            self.landings.append(name)

        tells = None if row is None else np.full((len(lanes), 1), row)
        in_group = agent in (WGMMA, TENSOR_STORES)
        self.effects.issue(agent, np.array(lanes), LANES, land, in_group=in_group, mbarrier_rows=tells)


def select_rows(*rows: int) -> Any:
    output = np.zeros(4, np.bool_)
    output[list(rows)] = True
    return output


def test_of_what_is_waited_for_copies_land_before_products() -> None:
    engines = Engines()
    engines.issue("product", TCGEN05, [0])
    engines.issue("commit", TCGEN05, [0], 1)
    engines.issue("next product", TCGEN05, [0])
    engines.issue("other copy", BULK, [2], 3)
    engines.issue("copy", BULK, [2], 2)
    assert not engines.effects.land_awaited(select_rows(0))
    assert engines.effects.land_awaited(select_rows(1, 2))
    assert engines.landings == ["copy"]
    assert engines.effects.land_awaited(select_rows(1, 2))
    assert engines.landings == ["copy", "product", "commit"]
    assert not engines.effects.land_awaited(select_rows(1, 2))
    assert engines.effects.land_oldest()
    assert engines.landings == ["copy", "product", "commit", "other copy"]
    assert not engines.effects.land_oldest()


def test_what_nobody_else_hears_of_waits_for_its_own_wait() -> None:
    engines = Engines()
    engines.issue("product", WGMMA, [0, 2])
    engines.issue("store", TENSOR_STORES, [0])
    engines.issue("copy", BULK, [0])
    assert engines.effects.land_oldest()
    assert not engines.effects.land_oldest()
    assert engines.landings == ["copy"]
    engines.effects.wait(TENSOR_STORES, np.array([0]), LANES, None)
    engines.effects.land_all()
    assert engines.landings == ["copy", "store", "product"]


def test_what_a_thread_issues_in_order_lands_in_order() -> None:
    orders = set[str]()
    for seed in range(200):
        engines = Engines()
        for index in range(3):
            engines.issue(f"{index}", TCGEN05, [0])
            engines.issue(f"other {index}", TCGEN05, [4])
        chance = Random(seed)
        while engines.effects.pending:
            engines.effects.land_some(chance, 2)
        assert [name for name in engines.landings if "other" not in name] == ["0", "1", "2"]
        orders.add(" ".join(engines.landings))
    assert len(orders) > 5


def test_a_product_takes_earlier_ones_of_its_own_warpgroups_along() -> None:
    engines = Engines()
    engines.issue("of two", WGMMA, [0, 2])
    engines.issue("of the second", WGMMA, [2])
    engines.issue("of both again", WGMMA, [0, 2])
    engines.effects.commit(WGMMA, np.array([0]), LANES)
    engines.issue("later", WGMMA, [0])
    engines.effects.wait(WGMMA, np.array([0]), LANES, 0)
    assert engines.landings == ["of two", "of the second", "of both again"]


def test_agents_in_a_hurry_land_at_once() -> None:
    engines = Engines()
    engines.effects.begin(Choices(hasty=frozenset((TCGEN05,))))
    engines.issue("copy", BULK, [0])
    engines.issue("product", TCGEN05, [0])
    assert engines.landings == ["product"]
    assert engines.effects.lands_at_once(TCGEN05)
    assert not engines.effects.lands_at_once(WGMMA)


def test_at_random_a_product_lands_at_once_unless_another_is_before_it() -> None:
    engines = Engines()
    engines.effects.begin(Choices(chance=Random(1)))
    assert {engines.effects.lands_at_once(WGMMA) for _ in range(50)} == {True, False}
    engines.issue("product", WGMMA, [0])
    assert {engines.effects.lands_at_once(WGMMA) for _ in range(50)} == {False}
