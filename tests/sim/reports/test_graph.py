"""The wait-for graph of a hang: the node to blame, the circle, and how much of it the error and the report show."""

from __future__ import annotations

import json

import pytest

from pyptx.diagnostics import Span
from pyptx.sim.base.events import Place
from pyptx.sim.reports.graph import HangReport, Node, blame, choose_verb
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
    nodes[7].history = [f"step {number}" for number in range(8)]
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
    finding = HangReport(nodes, *blame(nodes)).make_finding()
    assert finding is not None
    assert finding.help == remedy
    message = finding.diagnostic().message
    assert message.endswith("circular wait: a → b → a; CTA 0 warp 0 waits for a, phase 0: 1 of 2 arrivals missing")
    signals = [line for line in finding.details if "signaled by" in line]
    assert len(signals) == 2 * has_signals
    if has_signals:
        assert signals[0] == (
            "  signaled by: arrive 0, arrive 1, arrive 2, after the wait of CTA 0 warp 0 for b, phase 1"
        )


def test_a_report_as_json_has_the_lines_of_places() -> None:
    node = make_node("event", waiters=2)
    node.waiters[1] = (node.waiters[1][0], Place(None, "the end of k"))
    node.place = PLACE
    value = json.loads(json.dumps(HangReport([node, make_node("other")], node, []).as_json()))
    assert value["guilty"] == "event"
    assert [entry["line"] for entry in value["nodes"][0]["waiting"]] == [1, 0]
    assert [entry["declared"] for entry in value["nodes"]] == [7, 0]
    assert json.loads(json.dumps(HangReport([], None, []).as_json()))["guilty"] is None


def test_the_verb_agrees_with_the_warps() -> None:
    assert choose_verb("CTA 0 warp 1 lane 2", "waits", "wait") == "waits"
    assert choose_verb("CTA 0 warp 1, warp 2", "waits", "wait") == "wait"
