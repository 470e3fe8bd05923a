"""Repeated accesses have the same findings as first ones."""

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
from pyptx.sim.hazards import Access, Bytes, Family, Group, Hazards, Place, Space, atomic, footprints, load, store
from pyptx.sim.hazards import shadow as shadows
from pyptx.sim.hazards.footprints import Footprint, Footprints, find_sharing
from pyptx.sim.hazards.shadow import Shadow

THREADS, SHARED, CTAS = 128, 2048, 3
"""With a warp of each CTA there are more lanes than the limit below which a footprint is built on the first access."""


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


def run_operation(engine: Hazards, kind: str, lanes: Group, origin: Place, addresses: Ints, size: int) -> None:
    """One of the asynchronous operations on shared memory, or the wait for it."""
    if kind == "copy":
        engine.copies.cp_async(
            lanes, Access(origin, Space.SHARED, size, True, False, family=Family.CP_ASYNC), addresses
        )
        engine.copies.commit_cp(lanes)
    elif kind == "wait":
        engine.copies.wait_cp(lanes)
    elif kind == "fence":
        engine.sync.proxy_fence(lanes, (Space.SHARED,))
    elif kind == "sent":
        engine.copies.wait_bulk(lanes, origin, 0, True)
    else:
        for thread in lanes.threads[lanes.threads % THREADS == 0].tolist():
            source = Bytes.run(Space.SHARED, thread // THREADS * SHARED + int(addresses), size)
            engine.copies.bulk_store(thread, origin, source, Bytes.run(Space.GLOBAL, 1 << 20, size), False)
            engine.copies.commit_bulk(Group(np.array([thread])), origin)


def make_group(index: int) -> Group:
    """Return threads of all CTAs, interleaved like the machine's lanes."""
    return Group((GROUPS[index][:, None] + np.arange(CTAS) * THREADS).reshape(-1))


def find_hazards(
    events: list[tuple[Any, ...]], reuse: bool, busy: bool = False, turns: int = 3
) -> set[tuple[str, str, str]]:
    """Return the findings of an engine for events that occur several times. `reuse`: groups are created once. `busy`:
    each thread writes a private location before each event, unordered with other threads."""
    engine = Hazards()
    grid = engine.launch(place(1), THREADS, slots=CTAS, shared_bytes=SHARED)
    engine.start(grid, range(CTAS), range(CTAS))
    groups = [make_group(index) for index in range(len(GROUPS))]
    for _ in range(turns):
        for number, (kind, *details) in enumerate(events):
            all_threads = groups[0] if reuse else make_group(0)
            if busy:
                engine.access(access(1, 4, True), Group(np.array([0, THREADS])), np.array([SHARED - 4, 2 * SHARED - 4]))
            if kind in ("access", "atomic"):
                index, pattern, size, writes = cast("tuple[int, int, int, bool]", details)
                lanes = groups[index] if reuse else make_group(index)
                addresses = lanes.threads // THREADS * SHARED + PATTERNS[pattern](lanes.threads % THREADS, size)
                details = adds(number + 2, size) if kind == "atomic" else access(number + 2, size, writes)
                engine.access(details, lanes, addresses, benign=True)
            elif kind == "copy":
                index, pattern, size, _ = cast("tuple[int, int, int, bool]", details)
                lanes = groups[index] if reuse else make_group(index)
                addresses = lanes.threads // THREADS * SHARED + PATTERNS[pattern](lanes.threads % THREADS, size)
                run_operation(engine, kind, lanes, place(number + 2), addresses, size)
            elif kind == "wait":
                run_operation(
                    engine, kind, make_group(cast("tuple[int]", details)[0]), place(number + 2), all_threads.threads, 0
                )
            elif kind in ("fence", "sent", "send"):
                first, size = cast("tuple[int, int]", details or (0, 0))
                run_operation(engine, kind, all_threads, place(number + 2), np.array(first), size)
            elif kind in ("bar", "joined"):
                for wait_kind in ("wait", "sent") if kind == "joined" else ():
                    run_operation(engine, wait_kind, all_threads, place(number + 2), all_threads.threads, 0)
                engine.barriers.bar(all_threads, place(number + 2), 0, None, "sync")
            elif kind == "warp":
                engine.barriers.warp_sync(all_threads, place(number + 2), 0xFFFFFFFF)
            else:
                for cta in range(CTAS):
                    engine.exit(Group(grid.list_threads(cta)), place(number + 2))
                engine.start(grid, range(CTAS), range(CTAS))
    return {(finding.rule.code, str(finding.place), str(finding.other)) for finding in engine.findings}


@given(st.lists(EVENTS, max_size=12))
@settings(max_examples=150, deadline=None)
def test_what_is_found_does_not_depend_on_repetition(events: list[tuple[Any, ...]]) -> None:
    assert list_places(find_hazards(events, True)) == list_places(find_hazards(events, False))


@given(st.lists(OPERATIONS, max_size=8))
@settings(max_examples=80, deadline=None)
def test_what_is_found_after_operations_does_not_depend_on_repetition(events: list[tuple[Any, ...]]) -> None:
    assert find_hazards(events, True, turns=4) == find_hazards(events, False, turns=4)


@given(st.lists(ATOMICS, max_size=12))
@settings(max_examples=150, deadline=None)
def test_what_is_found_of_atomics_does_not_depend_on_what_else_happens(events: list[tuple[Any, ...]]) -> None:
    assert list_places(find_hazards(events, True)) == list_places(find_hazards(events, True, busy=True))


def list_places(hazards: set[tuple[str, str, str]]) -> set[str]:
    """Return the places of findings: when several earlier accesses conflict, the finding may name any of them."""
    return {place for _, place, _ in hazards}


@pytest.mark.parametrize("joins", [True, False])
@pytest.mark.parametrize("lanes", [1, THREADS])
def test_lanes_store_again_where_copies_landed_once_all_threads_know_of_them(joins: bool, lanes: int) -> None:
    engine = Hazards()
    grid = engine.launch(place(1), THREADS, shared_bytes=SHARED)
    engine.start(grid, [0], [0])
    all_threads, copiers, write = Group(grid.list_threads(0)), Group(grid.list_threads(0)[:lanes]), access(2, 16, True)
    for turn in range(6):
        run_operation(engine, "copy", copiers, place(3), copiers.threads * 16, 16)
        run_operation(engine, "wait", copiers, place(4), copiers.threads, 0)
        if joins or turn < 5:
            engine.barriers.bar(all_threads, place(5), 0, None, "sync")
        engine.access(write, all_threads, (all_threads.threads ^ 1) * 16)
        assert bool(engine.findings) == (turn == 5 and not joins)
        engine.barriers.bar(all_threads, place(6), 0, None, "sync")


@pytest.mark.parametrize("waits", [True, False])
def test_lanes_store_again_over_what_a_copy_read_once_it_has_read(waits: bool) -> None:
    engine = Hazards()
    grid = engine.launch(place(1), THREADS, shared_bytes=SHARED)
    engine.start(grid, [0], [0])
    all_threads, write = Group(grid.list_threads(0)), access(2, 16, True)
    for turn in range(6):
        engine.access(write, all_threads, (all_threads.threads ^ 1) * 16)
        run_operation(engine, "fence", all_threads, place(3), all_threads.threads, 0)
        engine.barriers.bar(all_threads, place(4), 0, None, "sync")
        assert bool(engine.findings) == (turn == 5 and not waits)
        run_operation(engine, "send", all_threads, place(5), np.array(256), 512)
        if waits or turn < 4:
            run_operation(engine, "sent", all_threads, place(6), all_threads.threads, 0)
        engine.barriers.bar(all_threads, place(7), 0, None, "sync")


def test_lanes_that_wrote_one_place_together_do_not_read_it_again_without_a_barrier() -> None:
    engine = Hazards()
    grid = engine.launch(place(1), THREADS, shared_bytes=SHARED)
    engine.start(grid, [0], [0])
    all_threads, write, read = Group(grid.list_threads(0)), access(2, 4, True), access(3, 4, False)
    for turn in range(8):
        engine.access(write, all_threads, all_threads.threads * 0, benign=True)
        if turn < 7:
            engine.barriers.bar(all_threads, place(4), 0, None, "sync")
        engine.access(read, all_threads, all_threads.threads * 0)
        assert bool(engine.findings) == (turn == 7)
        engine.barriers.bar(all_threads, place(5), 0, None, "sync")


def test_atomics_are_found_by_accesses_that_came_before() -> None:
    engine = Hazards()
    grid = engine.launch(place(1), THREADS, shared_bytes=SHARED)
    engine.start(grid, [0], [0])
    all_threads, write, add = Group(grid.list_threads(0)), access(2, 4, True), adds(3, 4)
    for turn in range(8):
        engine.access(write, all_threads, all_threads.threads * 4)
        engine.barriers.bar(all_threads, place(4), 0, None, "sync")
        engine.access(add, all_threads, (all_threads.threads + 1) % THREADS * 4)
        if turn < 7:
            engine.barriers.bar(all_threads, place(5), 0, None, "sync")
    engine.access(write, all_threads, all_threads.threads * 4)
    assert {finding.rule.code for finding in engine.findings} == {"PTX0901", "PTX0902"}


def test_bytes_of_a_cta_that_begins_are_unwritten_again() -> None:
    engine = Hazards()
    grid = engine.launch(place(1), THREADS, shared_bytes=SHARED)
    all_threads, write, read = Group(grid.list_threads(0)), access(2, 16, True), access(3, 16, False)
    for turn in range(8):
        engine.start(grid, [0], [turn])
        if turn < 7:
            engine.access(write, all_threads, all_threads.threads * 16)
        engine.barriers.bar(all_threads, place(4), 0, None, "sync")
        for _ in range(4):
            engine.access(read, all_threads, all_threads.threads * 16)
        assert [finding.rule.code for finding in engine.findings] == ["PTX0910"] * (turn == 7)
        engine.exit(all_threads, place(5))


def test_lanes_that_share_cells_are_one_reader_for_each_warp() -> None:
    warps = Group(np.arange(64))
    sharing = find_sharing(warps, warps.threads % 16, 0, 64)
    assert [slot_readers.slot for slot_readers in sharing.slots] == [0, 1]
    assert all(slot_readers.several.all() for slot_readers in sharing.slots)
    assert sharing.slots[0].masks.tolist() == [1 << lane | 1 << lane + 16 for lane in range(16)]


def test_cells_of_more_warps_than_slots_have_one_reader() -> None:
    warps = Group(np.arange(256))
    crowds = find_sharing(warps, warps.threads % 16, 0, 512).crowds
    assert crowds is not None
    assert crowds.ends.tolist() == [16 * (cell + 1) for cell in range(16)]
    assert crowds.of_warp[:16].tolist() == [warp for warp in range(8) for _ in range(2)]


def test_one_reader_has_threads_of_one_cta() -> None:
    warps = Group(np.arange(64, 384))
    sharing = find_sharing(warps, warps.threads % 2, 64, 160)
    assert not sharing.disjoint
    assert sharing.crowds is not None
    assert (sharing.crowds.cells.tolist(), sharing.crowds.ends.tolist()) == ([0, 0, 1, 1], [80, 160, 240, 320])


def test_ctas_that_read_one_cell_each_have_one_reader() -> None:
    warps = Group(np.arange(64))
    sharing = find_sharing(warps, warps.threads // 32, 0, 32)
    assert sharing.crowds is not None
    assert sharing.disjoint
    assert sharing.crowds.cells.tolist() == [0, 1]
    assert find_sharing(warps, warps.threads * 0, 0, 32).disjoint is False


def test_a_full_cache_of_footprints_is_emptied(monkeypatch: pytest.MonkeyPatch) -> None:
    shadow, small, large = Shadow(SHARED, True), Group(np.arange(32)), Group(np.arange(THREADS))

    def find(cache: Footprints, group: Group, at: int) -> Footprint | None:
        return cache.find(group, shadow, group.threads * 4 + at, 4)

    shadow.get_cells(2)
    next(iter(shadow.find_cells(np.arange(0, SHARED, 4), 4)))
    cache = Footprints()
    monkeypatch.setattr(footprints, "_MOST", 2)
    # Many lanes have a footprint from their third access on; the third key empties the cache.
    assert [find(cache, large, at) is None for at in (0, 0, 16)] == [True, False, True]
    assert [find(cache, large, at) is None for at in (32, 0, 32)] == [True, True, False]
    cache = Footprints()
    monkeypatch.setattr(footprints, "_MOST", 1 << 14)
    monkeypatch.setattr(footprints, "_MOST_BYTES", 2 * 40 * (32 + 64))
    first, second = find(cache, small, 0), find(cache, small, 16)
    assert first is not None
    assert (find(cache, small, 0), find(cache, small, 16)) == (first, second)
    third, fourth = find(cache, small, 32), find(cache, small, 48)
    assert (find(cache, small, 32), find(cache, small, 48)) == (third, fourth)
    assert find(cache, small, 0) not in (first, None)


def test_other_addresses_with_the_same_ends_have_their_own_footprint() -> None:
    shadow, cache, group = Shadow(SHARED, True), Footprints(), Group(np.arange(32))
    next(iter(shadow.find_cells(np.arange(0, SHARED, 4), 4)))
    addresses = np.arange(32) * 4
    other = addresses.copy()
    other[[1, 2]] = other[[2, 1]]
    first = cache.find(group, shadow, addresses, 4)
    found = [cache.find(group, shadow, other, 4) for _ in range(4)]
    assert first is not None
    assert found[:3] == [None] * 3
    assert found[3] is not None
    assert found[3].cells.tolist() == (other // 4).tolist()


def test_cells_that_were_compared_with_very_many_forget_the_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shadows, "_MOST_APART", 2)
    one, *others = (shadows.CellSet(np.array([at, at + 3])) for at in (4, 0, 1, 2, 3, 4, 5))
    assert [one.lies_apart(other) for other in others] == [True, False, True, True, False, True]
    assert [other in one.apart_from for other in others] == [False, False, False, True, True, True]
    assert all(
        other.apart_from == {one: answer} for other, answer in one.apart_from.items() if isinstance(answer, bool)
    )
