"""mbarrier objects: their lifetime, their phases, and what each phase releases to its observers.

Knows the rules of *mbarrier*, not who moves the bytes that it counts.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

import numpy as np

from pyptx.sim import rules
from pyptx.sim.base.events import Access, Bytes, Clock, Ints, Mask, Place, Scope, Sem, Space, store
from pyptx.sim.hazards.barriers import Barriers
from pyptx.sim.hazards.clocks import (
    BEFORE,
    CROSSED_GLOBAL,
    CROSSED_SHARED,
    KINDS,
    RAN,
    RELAXED,
    SEEN,
    WIDE_GLOBAL,
    WIDE_SHARED,
    Stamp,
    join_stamps,
)
from pyptx.sim.hazards.conflicts import precedes
from pyptx.sim.hazards.groups import Group
from pyptx.sim.hazards.lifetimes import Lifetimes
from pyptx.sim.hazards.memory import Memory
from pyptx.sim.hazards.publishing import release_each
from pyptx.sim.hazards.state import Grid, Release, State
from pyptx.sim.rules import advice

LIMIT = (1 << 20) - 1
_ONE_THREAD = "let one thread execute `mbarrier.init`"
_MOST_VISIBLE = 4096
"""The most cached checks of whether an initialization is visible."""


@dataclass(slots=True)
class Barrier:
    """One mbarrier from init to inval. `phase` is the number of completed phases."""

    grid: Grid
    address: int
    count: int
    pending: int
    place: Place
    init_ref: int
    init_thread: int
    column: int
    first_thread: int
    """The first thread of the cluster."""
    knows_init: Mask
    """Per thread of the grid: whether the initialization is visible to it, as far as checked."""
    arrival_phases: Clock
    """Per thread of the cluster: the phase of its last arrival. A later wait cannot mean an earlier phase."""
    phase: int = 0
    tx: int = 0
    stamp: Stamp | None = None
    far: Stamp | None = None
    far_thread: int = 0
    phase_stamps: dict[int, tuple[Stamp | None, Stamp | None]] = field(
        default_factory=dict[int, tuple[Stamp | None, Stamp | None]]
    )
    times: list[int] = field(default_factory=list[int])
    latest_observed: int = -1
    expect_place: Place | None = None
    expected_bytes: int = 0
    """The bytes that it was told to expect in all phases."""
    earlier_bytes: int = 0
    """Those of completed phases."""
    copied_bytes: int = 0
    """Bytes of all copies that signal it."""
    last_arrivals: dict[int, int] = field(default_factory=dict[int, int])
    """The phases of the last arrivals, by the first of the threads that arrived together."""

    def record_arrivals(self, group: Group, phase: int) -> None:
        """Record that threads arrive in a phase."""
        size, position = len(self.arrival_phases), group.first - self.first_thread
        if len(group) > 1:
            places = group.threads - self.first_thread
            self.arrival_phases[places[(places >= 0) & (places < size)]] = phase
        elif 0 <= position < size:
            self.arrival_phases[position] = phase


class MBarriers:
    """All live mbarriers, by grid and shared address."""

    def __init__(self, state: State, memory: Memory, barriers: Barriers, lifetimes: Lifetimes) -> None:
        self.state, self.memory, self.barriers, self.lifetimes = state, memory, barriers, lifetimes
        self.live: dict[tuple[int, int], Barrier] = {}
        self._init_access: dict[Place, Access] = {}
        self._visible_until: dict[tuple[int, bytes], int] = {}
        """Per initializing thread and set of threads: the time up to which its initializations are visible to them."""

    def find(self, place: Place, thread: int, address: int, doing: str) -> Barrier | None:
        """Return the mbarrier that a thread's operation names, after checking that it is live and visible."""
        state = self.state
        grid = state.find_grid(thread)
        barrier = self.live.get((grid.number, address))
        slot = address // grid.shared_stride
        if slot != grid.find_slot(thread):
            self.lifetimes.record_remote(place, thread, Bytes.run(Space.SHARED, address, 8), 0)
            if not state.live[grid.list_threads(slot)].any():
                return None
        if barrier is None:
            location = state.describe_bytes(Space.SHARED, grid, address, 8)
            state.report(rules.NOT_A_BARRIER, place, f"{doing} on {location}", thread=thread, where=location)
            return None
        if not barrier.knows_init[thread - grid.first_thread]:
            self._check_visible(barrier, place, np.array([thread], np.int64), doing)
        return barrier

    def find_by(self, place: Place, group: Group, address: int, doing: str) -> Barrier | None:
        """Return the mbarrier that an operation of a group names, after the same checks for each thread."""
        barrier = self.find(place, group.first, address, doing)
        if barrier is not None and len(group) > 1:
            self._check_visible(barrier, place, group.threads, doing)
        return barrier

    def _check_visible(self, barrier: Barrier, place: Place, threads: Ints, doing: str) -> None:
        """Report threads to which the initialization is not visible, and remember the others."""
        state, first = self.state, barrier.grid.first_thread
        knows_init = barrier.knows_init[threads - first]
        if knows_init.all():
            return
        unknown = threads[~knows_init]
        # A thread that knows the initializing thread up to a time knows all its initializations until then.
        query, time = (barrier.init_thread, unknown.tobytes()), int(state.records.time[barrier.init_ref >> 6])
        if self._visible_until.get(query, -1) >= time:
            barrier.knows_init[unknown - first] = True
            return
        good = precedes(state, np.full(len(unknown), barrier.init_ref, np.int64), unknown)
        if good.all():
            if len(self._visible_until) >= _MOST_VISIBLE:
                self._visible_until.clear()
            self._visible_until[query] = time
        for index in np.flatnonzero(~good).tolist():
            good[index] = self.barriers.is_init_visible(int(unknown[index]), barrier.init_ref)
        barrier.knows_init[unknown[good] - first] = True
        if not good.all():
            thread = int(unknown[~good][0])
            detail = f"{doing} on {self.describe_barrier(barrier)} before its initialization is visible here"
            count = int((~good).sum())
            state.report(rules.BARRIER_NOT_VISIBLE, place, detail, thread=thread, other=barrier.place, count=count)

    def describe_barrier(self, barrier: Barrier) -> str:
        """Return the name of an mbarrier in the program's terms."""
        return self.state.describe_bytes(Space.SHARED, barrier.grid, barrier.address, 8).removeprefix("8 bytes at ")

    def is_remote(self, barrier: Barrier, thread: int) -> bool:
        return barrier.grid.find_slot(thread) != barrier.address // barrier.grid.shared_stride

    def init(self, thread: int, place: Place, address: int, count: int, limit: int = LIMIT) -> None:
        """Execute `mbarrier.init`."""
        self.init_all([thread], place, [address], count, limit)

    def init_all(self, threads: list[int], place: Place, addresses: list[int], count: int, limit: int = LIMIT) -> None:
        """Execute `mbarrier.init` by several threads, each on its own mbarrier."""
        state = self.state
        grid = state.find_grid(threads[0])
        fresh: list[int] = []
        for index, (thread, address) in enumerate(zip(threads, addresses, strict=True)):
            if not 1 <= count <= limit:
                state.report(rules.COUNT_RANGE, place, f"count {count}", thread=thread)
            old = self.live.get((grid.number, address))
            if old is None:
                fresh.append(index)
                continue
            detail = f"{self.describe_barrier(old)} in phase {old.phase}, {old.pending} arrivals pending"
            help = _ONE_THREAD if old.place == place and old.init_thread != thread else ""
            state.report(rules.REINITIALISED, place, detail, thread=thread, other=old.place, help=help)
            state.records.retire_barrier(old.init_ref >> 6, state.clocks.now)
        access = self._init_access.setdefault(place, store(place, Space.SHARED, 8))
        if fresh:
            # A second initialization is reported above; that it also races is the same mistake.
            self.memory.access(access, Group(np.array(threads, np.int64)[fresh]), np.array(addresses, np.int64)[fresh])
        for thread, address in zip(threads, addresses, strict=True):
            self._begin(grid, thread, place, address, count, access)

    def _begin(self, grid: Grid, thread: int, place: Place, address: int, count: int, access: Access) -> None:
        """Begin the life of an mbarrier."""
        state = self.state
        warp = thread >> 5
        column = warp * 32 - int(state.clocks.first_thread[warp]) + 1
        domain = state.find_domain(thread)
        life = int(state.clocks.life_of[warp])
        record = state.records.add_barrier(access, life, column, thread & 31, state.clocks.now)
        ref = record * 64 + (thread & 31)
        for plane, cells, _ in grid.shared.find_cells(np.array([address]), 8):
            plane.write[cells], plane.odd, plane.barriers = ref, True, True
        channel = state.find_channel(domain, "mbarrier", address, place)
        knows_init = np.zeros(grid.slots * grid.stride, np.bool_)
        knows_init[thread - grid.first_thread] = True
        self.live[grid.number, address] = Barrier(
            grid, address, count, count, place, ref, thread, channel, domain.first_thread, knows_init,
            arrival_phases=np.zeros(grid.cluster * grid.stride, np.int32),
        )  # fmt: skip
        self.barriers.note_init(thread, ref)

    def inval(self, thread: int, place: Place, address: int) -> None:
        """Execute `mbarrier.inval`."""
        barrier = self.find(place, thread, address, "inval")
        if barrier is None:
            return
        self._check_own(barrier, thread, place, "inval")
        if barrier.pending != barrier.count or barrier.tx:
            detail = (
                f"inval in phase {barrier.phase} with {barrier.count - barrier.pending} arrivals and {barrier.tx} bytes"
            )
            self.state.report(rules.REINITIALISED, place, detail, thread=thread, other=barrier.place)
        self.state.records.retire_barrier(barrier.init_ref >> 6, self.state.clocks.now)
        del self.live[barrier.grid.number, address]

    def _check_own(self, barrier: Barrier, thread: int, place: Place, doing: str) -> None:
        if self.is_remote(barrier, thread):
            detail = f"{doing} on {self.describe_barrier(barrier)}"
            self.state.report(rules.REMOTE_OPERATION, place, detail, thread=thread, other=barrier.place)

    def check_own(self, place: Place, thread: int, address: int, doing: str) -> None:
        """Report an operation on another CTA's mbarrier that is legal only on the executing CTA's own."""
        barrier = self.live.get((self.state.find_grid(thread).number, address))
        if barrier is not None:
            self._check_own(barrier, thread, place, doing)

    def arrive(
        self,
        group: Group,
        place: Place,
        address: int,
        *,
        count: int = 1,
        expect: int = 0,
        sem: Sem = Sem.RELEASE,
        scope: Scope = Scope.CTA,
        drop: bool = False,
        no_complete: bool = False,
    ) -> None:
        """Execute `mbarrier.arrive{_drop}{.expect_tx}{.noComplete}` by each thread of the group, on one mbarrier."""
        barrier = self.find_by(place, group, address, "arrive")
        remaining = group.threads
        while barrier is not None and len(remaining):
            # Arrivals beyond the pending count belong to the next phase.
            room = barrier.pending // max(count, 1) or len(remaining)
            arriving = group if len(remaining) == len(group) <= room else Group(remaining[:room])
            self._arrive(barrier, arriving, place, address, count, expect, sem, scope, drop, no_complete)
            remaining = remaining[len(arriving) :]

    def arrive_all(
        self, arrivals: list[tuple[Group, int]], place: Place, *, count: int = 1, expect: int = 0,
        sem: Sem = Sem.RELEASE, scope: Scope = Scope.CTA, drop: bool = False, no_complete: bool = False,
    ) -> None:  # fmt: skip
        """Execute `arrive` by several groups of a grid, each on one mbarrier."""
        if len(arrivals) == 1 or not self._have_room(arrivals, count):
            for group, address in arrivals:
                self.arrive(
                    group, place, address, count=count, expect=expect, sem=sem, scope=scope, drop=drop,
                    no_complete=no_complete,
                )  # fmt: skip
            return
        # Look up all mbarriers before any release: the stamps must include the remote uses that this records.
        barriers = [self.find_by(place, group, address, "arrive") for group, address in arrivals]
        for group, address in arrivals if expect else ():
            self.expect(group, place, address, expect)
        stamps = release_each(self.state.clocks, [group.threads for group, _ in arrivals]) or [None] * len(arrivals)
        for (group, address), barrier, stamp in zip(arrivals, barriers, stamps, strict=True):
            if barrier is not None:
                self._arrive(barrier, group, place, address, count, 0, sem, scope, drop, no_complete, stamp)

    def _have_room(self, arrivals: list[tuple[Group, int]], count: int) -> bool:
        """Tell whether the pending counts of mbarriers cover the arrivals of groups."""
        grid, totals = self.state.find_grid(arrivals[0][0].first).number, dict[int, int]()
        for group, address in arrivals:
            totals[address] = totals.get(address, 0) + len(group) * count
        barriers = {address: self.live.get((grid, address)) for address in totals}
        return all(barrier is not None and totals[address] <= barrier.pending for address, barrier in barriers.items())

    def _arrive(
        self, barrier: Barrier, group: Group, place: Place, address: int, count: int, expect: int, sem: Sem,
        scope: Scope, drop: bool, no_complete: bool, stamp: Stamp | None = None,
    ) -> None:  # fmt: skip
        first = group.first
        if expect:
            self.expect(group, place, address, expect)
        if stamp is None:
            stamp = self.state.clocks.release(group.threads)
        self.contribute(barrier, stamp, first, sem, scope)
        if scope < Scope.CLUSTER and self.is_remote(barrier, first):
            self.state.narrow_arrives[place, barrier.grid.find_slot(first)] = scope
        fences = self.state.fences if not sem.releases else {}
        for fence in (fence for thread in group.threads.tolist() for fence in fences.get(thread, ())):
            self.contribute(barrier, fence.stamp.copy(), fence.thread, Sem.RELEASE, min(scope, fence.scope))
        before = barrier.phase
        barrier.record_arrivals(group, before)
        if not drop and len(group) * count <= barrier.pending:
            self.count_arrivals(barrier, place, first, len(group) * count)
        else:
            for _ in range(len(group)):
                barrier.count -= count * drop
                self.count_arrivals(barrier, place, first, count)
        if no_complete and barrier.phase != before:
            detail = f"`.noComplete` completed phase {before} of {self.describe_barrier(barrier)}"
            self.state.report(rules.TOO_MANY_ARRIVALS, place, detail, thread=first, other=barrier.place)

    def contribute(self, barrier: Barrier, stamp: Stamp, thread: int, sem: Sem, scope: Scope) -> None:
        """Merge the release of an arrival into the current phase."""
        remote = self.is_remote(barrier, thread)
        if not sem.releases:
            clock = stamp.clock[RELAXED].copy()
            stamp.clock[:] = 0
            stamp.clock[RELAXED] = clock
            stamp.foreign = {}
        if remote:
            far = stamp.copy()
            far.clock[[kind for kind in range(KINDS) if kind != WIDE_GLOBAL]] = 0
            stamp.clock[WIDE_GLOBAL] = 0
            if scope < Scope.CLUSTER:
                stamp.clock[WIDE_SHARED] = 0
            else:
                barrier.far = far if barrier.far is None else barrier.far.merge(far)
                barrier.far_thread = thread
        barrier.stamp = join_stamps(barrier.stamp, stamp)

    def count_arrivals(self, barrier: Barrier, place: Place, thread: int, count: int) -> None:
        """Decrement the pending count, and complete the phase if nothing is pending."""
        if barrier.latest_observed < barrier.phase - 1:
            name, last = self.describe_barrier(barrier), barrier.phase - 1
            detail = f"arrive on {name} in phase {barrier.phase}, phase {last} unobserved"
            # A thread that arrives again runs ahead; if it is another one, the count of `mbarrier.init` is too low.
            help = advice.WAIT_FIRST if barrier.last_arrivals.get(thread) == last else ""
            self.state.report(rules.PHASE_UNOBSERVED, place, detail, thread=thread, other=barrier.place, help=help)
            barrier.latest_observed = barrier.phase - 1
        barrier.last_arrivals[thread] = barrier.phase
        if count > barrier.pending:
            balance = f"{barrier.pending} of {barrier.count} pending in phase {barrier.phase}"
            detail = f"{count} more on {self.describe_barrier(barrier)} with {balance}"
            self.state.report(rules.TOO_MANY_ARRIVALS, place, detail, thread=thread, other=barrier.place)
        barrier.pending = max(0, barrier.pending - count)
        self._complete_phase(barrier)

    def expect(self, group: Group, place: Place, address: int, size: int) -> None:
        """Execute `mbarrier.expect_tx` by each thread of the group."""
        barrier = self.find_by(place, group, address, "expect_tx")
        if barrier is None:
            return
        barrier.tx += size * len(group)
        barrier.expected_bytes += size * len(group)
        barrier.expect_place = place
        self._check_range(barrier, place, group.first)
        self._complete_phase(barrier)

    def _check_range(self, barrier: Barrier, place: Place, thread: int) -> None:
        if abs(barrier.tx) > LIMIT:
            detail = f"transaction count {barrier.tx} in phase {barrier.phase} of {self.describe_barrier(barrier)}"
            self.state.report(rules.TRANSACTION_RANGE, place, detail, thread=thread, other=barrier.place)

    def complete_bytes(
        self, barrier: Barrier, place: Place, thread: int, size: int, column: int | None = None, crosses: bool = True
    ) -> None:
        """Complete bytes of the current phase: its observers know the channel's operations up to now.

        `crosses`: the async proxy wrote them, whose completion is an implicit proxy fence.
        """
        kinds = [SEEN, WIDE_SHARED, WIDE_GLOBAL, RAN]
        self._release_completion(
            barrier, column or barrier.column, [*kinds, CROSSED_SHARED, CROSSED_GLOBAL] if crosses else kinds
        )
        barrier.tx -= size
        self._check_range(barrier, place, thread)
        if barrier.pending == 0 and barrier.tx < 0:
            self.state.report(
                rules.BYTES_DIFFER, place, self._describe_bytes(barrier), thread=thread,
                other=barrier.expect_place or barrier.place,
            )  # fmt: skip
        self._complete_phase(barrier)

    def _release_completion(self, barrier: Barrier, column: int | Ints, kinds: list[int]) -> None:
        clocks = self.state.clocks
        width, domain = clocks.table.shape[2], int(clocks.domain_of[barrier.init_thread >> 5])
        stamp = barrier.stamp
        if stamp is None or stamp.domain != domain or stamp.clock.shape[1] < width:
            mine = Stamp(domain, np.zeros((KINDS, width), np.int32), {})
            stamp = barrier.stamp = mine if stamp is None else mine.merge(stamp)
        clock, now = stamp.clock, clocks.tick()
        if isinstance(column, int):
            clock[kinds, column] = now
        else:
            clock[np.array(kinds)[:, None], column] = now

    def arrive_by_operation(
        self,
        barrier: Barrier,
        place: Place,
        thread: int,
        columns: list[int] | Ints,
        implies_fence: bool,
        count: int = 1,
    ) -> None:
        """Execute the arrive of `cp.async.mbarrier.arrive` or `tcgen05.commit`, which implies a before_thread_sync
        fence."""
        order = [SEEN, WIDE_SHARED, WIDE_GLOBAL, RAN]
        kinds = [*order, CROSSED_SHARED, CROSSED_GLOBAL, BEFORE] if implies_fence else order
        self._release_completion(barrier, np.asarray(columns), kinds)
        if count:
            self.count_arrivals(barrier, place, thread, count)

    def _complete_phase(self, barrier: Barrier) -> None:
        if barrier.pending or barrier.tx:
            return
        clocks = self.state.clocks
        self._release_completion(barrier, barrier.column, list(range(KINDS - 1)))
        barrier.times.append(clocks.now - 1)
        barrier.phase_stamps[barrier.phase] = (barrier.stamp, barrier.far)
        barrier.phase_stamps.pop(barrier.phase - 2, None)
        barrier.phase += 1
        barrier.pending, barrier.earlier_bytes = barrier.count, barrier.expected_bytes
        barrier.stamp = barrier.far = None

    def wait(
        self,
        group: Group,
        place: Place,
        address: int,
        parity: int | None = None,
        *,
        phase: int | None = None,
        sem: Sem = Sem.ACQUIRE,
        scope: Scope = Scope.CTA,
    ) -> None:
        """Record that `mbarrier.test_wait` or `try_wait` returned true for these threads."""
        barrier = self.find_by(place, group, address, "wait")
        if barrier is None:
            return
        self._check_own(barrier, group.first, place, "wait")
        last_phase = barrier.phase - 1
        if phase is not None and phase < last_phase:
            last_phase = phase
        if parity is not None:
            self._check_alias(barrier, group, place, parity, last_phase)
        barrier.latest_observed = max(barrier.latest_observed, last_phase)
        stamp, far = barrier.phase_stamps.get(last_phase, (None, None))
        clocks = self.state.clocks
        kinds = range(KINDS) if sem.acquires else RELAXED
        if stamp is not None:
            clocks.acquire(group.threads, stamp, kinds)
        if far is not None and sem.acquires:
            if scope >= Scope.CLUSTER:
                clocks.acquire(group.threads, far)
            else:
                self.state.narrow_waits[place, barrier.grid.find_slot(group.first)] = scope
        if stamp is not None and not sem.acquires:
            for thread in group.threads.tolist():
                releases = [Release(stamp, Scope.SYS, thread)]
                if far is not None and scope >= Scope.CLUSTER:
                    releases.append(Release(far, Scope.CLUSTER, barrier.far_thread))
                self.state.observations.setdefault(thread, {})[Space.SHARED, address] = releases

    def _check_alias(self, barrier: Barrier, group: Group, place: Place, parity: int, actual_phase: int) -> None:
        clocks = self.state.clocks
        row = int(clocks.row_of[group.first])
        last = bisect_right(barrier.times, int(clocks.table[row, RAN, barrier.column])) - 1
        position = group.first - barrier.first_thread
        last = max(
            last, int(barrier.arrival_phases[position]) - 1 if 0 <= position < len(barrier.arrival_phases) else last
        )
        intended_phase = last + 1 if (last + 1) & 1 == parity else last
        if actual_phase >= intended_phase + 2 and not self._knows_arrivals(barrier, row, actual_phase - 1):
            detail = (
                f"the wait for parity {parity} of {self.describe_barrier(barrier)} was for phase {intended_phase} and "
                f"passed on phase {actual_phase}"
            )
            self.state.report(rules.PHASE_ALIAS, place, detail, thread=group.first, other=barrier.place)

    def _knows_arrivals(self, barrier: Barrier, row: int, phase: int) -> bool:
        """Tell whether threads know all arrivals of a phase, if not from the mbarrier itself, then by another way. Then
        they may wait for the next phase without a wait for this one."""
        stamp, clocks = barrier.phase_stamps[phase][0], self.state.clocks
        if stamp is None or stamp.domain != clocks.domain_of[barrier.init_thread >> 5]:
            return False
        arrivals = stamp.clock[RAN].copy()
        arrivals[barrier.column] = 0
        return bool((arrivals <= clocks.make_stamp(row).clock[RAN, : len(arrivals)]).all())

    def list_barriers(self, grid: Grid, slot: int) -> list[Barrier]:
        """Return the live mbarriers of a CTA."""
        low = grid.find_shared_base(slot)
        return [
            b for (number, a), b in self.live.items() if number == grid.number and low <= a < low + grid.shared_stride
        ]

    def check_bytes(self, barrier: Barrier, place: Place) -> None:
        """Report a phase that has all its arrivals but whose expected bytes never completed."""
        if barrier.pending == 0 and barrier.tx:
            detail = self._describe_bytes(barrier)
            self.state.report(rules.BYTES_DIFFER, barrier.expect_place or place, detail, other=barrier.place)

    def _describe_bytes(self, barrier: Barrier) -> str:
        """Say how many bytes the current phase expects and how many have arrived."""
        expected = barrier.expected_bytes - barrier.earlier_bytes
        name = self.describe_barrier(barrier)
        return f"{expected - barrier.tx} bytes arrived in phase {barrier.phase} of {name}, which expects {expected}"

    def explain_bytes(self, thread: int, column: int) -> tuple[str, ...]:
        """Return a note if the copies that signal an mbarrier, which has a clock column in the cluster of a thread,
        have more bytes than it was told to expect."""
        first = self.state.find_domain(thread).first_thread
        barriers = (b for b in self.live.values() if b.column == column and b.first_thread == first)
        barrier = next(barriers, None)
        if barrier is None or barrier.copied_bytes <= barrier.expected_bytes:
            return ()
        place, count = barrier.expect_place, barrier.expected_bytes
        expected = f"{place} has expected {count} bytes" if place else "nothing has expected bytes"
        return (
            f"so far, {expected} for {self.describe_barrier(barrier)}, and copies of {barrier.copied_bytes} bytes "
            "signal it: unless it expects more, its phases complete before their last bytes arrive",
        )
