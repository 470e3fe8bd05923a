"""Barriers of a CTA, a warp and a cluster: who has arrived, who waits, what they release, and their misuse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from pyptx.sim import rules
from pyptx.sim.base.events import Ints, Place, Scope, Sem
from pyptx.sim.hazards.clocks import CTA, RELAXED, WARP, WIDE_GLOBAL, WIDE_SHARED, Stamp, join_stamps
from pyptx.sim.hazards.groups import Group
from pyptx.sim.hazards.publishing import release_each
from pyptx.sim.hazards.state import Domain, Grid, State

BarKind = Literal["sync", "arrive", "red"]
_ALL = (1 << 32) - 1


@dataclass(slots=True)
class Round:
    """One round of a CTA barrier in progress."""

    slot: int
    grid: Grid
    number: int
    count: int | None
    kind: BarKind
    place: Place
    waiters: list[Ints] = field(default_factory=list[Ints])
    warps: dict[int, Place] = field(default_factory=dict[int, Place])
    lanes: dict[int, int] = field(default_factory=dict[int, int])
    """The lanes of each warp that have arrived, since its last second arrival."""
    second_arrivals: int = 0
    """The arrivals of warps that had arrived before."""
    stamp: Stamp | None = None


@dataclass(slots=True)
class ClusterRound:
    """The cluster barrier of one cluster."""

    arrivals: set[int] = field(default_factory=set[int])
    stamp: Stamp | None = None
    last_stamp: Stamp | None = None
    init_rounds: dict[int, int] = field(default_factory=dict[int, int])
    """The number of the round that releases each initialization of an mbarrier."""


class Barriers:
    """The barriers of all resident CTAs and clusters."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.rounds: dict[tuple[int, int, int], Round] = {}
        self.clusters: dict[int, ClusterRound] = {}
        self.arrivals, self.waits = np.zeros(0, np.int32), np.zeros(0, np.int32)
        self._latest = np.zeros(0, np.int32)
        self._places: list[Place | None] = [None]
        """The number of the place where each thread last arrived or waited at its cluster's barrier."""
        self.fenced_inits: dict[int, set[int]] = {}
        self.inits: dict[int, set[int]] = {}

    def forget(self, grid: Grid, slots: Sequence[int], threads: Ints) -> None:
        """Forget the threads of CTAs that start in reused slots."""
        self._make_room()
        self.arrivals[threads] = self.waits[threads] = self._latest[threads] = 0
        for init_sets in (self.fenced_inits, self.inits):
            for thread in threads.tolist() if init_sets else ():
                init_sets.pop(thread, None)
        for key in [key for key in self.rounds if key[0] == grid.number and key[1] in slots]:
            del self.rounds[key]

    # Within a CTA

    def bar(self, group: Group, place: Place, number: int, count: int | None, kind: BarKind) -> list[int]:
        """Execute `bar.sync`, `.arrive` or `.red` by whole warps. Return the released threads."""
        threads_released: list[int] = []
        grid = self.state.find_grid(group.first)
        if count is None and kind == "sync" and not self.rounds and 0 <= number < 16 and self._is_whole(group, grid):
            self.state.clocks.synchronize_ctas(group, grid.first_thread, grid.stride)
            return group.thread_list
        if kind == "sync" and count is not None and not self.rounds and 0 <= number < 16:
            members = group.split_by_cta(grid.first_thread, grid.stride).members
            if len(members) > 1 and self._are_parts_complete(grid, members, count) and self._synchronize_each(members):
                return group.threads.tolist()
        for mine in group.split_by_cta(grid.first_thread, grid.stride).members:
            slot = grid.find_slot(int(mine[0]))
            threads_released += self._arrive(grid, slot, mine, np.unique(mine >> 5), place, number, count, kind)
        return threads_released

    def _are_parts_complete(self, grid: Grid, members: list[Ints], count: int) -> bool:
        """Tell whether each CTA contributes exactly `count` threads, in whole warps, and has more live threads."""
        if count <= 0 or count % 32 or any(len(mine) != count for mine in members):
            return False
        live = self.state.live.reshape(-1, 32)
        for mine in members:
            warps, first = np.unique(mine >> 5), grid.find_thread(grid.find_slot(int(mine[0]))) >> 5
            if len(warps) * 32 != count or int(live[first : first + (grid.stride >> 5)].sum()) <= count:
                return False
        return True

    def _synchronize_each(self, members: list[Ints]) -> bool:
        """Synchronize the threads of each CTA. Return False, with nothing done, if they need separate handling."""
        clocks = self.state.clocks
        stamps = release_each(clocks, members)
        for threads, stamp in zip(members, stamps or (), strict=stamps is not None):
            clocks.acquire(threads, stamp)
            clocks.join_lanes(threads)
        return stamps is not None

    def _is_whole(self, group: Group, grid: Grid) -> bool:
        """Tell whether the group holds all live threads of its CTAs."""
        state = self.state
        if group.whole_at != state.clocks.version:
            group.whole_at = state.clocks.version
            first_threads = [int(members[0]) for members in group.split_by_cta(grid.first_thread, grid.stride).members]
            slots = np.array([grid.find_slot(thread) for thread in first_threads])
            live = state.live[grid.first_thread : grid.first_thread + grid.slots * grid.stride]
            group.whole = len(group) == int(live.reshape(grid.slots, -1)[slots].sum())
        return group.whole

    def _arrive(
        self,
        grid: Grid,
        slot: int,
        threads: Ints,
        warps: Ints,
        place: Place,
        number: int,
        count: int | None,
        kind: BarKind,
    ) -> list[int]:
        key = (grid.number, slot, number)
        state, first = self.state, int(threads[0])
        if not 0 <= number < 16 or (count is not None and (count <= 0 or count % 32)):
            detail = f"barrier {number}, count {count}"
            state.report(rules.BARRIER_COUNT, place, detail, thread=first)
        barrier_round = self.rounds.get(key)
        if barrier_round is None:
            barrier_round = self.rounds[key] = Round(slot, grid, number, count, kind, place)
        elif (barrier_round.count or self._count_all(grid, slot)) != (count or self._count_all(grid, slot)):
            first_count, own_count = _format_count(barrier_round.count), _format_count(count)
            detail = f"barrier {number} began with count {first_count}, but this arrival has {own_count}"
            state.report(rules.BARRIER_COUNT, place, detail, thread=first, other=barrier_round.place)
        if (barrier_round.kind == "red") != (kind == "red"):
            state.report(
                rules.BARRIER_MIXED, place, f"barrier {number}: bar.{kind}", thread=first, other=barrier_round.place
            )
        for warp in warps.tolist():
            lanes = barrier_round.lanes.get(warp, 0)
            mask = _ALL if len(threads) == 32 * len(warps) else int((1 << (threads[threads >> 5 == warp] & 31)).sum())
            barrier_round.lanes[warp] = mask if lanes & mask else lanes | mask
            if lanes & mask:
                barrier_round.second_arrivals += 1
                # A warp that arrives and then waits may do so on purpose: to take the first turn, or as the last one.
                if kind == "arrive":
                    detail = f"barrier {number} before its round is complete"
                    state.report(rules.BARRIER_TWICE, place, detail, thread=warp * 32, other=barrier_round.warps[warp])
            barrier_round.warps[warp] = place
        if kind == "arrive":
            stamp = state.clocks.release(threads)
            barrier_round.stamp = stamp if barrier_round.stamp is None else barrier_round.stamp.merge(stamp)
        else:
            barrier_round.waiters.append(threads)
        return self._complete(key, barrier_round)

    def _complete(self, key: tuple[int, int, int], barrier_round: Round) -> list[int]:
        first = barrier_round.grid.find_thread(barrier_round.slot)
        live = self.state.live[first : first + barrier_round.grid.stride]
        warp_count = (barrier_round.count or self._count_all(barrier_round.grid, barrier_round.slot)) // 32
        if len(barrier_round.warps) + barrier_round.second_arrivals < warp_count:
            return []
        del self.rounds[key]
        if not barrier_round.waiters:
            return []
        clocks = self.state.clocks
        threads = barrier_round.waiters[0] if len(barrier_round.waiters) == 1 else np.concatenate(barrier_round.waiters)
        threads = threads[self.state.live[threads]]
        if barrier_round.stamp is None:
            clocks.synchronize(threads, CTA if len(threads) == int(live.sum()) else None)
        else:
            clocks.acquire(threads, barrier_round.stamp)
            clocks.synchronize(threads, None)
        return threads.tolist()

    def _count_all(self, grid: Grid, slot: int) -> int:
        """Return the default count of a barrier: 32 threads for each warp of the CTA with a live thread."""
        first = grid.find_thread(slot)
        return int(self.state.live[first : first + grid.stride].reshape(-1, 32).any(axis=1).sum()) * 32

    def _list_live(self, grid: Grid, slot: int) -> Ints:
        threads = grid.list_threads(slot)
        return threads[self.state.live[threads]]

    def warp_sync(self, group: Group, place: Place, mask: int) -> None:
        """Execute `bar.warp.sync` by the participating lanes of the mask, one warp at a time."""
        state = self.state
        for index, warp in enumerate(group.warps.tolist()):
            threads = group.threads[group.warp_index == index]
            lane_mask = int(group.masks[index])
            alive = state.live[warp * 32 : warp * 32 + 32]
            if lane_mask & ~mask:
                lane = (lane_mask & ~mask).bit_length() - 1
                detail = f"lane {lane} executes with mask 0x{mask:08x}"
                state.report(rules.NOT_IN_MASK, place, detail, thread=warp * 32 + lane)
            dead_lanes = mask & ~lane_mask & ~int(sum(1 << lane for lane in range(32) if alive[lane]))
            if dead_lanes:
                detail = f"mask 0x{mask:08x} includes exited lanes 0x{dead_lanes:08x}"
                state.report(rules.EXITED_LANES, place, detail, thread=int(threads[0]))
            state.clocks.synchronize(threads, WARP if len(threads) == int(alive.sum()) else None)

    def complete_after_exit(self, grid: Grid, slot: int) -> list[int]:
        """Complete the barriers of a CTA that waited only for exited threads. Return the released threads."""
        threads_released: list[int] = []
        for key, barrier_round in list(self.rounds.items()):
            if key[:2] == (grid.number, slot) and barrier_round.count is None:
                threads_released += self._complete(key, barrier_round)
        return threads_released

    # Of a cluster

    def cluster_arrive(self, group: Group, place: Place, sem: Sem = Sem.RELEASE) -> None:
        """Execute `barrier.cluster.arrive`."""
        state, threads = self.state, group.threads
        domain = state.find_domain(group.first)
        cluster_round = self.clusters.setdefault(domain.number, ClusterRound())
        self._make_room()
        self._report_out_of_step(
            threads[self.arrivals[threads] > self.waits[threads]], place, "a second arrive without a wait"
        )
        self.arrivals[threads] += 1
        self._latest[threads] = self._number_place(place)
        cluster_round.arrivals |= group.members
        for init_sets in (self.fenced_inits, self.inits) if sem.releases else (self.fenced_inits,):
            for thread in init_sets.keys() & group.members if init_sets else ():
                cluster_round.init_rounds |= dict.fromkeys(init_sets.pop(thread), int(self.arrivals[thread]))
        stamp = state.clocks.publish(threads)
        if not sem.releases:
            clock = stamp.clock[RELAXED].copy()
            stamp.clock[:] = 0
            stamp.clock[RELAXED] = clock
            stamp.foreign = {}
            for fence in (fence for thread in threads.tolist() for fence in state.fences.get(thread, ())):
                fence_stamp = fence.stamp.copy()
                if fence.scope < Scope.CLUSTER:
                    fence_stamp.clock[[WIDE_SHARED, WIDE_GLOBAL]] = 0
                stamp = stamp.merge(fence_stamp)
        state.clocks.tick()
        cluster_round.stamp = join_stamps(cluster_round.stamp, stamp)
        self._complete_cluster(domain, cluster_round)

    def _report_out_of_step(self, threads: Ints, place: Place, detail: str) -> None:
        """Report threads whose arrives and waits do not alternate, with the last one of each."""
        for thread in threads.tolist():
            last_place = self._places[int(self._latest[thread])]
            self.state.report(rules.CLUSTER_BARRIER, place, detail, thread=thread, other=last_place)

    def _number_place(self, place: Place) -> int:
        """Return the number of a place, which it gets at its first use."""
        if place not in self._places:
            self._places.append(place)
        return self._places.index(place)

    def _make_room(self) -> None:
        """Extend the counts to threads of new grids."""
        missing = len(self.state.live) - len(self.arrivals)
        if missing:
            self.arrivals, self.waits, self._latest = (
                np.append(counts, np.zeros(missing, np.int32)) for counts in (self.arrivals, self.waits, self._latest)
            )

    def _complete_cluster(self, domain: Domain, cluster_round: ClusterRound) -> None:
        size = len(domain.ctas) * domain.grid.stride
        live_count = int(self.state.live[domain.first_thread : domain.first_thread + size].sum())
        if len(cluster_round.arrivals) < live_count or not cluster_round.arrivals >= self.list_live_threads(domain):
            return
        cluster_round.last_stamp, cluster_round.stamp = cluster_round.stamp, None
        cluster_round.arrivals = set()

    def list_live_threads(self, domain: Domain) -> set[int]:
        grid = domain.grid
        slots = [slot for slot, occupant in enumerate(grid.domain_of_slot) if occupant is domain]
        return {thread for slot in slots for thread in self._list_live(grid, slot).tolist()}

    def cluster_wait(self, group: Group, place: Place, sem: Sem = Sem.ACQUIRE) -> None:
        """Record that `barrier.cluster.wait` returned."""
        state, threads = self.state, group.threads
        cluster_round = self.clusters.setdefault(state.find_domain(group.first).number, ClusterRound())
        self._make_room()
        self._report_out_of_step(
            threads[self.arrivals[threads] <= self.waits[threads]], place, "a wait without an arrive"
        )
        self.waits[threads] += 1
        self._latest[threads] = self._number_place(place)
        state.rounds[threads] += 1
        if cluster_round.last_stamp is not None:
            kinds = range(8) if sem.acquires else RELAXED
            state.clocks.acquire(threads, cluster_round.last_stamp, kinds)

    def complete_cluster_after_exit(self, domain: Domain) -> None:
        """Complete the round of a cluster that waited only for exited threads."""
        cluster_round = self.clusters.get(domain.number)
        if cluster_round is not None and cluster_round.arrivals:
            self._complete_cluster(domain, cluster_round)

    def note_init(self, thread: int, init_ref: int) -> None:
        """Record the initialization of an mbarrier, which other CTAs see only after a cluster barrier. Another one of
        the same mbarrier has another reference."""
        self.inits.setdefault(thread, set()).add(init_ref)

    def fence_inits(self, group: Group) -> None:
        """Execute `fence.mbarrier_init.release.cluster`."""
        for thread in group.threads.tolist():
            if thread in self.inits:
                self.fenced_inits.setdefault(thread, set()).update(self.inits.pop(thread))

    def is_init_visible(self, thread: int, init_ref: int) -> bool:
        """Tell whether a thread has passed the cluster barrier that released an initialization."""
        cluster_round = self.clusters.get(self.state.find_domain(thread).number)
        init_round = cluster_round.init_rounds.get(init_ref) if cluster_round is not None else None
        return init_round is not None and int(self.waits[thread]) >= init_round


def _format_count(count: int | None) -> str:
    return "of the whole CTA" if count is None else str(count)
