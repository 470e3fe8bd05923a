"""Batched judgments are correct: products over tiles that threads stored, many readers of many locations."""

from __future__ import annotations

import numpy as np
import pytest

from pyptx.diagnostics import Span
from pyptx.sim.hazards import Group, Hazards, Place, Scope, Sem, Space, load, store
from pyptx.sim.hazards.rows import Rows
from pyptx.sim.hazards.state import Grid

WARPS = 4
BYTES = 4096


class Ctas:
    """CTAs of one warpgroup each, running in step."""

    def __init__(self, count: int, cluster: int = 1) -> None:
        self.engine = Hazards()
        self.grid: Grid = self.engine.launch(_place(1), WARPS * 32, slots=count, cluster=cluster, shared_bytes=BYTES)
        self.engine.start(self.grid, range(count), range(count))
        self.groups = [Group(self.grid.list_threads(slot)) for slot in range(count)]
        self.everyone = Group(np.concatenate([group.threads for group in self.groups]))

    def store(self, line: int, size: int, threads: slice = slice(None), offset: int = 0) -> None:
        """Store a piece of the CTA's first bytes by each thread."""
        for slot, group in enumerate(self.groups):
            members = group.threads[threads]
            addresses = self.grid.find_shared_base(slot) + offset + (members - group.first) * size
            self.engine.access(store(_place(line), Space.SHARED, size), Group(members), addresses)

    def fence(self, by_warp: bool = False) -> None:
        for group in (
            [self.everyone[list(range(n, n + 32))] for n in range(0, len(self.everyone), 32)]
            if by_warp
            else [self.everyone]
        ):
            self.engine.sync.proxy_fence(group, [Space.SHARED])

    def bar(self) -> None:
        self.engine.barriers.bar(self.everyone, _place(2), 0, None, "sync")

    def multiply(self, granules: int) -> None:
        base = np.array([[self.grid.find_shared_base(slot)] for slot in range(len(self.groups))])
        wgmma = self.engine.wgmma
        wgmma.fence(self.everyone)
        rows = Rows((base >> 4) + np.arange(granules), 1)
        wgmma.issue_all(self.groups, _place(3), [rows], frozenset({1}))
        for group in self.groups:
            wgmma.commit(group)
        wgmma.wait_all(self.groups, 0)

    def codes(self) -> list[str]:
        return [finding.rule.code for finding in self.engine.findings]


def _place(line: int) -> Place:
    return Place(Span(line, 1), f"line {line}")


