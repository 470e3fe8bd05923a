"""Findings as text and plain values, word for word, and those of one cause: compared with a search for a point."""

from __future__ import annotations

import random
from itertools import product

import pytest

from pyptx.diagnostics import Severity, Span
from pyptx.sim import rules
from pyptx.sim.base.events import Place
from pyptx.sim.reports.findings import Agent, Cta, Finding, Ledger, group_by_cause

STORE = Place(Span(9, 5, 8), "st.shared.u32")
LOAD = Place(Span(4, 3, 2, "other.ptx"), "ld.shared.u32")


def make_finding(**options: object) -> Finding:
    values: dict[str, object] = {"what": "writes 4 bytes", "agent": Agent(2, 1, 7)} | options
    return Finding(rules.RACE, STORE, **values)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("grid", [(5, 1, 1), (3, 2, 1), (1, 1, 4), (1, 3, 1), (2, 3, 4)], ids=str)
def test_a_cta_is_named_by_coordinates_if_its_grid_has_several_dimensions(grid: tuple[int, int, int]) -> None:
    everywhere = [(x, y, z) for z, y, x in product(*map(range, reversed(grid)))]
    ctas = [Cta.from_ctaid(place, grid) for place in everywhere]
    assert ctas == list(range(len(everywhere)))
    names = [str(place[0]) if grid[1:] == (1, 1) else str(place) for place in everywhere]
    assert [str(cta) for cta in ctas] == [repr(cta) for cta in ctas] == names


def test_a_cta_without_a_grid_is_a_number() -> None:
    assert str(Cta(7)) == "7"


@pytest.mark.parametrize(("agent", "text"), [
    (Agent(2, 1, 0), "CTA 2 warp 1 lane 0"),
    (Agent(2, 1, -1), "CTA 2 warp 1"),
    (Agent(2, 1, 7, "bulk copy", "first"), "bulk copy of CTA 2 warp 1 lane 7 of `first`"),
])  # fmt: skip
def test_an_agent_is_named_by_its_lane_engine_and_grid(agent: Agent, text: str) -> None:
    assert str(agent) == text
    grid = {"grid": "first"} if agent.grid else {}
    engine = agent.engine or None
    assert agent.as_json() == {"cta": 2, "warp": 1, "lane": agent.lane, "engine": engine, **grid}


def test_a_finding_that_occurred_once() -> None:
    finding = make_finding()
    assert repr(finding) == "<error PTX0901 (data race) at `st.shared.u32` at <ptx>:9:5, once>"
    diagnostic = finding.diagnostic()
    assert diagnostic.message == "data race: writes 4 bytes"
    assert diagnostic.notes == ("by CTA 2 warp 1 lane 7", rules.RACE.why)
    assert (diagnostic.help, diagnostic.origin, diagnostic.other) == (rules.REMEDIES["PTX0901"], STORE.origin, None)
    assert (diagnostic.severity, diagnostic.details, finding.agents_grids) == (Severity.ERROR, (), ("", ""))
    assert finding.as_json() == diagnostic.as_json() | {
        "instruction": "st.shared.u32", "agent": {"cta": 2, "warp": 1, "lane": 7, "engine": None}, "other": None,
        "where": "", "count": 1,
    }  # fmt: skip


def test_a_finding_with_everything() -> None:
    finding = make_finding(
        agent=Agent(2, 1, 7, grid="a"), other=LOAD, other_agent=Agent(0, 0, -1, "store", "b"), where="tile",
        notes=("a note",), count=2, help="a remedy", details=("a detail",),
    )  # fmt: skip
    assert repr(finding) == (
        "<error PTX0901 (data race) at `st.shared.u32` at <ptx>:9:5, "
        "other place `ld.shared.u32` at other.ptx:4:3, 2 times>"
    )
    diagnostic = finding.diagnostic()
    assert diagnostic.message == "data race: writes 4 bytes (2 times)"
    assert diagnostic.notes == (
        "first by CTA 2 warp 1 lane 7 of `a`; "
        "the other place: `ld.shared.u32` at other.ptx:4:3, by store of CTA 0 warp 0 of `b`",
        "a note", rules.RACE.why,
    )  # fmt: skip
    assert (diagnostic.help, diagnostic.other, diagnostic.details) == ("a remedy", LOAD.origin, ("a detail",))
    assert finding.agents_grids == ("a", "b")
    assert finding.as_json() == diagnostic.as_json() | {
        "instruction": "st.shared.u32",
        "agent": {"cta": 2, "warp": 1, "lane": 7, "engine": None, "grid": "a"},
        "other": {
            "instruction": "ld.shared.u32", "file": "other.ptx", "line": 4,
            "agent": {"cta": 0, "warp": 0, "lane": -1, "engine": "store", "grid": "b"},
        },
        "where": "tile", "count": 2,
    }  # fmt: skip


