"""Columns of tensor memory: which allocations, deallocations, accesses and pairs of CTAs are legal."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pyptx.diagnostics import Span
from pyptx.sim.hazards import Group, Hazards, Place

Event = Callable[[Hazards, Group], object]
NO_WARP = "not by one whole warp"


def place(line: int) -> Place:
    return Place(Span(line, 1), f"line {line}")


def start(cluster: int = 1, slots: int = 2) -> tuple[Hazards, list[Group]]:
    engine = Hazards()
    grid = engine.launch(place(1), 64, slots=slots, cluster=cluster, tensor=True)
    engine.start(grid, range(slots), range(slots))
    return engine, [Group(grid.list_threads(slot)) for slot in range(slots)]


def list_findings(engine: Hazards) -> list[tuple[str, str, int]]:
    """Return the code, the detail and the line of the earlier place of each finding."""
    return [
        (finding.rule.code, finding.what, finding.other.line if finding.other else 0) for finding in engine.findings
    ]


def alloc(column: int, columns: int, exclusive: bool = False) -> Event:
    return lambda engine, group: engine.tensor.alloc(
        group[list(range(32))], place(2), column, columns, exclusive=exclusive
    )


def dealloc(column: int, columns: int) -> Event:
    return lambda engine, group: engine.tensor.dealloc(group[list(range(32))], place(3), column, columns)


def use(column: int, columns: int) -> Event:
    return lambda engine, group: engine.tensor.check_allocated(group.first, place(4), column, columns)


def relinquish(engine: Hazards, group: Group) -> None:
    engine.tensor.relinquish(group[list(range(32))])


@pytest.mark.parametrize(
    ("columns", "is_legal", "is_legal_alone"),
    [
        (0, False, False), (16, False, False), (31, False, False), (32, True, True), (33, False, False),
        (48, False, False), (63, False, False), (64, True, True), (96, False, True), (128, True, True),
        (480, False, True), (496, False, False), (511, False, False), (512, True, True), (544, False, False),
        (1024, False, False),
    ],
)  # fmt: skip
def test_the_numbers_of_columns_of_an_allocation(columns: int, is_legal: bool, is_legal_alone: bool) -> None:
    for exclusive, legal in ((False, is_legal), (True, is_legal_alone)):
        engine, (group, _) = start()
        alloc(0, columns, exclusive)(engine, group)
        assert list_findings(engine) == ([] if legal else [("PTX0946", f"{columns} columns", 0)])


@pytest.mark.parametrize(
    ("lanes", "is_whole"),
    [
        (range(32), True), (range(32, 64), True), (range(31), False), (range(1, 32), False), (range(64), False),
        (range(16, 48), False),
    ],
)  # fmt: skip
def test_one_whole_warp_allocates(lanes: range, is_whole: bool) -> None:
    engine, (group, _) = start()
    engine.tensor.alloc(group[list(lanes)], place(2), 0, 32)
    assert list_findings(engine) == ([] if is_whole else [("PTX0946", NO_WARP, 0)])


@pytest.mark.parametrize(
    ("events", "findings"),
    [
        ([alloc(0, 64), alloc(64, 64), alloc(128, 32)], []),
        ([alloc(0, 32), alloc(64, 64)], [("PTX0946", "64 columns after a smaller allocation", 0)]),
        ([alloc(0, 64), alloc(64, 32), alloc(128, 64)], [("PTX0946", "64 columns after a smaller allocation", 0)]),
        ([alloc(0, 32), dealloc(0, 32), alloc(64, 64)], []),
        ([relinquish, alloc(0, 32)], [("PTX0946", "after relinquish_alloc_permit", 0)]),
        ([alloc(0, 32), dealloc(0, 32)], []),
        ([dealloc(0, 32)], [("PTX0947", "columns 0…31 were not allocated this way", 0)]),
        ([alloc(0, 64), dealloc(0, 32)], [("PTX0947", "columns 0…31 were not allocated this way", 2)]),
        ([alloc(0, 64), dealloc(32, 32)], [("PTX0947", "columns 32…63 were not allocated this way", 0)]),
        ([alloc(32, 64), use(32, 64), use(95, 1), use(40, 8)], []),
        ([alloc(32, 64), use(31, 2)], [("PTX0945", "columns 31…32", 0)]),
        ([alloc(32, 64), use(32, 65)], [("PTX0945", "columns 32…96", 0)]),
        ([use(0, 1)], [("PTX0945", "columns 0…0", 0)]),
        ([alloc(0, 32), alloc(64, 32), use(64, 32), use(32, 8)], [("PTX0945", "columns 32…39", 0)]),
        ([alloc(0, 32), dealloc(0, 32), use(0, 32)], [("PTX0945", "columns 0…31", 0)]),
    ],
)
def test_allocations_of_a_cta(events: list[Event], findings: list[tuple[str, str, int]]) -> None:
    """Allocations of another CTA change nothing."""
    engine, (other, group) = start()
    alloc(0, 512)(engine, other)
    for event in events:
        event(engine, group)
    assert list_findings(engine) == findings


@pytest.mark.parametrize("frees", [True, False])
def test_columns_are_freed_before_their_cta_exits(frees: bool) -> None:
    engine, groups = start()
    for group in groups:
        alloc(32, 64)(engine, group)
    if frees:
        dealloc(32, 64)(engine, groups[0])
    engine.exit(groups[0], place(5))
    assert list_findings(engine) == ([] if frees else [("PTX0947", "64 columns from 32 were never freed", 2)])


@pytest.mark.parametrize("first", [1, 2])
@pytest.mark.parametrize("second", [1, 2])
def test_all_operations_of_a_grid_are_for_the_same_number_of_ctas(first: int, second: int) -> None:
    engine, groups = start(cluster=2)
    for line, group, pair in zip((2, 3), groups, (first, second), strict=True):
        engine.tensor.operate(group.first, place(line), [], [], pair)
    detail = f".cta_group::{second}, elsewhere .cta_group::{first}"
    assert list_findings(engine) == ([] if first == second else [("PTX0949", detail, 2)])


@pytest.mark.parametrize("pair", [1, 2])
@pytest.mark.parametrize("cluster", [1, 2])
@pytest.mark.parametrize("leaver", [None, 0, 1, 2])
def test_both_ctas_of_a_pair_are_alive(leaver: int | None, cluster: int, pair: int) -> None:
    engine, groups = start(cluster, slots=4)
    if leaver is not None:
        engine.exit(groups[leaver], place(5))
    engine.tensor.operate(groups[1].first, place(2), [], [], pair)
    is_wrong = pair == cluster == 2 and leaver == 0
    assert list_findings(engine) == ([("PTX0967", "the peer has exited", 0)] if is_wrong else [])


def test_an_operation_of_several_threads_checks_each_pair() -> None:
    engine, groups = start(cluster=2, slots=4)
    engine.exit(groups[3], place(5))
    engine.tensor.operate_all(np.array([groups[slot].first for slot in (0, 2)]), place(2), [], [], 2)
    assert list_findings(engine) == [("PTX0967", "the peer has exited", 0)]