@pytest.mark.parametrize("by_warp", [False, True])
@pytest.mark.parametrize("cluster", [1, 2])
@pytest.mark.parametrize("size", [2, 4, 16])
def test_a_tile_that_threads_fenced_is_in_order(size: int, cluster: int, by_warp: bool) -> None:
    ctas = Ctas(2, cluster)
    for _ in range(3):
        ctas.store(5, size)
        ctas.fence(by_warp)
        ctas.bar()
        ctas.multiply(WARPS * 32 * size // 16)
        ctas.bar()
    assert ctas.codes() == []


@pytest.mark.parametrize("cluster", [1, 2])
@pytest.mark.parametrize("size", [2, 4, 16])
@pytest.mark.parametrize("rounds", [0, 1, 2])
def test_one_late_store_in_a_tile_lacks_its_fence(size: int, cluster: int, rounds: int) -> None:
    ctas = Ctas(2, cluster)
    for number in range(rounds + 1):
        ctas.store(5, size)
        ctas.fence()
        if number == rounds:
            ctas.store(6, size, slice(77, 78))
        ctas.bar()
        assert ctas.codes() == []
        ctas.multiply(WARPS * 32 * size // 16)
        ctas.bar()
    assert set(ctas.codes()) == {"PTX0920"}
    assert all(finding.other == _place(6) for finding in ctas.engine.findings)


@pytest.mark.parametrize("size", [2, 16])
def test_one_store_after_the_barrier_races(size: int) -> None:
    ctas = Ctas(2)
    ctas.store(5, size)
    ctas.fence()
    ctas.bar()
    ctas.store(6, size, slice(77, 78))
    ctas.multiply(WARPS * 32 * size // 16)
    assert set(ctas.codes()) == {"PTX0901"}


def test_a_fence_of_readers_before_they_know_the_stores_does_not_order_them() -> None:
    """Neither do fences of all threads of one warpgroup for what another has stored."""
    engine = Hazards()
    grid = engine.launch(_place(1), 2 * WARPS * 32, slots=1, shared_bytes=BYTES)
    engine.start(grid, [0], [0])
    everyone = Group(grid.list_threads(0))
    readers, writers = everyone[list(range(WARPS * 32))], everyone[list(range(WARPS * 32, 2 * WARPS * 32))]
    addresses = grid.find_shared_base(0) + np.arange(WARPS * 32) * 16
    engine.access(store(_place(5), Space.SHARED, 16), writers, addresses)
    engine.sync.proxy_fence(readers, [Space.SHARED])
    engine.barriers.bar(everyone, _place(2), 0, None, "sync")
    engine.wgmma.fence(readers)
    rows = Rows(np.array([[grid.find_shared_base(0) >> 4]]) + np.arange(WARPS * 32), 1)
    engine.wgmma.issue_all([readers], _place(3), [rows], frozenset({1}))
    assert {finding.rule.code for finding in engine.findings} == {"PTX0920"}


def test_a_tile_of_pieces_of_several_sizes() -> None:
    ctas = Ctas(2)
    ctas.store(5, 2)
    ctas.store(5, 4, offset=256)
    ctas.fence()
    ctas.store(6, 4, slice(3, 4), offset=256)
    ctas.bar()
    ctas.multiply(16)
    assert ctas.codes() == []
    ctas.multiply(17)
    assert set(ctas.codes()) == {"PTX0920"}


def test_what_one_warp_learns_of_products_a_barrier_hands_on() -> None:
    ctas = Ctas(2)
    ctas.store(5, 16)
    ctas.fence()
    ctas.bar()
    ctas.multiply(128)
    ctas.store(6, 16, slice(0, 32))
    ctas.bar()
    # The previous barrier was a full exchange; now only fences of the lanes of one warp are new.
    ctas.engine.sync.proxy_fence(ctas.groups[0][list(range(32))], [Space.SHARED])
    ctas.bar()
    ctas.multiply(128)
    assert {finding.agent.cta for finding in ctas.engine.findings if finding.agent} == {1}


def test_fences_of_several_ctas_in_one_order() -> None:
    ctas = Ctas(3)
    ctas.engine.state.add_buffer(1 << 20, 4096, "data")
    ctas.bar()
    writer, reader = ctas.groups[0], ctas.groups[2]
    addresses = (1 << 20) + np.arange(len(writer)) * 4
    ctas.engine.access(store(_place(5), Space.GLOBAL, 4), writer, addresses)
    ctas.engine.sync.fence(ctas.everyone, Sem.SC, Scope.GPU)
    ctas.engine.sync.fence(reader, Sem.SC, Scope.GPU)
    ctas.engine.access(load(_place(6), Space.GLOBAL, 4), reader, addresses)
    assert ctas.codes() == []
    ctas.engine.access(load(_place(6), Space.GLOBAL, 4), ctas.groups[1], addresses)
    assert set(ctas.codes()) == {"PTX0901"}


@pytest.mark.parametrize("missing", range(WARPS))
def test_strong_stores_of_many_threads_at_many_places_are_all_remembered(missing: int) -> None:
    ctas = Ctas(1)
    group, random = ctas.everyone, np.random.default_rng(missing)
    strong = store(_place(5), Space.SHARED, 4, Sem.RELAXED, Scope.CTA)
    for _ in range(4):
        ctas.engine.access(strong, group, random.permutation(len(group)) % 16 * 4)
    assert ctas.codes() == []
    arrivals = group.threads[(group.threads - group.first) >> 5 != missing]
    ctas.engine.barriers.bar(Group(arrivals), _place(7), 1, 96, "sync")
    ctas.engine.access(load(_place(6), Space.SHARED, 4), Group(arrivals[:16]), np.arange(16) * 4)
    assert set(ctas.codes()) == {"PTX0901"}


@pytest.mark.parametrize("missing", range(8))
def test_readers_of_a_cluster_by_one_instruction_are_all_kept_in_global_memory(missing: int) -> None:
    engine, groups = _readers(8)
    threads = np.concatenate([group.threads for group in groups])
    cells = (1 << 20) + np.arange(32) * 64
    engine.access(store(_place(4), Space.GLOBAL, 4), groups[0], cells)
    engine.barriers.bar(Group(threads), _place(2), 0, None, "sync")
    for group in groups * 3:
        engine.access(load(_place(5), Space.GLOBAL, 4), group, cells)
    arrivals = threads[threads >> 5 != missing]
    engine.barriers.bar(Group(arrivals), _place(7), 1, 224, "sync")
    engine.access(store(_place(6), Space.GLOBAL, 4), Group(arrivals[:32]), cells)
    assert {finding.rule.code for finding in engine.findings} == {"PTX0901"}


@pytest.mark.parametrize("wide", [False, True])
def test_global_memory_keeps_more_kinds_of_readers_than_there_are_slots(wide: bool) -> None:
    engine, groups = _readers(6)
    count = 4 if wide else 1
    threads = np.concatenate([group.threads for group in groups])
    cells = (1 << 20) + np.arange(32 * count) * 64
    early_warps, late_warps = (
        Group(np.concatenate([group.threads for group in part])) for part in (groups[:4], groups[4:])
    )
    engine.access(store(_place(4), Space.GLOBAL, 4), early_warps[list(range(len(cells)))], cells)
    engine.barriers.bar(Group(threads), _place(2), 0, None, "sync")
    for turn in range(4):
        readers = Group(np.roll(early_warps.threads, 32 * turn)[: len(cells)])
        engine.access(load(_place(10 + turn), Space.GLOBAL, 4), readers, cells)
    late = Group(np.resize(late_warps.threads, len(cells)))
    engine.access(load(_place(20), Space.GLOBAL, 4), late, cells)
    engine.barriers.bar(early_warps, _place(7), 1, 128, "sync")
    engine.access(store(_place(6), Space.GLOBAL, 4), early_warps[list(range(len(cells)))], cells)
    assert {finding.rule.code for finding in engine.findings} == {"PTX0901"}


def _readers(warps: int) -> tuple[Hazards, list[Group]]:
    engine = Hazards()
    engine.state.add_buffer(1 << 20, 1 << 16, "data")
    grid = engine.launch(_place(1), warps * 32, shared_bytes=64)
    engine.start(grid, [0], [0])
    return engine, [Group(grid.list_threads(0)[warp * 32 : warp * 32 + 32]) for warp in range(warps)]


def test_rows_that_overlap_in_part_are_taken_one_by_one() -> None:
    rows = Rows(np.array([[0, 1], [1, 2], [5, 6]]), 2)
    assert [(part.tolist(), layer.blocks.tolist(), layer.width) for part, layer in rows.layers] == [
        ([0], [[0, 1]], 2), ([1], [[1, 2]], 2), ([2], [[5, 6]], 2),
    ]  # fmt: skip


def test_a_tile_that_two_warpgroups_read_remembers_both() -> None:
    engine = Hazards()
    grid = engine.launch(_place(1), 2 * WARPS * 32, slots=1, shared_bytes=BYTES)
    engine.start(grid, [0], [0])
    everyone = Group(grid.list_threads(0))
    warpgroups = [everyone[list(range(first, first + WARPS * 32))] for first in (0, WARPS * 32)]
    base = grid.find_shared_base(0)
    engine.access(store(_place(5), Space.SHARED, 16), warpgroups[0], base + np.arange(WARPS * 32) * 16)
    engine.sync.proxy_fence(everyone, [Space.SHARED])
    engine.barriers.bar(everyone, _place(2), 0, None, "sync")
    for line, warpgroup in enumerate(warpgroups, 6):
        engine.wgmma.fence(warpgroup)
        rows = Rows(np.array([[base >> 4]]) + np.arange(WARPS * 32), 1)
        engine.wgmma.issue_all([warpgroup], _place(line), [rows], frozenset({1}))
        engine.wgmma.commit(warpgroup)
        engine.wgmma.wait(warpgroup, 0)
    engine.access(store(_place(8), Space.SHARED, 16), warpgroups[1], base + np.arange(WARPS * 32) * 16)
    (finding,) = engine.findings
    assert (finding.rule.code, finding.other) == ("PTX0940", _place(6))


@pytest.mark.parametrize("second", [range(24), range(8, 24)], ids=["operands overlap", "operations overlap"])
def test_readers_of_overlapping_tiles_fill_the_slots_of_a_cell_in_order(second: range) -> None:
    ctas = Ctas(2, cluster=2)
    ctas.grid.shared.fresh = False
    base = ctas.grid.find_shared_base(0) >> 4
    first_rows, second_rows = (base + np.array([list(cells)] * 2) for cells in (range(16), second))
    operands = [Rows(first_rows, 1), Rows(second_rows, 1)]
    if len(second) == 16:
        operands = [Rows(np.concatenate([first_rows[:1], second_rows[:1]]), 1)]
    ctas.engine.wgmma.issue_all(ctas.groups, _place(3), operands, frozenset({1}))
    plane = ctas.grid.shared.get_plane(0)
    readers = np.array([slot[base : base + 24] for slot in plane.reads])
    assert (readers != 0).any(axis=0).all()
    assert ((readers[:-1] != 0) | (readers[1:] == 0)).all(), "a slot stays empty before a filled one"
