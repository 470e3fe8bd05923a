"""Random executions that continue after their races, with copies: the reviewed findings and counts.

No model judges these, so a digest that differs may be right: compare the findings of both commits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest

from pyptx.sim.base.events import Ints
from pyptx.sim.hazards import Access, Bytes, Family, Group, Hazards, Scope, Sem, Space, load, show, store
from pyptx.sim.hazards.state import Overlap
from tests.digests import assert_digest
from tests.sim.hazards.model import Conflict, Model
from tests.sim.hazards.test_random import BARRIERS, GLOBAL, Execution, place
from tests.sim.hazards.trace import would_pass

SIGNALED = BARRIERS + 16
"""The mbarrier of each CTA that copies signal."""


class Lenient(Model):
    """A model that finds nothing wrong."""

    def find_conflicts(self, access: Access, threads: Sequence[int], addresses: Sequence[int]) -> Iterator[Conflict]:
        return iter(())


class LongExecution(Execution):
    """An execution whose events race, with copies, which the model does not know."""

    def __init__(self, seed: int) -> None:
        self.flying: list[Callable[[], object]] = []
        super().__init__(seed, Lenient())
        self.events += [
            self.cp_async, self.cp_async, self.finish_cp, self.finish_cp, self.bulk_load, self.bulk_load,
            self.st_async, self.land, self.land, self.wait_signaled, self.wait_signaled, self.leave,
            self.bulk_store, self.bulk_wait,
        ]  # fmt: skip

    def _access(self, access: Access, group: Group, addresses: Ints, accepted: float) -> bool:
        self.engine.access(access, group, addresses)
        self.recent.append((access, addresses))
        return False

    def _compare(self, access: Access, conflicts: set[Conflict]) -> None:
        pass

    def _initialize(self, slots: Sequence[int]) -> None:
        for slot in slots:
            base = self.grid.find_shared_base(slot)
            self.engine.mbarriers.init(self.grid.find_thread(slot), place(50), base + SIGNALED, 1)
        super()._initialize(slots)

    def restart(self) -> None:
        while self.flying:
            self.land()
        super().restart()

    def _choose_warp(self) -> Group | None:
        """Return the live threads of a warp, if they are able."""
        slot = self.choice.randrange(self.ctas)
        warps = [warp for warp in self._list_warps(slot) if self.is_able(warp)]
        return Group(np.array(self.choice.choice(warps))) if warps else None

    def _choose_shared(self, slot: int) -> int:
        return self.grid.find_shared_base(slot) + 16 * self.choice.randrange(BARRIERS // 16 - 32)

    def cp_async(self) -> None:
        group = self._choose_warp()
        if group is None:
            return
        target = Access(place(51), Space.SHARED, 16, True, False, family=Family.CP_ASYNC)
        source = Access(place(51), Space.GLOBAL, 16, False, family=Family.CP_ASYNC)
        lanes, start = 16 * np.arange(len(group)), self._choose_shared(self.grid.find_slot(group.first))
        self.engine.copies.cp_async(group, target, start + lanes, source, GLOBAL + 64 + lanes)
        if self.choice.random() < 0.7:
            self.engine.copies.commit_cp(group)

    def finish_cp(self) -> None:
        group = self._choose_warp()
        if group is None:
            return
        kind = self.choice.random()
        if kind < 0.7:
            self.engine.copies.wait_cp(group, self.choice.choice([0, 0, 1]), kind < 0.2)
            return
        barrier = self.grid.find_shared_base(self.grid.find_slot(group.first)) + SIGNALED
        self.engine.copies.hold_cp_arrivals(group, place(52), barrier)
        self.flying.append(lambda: self.engine.copies.cp_arrive(group, place(52), barrier))

    def bulk_load(self) -> None:
        """A bulk copy to one CTA or to all of its cluster, which each expect its bytes."""
        slot = self.choice.randrange(self.ctas)
        thread = self.grid.find_thread(slot)
        if not self.is_able([thread]):
            return
        first = slot - slot % self.cluster
        slots = [slot] if self.choice.random() < 0.5 else range(first, first + self.cluster)
        size, offset = 16 * self.choice.randint(1, 4), self._choose_shared(0) - self.grid.find_shared_base(0)
        targets: list[tuple[Bytes, int]] = []
        for target in slots:
            base = self.grid.find_shared_base(target)
            targets.append((Bytes.run(Space.SHARED, base + offset, size), base + SIGNALED))
        for _, barrier in targets:
            self.engine.mbarriers.expect(Group(np.array([thread])), place(53), barrier, size)
        source = Bytes.run(Space.GLOBAL, GLOBAL + 16 * self.choice.randrange(32), size)
        number = self.engine.copies.bulk_load(thread, place(53), source, targets)
        for at in range(len(targets)):
            self.flying.append(lambda at=at: self.engine.copies.land(number, at))

    def st_async(self) -> None:
        group = self._choose_warp()
        if group is None:
            return
        slot = self.grid.find_slot(group.first)
        target = slot - slot % self.cluster + self.choice.randrange(self.cluster)
        barrier = self.grid.find_shared_base(target) + SIGNALED
        self.engine.mbarriers.expect(group[[0]], place(54), barrier, 4 * len(group))
        access = Access(place(54), Space.SHARED, 4, True, False, Sem.WEAK, family=Family.ST_ASYNC)
        number = self.engine.copies.st_async(
            group, access, self._choose_shared(target) + 4 * np.arange(len(group)), barrier
        )
        self.flying.append(lambda: self.engine.copies.land_st(number))

    def land(self) -> None:
        if self.flying:
            self.flying.pop(self.choice.randrange(len(self.flying)))()

    def wait_signaled(self) -> None:
        """A thread arrives on the mbarrier of copies, or threads wait for its last phase."""
        group = self._choose_warp()
        if group is None:
            return
        barrier = self.grid.find_shared_base(self.grid.find_slot(group.first)) + SIGNALED
        scope = self.choice.choice([Scope.CTA, Scope.CLUSTER])
        if self.choice.random() < 0.4:
            self.engine.mbarriers.arrive(group[[0]], place(55), barrier, scope=scope)
        for parity in (0, 1):
            if would_pass(self.engine, group.first, barrier, parity):
                sem = self.choice.choice([Sem.ACQUIRE, Sem.ACQUIRE, Sem.RELAXED])
                self.engine.mbarriers.wait(group, place(56), barrier, parity, sem=sem, scope=scope)
                return

    def leave(self) -> None:
        """A thread exits before the others of its CTA."""
        group = self._choose_warp()
        if group is None or self.choice.random() < 0.7:
            return
        thread = self.choice.choice(group.thread_list)
        if len(self.list_live(self.grid.find_slot(thread))) > 1 and thread not in self.stores:
            self.engine.exit(Group(np.array([thread])), place(57))
            self.exited.add(thread)
            self.model.threads.pop(thread)

    def show(self) -> str:
        self._initialize(range(self.ctas))
        for _ in range(200):
            kind = self.choice.random()
            if kind < 0.4:
                self.access()
            elif kind < 0.5:
                self.probe()
            else:
                self.choice.choice(self.events)()
        return show(self.engine.findings)


@pytest.mark.parametrize("key", range(50))
def test_findings_of_a_random_execution(key: int) -> None:
    assert_digest("executions", f"execution {key:03}", LongExecution(key).show())


@pytest.mark.parametrize("overlap", Overlap)
@pytest.mark.parametrize("ends", [True, False])
def test_only_a_grid_that_overlaps_starts_before_earlier_ones_have_ended(overlap: Overlap, ends: bool) -> None:
    engine = Hazards()
    first = engine.launch(place(1), 32)
    if ends:
        engine.finish(first)
    if overlap is Overlap.NONE and not ends:
        with pytest.raises(AssertionError, match="must start after all earlier grids have ended"):
            engine.launch(place(2), 32, overlap=overlap)
    else:
        assert engine.launch(place(2), 32, overlap=overlap).number == 1


def test_findings_name_the_ctas_of_clusters_by_their_slots() -> None:
    engine = Hazards()
    engine.state.add_buffer(GLOBAL, 64, "data")
    engine.finish(engine.launch(place(1), 40))
    grid = engine.launch(place(2), 40, slots=4, cluster=2, shared_bytes=64)

    def access(slot: int, access: Access, address: int) -> None:
        engine.access(access, Group(grid.list_threads(slot)[[36]]), np.array([address]))

    def list_agents() -> list[tuple[str, str]]:
        return [(str(finding.agent), str(finding.other_agent)) for finding in engine.findings]

    engine.start(grid, range(4), [7, 3, 9, 5])
    for slot in range(4):
        access(slot, store(place(3 + slot), Space.GLOBAL, 4), GLOBAL)
    stores = [(f"CTA {cta} warp 1 lane 4", f"CTA {other} warp 1 lane 4") for other, cta in ((7, 3), (3, 9), (9, 5))]
    assert list_agents() == stores
    for slot in (2, 3):
        engine.exit(Group(grid.list_threads(slot)), place(7))
    engine.start(grid, [2, 3], [12, 11])
    for slot in (3, 1):
        access(slot, load(place(8 + slot), Space.SHARED, 4), grid.find_shared_base(slot) + 20)
    owners = [(str(finding.agent), finding.what) for finding in engine.findings][len(stores) :]
    assert owners == [
        (f"CTA {cta} warp 1 lane 4", f"reads 4 bytes at shared 0x14 of CTA {cta}, which was never written")
        for cta in (11, 3)
    ]
