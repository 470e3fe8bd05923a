"""Accesses that come again are judged as those that come once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyptx.diagnostics import Span
from pyptx.sim.base.events import Ints
from pyptx.sim.hazards import Access, Bytes, Family, Group, Hazards, Place, Space, atomic, load, store
from pyptx.sim.hazards.footprints import sharing

THREADS, SHARED, CTAS = 128, 2048, 3
"""A warp of each CTA is more lanes than those whose footprint is made when they come for the first time."""


@cache
def place(line: int) -> Place:
    return Place(Span(line, 1), f"line {line}")


@cache
def access(line: int, size: int, writes: bool) -> Access:
    return (store if writes else load)(place(line), Space.SHARED, size)


@cache
def adds(line: int, size: int) -> Access:
    return atomic(place(line), Space.SHARED, size)


PATTERNS: list[Callable[[Ints, int], Ints]] = [
    lambda tid, size: tid * size,
    lambda tid, size: (tid ^ 1) * size,
    lambda tid, size: (tid + 32) % THREADS * size,
    lambda tid, size: tid // 32 * size,
    lambda tid, size: tid % 16 * size,
    lambda tid, size: tid * 0,
    lambda tid, size: tid % 48 * 16 % (SHARED - 64),
]
GROUPS = [np.arange(THREADS), np.arange(64), np.arange(64, THREADS), np.arange(32, 64), np.arange(0, THREADS, 2)]
EVENTS = st.one_of(
    st.tuples(
        st.just("access"), st.sampled_from(range(len(GROUPS))), st.sampled_from(range(len(PATTERNS))),
        st.sampled_from([4, 4, 4, 16, 2]), st.booleans(),
    ),
    st.tuples(st.just("bar")), st.tuples(st.just("bar")), st.tuples(st.just("warp")), st.tuples(st.just("again")),
)  # fmt: skip


ATOMICS = st.one_of(
    st.tuples(
        st.sampled_from(["access", "atomic", "atomic", "atomic"]), st.sampled_from(range(len(GROUPS))),
        st.sampled_from(range(len(PATTERNS))), st.sampled_from([4, 4, 4, 8]), st.booleans(),
    ),
    st.tuples(st.sampled_from(["bar", "warp", "again"])),
)  # fmt: skip


OPERATIONS = st.one_of(
    st.tuples(
        st.sampled_from(["access", "access", "copy"]), st.sampled_from(range(len(GROUPS))),
        st.sampled_from(range(len(PATTERNS))), st.sampled_from([16, 16, 4]), st.booleans(),
    ),
    st.tuples(st.just("send"), st.sampled_from([0, 512]), st.sampled_from([256, 1024])),
    st.tuples(st.sampled_from(["wait"]), st.sampled_from(range(len(GROUPS)))),
    st.tuples(st.sampled_from(["fence", "sent", "bar", "joined", "joined", "joined", "warp", "again"])),
)  # fmt: skip


def operation(made: Hazards, what: str, mine: Group, at: Place, where: Ints, size: int) -> None:
    """One of the asynchronous operations on shared memory, or what waits for it."""
    if what == "copy":
        made.copies.cp_async(mine, Access(at, Space.SHARED, size, True, False, family=Family.CP_ASYNC), where)
        made.copies.commit_cp(mine)
    elif what == "wait":
        made.copies.wait_cp(mine)
    elif what == "fence":
        made.sync.proxy_fence(mine, (Space.SHARED,))
    elif what == "sent":
        made.copies.wait_bulk(mine, at, 0, True)
    else:
        for thread in mine.threads[mine.threads % THREADS == 0].tolist():
            source = Bytes.run(Space.SHARED, thread // THREADS * SHARED + int(where), size)
            made.copies.bulk_store(thread, at, source, Bytes.run(Space.GLOBAL, 1 << 20, size), False)
            made.copies.commit_bulk(Group(np.array([thread])), at)


def group(which: int) -> Group:
    """Return threads of all CTAs, interleaved as the machine's lanes are."""
    return Group((GROUPS[which][:, None] + np.arange(CTAS) * THREADS).reshape(-1))


