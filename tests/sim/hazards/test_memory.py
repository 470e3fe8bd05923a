"""Shadow memory: granules split only where necessary, all readers are remembered, unwritten bytes are found."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyptx.diagnostics import Span
from pyptx.sim.hazards import (
    Access,
    Bytes,
    Family,
    Group,
    Hazards,
    Place,
    Scope,
    Sem,
    Space,
    atomic,
    load,
    memory,
    spill,
    store,
)
from pyptx.sim.hazards.shadow import Shadow
from pyptx.sim.hazards.state import Grid
from tests.sim.hazards.trace import may_cluster_pass


def place(line: int) -> Place:
    return Place(Span(line, 1), f"line {line}")


def make_engine(threads: int = 128, ctas: int = 1) -> tuple[Hazards, Grid]:
    engine = Hazards()
    engine.state.add_buffer(1 << 20, 1 << 16, "buffer")
    grid = engine.launch(place(1), threads, slots=ctas, shared_bytes=4096)
    engine.start(grid, range(ctas), range(ctas))
    return engine, grid


def list_codes(engine: Hazards) -> list[str]:
    return [finding.rule.code for finding in engine.findings]


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
def test_neighbors_of_any_size_do_not_race(size: int) -> None:
    engine, grid = make_engine()
    for warp in range(4):
        threads = np.arange(32) + 32 * warp
        engine.access(store(place(2), Space.SHARED, size), Group(threads), threads * size)
    engine.barriers.bar(Group(grid.list_threads(0)), place(3), 0, None, "sync")
    engine.access(load(place(4), Space.SHARED, size), Group(np.arange(128)), (np.arange(128) + 7) % 128 * size)
    assert list_codes(engine) == []


@given(st.lists(st.tuples(st.sampled_from([1, 2, 4, 8, 16]), st.integers(0, 15), st.integers(0, 3)), max_size=8))
@settings(max_examples=60, deadline=None)
def test_races_are_those_of_a_byte_for_byte_model(accesses: list[tuple[int, int, int]]) -> None:
    engine, _ = make_engine(128)
    writers: dict[int, int] = {}
    has_race = False
    for number, (size, slot, warp) in enumerate(accesses):
        start = slot * 4 // size * size
        access = store(place(number + 2), Space.SHARED, size)
        engine.access(access, Group(np.array([32 * warp])), np.array([start]))
        for byte in range(start, start + size):
            has_race |= writers.get(byte, warp) != warp
            writers[byte] = warp
    assert bool(len(engine.findings)) == has_race


def test_partly_written_words_are_uninitialized() -> None:
    engine, _ = make_engine(32)
    thread = Group(np.array([0]))
    engine.access(store(place(2), Space.SHARED, 2), thread, np.array([0]))
    engine.access(load(place(3), Space.SHARED, 2), thread, np.array([0]))
    assert list_codes(engine) == []
    engine.access(load(place(4), Space.SHARED, 4), thread, np.array([0]))
    assert list_codes(engine) == ["PTX0910"]


@pytest.mark.parametrize("reader", range(0, 256, 37))
def test_every_one_of_many_readers_is_remembered(reader: int) -> None:
    engine, grid = make_engine(256)
    threads = grid.list_threads(0)
    engine.access(store(place(2), Space.SHARED, 4), Group(threads[:1]), np.array([0]))
    engine.barriers.bar(Group(threads), place(3), 0, None, "sync")
    for warp in range(8):
        engine.access(
            load(place(4), Space.SHARED, 4), Group(threads[32 * warp : 32 * warp + 32]), np.zeros(32, np.int64)
        )
    # All but one warp arrive; the writer learns of them only.
    arrivals = threads[threads >> 5 != reader >> 5]
    engine.barriers.bar(Group(arrivals), place(5), 1, 224, "sync")
    writer = arrivals[:1]
    engine.access(store(place(6), Space.SHARED, 4), Group(writer), np.array([0]))
    assert list_codes(engine) == ["PTX0901"]
    (finding,) = engine.findings
    assert finding.other_agent is not None
    assert finding.other_agent.warp == reader >> 5


def test_a_crowd_does_not_repeat_the_read_of_a_lane_that_it_lacks() -> None:
    engine, grid = make_engine(64)
    threads = grid.list_threads(0)
    engine.access(store(place(2), Space.SHARED, 4), Group(threads[:1]), np.array([0]))
    engine.barriers.bar(Group(threads), place(3), 0, None, "sync")
    engine.access(load(place(4), Space.SHARED, 4), Group(threads[:1]), np.array([0]))
    engine.access(load(place(5), Space.SHARED, 4), Group(threads[[30, 60]]), np.array([0, 0]))
    engine.access(store(place(6), Space.SHARED, 4), Group(threads[30:31]), np.array([0]))
    assert {finding.other for finding in engine.findings} == {place(4), place(5)}


@pytest.mark.parametrize("is_ordered", [True, False])
def test_a_thread_may_know_each_member_of_a_crowd_by_another_barrier(is_ordered: bool) -> None:
    # Another CTA, which has not synchronized, keeps the first update in the log.
    engine, grid = make_engine(64, 2)
    threads, add = grid.list_threads(0), atomic(place(2), Space.SHARED, 4, Sem.RELAXED, Scope.CTA)
    # Without the barrier, no update observes the one of the other warp.
    first, last = threads[[40, 0]] if is_ordered else threads[[0, 40]]
    engine.access(add, Group(np.array([first])), np.array([0]))
    if is_ordered:
        engine.barriers.bar(Group(threads), place(3), 0, None, "sync")
    engine.access(add, Group(np.array([last])), np.array([0]))
    engine.barriers.warp_sync(Group(threads[:32]), place(4), 0xFFFFFFFF)
    engine.access(store(place(5), Space.SHARED, 4), Group(threads[7:8]), np.array([0]))
    assert list_codes(engine) == ([] if is_ordered else ["PTX0901"])


@pytest.mark.parametrize("fences", [True, False])
def test_a_member_of_a_crowd_knows_its_own_proxy_fence_at_once(fences: bool) -> None:
    engine, grid = make_engine(256)
    everyone = Group(grid.list_threads(0))
    one, others = Group(everyone.threads[:1]), Group(everyone.threads[1:])
    engine.access(store(place(2), Space.SHARED, 16), one, np.array([0]))
    engine.mbarriers.init(0, place(3), 64, 255)
    engine.mbarriers.init(0, place(3), 72, 1)
    engine.barriers.bar(everyone, place(4), 0, None, "sync")
    engine.access(load(place(5), Space.SHARED, 16), everyone, np.zeros(256, np.int64))
    engine.sync.proxy_fence(everyone if fences else others, [Space.SHARED])
    engine.mbarriers.arrive(others, place(6), 64)
    engine.mbarriers.wait(one, place(7), 64, 0)
    engine.mbarriers.arrive(one, place(8), 72, expect=16)
    engine.copies.bulk_load(0, place(9), None, [(Bytes.run(Space.SHARED, 0, 16), 72)])
    assert list_codes(engine) == ([] if fences else ["PTX0923"])


def test_equal_findings_of_many_lanes_are_one_with_a_count() -> None:
    engine, _ = make_engine(64)
    engine.access(store(place(2), Space.SHARED, 4), Group(np.arange(32)), np.arange(32) * 4)
    engine.access(load(place(3), Space.SHARED, 4), Group(np.arange(32, 64)), np.arange(32) * 4)
    (finding,) = engine.findings
    assert finding.count == 32
    assert (finding.place.origin, finding.other) == (Span(3, 1), place(2))


def test_atomics_do_not_race_but_plain_reads_of_them_do() -> None:
    engine, _ = make_engine(64)
    add = atomic(place(2), Space.SHARED, 4, Sem.RELAXED, Scope.CTA)
    for warp in range(2):
        engine.access(add, Group(np.arange(32) + 32 * warp), np.zeros(32, np.int64))
    assert list_codes(engine) == []
    engine.barriers.warp_sync(Group(np.arange(32)), place(3), 0xFFFFFFFF)
    # By now the first warp's own atomics are ordered; those of the second one, which observed them, are not.
    engine.access(load(place(4), Space.SHARED, 4), Group(np.array([8])), np.array([0]))
    (finding,) = engine.findings
    assert finding.other_agent is not None
    assert (finding.rule.code, finding.other_agent.warp) == ("PTX0901", 1)


def test_strong_accesses_of_two_sizes_race() -> None:
    engine, _ = make_engine(64)
    engine.access(atomic(place(2), Space.SHARED, 8), Group(np.array([0])), np.array([0]))
    engine.access(atomic(place(3), Space.SHARED, 4), Group(np.array([32])), np.array([4]))
    assert list_codes(engine) == ["PTX0904"]


def test_one_store_by_several_lanes_to_one_place() -> None:
    engine, _ = make_engine(32)
    group = Group(np.arange(32))
    engine.access(store(place(2), Space.SHARED, 4), group, np.zeros(32, np.int64), benign=True)
    assert list_codes(engine) == []
    engine.access(store(place(3), Space.SHARED, 4), group, np.full(32, 16), benign=lambda: True)
    assert list_codes(engine) == []
    engine.access(store(place(4), Space.SHARED, 4), group, np.full(32, 32), benign=lambda: False)
    assert list_codes(engine) == ["PTX0907"]


def test_one_store_by_several_warps_to_one_place() -> None:
    engine, _ = make_engine(64)
    engine.access(store(place(2), Space.SHARED, 4), Group(np.arange(64)), np.full(64, 16))
    assert list_codes(engine) == ["PTX0901"]


def test_ctas_of_one_grid_race_in_global_memory_and_the_next_grid_does_not() -> None:
    engine, grid = make_engine(32, 2)
    access = store(place(2), Space.GLOBAL, 4)
    for cta in range(2):
        engine.access(access, Group(grid.list_threads(cta)), (1 << 20) + np.arange(32) * 4 + 128 * cta)
        engine.exit(Group(grid.list_threads(cta)), place(3))
    engine.finish(grid)
    later = engine.launch(place(4), 32)
    engine.start(later, [0], [0])
    engine.access(load(place(5), Space.GLOBAL, 4), Group(later.list_threads(0)), (1 << 20) + np.arange(32) * 8)
    assert list_codes(engine) == []
    engine.access(store(place(6), Space.GLOBAL, 4), Group(later.list_threads(0)), (1 << 20) + np.arange(32) * 4)
    assert list_codes(engine) == ["PTX0902"]


def test_a_slot_used_again_is_another_cta() -> None:
    engine, grid = make_engine(32)
    group = Group(grid.list_threads(0))
    engine.access(store(place(2), Space.GLOBAL, 4), group, (1 << 20) + np.arange(32) * 4)
    engine.access(store(place(2), Space.SHARED, 4), group, np.arange(32) * 4)
    engine.exit(group, place(3))
    engine.start(grid, [0], [1])
    engine.access(load(place(4), Space.SHARED, 4), group, np.arange(32) * 4)
    engine.access(load(place(5), Space.GLOBAL, 4), group, (1 << 20) + np.arange(32) * 4)
    assert list_codes(engine) == ["PTX0910", "PTX0901"]


def test_wide_vectors_are_taken_apart() -> None:
    engine, _ = make_engine(64)
    wide = Access(place(2), Space.GLOBAL, 32, True, False)
    engine.access(wide, Group(np.arange(32)), (1 << 20) + np.arange(32) * 32)
    engine.access(load(place(3), Space.GLOBAL, 4), Group(np.array([32])), np.array([(1 << 20) + 20]))
    assert list_codes(engine) == ["PTX0901"]


def test_a_refined_granule_keeps_what_was_done_to_it() -> None:
    shadow = Shadow(64, True)
    for plane, cells, _ in shadow.find_cells(np.array([16]), 16):
        plane.write[cells] = 77
        plane.reads[0][cells] = 78
    for plane, cells, _ in shadow.find_cells(np.array([20, 28]), 4):
        assert plane.write[cells].tolist() == [77, 77]
        assert plane.reads[0][cells].tolist() == [78, 78]
    for plane, cells, lanes in shadow.find_cells(np.array([0, 16]), 16):
        assert lanes is not None
        assert len(cells) == (1 if plane.unit == 16 else 4)


def test_runs_that_share_granules_with_threads() -> None:
    engine, grid = make_engine(64)
    engine.access(store(place(2), Space.SHARED, 4), Group(np.arange(32)), np.arange(32) * 4)
    record = engine.state.records.add_operation(
        Access(place(3), Space.SHARED, 64, True, False, family=Family.BULK_LOAD),
        int(engine.state.clocks.life_of[1]), engine.state.find_channel(engine.state.find_domain(32), "x"), 1, 0,
    )  # fmt: skip
    access = engine.state.records.get_access(record)
    engine.tiles.run(access, np.array([32]), Bytes.run(Space.SHARED, grid.find_shared_base(0) + 64, 64), record)
    assert list_codes(engine) == ["PTX0901"]


def test_clusters_one_after_the_other_in_the_same_slots() -> None:
    engine = Hazards()
    grid = engine.launch(place(1), 32, slots=2, cluster=2, shared_bytes=4096)
    for turn in range(3):
        engine.start(grid, [0, 1], [2 * turn, 2 * turn + 1])
        groups = [Group(grid.list_threads(slot)) for slot in range(2)]
        for _ in range(2):
            for group in groups:
                engine.barriers.cluster_arrive(group, place(2))
            for group in groups:
                assert may_cluster_pass(engine, group.first)
                engine.barriers.cluster_wait(group, place(3))
        for group in groups:
            engine.exit(group, place(4))
    assert list_codes(engine) == []


@pytest.mark.parametrize(
    ("size", "scope", "rule_codes"),
    [(8, Scope.GPU, ["PTX0904"]), (4, Scope.CTA, ["PTX0903"]), (4, Scope.SYS, [])],
)
def test_an_atomic_does_not_hide_an_earlier_one_of_other_size_or_scope(
    size: int, scope: Scope, rule_codes: list[str]
) -> None:
    engine, _ = make_engine(32, ctas=2)
    first, second, address = Group(np.array([0])), Group(np.array([32])), np.array([1 << 20])
    engine.access(atomic(place(2), Space.GLOBAL, size, scope=scope), first, address)
    engine.access(atomic(place(3), Space.GLOBAL, 4), first, address)
    engine.access(atomic(place(4), Space.GLOBAL, 4), second, address)
    assert list_codes(engine) == rule_codes


def test_lanes_of_one_access_reach_several_buffers_and_none() -> None:
    engine = Hazards()
    starts = [1 << 20, 1 << 21, 1 << 22]
    for start in starts[:2]:
        engine.state.add_buffer(start, 256, f"buffer {start >> 20}")
    grid = engine.launch(place(1), 64)
    engine.start(grid, [0], [0])
    lanes = np.arange(32)
    addresses = np.array(starts)[lanes % 3] + lanes * 4
    engine.access(store(place(2), Space.GLOBAL, 4), Group(lanes), addresses)
    engine.access(load(place(3), Space.GLOBAL, 4), Group(lanes + 32), np.roll(addresses, 3))
    found = [(finding.rule.code, finding.count, finding.where) for finding in engine.findings]
    assert found == [("PTX0901", 22, "4 bytes at buffer 1+0x78")]
    assert engine.state.describe_bytes(Space.GLOBAL, grid, (1 << 22) + 8, 4) == "4 bytes at global 0x400008"


@pytest.mark.parametrize("space", [Space.SHARED, Space.GLOBAL])
@pytest.mark.parametrize("finer", [True, False])
@pytest.mark.parametrize("copies", [True, False])
def test_readers_beyond_the_slots_are_found_in_cells_of_any_size(space: Space, finer: bool, copies: bool) -> None:
    """Seven instructions read 70 places each: more than there are slots for, and in global memory than go into sets."""
    engine, grid = make_engine(256)
    base, every = 0 if space is Space.SHARED else 1 << 20, Group(grid.list_threads(0))
    lanes = np.arange(70)
    engine.access(store(place(2), space, 16), Group(lanes), base + lanes * 16)
    if copies:
        engine.sync.proxy_fence(every, [space])
    engine.barriers.bar(every, place(3), 0, None, "sync")
    for line in range(4, 11):
        engine.access(load(place(line), space, 16), Group(lanes + line * 8), base + lanes * 16)
    if finer:
        engine.access(load(place(11), space, 4), Group(np.array([255])), np.array([base + 69 * 16 + 4]))
    if not copies:
        engine.access(store(place(12), space, 4), Group(np.array([255])), np.array([base + 69 * 16 + 4]))
    elif space is Space.SHARED:
        engine.mbarriers.init(255, place(12), 2048, 1)
        engine.copies.bulk_load(255, place(12), None, [(Bytes.run(space, 69 * 16, 16), 2048)])
    else:
        engine.copies.bulk_store(
            255, place(12), Bytes.run(Space.SHARED, 2048, 16), Bytes.run(space, base + 69 * 16, 16)
        )
    found = sorted((finding.other.origin.line, finding.rule.code) for finding in engine.findings
                   if finding.other and finding.other.origin)  # fmt: skip
    assert found == [*((line, "PTX0901") for line in range(4, 11)), *[(11, "PTX0923")] * (finer and copies)]


def test_an_atomic_races_with_the_weak_readers_beyond_the_slots_only() -> None:
    engine, grid = make_engine(256)
    every, lanes = Group(grid.list_threads(0)), np.arange(70)
    addresses = (1 << 20) + lanes * 4
    engine.access(store(place(2), Space.GLOBAL, 4), Group(lanes), addresses)
    engine.barriers.bar(every, place(3), 0, None, "sync")
    for line in range(4, 13):
        sem = Sem.RELAXED if line % 3 == 0 else Sem.WEAK
        engine.access(load(place(line), Space.GLOBAL, 4, sem, Scope.GPU), Group(lanes + line * 8), addresses)
    engine.access(atomic(place(13), Space.GLOBAL, 4), Group(np.array([255])), addresses[69:])
    found = [finding.other.origin.line for finding in engine.findings if finding.other and finding.other.origin]
    assert sorted(found) == [4, 5, 7, 8, 10, 11]


def test_a_list_that_is_full_counts_what_it_loses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill, "MOST", 4)
    readers = spill.Spill(lambda refs: refs.astype(np.int64))
    cells, refs = np.array([7, 8]), np.array([64, 128], np.int32)
    for _ in range(2):
        readers.add(cells, refs)
    readers.add(cells[:1] + 2, refs[:1] + 1)
    assert (readers.size, readers.lost) == (3, 0)
    readers.add(cells, refs + 2)
    assert (readers.size, readers.lost) == (3, 2)
    readers.add(cells[:1], refs[:1] + 3)
    at, found = readers.find(np.array([7, 9]))
    assert sorted(zip(at.tolist(), found.tolist(), strict=True)) == [(0, 64), (0, 67), (1, 65)]
    assert (readers.size, readers.lost) == (4, 2)


def test_a_log_of_atomics_that_is_full_goes_into_the_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[list[int]] = []
    for most in (memory._MOST_ENTRIES, 2):  # pyright: ignore[reportPrivateUsage]
        monkeypatch.setattr(memory, "_MOST_ENTRIES", most)
        engine, grid = make_engine(64)
        sizes.append([])
        for warp in range(2):
            for line in (2, 3):
                engine.access(atomic(place(line), Space.SHARED, 4), Group(np.arange(32) + 32 * warp), np.arange(32) * 4)
                sizes[-1].append(len(grid.shared.get_cells(2).log.entries))
        assert list_codes(engine) == []
        engine.access(load(place(5), Space.SHARED, 4), Group(np.array([40])), np.array([12]))
        found = [(finding.rule.code, str(finding.other), finding.count) for finding in engine.findings]
        assert found == [("PTX0902", "`line 3` at <ptx>:3:1", 2), ("PTX0901", "`line 3` at <ptx>:3:1", 1)]
    assert sizes == [[1, 2, 3, 4], [1, 2, 0, 0]]


def test_atomics_of_a_cta_that_ended_are_not_those_of_the_next_in_its_place() -> None:
    engine, grid = make_engine(32, ctas=2)
    ctas = [Group(grid.list_threads(slot)) for slot in (0, 1)]
    for group in ctas:
        engine.access(atomic(place(2), Space.SHARED, 4), group, group.threads // 32 * 4096 + np.arange(32) * 4)
    engine.exit(ctas[1], place(3))
    engine.start(grid, [1], [2])
    engine.access(store(place(4), Space.SHARED, 4), ctas[1], 4096 + (np.arange(32) ^ 1) * 4)
    assert list_codes(engine) == []
    engine.access(load(place(5), Space.SHARED, 4), ctas[0][[0]], np.array([4]))
    assert [(finding.rule.code, finding.count) for finding in engine.findings] == [("PTX0902", 2)]


def test_a_load_of_columns_that_no_product_wrote_says_what_may_write_them() -> None:
    engine, warp = Hazards(), Group(np.arange(32))
    engine.start(engine.launch(place(1), 32, tensor=True), [0], [0])
    engine.tensor.alloc(warp, place(2), 0, 32)
    engine.tensor.move(warp, place(3), 0, 32, 0, 32, stores=False)
    (finding,) = engine.findings
    assert finding.rule.code == "PTX0912"
    assert "with M and N of the product" in finding.help


@pytest.mark.parametrize("is_written", [False, True], ids=["before the first write", "after a write"])
def test_each_reader_beyond_the_slots_is_compared_with_a_write(is_written: bool) -> None:
    """The writer is thread 128, the tag of the reader in warp 0 is 128 too."""
    engine, grid = make_engine(256)
    address, writer = np.array([1 << 20]), Group(np.array([128]))
    if is_written:
        engine.access(store(place(1), Space.GLOBAL, 4), writer, address)
        engine.barriers.bar(Group(grid.list_threads(0)), place(1), 0, None, "sync")
    for line, warp in enumerate([1, 2, 3, 5, 0, 6], 2):
        engine.access(load(place(line), Space.GLOBAL, 4), Group(np.array([32 * warp])), address)
    engine.access(store(place(9), Space.GLOBAL, 4), writer, address)
    found = [(finding.rule.code, finding.other) for finding in engine.findings]
    assert sorted(found, key=str) == [("PTX0901", place(line)) for line in range(2, 8)]
