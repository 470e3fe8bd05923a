"""Vector clocks: what rows of lanes know when they split, merge, end, and learn of other clusters."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from pyptx.diagnostics import Span
from pyptx.sim.hazards import (
    Access,
    Bytes,
    Family,
    Group,
    Hazards,
    Movement,
    Place,
    Scope,
    Sem,
    Space,
    atomic,
    load,
    store,
)
from pyptx.sim.hazards.state import Grid
from pyptx.sim.hazards.tensor import tensor_cells

DATA, FLAGS = 1 << 20, (1 << 20) + 2048


def place(line: int) -> Place:
    return Place(Span(line, 1), f"line {line}")


class Ctas:
    """CTAs of two warps, each its own cluster unless `cluster` says otherwise."""

    def __init__(self, count: int = 2, cluster: int = 1) -> None:
        self.engine = Hazards()
        self.engine.state.add_buffer(DATA, 4096, "data")
        self.grid: Grid = self.engine.launch(place(1), 64, slots=count, cluster=cluster, shared_bytes=1024, tensor=True)
        self.engine.start(self.grid, range(count), range(count))

    def threads(self, cta: int, lanes: Iterable[int] = range(64)) -> Group:
        return Group(self.grid.list_threads(cta)[list(lanes)])

    def store(self, line: int, threads: Group, at: int = 0, space: Space = Space.GLOBAL) -> None:
        base = DATA if space is Space.GLOBAL else 0
        self.engine.access(store(place(line), space, 4), threads, np.full(len(threads), base + at))

    def load(self, line: int, threads: Group, at: int | list[int] = 0, space: Space = Space.GLOBAL) -> None:
        base = DATA if space is Space.GLOBAL else 0
        self.engine.access(load(place(line), space, 4), threads, np.full(len(threads), base + np.array(at)))

    def release(self, line: int, threads: Group, flag: int = 0) -> None:
        """Add to a flag, with a release of the whole GPU."""
        access = atomic(place(line), Space.GLOBAL, 4, Sem.RELEASE, Scope.GPU)
        self.engine.access(access, threads, np.full(len(threads), FLAGS + 4 * flag))

    def acquire(self, line: int, threads: Group, flag: int = 0) -> None:
        access = load(place(line), Space.GLOBAL, 4, Sem.ACQUIRE, Scope.GPU)
        self.engine.access(access, threads, np.full(len(threads), FLAGS + 4 * flag))

    def bar(self, threads: Group) -> None:
        self.engine.barriers.bar(threads, place(2), 0, None, "sync")

    def found(self) -> list[tuple[str, int, int, int]]:
        """Return the rule, the two lines and the count of each finding."""
        return [
            (finding.rule.code, finding.place.origin.line, finding.other.origin.line, finding.count)
            for finding in self.engine.findings
            if finding.place.origin and finding.other and finding.other.origin
        ]


@pytest.mark.parametrize("late", [False, True])
def test_lanes_that_part_keep_what_their_warp_knows_of_other_clusters(late: bool) -> None:
    ctas = Ctas()
    writer, warp = ctas.threads(1, [0]), ctas.threads(0, range(32))
    ctas.store(3, writer)
    ctas.release(4, writer)
    ctas.acquire(5, warp)
    assert ctas.engine.state.clocks.foreign
    if late:
        ctas.store(6, writer)
    # Lane 3 parts from its warp, with what all of them know.
    ctas.engine.sync.proxy_fence(ctas.threads(0, [3]), [Space.SHARED])
    ctas.load(7, ctas.threads(0, [3]))
    ctas.load(8, ctas.threads(0, [4]))
    assert ctas.found() == ([("PTX0901", 7, 6, 1), ("PTX0901", 8, 6, 1)] if late else [])


@pytest.mark.parametrize("late", [False, True])
def test_lanes_that_parted_are_one_row_again_when_the_others_have_exited(late: bool) -> None:
    ctas = Ctas()
    writer, lanes = ctas.threads(1, [0]), ctas.threads(0, range(16))
    ctas.store(3, writer)
    ctas.release(4, writer)
    ctas.acquire(5, lanes)
    if late:
        ctas.store(6, writer)
    ctas.engine.sync.proxy_fence(lanes, [Space.SHARED])
    ctas.engine.exit(ctas.threads(0, range(16, 32)), place(7))
    clocks = ctas.engine.state.clocks
    assert clocks.splits == {0: {int(clocks.row_of[0])}}
    ctas.bar(Group(np.concatenate([lanes.threads, np.arange(32, 64)])))
    assert clocks.splits == {}
    assert set(clocks.row_of[:16].tolist()) == {int(clocks.base_row[0])}
    ctas.load(8, ctas.threads(0, [3]))
    ctas.load(9, ctas.threads(0, [33]))
    ctas.engine.copies.bulk_load(0, place(10), Bytes.run(Space.GLOBAL, DATA + 512, 64), [])
    assert ctas.found() == ([("PTX0901", 8, 6, 1), ("PTX0901", 9, 6, 1)] if late else [])


@pytest.mark.parametrize("sem", [Sem.RELEASE, Sem.RELAXED])
def test_a_relaxed_arrival_hands_on_nothing_of_other_clusters(sem: Sem) -> None:
    ctas = Ctas()
    writer, first, last = ctas.threads(1, [0]), ctas.threads(0, [0]), ctas.threads(0, [40])
    ctas.engine.mbarriers.init(int(first.threads[0]), place(2), 0, 1)
    ctas.bar(ctas.threads(0))
    ctas.store(3, writer)
    ctas.release(4, writer)
    ctas.acquire(5, first)
    ctas.engine.mbarriers.arrive(first, place(6), 0, sem=sem)
    ctas.engine.mbarriers.wait(last, place(7), 0, 0)
    ctas.load(8, last)
    assert ctas.found() == ([] if sem is Sem.RELEASE else [("PTX0901", 8, 3, 1)])


def test_rows_merge_with_all_that_they_hold() -> None:
    ctas = Ctas()
    lanes = ctas.threads(0, range(16))
    ctas.bar(ctas.threads(0))
    ctas.store(3, ctas.threads(0, [40]), 64)
    ctas.release(4, ctas.threads(0, [40]))
    ctas.acquire(5, lanes)
    ctas.release(4, ctas.threads(1, [0]), 1)
    ctas.acquire(5, lanes, 1)
    ctas.engine.sync.proxy_fence(lanes, [Space.SHARED, Space.GLOBAL])
    ctas.engine.exit(ctas.threads(0, range(16, 32)), place(6))
    clocks = ctas.engine.state.clocks
    before = clocks.make_stamp(int(clocks.row_of[0]))
    clocks.join_lanes(lanes.threads)
    after = clocks.make_stamp(int(clocks.base_row[0]))
    assert before.clock.any()
    other = int(clocks.domain_of[2])
    assert before.foreign.keys() == after.foreign.keys() == {other}
    np.testing.assert_array_equal(before.clock, after.clock)
    np.testing.assert_array_equal(before.foreign[other], after.foreign[other])
    assert clocks.dirty[clocks.base_row[0]]


def test_a_thread_that_starts_knows_nothing_that_an_earlier_one_was_yet_to_learn() -> None:
    ctas = Ctas()
    writer = ctas.threads(1, [0])
    ctas.store(3, writer)
    ctas.release(4, writer)
    ctas.acquire(5, ctas.threads(0, [5, 6]))
    ctas.engine.exit(ctas.threads(0), place(6))
    ctas.engine.start(ctas.grid, [0], [2])
    ctas.load(7, ctas.threads(0, [5]))
    assert ctas.found() == [("PTX0901", 7, 3, 1)]


@pytest.mark.parametrize("copying", [[0], [0, 1]])
@pytest.mark.parametrize("waits", [True, False])
def test_ctas_meet_of_which_some_have_copied(copying: list[int], waits: bool) -> None:
    """Both CTAs come to their barriers at once, and know then what their own copying lanes have waited for."""
    ctas = Ctas()
    every = Group(np.concatenate([ctas.threads(cta).threads for cta in range(2)]))
    engine = ctas.engine
    ctas.bar(every)
    copiers = Group(np.concatenate([ctas.threads(cta, range(32)).threads for cta in copying]))
    target = Access(place(3), Space.SHARED, 4, True, False, family=Family.CP_ASYNC)
    addresses = copiers.threads // 64 * 1024 + copiers.threads % 64 * 4
    engine.copies.cp_async(copiers, target, addresses)
    if waits:
        engine.copies.wait_cp(copiers, 0, True)
    ctas.bar(every)
    readers = Group(np.concatenate([ctas.threads(cta, range(32, 64)).threads for cta in copying]))
    engine.access(load(place(4), Space.SHARED, 4), readers, readers.threads // 64 * 1024 + readers.threads % 32 * 4)
    expected = [] if waits else [("PTX0931", 32 * len(copying))]
    assert [(finding.rule.code, finding.count) for finding in engine.findings] == expected


def test_ctas_meet_of_which_one_has_fewer_warps() -> None:
    ctas = Ctas(3)
    ctas.engine.exit(ctas.threads(1, range(32, 64)), place(3))
    for cta in range(3):
        ctas.store(4, ctas.threads(cta, [1]), 64 * cta)
    every = Group(np.concatenate([ctas.threads(0).threads, ctas.threads(1, range(32)).threads]))
    ctas.engine.sync.proxy_fence(ctas.threads(0, range(32)), [Space.SHARED])
    ctas.bar(every)
    ctas.load(5, ctas.threads(0, [63]))
    ctas.load(6, ctas.threads(1, [31]), 64)
    assert ctas.found() == []
    ctas.load(7, ctas.threads(0, [63]), 64)
    ctas.load(8, ctas.threads(1, [31]), 128)
    assert ctas.found() == [("PTX0901", 7, 4, 1), ("PTX0901", 8, 4, 1)]


@pytest.mark.parametrize("fences", [True, False])
def test_a_tcgen05_fence_of_another_cluster_orders_no_operation_of_this_one(fences: bool) -> None:
    """Warp 0 stores to tensor memory; a thread of another CTA, which has its own, hands that on to warp 1."""
    ctas = Ctas()
    engine, warps, other = ctas.engine, [ctas.threads(0, range(32)), ctas.threads(0, range(32, 64))], ctas.threads(1)
    engine.tensor.alloc(warps[0], place(3), 0, 32)
    ctas.bar(ctas.threads(0))
    engine.tensor.move(warps[0], place(4), 0, 32, 0, 32, stores=True)
    engine.tensor.wait(warps[0], stores=True)
    if fences:
        engine.tensor.fence(warps[0], before=True)
    engine.barriers.warp_sync(warps[0], place(5), 0xFFFFFFFF)
    ctas.release(5, warps[0][[0]])
    ctas.acquire(6, other)
    for before in (True, False):
        engine.tensor.fence(other, before=before)
    ctas.release(7, other[[0]], 1)
    ctas.acquire(8, warps[1], 1)
    engine.tensor.fence(warps[1], before=False)
    cells = tensor_cells(ctas.grid.find_tensor_base(0), 0, 32)
    engine.tensor.operate(32, place(9), [], [cells])
    assert [finding.rule.code for finding in engine.findings] == ([] if fences else ["PTX0937"])


@pytest.mark.parametrize(("movement", "codes"), [(Movement.SHIFT, {"PTX0935"}), (Movement.NONE, set[str]())])
def test_a_copy_to_tensor_memory_is_in_order_with_products_but_not_with_shifts(
    movement: Movement, codes: set[str]
) -> None:
    ctas = Ctas()
    ctas.engine.tensor.alloc(ctas.threads(0, range(32)), place(3), 0, 32)
    cells = tensor_cells(ctas.grid.find_tensor_base(0), 0, 32)
    ctas.engine.tensor.operate(0, place(4), [], [cells], movement=Movement.COPY)
    ctas.engine.tensor.operate(0, place(5), [cells], [cells], movement=movement)
    assert {finding.rule.code for finding in ctas.engine.findings} == codes


def test_lanes_that_know_an_operation_speak_for_no_other_lanes_of_their_warp() -> None:
    """Lane 31 acquires what warp 1 knows of a copy, lanes 0 to 30 something else: pending until it is needed."""
    ctas = Ctas()
    engine, waiters = ctas.engine, ctas.threads(0, range(32, 64))
    engine.mbarriers.init(0, place(3), 512, 1)
    ctas.bar(ctas.threads(0))
    engine.mbarriers.arrive(ctas.threads(0, [0]), place(4), 512, expect=64)
    engine.copies.land(engine.copies.bulk_load(0, place(5), None, [(Bytes.run(Space.SHARED, 0, 64), 512)]))
    engine.mbarriers.wait(waiters, place(6), 512, 0)
    ctas.release(7, ctas.threads(1, [0]), 0)
    ctas.release(8, ctas.threads(0, [32]), 1)
    ctas.acquire(9, ctas.threads(0, range(31)), 0)
    ctas.acquire(10, ctas.threads(0, [31]), 1)
    for line, lane, at in ((11, 31, 0), (12, 5, 32)):
        assert ctas.found() == []
        engine.access(store(place(line), Space.SHARED, 16), ctas.threads(0, [lane]), np.array([at]))
    assert ctas.found() == [("PTX0930", 12, 5, 1)]


@pytest.mark.parametrize("late", [False, True])
def test_a_narrow_release_covers_the_lanes_of_a_warp_that_read_one_place(late: bool) -> None:
    ctas = Ctas()
    warp, other = ctas.threads(0, range(32)), ctas.threads(1, [0])
    ctas.store(3, other)
    ctas.release(4, other)
    ctas.acquire(5, warp)
    ctas.load(6, warp[list(range(8))], [0] * 4 + [4] * 4)
    ctas.engine.barriers.warp_sync(warp, place(7), 0xFFFFFFFF)
    if late:
        ctas.load(8, warp[list(range(4, 8))], [0, 0, 4, 4])
    release = atomic(place(9), Space.GLOBAL, 4, Sem.RELEASE, Scope.CTA)
    ctas.engine.access(release, warp[[0]], np.array([FLAGS + 4]))
    ctas.acquire(10, other, 1)
    ctas.store(11, other)
    assert ctas.found() == [
        ("PTX0903", 10, 9, 2), ("PTX0901", 11, 8, 1) if late else ("PTX0903", 11, 6, 1),
    ]  # fmt: skip


@pytest.mark.parametrize(("fencing", "count"), [([], 2), ([0], 2), ([1, 2, 3], 1), ([0, 1, 2], 1), ([0, 1, 2, 3], 0)])
def test_each_lane_that_read_a_place_fences_before_a_copy_overwrites_it(fencing: list[int], count: int) -> None:
    ctas = Ctas()
    engine, warp = ctas.engine, ctas.threads(0, range(32))
    engine.mbarriers.init(0, place(3), 512, 1)
    engine.access(store(place(3), Space.SHARED, 4), warp[[0, 1]], np.array([0, 4]))
    engine.sync.proxy_fence(warp, [Space.SHARED])
    ctas.bar(ctas.threads(0))
    ctas.load(4, warp[[0, 1, 2, 3]], [0, 0, 4, 4], Space.SHARED)
    for lane in fencing:
        engine.sync.proxy_fence(warp[[lane]], [Space.SHARED])
    engine.barriers.warp_sync(warp, place(5), 0xFFFFFFFF)
    engine.copies.bulk_load(0, place(6), None, [(Bytes.run(Space.SHARED, 0, 64), 512)])
    assert ctas.found() == ([("PTX0923", 6, 4, count)] if count else [])


def test_threads_that_learn_at_a_wait_for_their_own_copies() -> None:
    """Lane 3 acquires a release late: its row is made by the wait."""
    engine = Hazards()
    engine.state.add_buffer(DATA, 4096, "data")
    grid = engine.launch(place(1), 32, slots=1, shared_bytes=64)
    engine.start(grid, [0], [0])
    warp = Group(grid.list_threads(0))
    for line, make, lane, sem in ((2, store, 0, Sem.RELEASE), (3, load, 3, Sem.ACQUIRE)):
        engine.access(make(place(line), Space.GLOBAL, 4, sem, Scope.GPU), warp[[lane]], np.array([DATA]))
    engine.copies.wait_cp(warp)
    assert not len(engine.findings)


def test_ctas_that_meet_hand_on_what_a_warp_knows_of_another_cluster() -> None:
    ctas = Ctas(3)
    writer = ctas.threads(2, range(32))
    ctas.store(3, ctas.threads(2, [0]))
    ctas.release(4, writer)
    ctas.acquire(5, ctas.threads(0, range(32)))
    # A fence needs to know at once what the warp has acquired.
    ctas.engine.sync.proxy_fence(ctas.threads(0, range(32)), [Space.GLOBAL])
    ctas.bar(Group(np.concatenate([ctas.threads(cta).threads for cta in range(2)])))
    ctas.load(6, ctas.threads(0, range(32, 64)))
    assert ctas.found() == []


def test_rows_of_lanes_that_merged_serve_other_lanes() -> None:
    ctas = Ctas(1)
    clocks, heights = ctas.engine.state.clocks, list[int]()
    for _ in range(8):
        for lane in range(31):
            ctas.engine.sync.proxy_fence(ctas.threads(0, [lane]), [Space.SHARED])
        ctas.bar(ctas.threads(0))
        assert clocks.splits == {}
        heights.append(len(clocks.table))
    assert heights == heights[:1] * 8
