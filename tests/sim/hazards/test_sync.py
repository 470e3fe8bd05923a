"""Release sequences: atomics that count releases publish the accesses of all of them, not only of the last one.

The counter of a split-K product: each CTA writes its part and counts with a release; only the last one acquires.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pyptx.diagnostics import Span
from pyptx.sim.hazards import Access, Group, Hazards, Place, Scope, Sem, Space, atomic, load, store
from tests.sim.hazards.patterns import GLOBAL, buffers
from tests.sim.hazards.trace import Pattern, Role, Trace, find_codes

PARTS = 1 << 20
GPU = Scope.GPU
Count = Callable[[Role, int], None]


def by_release(role: Role, cta: int) -> None:
    role.set_flag(f"count {cta}", GLOBAL, Sem.RELEASE, GPU, adds=True)


def by_fence(role: Role, cta: int) -> None:
    role.fence(f"fence {cta}", Sem.RELEASE, GPU)
    role.set_flag(f"count {cta}", GLOBAL, Sem.RELAXED, GPU, adds=True)


def by_either(role: Role, cta: int) -> None:
    (by_fence if cta % 2 else by_release)(role, cta)


def counter(count: Count, ctas: int, with_fence: bool = False, target: int | None = None) -> Pattern:
    """Return the pattern of counting CTAs; the last one acquires by its access or by a fence after it."""

    def pattern(t: Trace) -> None:
        buffers(t)
        grid = t.add_grid(32, ctas + 1)
        for cta in range(ctas):
            role = t.add_role(grid, [0], cta)
            role.gst(f"write {cta}", PARTS + 4 * cta, per_thread=False)
            count(role, cta)
        last = t.add_role(grid, [0], ctas)
        last.see_flag("see", GLOBAL, Sem.RELAXED if with_fence else Sem.ACQUIRE, GPU, target or ctas)
        if with_fence:
            last.fence("acquire", Sem.ACQUIRE, GPU)
        for cta in range(ctas):
            last.gld(f"read {cta}", PARTS + 4 * cta, per_thread=False)

    return pattern


@pytest.mark.parametrize("with_fence", [False, True], ids=["acquire", "acquire fence"])
@pytest.mark.parametrize("ctas", [2, 3])
@pytest.mark.parametrize("count", [by_release, by_fence, by_either], ids=lambda count: count.__name__)
def test_the_last_of_a_counter_may_read_what_all_have_written(count: Count, ctas: int, with_fence: bool) -> None:
    assert find_codes(counter(count, ctas, with_fence), seeds=1) == {}


def test_the_last_of_very_many_may_read_what_all_have_written() -> None:
    assert find_codes(counter(by_either, 66), seeds=0) == {}


@pytest.mark.parametrize("ctas", [2, 3])
def test_a_count_that_releases_nothing_goes_on_with_the_sequence_and_hands_on_nothing_of_its_own(ctas: int) -> None:
    def count(role: Role, cta: int) -> None:
        if cta == 1:
            role.set_flag("count 1", GLOBAL, Sem.RELAXED, GPU, adds=True)
        else:
            by_release(role, cta)

    assert "PTX0901" in find_codes(counter(count, ctas), seeds=0)
    assert find_codes(counter(count, ctas), "write 1", seeds=0) == {}


@pytest.mark.parametrize("sem", [Sem.RELAXED, Sem.RELEASE])
def test_a_store_between_ends_the_sequence(sem: Sem) -> None:
    def pattern(t: Trace) -> None:
        counter(by_release, 2, target=3)(t)
        thread = t.add_role(t.roles[0].grid, [1], 0)
        thread.see_flag("see both", GLOBAL, Sem.RELAXED, GPU, 2)
        thread.set_flag("store", GLOBAL, sem, GPU)

    assert find_codes(pattern, seeds=1).keys() == {"PTX0901"}


@pytest.mark.parametrize("with_fence", [False, True], ids=["release", "fence"])
def test_very_many_threads_that_count_at_once_hand_on_what_each_has_written(with_fence: bool) -> None:
    def pattern(t: Trace) -> None:
        buffers(t)
        grid = t.add_grid(128, 3)
        for cta in range(2):
            role = t.add_role(grid, range(128), cta)
            role.gst(f"write {cta}", PARTS + 512 * cta)
            if with_fence:
                role.fence(f"fence {cta}", Sem.RELEASE, GPU)
            role.set_flag(f"count {cta}", GLOBAL, Sem.RELAXED if with_fence else Sem.RELEASE, GPU, adds=True)
        last = t.add_role(grid, range(128), 2)
        last.see_flag("see", GLOBAL, Sem.ACQUIRE, GPU, 2)
        for cta in range(2):
            last.gld(f"read {cta}", PARTS + 512 * cta, rotate=64)

    assert find_codes(pattern) == {}
    if with_fence:
        assert "PTX0901" in find_codes(pattern, "fence 0")


@pytest.mark.parametrize("flags", [1, 70])
@pytest.mark.parametrize("stores", [True, False])
def test_a_weak_store_ends_the_sequence_of_its_flag_among_many(flags: int, stores: bool) -> None:
    engine = Hazards()
    engine.state.add_buffer(PARTS, 4096)
    place = Place(Span(1, 1), "")
    grid = engine.launch(place, 32, slots=3)
    engine.start(grid, range(3), range(3))
    first, second, third = (Group(grid.list_threads(cta)[:1]) for cta in range(3))
    data, places = np.array([PARTS]), PARTS + 1024 + np.arange(flags) * 4
    engine.access(store(place, Space.GLOBAL, 4), first, data)
    for at in range(flags):
        engine.access(store(place, Space.GLOBAL, 4, Sem.RELEASE, GPU), first, places[at : at + 1])
    engine.access(load(place, Space.GLOBAL, 4, Sem.ACQUIRE, GPU), second, places[:1])
    if stores:
        engine.access(store(Place(Span(2, 1), "weak"), Space.GLOBAL, 4), second, places[:1])
    for at in range(flags):
        engine.access(load(Place(Span(3, 1), "flag"), Space.GLOBAL, 4, Sem.ACQUIRE, GPU), third, places[at : at + 1])
        if not at:
            engine.access(load(Place(Span(4, 1), "data"), Space.GLOBAL, 4), third, data)
    found = [(finding.rule.code, finding.place.text) for finding in engine.findings]
    assert found == ([("PTX0901", "flag"), ("PTX0901", "data")] if stores else [])


class Litmus:
    """Two threads in CTAs of their own, data that the first has written, and flags."""

    def __init__(self) -> None:
        self.engine = Hazards()
        self.engine.state.add_buffer(PARTS, 4096)
        self.grid = self.engine.launch(Place(Span(1, 1), ""), 32, slots=2, shared_bytes=64)
        self.engine.start(self.grid, range(2), range(2))
        self.writer, self.reader = (Group(self.grid.list_threads(cta)[:1]) for cta in range(2))
        self.write(self.writer, Sem.WEAK, 0)

    def write(self, thread: Group, sem: Sem, at: int = 1024, space: Space = Space.GLOBAL) -> None:
        address = at + (PARTS if space is Space.GLOBAL else 0)
        self.engine.access(store(Place(Span(2, 1), ""), space, 4, sem, GPU), thread, np.array([address]))

    def count(self, thread: Group, sem: Sem) -> None:
        access = Access(Place(Span(3, 1), ""), Space.GLOBAL, 4, True, True, sem, GPU, red=True)
        self.engine.access(access, thread, np.array([PARTS + 1024]))

    def read(self, thread: Group, sem: Sem, at: int = 1024, scope: Scope = GPU) -> list[str]:
        """Return the codes reported so far."""
        access = load(Place(Span(4, 1), ""), Space.GLOBAL, 4, sem, scope)
        self.engine.access(access, thread, np.array([PARTS + at]))
        return [finding.rule.code for finding in self.engine.findings]

    def reuse(self, slot: int) -> None:
        """Let another CTA run in a slot."""
        self.engine.exit(Group(self.grid.list_threads(slot)), Place(Span(5, 1), ""))
        self.engine.start(self.grid, [slot], [2])


@pytest.mark.parametrize("counts", [True, False])
def test_a_thread_goes_on_with_its_own_release(counts: bool) -> None:
    litmus = Litmus()
    litmus.write(litmus.writer, Sem.RELEASE)
    (litmus.count if counts else litmus.write)(litmus.writer, Sem.RELAXED)
    litmus.read(litmus.reader, Sem.ACQUIRE)
    assert litmus.read(litmus.reader, Sem.WEAK, 0) == []


def test_a_narrower_fence_does_not_end_what_a_wider_one_released() -> None:
    litmus = Litmus()
    litmus.engine.sync.fence(litmus.writer, Sem.RELEASE, GPU)
    litmus.write(litmus.writer, Sem.WEAK, 8)
    litmus.engine.sync.fence(litmus.writer, Sem.RELEASE, Scope.CTA)
    litmus.write(litmus.writer, Sem.RELAXED)
    litmus.read(litmus.reader, Sem.ACQUIRE)
    assert litmus.read(litmus.reader, Sem.WEAK, 0) == []
    assert litmus.read(litmus.reader, Sem.WEAK, 8) == ["PTX0903"]


def test_ctas_that_count_in_one_slot_all_release() -> None:
    litmus = Litmus()
    litmus.count(litmus.writer, Sem.RELEASE)
    litmus.reuse(0)
    litmus.count(litmus.writer, Sem.RELEASE)
    litmus.read(litmus.reader, Sem.ACQUIRE)
    assert litmus.read(litmus.reader, Sem.WEAK, 0) == []


@pytest.mark.parametrize("with_fence", [False, True])
def test_an_acquire_after_a_relaxed_read_acquires_what_that_read_observed(with_fence: bool) -> None:
    litmus = Litmus()
    litmus.write(litmus.writer, Sem.RELEASE)
    litmus.read(litmus.reader, Sem.RELAXED)
    litmus.write(Group(litmus.reader.threads + 1), Sem.RELEASE)
    litmus.read(litmus.reader, Sem.RELAXED if with_fence else Sem.ACQUIRE)
    litmus.engine.sync.fence(litmus.reader, Sem.ACQUIRE, GPU)
    assert litmus.read(litmus.reader, Sem.WEAK, 0) == []


def test_a_release_in_shared_memory_ends_with_its_cta() -> None:
    litmus = Litmus()
    litmus.write(litmus.writer, Sem.RELEASE, 4, Space.SHARED)
    litmus.reuse(0)
    litmus.write(litmus.writer, Sem.WEAK, 0, Space.SHARED)
    litmus.engine.access(atomic(Place(Span(6, 1), ""), Space.SHARED, 4, Sem.ACQUIRE, GPU), litmus.writer, np.array([4]))
    assert litmus.read(litmus.writer, Sem.WEAK, 0) == ["PTX0901"]


@pytest.mark.parametrize("reuses", [False, True])
def test_a_narrow_acquire_explains_no_race_of_the_next_cta_in_its_slot(reuses: bool) -> None:
    litmus = Litmus()
    litmus.write(litmus.writer, Sem.RELEASE)
    assert litmus.read(litmus.reader, Sem.ACQUIRE, scope=Scope.CTA) == ["PTX0903"]
    if reuses:
        litmus.reuse(1)
    assert litmus.read(litmus.reader, Sem.WEAK, 0) == ["PTX0903"] + ["PTX0901"] * reuses


def test_releases_of_some_lanes_cover_no_update_of_another_lane() -> None:
    litmus = Litmus()
    lanes = [Group(litmus.writer.threads + lane) for lane in range(3)]
    update = atomic(Place(Span(6, 1), ""), Space.GLOBAL, 4, Sem.RELAXED, GPU)
    litmus.engine.access(update, Group(litmus.grid.list_threads(0)[1:4]), PARTS + np.array([12, 8, 8]))
    litmus.count(lanes[0], Sem.RELEASE)
    litmus.count(lanes[2], Sem.RELEASE)
    litmus.read(litmus.reader, Sem.ACQUIRE)
    litmus.write(litmus.reader, Sem.WEAK, 8)
    assert litmus.read(litmus.reader, Sem.WEAK, 0) == ["PTX0901"]


def test_an_update_of_cta_scope_races_with_a_peer_whose_store_its_own_cta_repeats() -> None:
    engine = Hazards()
    grid = engine.launch(Place(Span(1, 1), ""), 32, slots=2, cluster=2, shared_bytes=64)
    engine.start(grid, range(2), range(2))
    first, second = (Group(grid.list_threads(cta)) for cta in range(2))
    for group in (first, second):
        engine.barriers.cluster_arrive(group, Place(Span(4, 1), ""))
    for group in (first, second):
        engine.barriers.cluster_wait(group, Place(Span(4, 1), ""))
    access = store(Place(Span(2, 1), "store"), Space.SHARED, 4, Sem.RELAXED, GPU)
    for group in (second, first):
        engine.access(access, group, np.arange(32) % 2 * 4)
    update = atomic(Place(Span(3, 1), "update"), Space.SHARED, 4, Sem.RELAXED, Scope.CTA)
    engine.access(update, first[[0]], np.array([0]))
    (finding,) = engine.findings
    assert finding.other_agent is not None
    assert (finding.rule.code, finding.other, finding.other_agent.cta) == ("PTX0903", access.place, 1)