def findings(
    events: list[tuple[Any, ...]], kept: bool, busy: bool = False, turns: int = 3
) -> set[tuple[str, str, str]]:
    """Return what an engine finds in events that take place several times. `kept`: groups are made once. `busy`: a
    thread writes a place of its own before each event, which nothing orders with other threads."""
    made = Hazards()
    grid = made.launch(place(1), THREADS, slots=CTAS, shared_bytes=SHARED)
    made.start(grid, range(CTAS), range(CTAS))
    groups = [group(which) for which in range(len(GROUPS))]
    for _ in range(turns):
        for number, (what, *how) in enumerate(events):
            whole = groups[0] if kept else group(0)
            if busy:
                made.access(access(1, 4, True), Group(np.array([0, THREADS])), np.array([SHARED - 4, 2 * SHARED - 4]))
            if what in ("access", "atomic"):
                which, pattern, size, writes = cast("tuple[int, int, int, bool]", how)
                mine = groups[which] if kept else group(which)
                where = mine.threads // THREADS * SHARED + PATTERNS[pattern](mine.threads % THREADS, size)
                how = adds(number + 2, size) if what == "atomic" else access(number + 2, size, writes)
                made.access(how, mine, where, benign=True)
            elif what == "copy":
                which, pattern, size, _ = cast("tuple[int, int, int, bool]", how)
                mine = groups[which] if kept else group(which)
                where = mine.threads // THREADS * SHARED + PATTERNS[pattern](mine.threads % THREADS, size)
                operation(made, what, mine, place(number + 2), where, size)
            elif what == "wait":
                operation(made, what, group(cast("tuple[int]", how)[0]), place(number + 2), whole.threads, 0)
            elif what in ("fence", "sent", "send"):
                first, size = cast("tuple[int, int]", how or (0, 0))
                operation(made, what, whole, place(number + 2), np.array(first), size)
            elif what in ("bar", "joined"):
                for waiting in ("wait", "sent") if what == "joined" else ():
                    operation(made, waiting, whole, place(number + 2), whole.threads, 0)
                made.barriers.bar(whole, place(number + 2), 0, None, "sync")
            elif what == "warp":
                made.barriers.warp_sync(whole, place(number + 2), 0xFFFFFFFF)
            else:
                for cta in range(CTAS):
                    made.exit(Group(grid.list_threads(cta)), place(number + 2))
                made.start(grid, range(CTAS), range(CTAS))
    return {(finding.rule.code, str(finding.place), str(finding.other)) for finding in made.findings}


@given(st.lists(EVENTS, max_size=12))
@settings(max_examples=150, deadline=None)
def test_what_is_found_does_not_depend_on_repetition(events: list[tuple[Any, ...]]) -> None:
    assert races(findings(events, True)) == races(findings(events, False))


@given(st.lists(OPERATIONS, max_size=8))
@settings(max_examples=80, deadline=None)
def test_what_is_found_after_operations_does_not_depend_on_repetition(events: list[tuple[Any, ...]]) -> None:
    assert findings(events, True, turns=4) == findings(events, False, turns=4)


@given(st.lists(ATOMICS, max_size=12))
@settings(max_examples=150, deadline=None)
def test_what_is_found_of_atomics_does_not_depend_on_what_else_happens(events: list[tuple[Any, ...]]) -> None:
    assert races(findings(events, True)) == races(findings(events, True, busy=True))


def races(found: set[tuple[str, str, str]]) -> set[str]:
    """Return the places of findings: of several earlier accesses, any may be the one that is named."""
    return {place for _, place, _ in found}


@pytest.mark.parametrize("joins", [True, False])
@pytest.mark.parametrize("lanes", [1, THREADS])
def test_lanes_store_again_where_copies_landed_once_all_threads_know_of_them(joins: bool, lanes: int) -> None:
    made = Hazards()
    grid = made.launch(place(1), THREADS, shared_bytes=SHARED)
    made.start(grid, [0], [0])
    whole, mine, write = Group(grid.list_threads(0)), Group(grid.list_threads(0)[:lanes]), access(2, 16, True)
    for turn in range(6):
        operation(made, "copy", mine, place(3), mine.threads * 16, 16)
        operation(made, "wait", mine, place(4), mine.threads, 0)
        if joins or turn < 5:
            made.barriers.bar(whole, place(5), 0, None, "sync")
        made.access(write, whole, (whole.threads ^ 1) * 16)
        assert bool(made.findings) == (turn == 5 and not joins)
        made.barriers.bar(whole, place(6), 0, None, "sync")