def test_a_finding_without_agents() -> None:
    finding = make_finding(agent=None, other=Place(None, "the end of k"), count=3)
    assert finding.diagnostic().message == "data race: writes 4 bytes"
    assert finding.diagnostic().notes == ("the other place: `the end of k`", rules.RACE.why)
    assert make_finding(agent=None).diagnostic().notes == (rules.RACE.why,)
    value = finding.as_json()
    assert value["agent"] is None
    assert value["other"] == {"instruction": "the end of k", "file": None, "line": 0, "agent": None}


def test_equal_findings_are_counted_and_new_ones_kept_up_to_the_limit() -> None:
    ledger = Ledger(limit=3)
    for finding in (
        make_finding(where="first"), make_finding(where="second", count=4), make_finding(agent=None, where="first"),
        make_finding(agent=None, where="first"), make_finding(agent=None, where="second"), make_finding(other=LOAD),
        make_finding(where="third"), make_finding(agent=Agent(0, 0, 0, grid="a")),
    ):  # fmt: skip
        ledger.add(finding)
    assert [(finding.where, finding.agent is None, finding.count) for finding in ledger] == [
        ("first", False, 6), ("first", True, 2), ("second", True, 1),
    ]  # fmt: skip
    assert len(ledger) == 3


def test_a_ledger_splits_errors_and_warnings() -> None:
    ledger = Ledger()
    findings = [make_finding(), Finding(rules.NAN, STORE, None, "is NaN"), make_finding(other=LOAD)]
    for finding in findings:
        ledger.add(finding)
    assert ledger.errors == [findings[0], findings[2]]
    assert ledger.warnings == [findings[1]]


def describe_groups(pairs: list[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Assign each pair of lines to the first group that shares a point with it, by trying all points."""
    groups: list[tuple[bool, set[int], list[tuple[int, int]]]] = []
    for later, earlier in pairs:
        points, around = set(range(min(later, earlier), max(later, earlier) + 1)), later <= earlier
        for place, (other_around, common, members) in enumerate(groups):
            if around is other_around and points & common:
                groups[place] = around, points & common, [*members, (later, earlier)]
                break
        else:
            groups.append((around, points, [(later, earlier)]))
    return [members for _, _, members in groups]


def test_random_pairs_are_grouped_as_a_search_for_a_common_point_groups_them() -> None:
    chance = random.Random(4)
    for _ in range(300):
        pairs = [(chance.randrange(1, 9), chance.randrange(1, 9)) for _ in range(chance.randrange(1, 30))]
        findings = [make_finding(other=Place(Span(earlier, 5), "ld")) for _, earlier in pairs]
        for finding, (later, _) in zip(findings, pairs, strict=True):
            finding.place = Place(Span(later, 5), "st")
        groups = describe_groups(pairs)
        for finding, (first, *others) in zip(group_by_cause(findings), groups, strict=True):
            assert finding.place.origin == Span(first[0], 5)
            assert finding.count == 1 + len(others)
            named = ", ".join(f"line {later} after line {earlier}" for later, earlier in others[:8])
            rest = f" and {len(others) - 8} more" if len(others) > 8 else ""
            note = f"also at {len(others)} more {'pair' if len(others) == 1 else 'pairs'} of places: {named}{rest}"
            assert finding.notes == ((note,) if others else ())


def test_places_without_a_line_have_causes_of_their_own() -> None:
    places = [STORE, Place(None, "the end of k"), Place(None, "the end of k")]
    findings = [Finding(rules.RACE, place, None, "writes", other) for place in places for other in (*places[1:], None)]
    assert group_by_cause(findings) == findings


def test_pairs_in_two_files_have_one_cause_only_at_the_same_place() -> None:
    later = [Place(Span(9, 1, 1, "a"), "st"), Place(Span(9, 1, 1, "a"), "st"), Place(Span(8, 1, 1, "a"), "st")]
    findings = [Finding(rules.RACE, place, None, "writes", LOAD) for place in later]
    assert [finding.count for finding in group_by_cause(findings)] == [2, 1]
