"""The wait-for graph of a hang: the node to blame, the circle, and how much of it the error and the report show."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from pyptx.diagnostics import Span
from pyptx.sim.base.events import Place
from pyptx.sim.reports.graph import (
    Exited,
    HangReport,
    Node,
    Subject,
    Waiting,
    blame,
    choose_verb,
    explain,
)
from pyptx.sim.rules import advice

PLACE = Place(Span(7, 3), "bar.sync")


def make_node(what: str, *waits_for: str, kind: str = "mbarrier", waiters: int = 1, has_begun: bool = False,
              is_broken: bool = False, advice: str = "") -> Node:  # fmt: skip
    names = [(f"CTA 0 warp {number}", Place(Span(number + 1, 1), "wait")) for number in range(waiters)]
    return Node(what, kind, "1 of 2 arrivals missing", names, [], waits_for=list(waits_for), has_begun=has_begun,
                advice=advice, is_broken=is_broken)  # fmt: skip


def test_of_a_circle_the_event_that_has_occurred_in_part_is_guilty() -> None:
    nodes = [make_node("empty", "full"), make_node("full", "empty", has_begun=True)]
    assert blame(nodes) == (nodes[1], ["full", "empty", "full"])
    nodes[1].has_begun = False
    assert blame(nodes) == (nodes[0], ["empty", "full", "empty"])


def test_waits_that_lead_to_a_circle_are_not_part_of_it() -> None:
    nodes = [make_node("outside", "empty"), make_node("empty", "full"), make_node("full", "empty")]
    assert blame(nodes) == (nodes[1], ["empty", "full", "empty"])


def test_a_broken_event_is_guilty_before_one_that_waits_for_nothing() -> None:
    nodes = [make_node("waits", "more"), make_node("root"), make_node("more", waiters=2), make_node("broken", "root")]
    assert blame(nodes) == (nodes[2], [])
    nodes[3].is_broken = True
    assert blame(nodes) == (nodes[3], [])
    assert blame([]) == (None, [])


def test_an_error_shows_a_few_events_and_waiters_and_the_report_more() -> None:
    nodes = [make_node(f"event {number}", waiters=2 + number % 4) for number in range(8)]
    nodes[7].history, nodes[7].signals = [f"step {number}" for number in range(8)], ["an arrive"]
    nodes[7].could = [f"helper {number}" for number in range(10)]
    nodes[7].place = PLACE
    report = HangReport(nodes, nodes[7], [])
    lines = report.summarize()
    assert [line.partition(":")[0] for line in lines if not line.startswith("  ")] == [
        "event 7", "event 0", "event 1", "event 2", "event 3", "event 4", "and 2 more barriers"
    ]  # fmt: skip
    assert lines[1] == "  waiting: " + "; ".join(f"CTA 0 warp {n} at {nodes[7].waiters[n][1]}" for n in range(3)) + (
        " and at 2 more"
    )
    assert [" and at " in line for line in lines[1:12:2]] == [True, False, False, True, True, False]
    assert not any("step" in line for line in lines)
    text = str(report).splitlines()
    assert text[0].endswith(f"CTA 0 warp 4 at {nodes[7].waiters[4][1]}")
    assert text[1] == f"  declared: {PLACE}"
    assert text[2:8] == [f"  so far: step {number}" for number in range(2, 8)]
    assert text[8:16] == [f"  could complete it: helper {number}" for number in range(8)]
    assert text[16].startswith("event 0: ")


def test_a_grid_shows_where_the_threads_of_the_previous_one_are() -> None:
    grid = make_node("grid `first`", kind="grid")
    grid.history = ["32 × waiting", "16 × running", "8 × polling"]
    assert HangReport([grid], grid, []).summarize()[2:] == ["  32 × waiting", "  16 × running"]


def test_an_mbarrier_that_no_thread_can_signal_shows_what_signaled_it() -> None:
    nodes = [make_node("full", kind="mbarrier"), make_node("empty", kind="mbarrier")]
    for node in nodes:
        node.history = ["no instruction arrives at it"]
    lines = HangReport(nodes, nodes[0], []).summarize()
    assert lines[2] == "  no instruction arrives at it"
    assert len(lines) == 5
    nodes[0].signals = ["an arrive"]
    assert not any("no instruction" in line for line in HangReport(nodes, nodes[0], []).summarize())


def test_six_events_are_shown_without_a_rest() -> None:
    nodes = [make_node(f"event {number}") for number in range(6)]
    assert len(HangReport(nodes, nodes[0], []).summarize()) == 12


@pytest.mark.parametrize(
    ("kinds", "own", "has_signals", "remedy"),
    [
        (("mbarrier", "mbarrier"), advice.PHASES, True, advice.advise_cycle({"mbarrier"})),
        (("mbarrier", "mbarrier"), advice.PHASES, False, advice.PHASES),
        (("bar", "bar"), advice.BARS, True, advice.advise_cycle({"bar"})),
        (("bar", "mbarrier"), advice.BARS, True, advice.BARS),
        (("mbarrier", "mbarrier"), "lower it", True, "lower it"),
    ],
)
def test_the_remedy_of_a_circle(kinds: tuple[str, str], own: str, has_signals: bool, remedy: str) -> None:
    nodes = [make_node("a, phase 0", "b, phase 1", kind=kinds[0], advice=own),
             make_node("b, phase 1", "a, phase 0", kind=kinds[1], advice=own)]  # fmt: skip
    for node in nodes:
        node.signals = [f"arrive {number}" for number in range(5)] if has_signals else []
    nodes[1].waiters = [(f"CTA 0 warp {number}", PLACE) for number in range(4)]
    finding = HangReport(nodes, *blame(nodes)).make_finding()
    assert finding is not None
    assert finding.help == remedy
    message = finding.diagnostic().message
    assert message.endswith("circular wait: a → b → a; CTA 0 warp 0 waits for a, phase 0: 1 of 2 arrivals missing")
    signals = [line for line in finding.details if "signaled by" in line]
    assert len(signals) == 2 * has_signals
    if has_signals:
        assert signals[0] == (
            "  signaled by: arrive 0, arrive 1, arrive 2, "
            "after the wait of CTA 0 warp 0; CTA 0 warp 1; CTA 0 warp 2 for b, phase 1"
        )


def test_a_report_as_plain_values() -> None:
    node = make_node("event", "other", waiters=2, advice="lower it")
    node.waiters[1] = (node.waiters[1][0], Place(None, "the end of k"))
    node.place, node.could, node.history, node.signals = PLACE, ["warp 3 waits"], ["arrived"], ["arrive at 9"]
    report = HangReport([node, make_node("other")], node, ["event", "other", "event"])
    assert json.loads(json.dumps(report.as_json())) == {
        "guilty": "event",
        "cycle": ["event", "other", "event"],
        "nodes": [
            {
                "what": "event", "kind": "mbarrier", "missing": "1 of 2 arrivals missing", "advice": "lower it",
                "declared": 7,
                "waiting": [
                    {"who": "CTA 0 warp 0", "line": 1, "at": "`wait` at <ptx>:1:1"},
                    {"who": "CTA 0 warp 1", "line": 0, "at": "`the end of k`"},
                ],
                "could_have": ["warp 3 waits"], "signaled_by": ["arrive at 9"], "history": ["arrived"],
                "waits_for": ["other"],
            },
            {
                "what": "other", "kind": "mbarrier", "missing": "1 of 2 arrivals missing", "advice": "", "declared": 0,
                "waiting": [{"who": "CTA 0 warp 0", "line": 1, "at": "`wait` at <ptx>:1:1"}], "could_have": [],
                "signaled_by": [], "history": [], "waits_for": [],
            },
        ],
    }  # fmt: skip
    assert HangReport([], None, []).as_json() == {"guilty": None, "cycle": [], "nodes": []}


def test_a_report_as_text_begins_with_the_circle() -> None:
    nodes = [make_node("a, phase 0", "b, phase 1"), make_node("b, phase 1", "a, phase 0")]
    assert str(HangReport(nodes, *blame(nodes))).splitlines() == [
        "circular wait: a, phase 0 → b, phase 1 → a, phase 0",
        "a, phase 0: 1 of 2 arrivals missing. Waiting: CTA 0 warp 0 at `wait` at <ptx>:1:1",
        "b, phase 1: 1 of 2 arrivals missing. Waiting: CTA 0 warp 0 at `wait` at <ptx>:1:1",
    ]


def test_a_finding_is_at_the_first_wait_for_the_guilty_event() -> None:
    node = make_node("event", waiters=2)
    finding = HangReport([node], node, []).make_finding()
    assert finding is not None
    assert finding.place.line == 1
    assert HangReport([], None, []).make_finding() is None


def test_a_circle_follows_the_first_event_that_each_waits_for() -> None:
    nodes = [make_node("a", "b", "c"), make_node("b", "a", "c"), make_node("c", "a", "b")]
    assert blame(nodes) == (nodes[0], ["a", "b", "a"])


def test_the_verb_agrees_with_the_warps() -> None:
    assert choose_verb("CTA 0 warp 1 lane 2", "waits", "wait") == "waits"
    assert choose_verb("CTA 0 warp 1, warp 2", "waits", "wait") == "wait"


@dataclass
class Table:
    """What is known of each awaited event, by the number of its wait."""

    subjects: dict[int, Subject]

    def describe(self, wait: Waiting) -> Subject:
        return self.subjects[wait.key]

    def name_threads(self, threads: Sequence[int]) -> str:
        return ", ".join(f"warp {warp}" for warp in sorted({thread // 32 for thread in threads}))


def make_wait(key: int, kind: str, warps: Sequence[int]) -> Waiting:
    return Waiting(
        tuple(32 * warp + lane for warp in warps for lane in (0, 5)), Place(Span(key + 1, 1), kind), kind, key
    )


def draw_hang(chance: random.Random) -> tuple[list[Waiting], Table]:
    """Return waits of random warps, and events that random warps could cause."""
    kinds = [chance.choice(["bar", "warp", "mbarrier"]) for _ in range(chance.randrange(1, 5))]
    subjects = {
        key: Subject((key,), f"event {key}", f"{key} missing", ("a", "b")[: chance.randrange(3)],
                     chance.choice([None, PLACE]), frozenset(chance.sample(range(6), chance.randrange(4))),
                     chance.random() < 0.5, f"advice {key}",
                     (PLACE,)[: chance.randrange(2)], chance.random() < 0.2)
        for key in range(len(kinds))
    }  # fmt: skip
    places = [chance.randrange(len(kinds)) for _ in range(chance.randrange(1, 8))]
    waits = [make_wait(key, kinds[key], chance.sample(range(6), chance.randrange(1, 3))) for key in places]
    return waits, Table(subjects)


def list_warps(wait: Waiting) -> set[int]:
    return {thread // 32 for thread in wait.threads}


def test_random_hangs_are_explained_wait_by_wait() -> None:
    chance = random.Random(6)
    exits = [Exited((0, 1), PLACE), Exited((32, 64), Place(None, "the end of k"))]
    for _ in range(200):
        waits, table = draw_hang(chance)
        report = explain(waits, exits, table)
        keys = list(dict.fromkeys(wait.key for wait in waits))
        assert [node.what for node in report.nodes] == [f"event {key}" for key in keys]
        for key, node in zip(keys, report.nodes, strict=True):
            subject, own = table.subjects[key], [wait for wait in waits if wait.key == key]
            assert node.waiters == [(table.name_threads(wait.threads), wait.place) for wait in own]
            assert (node.kind, node.missing, node.history) == (own[0].kind, subject.missing, list(subject.history))
            assert (node.place, node.has_begun, node.advice) == (subject.place, subject.has_begun, subject.advice)
            assert (node.signals, node.is_broken) == ([str(place) for place in subject.signals], subject.is_broken)
            helping = [wait for wait in waits if wait.key != key and list_warps(wait) & subject.helpers]
            lines = [
                f"{table.name_threads(wait.threads)} {'wait' if len(list_warps(wait)) > 1 else 'waits'} at {wait.place}"
                for wait in helping
            ]
            assert node.could == [*lines, f"warp 0 exited after {PLACE}", "warp 1, warp 2 exited after `the end of k`"]
            following = {wait.key for wait in helping if own[0].kind != "warp" or wait.kind != "bar"}
            assert node.waits_for == [f"event {other}" for other in keys if other in following]
        assert (report.guilty, report.cycle) == blame(report.nodes)