@pytest.mark.parametrize("waits", [True, False])
def test_lanes_store_again_over_what_a_copy_read_once_it_has_read(waits: bool) -> None:
    made = Hazards()
    grid = made.launch(place(1), THREADS, shared_bytes=SHARED)
    made.start(grid, [0], [0])
    whole, write = Group(grid.list_threads(0)), access(2, 16, True)
    for turn in range(6):
        made.access(write, whole, (whole.threads ^ 1) * 16)
        operation(made, "fence", whole, place(3), whole.threads, 0)
        made.barriers.bar(whole, place(4), 0, None, "sync")
        assert bool(made.findings) == (turn == 5 and not waits)
        operation(made, "send", whole, place(5), np.array(256), 512)
        if waits or turn < 4:
            operation(made, "sent", whole, place(6), whole.threads, 0)
        made.barriers.bar(whole, place(7), 0, None, "sync")


def test_lanes_that_wrote_one_place_together_do_not_read_it_again_without_a_barrier() -> None:
    made = Hazards()
    grid = made.launch(place(1), THREADS, shared_bytes=SHARED)
    made.start(grid, [0], [0])
    whole, write, read = Group(grid.list_threads(0)), access(2, 4, True), access(3, 4, False)
    for turn in range(8):
        made.access(write, whole, whole.threads * 0, benign=True)
        if turn < 7:
            made.barriers.bar(whole, place(4), 0, None, "sync")
        made.access(read, whole, whole.threads * 0)
        assert bool(made.findings) == (turn == 7)
        made.barriers.bar(whole, place(5), 0, None, "sync")


def test_atomics_are_found_by_accesses_that_came_before() -> None:
    made = Hazards()
    grid = made.launch(place(1), THREADS, shared_bytes=SHARED)
    made.start(grid, [0], [0])
    whole, write, add = Group(grid.list_threads(0)), access(2, 4, True), adds(3, 4)
    for turn in range(8):
        made.access(write, whole, whole.threads * 4)
        made.barriers.bar(whole, place(4), 0, None, "sync")
        made.access(add, whole, (whole.threads + 1) % THREADS * 4)
        if turn < 7:
            made.barriers.bar(whole, place(5), 0, None, "sync")
    made.access(write, whole, whole.threads * 4)
    assert {finding.rule.code for finding in made.findings} == {"PTX0901", "PTX0902"}


def test_bytes_of_a_cta_that_begins_are_unwritten_again() -> None:
    made = Hazards()
    grid = made.launch(place(1), THREADS, shared_bytes=SHARED)
    whole, write, read = Group(grid.list_threads(0)), access(2, 16, True), access(3, 16, False)
    for turn in range(8):
        made.start(grid, [0], [turn])
        if turn < 7:
            made.access(write, whole, whole.threads * 16)
        made.barriers.bar(whole, place(4), 0, None, "sync")
        for _ in range(4):
            made.access(read, whole, whole.threads * 16)
        assert [finding.rule.code for finding in made.findings] == ["PTX0910"] * (turn == 7)
        made.exit(whole, place(5))


def test_lanes_that_share_cells_are_one_reader_for_each_warp() -> None:
    made = Group(np.arange(64))
    how = sharing(made, made.threads % 16, 0, 64)
    assert [turn.slot for turn in how.turns] == [0, 1]
    assert all(turn.several.all() for turn in how.turns)
    assert how.turns[0].masks.tolist() == [1 << lane | 1 << lane + 16 for lane in range(16)]


def test_cells_of_more_warps_than_slots_have_one_reader() -> None:
    made = Group(np.arange(256))
    many = sharing(made, made.threads % 16, 0, 512).many
    assert many is not None
    assert many.ends.tolist() == [16 * (cell + 1) for cell in range(16)]
    assert many.of_warp[:16].tolist() == [warp for warp in range(8) for _ in range(2)]


def test_ctas_that_read_one_cell_each_have_one_reader() -> None:
    made = Group(np.arange(64))
    how = sharing(made, made.threads // 32, 0, 32)
    assert how.many is not None
    assert how.disjoint
    assert how.many.cells.tolist() == [0, 1]
    assert sharing(made, made.threads * 0, 0, 32).disjoint is False
