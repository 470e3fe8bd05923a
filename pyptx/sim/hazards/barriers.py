"""Barriers of a CTA, a warp and a cluster: who has arrived, who waits, what they release, and their misuse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from pyptx.sim import rules
from pyptx.sim.base.events import Ints, Place, Scope, Sem
from pyptx.sim.hazards.clocks import CTA, RELAXED, WARP, WIDE_GLOBAL, WIDE_SHARED, Stamp, joined
from pyptx.sim.hazards.groups import Group
from pyptx.sim.hazards.publishing import release_each
from pyptx.sim.hazards.state import Domain, Grid, State

BarKind = Literal["sync", "arrive", "red"]


@dataclass(slots=True)
class Round:
    """One round of a CTA barrier in progress."""

    slot: int
    grid: Grid
    number: int
    count: int | None
    kind: BarKind
    place: Place
    waiting: list[Ints] = field(default_factory=list[Ints])
    warps: dict[int, Place] = field(default_factory=dict[int, Place])
    handed: Stamp | None = None


@dataclass(slots=True)
class ClusterRound:
    """The cluster barrier of one cluster."""

    arrived: set[int] = field(default_factory=set[int])
    places: dict[int, Place] = field(default_factory=dict[int, Place])
    stamp: Stamp | None = None
    complete: int = 0
    done: Stamp | None = None
    initialised: set[int] = field(default_factory=set[int])
    published: set[int] = field(default_factory=set[int])


class Barriers:
    """The barriers of all resident CTAs and clusters."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.rounds: dict[tuple[int, int, int], Round] = {}
        self.clusters: dict[int, ClusterRound] = {}
        self.arrivals, self.waits = np.zeros(0, np.int32), np.zeros(0, np.int32)
        self._latest = np.zeros(0, np.int32)
        self._places: list[Place | None] = [None]
        """Where each thread last arrived or waited at the barrier of its cluster: the number of a place."""
        self.fenced_inits: dict[int, set[int]] = {}
        self.inits: dict[int, set[int]] = {}

    def forget(self, grid: Grid, slots: Sequence[int], threads: Ints) -> None:
        """Forget the threads of CTAs that begin in reused slots."""
        self._make_room()
        self.arrivals[threads] = self.waits[threads] = self._latest[threads] = 0
        for held in (self.fenced_inits, self.inits):
            for thread in threads.tolist() if held else ():
                held.pop(thread, None)
        for key in [key for key in self.rounds if key[0] == grid.number and key[1] in slots]:
            del self.rounds[key]

    # Within a CTA

    def bar(self, group: Group, place: Place, number: int, count: int | None, kind: BarKind) -> list[int]:
        """`bar.sync`, `.arrive`, `.red` by whole warps. Return the released threads."""
        released: list[int] = []
        grid = self.state.grid_of(group.first)
        if count is None and kind == "sync" and not self.rounds and 0 <= number < 16 and self._is_whole(group, grid):
            self.state.clocks.synchronise_ctas(group, grid.first_thread, grid.stride)
            return group.listed
        if kind == "sync" and count is not None and not self.rounds and 0 <= number < 16:
            members = group.ctas(grid.first_thread, grid.stride).members
            if len(members) > 1 and self._complete_parts(grid, members, count) and self._synchronise_each(members):
                return group.threads.tolist()
        first, last = grid.slot_of(int(group.warps[0]) * 32), grid.slot_of(int(group.warps[-1]) * 32)
        if first == last:
            return self._arrive(grid, first, group.threads, group.warps, place, number, count, kind)
        slots = (group.threads - grid.first_thread) // grid.stride
        for slot in range(first, last + 1):
            mine = group.threads[slots == slot]
            if len(mine):
                released += self._arrive(grid, slot, mine, np.unique(mine >> 5), place, number, count, kind)
        return released

    def _complete_parts(self, grid: Grid, members: list[Ints], count: int) -> bool:
        """Tell whether the barrier's count of threads of each CTA is here, in whole warps, and not all of the CTA."""
        if count <= 0 or count % 32 or any(len(mine) != count for mine in members):
            return False
        live = self.state.live.reshape(-1, 32)
        for mine in members:
            warps, first = np.unique(mine >> 5), grid.thread(grid.slot_of(int(mine[0]))) >> 5
            if len(warps) * 32 != count or int(live[first : first + (grid.stride >> 5)].sum()) <= count:
                return False
        return True

    def _synchronise_each(self, members: list[Ints]) -> bool:
        """Synchronize the threads of each CTA; return False, with nothing done, if they need separate handling."""
        clocks = self.state.clocks
        stamps = release_each(clocks, members)
        for mine, stamp in zip(members, stamps or (), strict=stamps is not None):
            clocks.acquire(mine, stamp)
            clocks.join_lanes(mine)
        return stamps is not None

    def _is_whole(self, group: Group, grid: Grid) -> bool:
        """Tell whether all live threads of some CTAs are here."""
        state = self.state
        if group.whole_at != state.clocks.version:
            group.whole_at = state.clocks.version
            here = [int(members[0]) for members in group.ctas(grid.first_thread, grid.stride).members]
            slots = np.array([grid.slot_of(thread) for thread in here])
            living = state.live[grid.first_thread : grid.first_thread + grid.slots * grid.stride]
            group.whole = len(group) == int(living.reshape(grid.slots, -1)[slots].sum())
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
        now = self.rounds.get(key)
        if now is None:
            now = self.rounds[key] = Round(slot, grid, number, count, kind, place)
        elif (now.count or self._count_all(grid, slot)) != (count or self._count_all(grid, slot)):
            detail = f"barrier {number} began with count {_format_count(now.count)}, here {_format_count(count)}"
            state.report(rules.BARRIER_COUNT, place, detail, thread=first, other=now.place)
        if (now.kind == "red") != (kind == "red"):
            state.report(rules.BARRIER_MIXED, place, f"barrier {number}: bar.{kind}", thread=first, other=now.place)
        for warp in warps.tolist():
            if warp in now.warps:
                detail = f"barrier {number} before its round is complete"
                state.report(rules.BARRIER_TWICE, place, detail, thread=warp * 32, other=now.warps[warp])
            now.warps[warp] = place
        if kind == "arrive":
            stamp = state.clocks.release(threads)
            now.handed = stamp if now.handed is None else now.handed.merge(stamp)
        else:
            now.waiting.append(threads)
        return self._complete(key, now)

    def _complete(self, key: tuple[int, int, int], now: Round) -> list[int]:
        first = now.grid.thread(now.slot)
        live = self.state.live[first : first + now.grid.stride]
        needed = (now.count or self._count_all(now.grid, now.slot)) // 32
        if len(now.warps) < needed:
            return []
        del self.rounds[key]
        if not now.waiting:
            return []
        clocks = self.state.clocks
        threads = now.waiting[0] if len(now.waiting) == 1 else np.concatenate(now.waiting)
        threads = threads[self.state.live[threads]]
        if not len(threads):
            return []
        if now.handed is None:
            clocks.synchronise(threads, CTA if len(threads) == int(live.sum()) else None)
        else:
            clocks.acquire(threads, now.handed)
            clocks.synchronise(threads, None)
        return threads.tolist()

    def _count_all(self, grid: Grid, slot: int) -> int:
        """Return the count of a barrier without one: the CTA's threads, in whole warps that have not exited."""
        first = grid.thread(slot)
        return int(self.state.live[first : first + grid.stride].reshape(-1, 32).any(axis=1).sum()) * 32

    def _list_live(self, grid: Grid, slot: int) -> Ints:
        threads = grid.all_threads(slot)
        return threads[self.state.live[threads]]

    def warp_sync(self, group: Group, place: Place, mask: int) -> None:
        """`bar.warp.sync` by all participating lanes of the mask, one warp at a time."""
        state = self.state
        for index, warp in enumerate(group.warps.tolist()):
            threads = group.threads[group.warp_index == index]
            have = int(group.masks[index])
            alive = state.live[warp * 32 : warp * 32 + 32]
            if have & ~mask:
                lane = (have & ~mask).bit_length() - 1
                detail = f"lane {lane} executes with mask 0x{mask:08x}"
                state.report(rules.NOT_IN_MASK, place, detail, thread=warp * 32 + lane)
            gone = mask & ~have & ~int(sum(1 << lane for lane in range(32) if alive[lane]))
            if gone:
                detail = f"mask 0x{mask:08x} includes exited lanes 0x{gone:08x}"
                state.report(rules.EXITED_LANES, place, detail, thread=int(threads[0]))
            state.clocks.synchronise(threads, WARP if len(threads) == int(alive.sum()) else None)

    def exited(self, grid: Grid, slot: int) -> list[int]:
        """Complete barriers that only waited for threads of a CTA that have exited."""
        released: list[int] = []
        for key, now in list(self.rounds.items()):
            if key[:2] == (grid.number, slot) and now.count is None:
                released += self._complete(key, now)
        return released

    # Of a cluster

    def cluster_arrive(self, group: Group, place: Place, sem: Sem = Sem.RELEASE) -> bool:
        """`barrier.cluster.arrive`. Return whether the round is complete."""
        state, threads = self.state, group.threads
        domain = state.domain_of(group.first)
        now = self.clusters.setdefault(domain.number, ClusterRound())
        self._make_room()
        self._report_out_of_step(
            threads[self.arrivals[threads] > self.waits[threads]], place, "a second arrive without a wait"
        )
        self.arrivals[threads] += 1
        self._latest[threads] = self._number_place(place)
        now.arrived |= group.members
        now.places.update(dict.fromkeys(group.members, place))
        for held in (self.fenced_inits, self.inits) if sem.releases else (self.fenced_inits,):
            for thread in held.keys() & group.members if held else ():
                now.initialised |= held.pop(thread)
        stamp = state.clocks.publish(threads)
        if not sem.releases:
            keep = stamp.known[RELAXED].copy()
            stamp.known[:] = 0
            stamp.known[RELAXED] = keep
            stamp.foreign = {}
            for held in (state.fenced[t] for t in threads.tolist() if t in state.fenced):
                covered = held.stamp.copy()
                if held.scope < Scope.CLUSTER:
                    covered.known[[WIDE_SHARED, WIDE_GLOBAL]] = 0
                stamp = stamp.merge(covered)
        state.clocks.tick()
        now.stamp = joined(now.stamp, stamp)
        return self._complete_cluster(domain, now)

    def _report_out_of_step(self, wrong: Ints, place: Place, detail: str) -> None:
        """Report threads that are out of step, with the last action of each."""
        for thread in wrong.tolist():
            other = self._places[int(self._latest[thread])]
            self.state.report(rules.CLUSTER_BARRIER, place, detail, thread=thread, other=other)

    def _number_place(self, place: Place) -> int:
        """Return the number of a place."""
        if place not in self._places:
            self._places.append(place)
        return self._places.index(place)

    def _make_room(self) -> None:
        """Extend the counts to all threads."""
        more = len(self.state.live) - len(self.arrivals)
        if more:
            self.arrivals, self.waits, self._latest = (
                np.append(held, np.zeros(more, np.int32)) for held in (self.arrivals, self.waits, self._latest)
            )

    def _complete_cluster(self, domain: Domain, now: ClusterRound) -> bool:
        size = len(domain.ctas) * domain.grid.stride
        living = int(self.state.live[domain.first_thread : domain.first_thread + size].sum())
        if len(now.arrived) < living or not now.arrived >= self.live_of(domain):
            return False
        now.complete += 1
        now.done, now.stamp = now.stamp, None
        now.arrived, now.places = set(), {}
        now.published |= now.initialised
        now.initialised = set()
        return True

    def live_of(self, domain: Domain) -> set[int]:
        grid = domain.grid
        slots = [slot for slot, held in enumerate(grid.domain_of_slot) if held is domain]
        return {thread for slot in slots for thread in self._list_live(grid, slot).tolist()}

    def cluster_may_pass(self, thread: int) -> bool:
        """Tell whether `barrier.cluster.wait` of this thread would return."""
        now = self.clusters.get(self.state.domain_of(thread).number)
        return now is not None and now.complete > self._count_waits(thread)

    def _count_waits(self, thread: int) -> int:
        return int(self.waits[thread]) if thread < len(self.waits) else 0

    def cluster_wait(self, group: Group, place: Place, sem: Sem = Sem.ACQUIRE) -> None:
        """`barrier.cluster.wait` that returned."""
        state, threads = self.state, group.threads
        now = self.clusters.setdefault(state.domain_of(group.first).number, ClusterRound())
        self._make_room()
        self._report_out_of_step(
            threads[self.arrivals[threads] <= self.waits[threads]], place, "a wait without an arrive"
        )
        self.waits[threads] += 1
        self._latest[threads] = self._number_place(place)
        state.rounds[threads] += 1
        if now.done is not None:
            everything = range(8) if sem.acquires else RELAXED
            state.clocks.acquire(threads, now.done, everything)

    def cluster_exited(self, domain: Domain) -> bool:
        """Account for exited threads of a cluster; return whether its round is now complete."""
        now = self.clusters.get(domain.number)
        return bool(now and now.arrived and self._complete_cluster(domain, now))

    def note_init(self, thread: int, barrier: int) -> None:
        """Record the initialization of an mbarrier: other CTAs need a cluster barrier to see it."""
        self.inits.setdefault(thread, set()).add(barrier)

    def fence_inits(self, group: Group) -> None:
        """`fence.mbarrier_init.release.cluster`."""
        for thread in group.threads.tolist():
            if thread in self.inits:
                self.fenced_inits.setdefault(thread, set()).update(self.inits.pop(thread))

    def init_published(self, thread: int, barrier: int) -> bool:
        """Tell whether a thread has passed a cluster barrier that released an mbarrier's initialization."""
        now = self.clusters.get(self.state.domain_of(thread).number)
        return now is not None and barrier in now.published and self._count_waits(thread) > 0


def _format_count(count: int | None) -> str:
    return "of the whole CTA" if count is None else str(count)
