"""Asynchronous copies: bulk loads and stores, `cp.async`, `st.async`. Which are in flight, and who has observed
their completion."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pyptx.sim import rules
from pyptx.sim.base.events import Access, Bytes, Family, Ints, Place, Scope, Sem, Space
from pyptx.sim.hazards.clocks import CROSSED_SHARED, NEVER, RAN, SEEN, WIDE_GLOBAL, WIDE_SHARED
from pyptx.sim.hazards.groups import Group
from pyptx.sim.hazards.lifetimes import Lifetimes
from pyptx.sim.hazards.mbarriers import Barrier, MBarriers
from pyptx.sim.hazards.state import State
from pyptx.sim.hazards.tiles import Tiles


@dataclass(slots=True)
class Load:
    """A bulk load in flight, with one write and one mbarrier per destination CTA."""

    thread: int
    place: Place
    writes: list[tuple[int, Barrier | None, int]]
    sources: list[int]
    slots: list[int]


@dataclass(slots=True)
class Stores:
    """The bulk groups of one thread: (records of sources, records of destinations) per group."""

    open: tuple[list[int], list[int]] = field(default_factory=lambda: ([], []))
    groups: list[tuple[list[int], list[int]]] = field(default_factory=list[tuple[list[int], list[int]]])
    place: Place | None = None


@dataclass(slots=True)
class CpAsync:
    """One `cp.async` instruction: a record per warp, and the number of the warp's group that it belongs to."""

    records: Ints
    warps: Ints
    groups: Ints


@dataclass(frozen=True, slots=True)
class Landing:
    """A bulk load that has landed, and the mbarrier phase that counts its bytes."""

    record: int
    place: Place
    barrier: Barrier | None
    phase: int

    def is_waited_for_elsewhere(self, slot: int) -> bool:
        """Tell whether its mbarrier is outside the CTA in `slot` and a thread has waited for it: the leader of a pair
        waits for both halves of an operand."""
        if self.barrier is None or self.barrier.address // self.barrier.grid.shared_stride == slot:
            return False
        return self.barrier.latest_observed >= self.phase


class Copies:
    """The asynchronous copies of all threads."""

    def __init__(self, state: State, tiles: Tiles, mbarriers: MBarriers, lifetimes: Lifetimes) -> None:
        self.state, self.tiles, self.mbarriers, self.lifetimes = state, tiles, mbarriers, lifetimes
        self.memory = tiles.memory
        self.loads: dict[int, Load] = {}
        self.stores: dict[int, Stores] = {}
        self._cp: list[CpAsync] = []
        self._cp_groups = np.zeros(0, np.int64)
        self._landings: dict[tuple[int, int], dict[int, Landing]] = {}
        """Per grid and slot: the last bulk load of each channel that landed in the CTA's shared memory."""
        self._st: dict[int, tuple[Barrier | None, Place, int, int, int]] = {}
        self._accesses: dict[tuple[object, ...], Access] = {}

    def forget(self, threads: Ints) -> None:
        """Forget threads whose numbers are reused."""
        if self._cp:
            begins = np.zeros(len(self._count_committed(threads >> 5)), np.bool_)
            begins[threads >> 5] = True
            for copy in self._cp:
                old = begins[copy.warps]
                copy.records, copy.warps, copy.groups = (part[~old] for part in (copy.records, copy.warps, copy.groups))

    def make_access(
        self, place: Place, space: Space, length: int, family: Family, writes: bool, element: int = 0
    ) -> Access:
        """Return the cached access of a copy to or from one space."""
        key = (place, space, length, family, writes, element)
        entry = self._accesses.get(key)
        if entry is None:
            size, sem = (element, Sem.RELAXED) if element else (length, Sem.WEAK)
            entry = Access(place, space, size, writes, not writes or bool(element), sem, Scope.GPU, family=family)
            self._accesses[key] = entry
        return entry

    def _record(self, access: Access, thread: int, column: int, operation: int) -> int:
        life = int(self.state.clocks.life_of[thread >> 5])
        return self.state.records.add_operation(access, life, column, operation, thread & 31)

    # Bulk copies that signal mbarriers

    def bulk_load(self, thread: int, place: Place, source: Bytes | None, targets: list[tuple[Bytes, int]]) -> int:
        """Issue a bulk copy to shared memory of one or several CTAs, each with the address of its mbarrier.

        Return the operation's number for `land`."""
        state = self.state
        operation = state.begin_operation()
        threads = np.array([thread], np.int64)
        load = Load(thread, place, [], [], [])
        for target, address in targets:
            barrier = self.mbarriers.find(place, thread, address, "signal of a copy")
            column = self.find_column(barrier, thread)
            if source is not None and not load.sources:
                access = self.make_access(place, source.space, source.length, Family.BULK_LOAD, False)
                load.sources.append(self._record(access, thread, column, operation))
                self.lifetimes.record_source(place, thread, source, load.sources[0] * 64)
                self.tiles.run(access, threads, source, load.sources[0])
            access = self.make_access(place, target.space, target.length, Family.BULK_LOAD, True)
            record = self._record(access, thread, column, operation)
            self.lifetimes.record_remote(place, thread, target, record * 64)
            self.lifetimes.end_with(place, thread, address, record * 64)
            self.tiles.run(access, threads, target, record)
            load.writes.append((record, barrier, target.length * len(target.starts)))
            load.slots.append(int(target.starts[0]) // state.find_grid(thread).shared_stride)
            if barrier is not None:
                barrier.copied_bytes += load.writes[-1][2]
        self.loads[operation] = load
        return operation

    def find_column(self, barrier: Barrier | None, thread: int) -> int:
        """Return the clock column of the copies that signal an mbarrier, or of those that signal none."""
        return barrier.column if barrier else self.state.find_channel(self.state.find_domain(thread), "lost")

    def land(self, operation: int, target: int | None = None) -> None:
        """Land a bulk load: its bytes have arrived at one target, by default at all."""
        load = self.loads[operation]
        indices = range(len(load.writes)) if target is None else [target]
        now = self.state.clocks.now
        for index in indices:
            record = load.writes[index][0]
            self.state.records.time[[record, *load.sources]] = now
            self.record_arrival(load, index)
        if all(slot < 0 for slot in load.slots):
            del self.loads[operation]

    def record_arrival(self, load: Load, index: int) -> None:
        """Record that the bytes of a load have arrived at one of its targets, and signal its mbarrier."""
        record, barrier, size = load.writes[index]
        landings = self._landings.setdefault((self.state.find_grid(load.thread).number, load.slots[index]), {})
        phase = barrier.phase if barrier is not None else 0
        landings[int(self.state.records.column[record])] = Landing(record, load.place, barrier, phase)
        load.slots[index] = -1
        if barrier is not None:
            self.mbarriers.complete_bytes(barrier, load.place, load.thread, size)

    # Bulk copies in groups

    def bulk_store(self, thread: int, place: Place, source: Bytes, target: Bytes, reduces: int = 0) -> int:
        """Issue a bulk copy, or a reduction of elements of `reduces` bytes, from shared to global memory."""
        state = self.state
        operation = state.begin_operation()
        domain = state.find_domain(thread)
        stores = self.stores.setdefault(thread, Stores())
        stores.place = place
        threads = np.array([thread], np.int64)
        reading = self.make_access(place, source.space, source.length, Family.BULK_STORE, False)
        writing = self.make_access(place, target.space, target.length, Family.BULK_STORE, True, reduces)
        ends = ((reading, source, "bulk.read", stores.open[0]), (writing, target, "bulk", stores.open[1]))
        for access, part, stream, records in ends:
            record = self._record(access, thread, state.find_channel(domain, stream, thread), operation)
            records.append(record)
            self.tiles.run(access, threads, part, record)
        return operation

    def commit_bulk(self, group: Group, place: Place) -> None:
        """Execute `cp.async.bulk.commit_group`."""
        for stores in self._select_stores(group).values():
            stores.groups.append(stores.open)
            stores.open = ([], [])

    def _select_stores(self, group: Group) -> dict[int, Stores]:
        """Return the bulk groups of the threads that have issued a store."""
        if len(self.stores) < len(group):
            mine = group.members
            return {thread: stores for thread, stores in self.stores.items() if thread in mine}
        return {thread: self.stores[thread] for thread in group.threads.tolist() if thread in self.stores}

    def wait_bulk(self, group: Group, place: Place, pending: int, read: bool) -> None:
        """Record that `cp.async.bulk.wait_group{.read}` returned."""
        clocks, records = self.state.clocks, self.state.records
        for thread, stores in self._select_stores(group).items():
            complete_groups = stores.groups[: max(0, len(stores.groups) - pending)]
            now = clocks.tick()
            domain = self.state.find_domain(thread)
            threads = np.array([thread], np.int64)
            for sources, targets in complete_groups:
                records.complete(sources if read else sources + targets, now)
            if complete_groups:
                clocks.learn(threads, self.state.find_channel(domain, "bulk.read", thread), now)
            if complete_groups and not read:
                # An async read by another CTA still needs a proxy fence.
                kinds = [SEEN, CROSSED_SHARED, WIDE_SHARED, WIDE_GLOBAL, RAN]
                clocks.learn(threads, self.state.find_channel(domain, "bulk", thread), now, kinds)

    def list_unfinished(self) -> set[int]:
        """Return the numbers of the bulk copies in flight."""
        records = self.state.records
        operations = set(self.loads)
        for stores in self.stores.values():
            for sources, _ in (*stores.groups, stores.open):
                operations |= {int(records.operation[r]) for r in sources if records.time[r] == NEVER}
        return operations

    def pop_unread_store(self, thread: int) -> Place | None:
        """Remove a thread's bulk groups; return the place of a store whose source may still be read, or None."""
        stores = self.stores.pop(thread, None)
        if stores is None:
            return None
        records = [record for group in (*stores.groups, stores.open) for record in group[0]]
        return stores.place if any(self.state.records.time[record] == NEVER for record in records) else None

    # cp.async

    def cp_async(
        self, group: Group, target: Access, targets: Ints, source: Access | None = None, sources: Ints | None = None
    ) -> None:
        """Issue `cp.async` by each thread. Both accesses have the family CP_ASYNC."""
        operation = self.state.begin_operation()
        if source is not None and sources is not None:
            self.memory.access(source, group, sources, operation=operation)
        self.memory.access(target, group, targets, operation=operation)
        records = np.array(self.state.unfinished.pop(operation, ()), np.int64)
        if len(records):
            warps = self.state.records.get_warps(records).astype(np.int64)
            self._cp.append(CpAsync(records, warps, self._count_committed(warps)[warps]))

    def _count_committed(self, warps: Ints) -> Ints:
        """Return the number of committed groups of every warp, with entries for these."""
        missing = int(warps.max()) + 1 - len(self._cp_groups)
        if missing > 0:
            self._cp_groups = np.concatenate([self._cp_groups, np.zeros(missing, np.int64)])
        return self._cp_groups

    def commit_cp(self, group: Group) -> None:
        """Execute `cp.async.commit_group`."""
        self._count_committed(group.warps)[group.warps] += 1

    def wait_cp(self, group: Group, pending: int = 0, everything: bool = False) -> None:
        """Execute `cp.async.wait_group` or, with `everything`, `cp.async.wait_all`."""
        if self._cp:
            limit = np.full(len(self._count_committed(group.warps)), -1)
            limit[group.warps] = NEVER if everything else self._cp_groups[group.warps] - pending
            self._finish_cp(limit)
        self.state.clocks.record_copy_wait(group.threads)
        self.state.clocks.tick()

    def _finish_cp(self, limit: Ints) -> None:
        """Complete the copies of each warp's groups below its limit."""
        records, now = self.state.records, self.state.clocks.now
        remaining: list[CpAsync] = []
        for copy in self._cp:
            is_complete = copy.groups < limit[copy.warps]
            mine = copy.records[is_complete]
            records.time[mine] = np.minimum(records.time[mine], now)
            if not is_complete.all():
                remaining.append(
                    CpAsync(copy.records[~is_complete], copy.warps[~is_complete], copy.groups[~is_complete])
                )
        self._cp = remaining

    def hold_cp_arrivals(self, group: Group, place: Place, address: int) -> None:
        """Increment the pending count per thread, as `cp.async.mbarrier.arrive` without `.noinc` does."""
        barrier = self.mbarriers.find(place, group.first, address, "arrive of cp.async")
        if barrier is not None:
            barrier.pending += len(group)

    def cp_arrive(self, group: Group, place: Place, address: int, noinc: bool = False) -> None:
        """Complete `cp.async.mbarrier.arrive`: all earlier `cp.async` operations of these threads are complete."""
        barrier = self.mbarriers.find(place, group.first, address, "arrive of cp.async")
        if barrier is None:
            return
        domain = self.state.find_domain(group.first)
        first = self.state.find_copy_columns(domain)
        if self._cp:
            limit = np.full(len(self._count_committed(group.warps)), -1)
            limit[group.warps] = NEVER
            self._finish_cp(limit)
        columns = first + group.threads - domain.first_thread
        self.mbarriers.arrive_by_operation(barrier, place, group.first, columns, False, len(group) if noinc else 0)

    # st.async, red.async

    def st_async(self, group: Group, access: Access, addresses: Ints, barrier: int) -> int:
        """Issue `st.async` or `red.async`, of family ST_ASYNC. Return the operation's number for `land_st`."""
        state, place, thread = self.state, access.place, group.first
        operation = state.begin_operation()
        barrier_life = self.mbarriers.find(place, thread, barrier, "signal of st.async")
        column = state.find_channel(state.find_domain(thread), "st.async", barrier)
        state.set_column(operation, column)
        self.memory.access(access, group, addresses, operation=operation)
        self._report_wrong_cta(group, place, addresses, barrier)
        record = next(iter(state.unfinished.get(operation, ())), 0)
        for issuer, address in zip(group.threads.tolist(), addresses.tolist(), strict=True):
            self.lifetimes.record_remote(place, issuer, Bytes.run(Space.SHARED, address, access.size), record * 64)
        self._st[operation] = (barrier_life, place, thread, access.size * len(group), column)
        return operation

    def _report_wrong_cta(self, group: Group, place: Place, addresses: Ints, barrier: int) -> None:
        """Report threads whose data goes to another CTA than the mbarrier's."""
        grid = self.state.find_grid(group.first)
        barrier_slot, data_slots = barrier // grid.shared_stride, addresses // grid.shared_stride
        wrong = np.flatnonzero(data_slots != barrier_slot)
        if len(wrong):
            first = int(wrong[0])
            detail = (
                f"the data goes to CTA {grid.find_cta(int(data_slots[first]))}, the mbarrier is in CTA "
                f"{grid.find_cta(barrier_slot)}"
            )
            remedy = "map both addresses to the same rank: `mapa` of the data and of the mbarrier"
            thread = int(group.threads[first])
            self.state.report(rules.WRONG_CTA, place, detail, thread=thread, count=len(wrong), help=remedy)

    def check_peer(self, thread: int, place: Place, target: int) -> None:
        """Report a bulk copy between shared memory that stays in the executing CTA."""
        grid = self.state.find_grid(thread)
        slot = target // grid.shared_stride
        if slot == grid.find_slot(thread):
            detail = f"the copy stays in CTA {grid.find_cta(slot)}"
            remedy = "use the address in another CTA (`mapa`), or copy within the CTA by `ld` and `st`"
            self.state.report(rules.WRONG_CTA, place, detail, thread=thread, help=remedy)

    def land_st(self, operation: int) -> None:
        """Land `st.async`: its bytes have arrived."""
        barrier, place, thread, size, column = self._st.pop(operation)
        self.state.finish(operation)
        if barrier is not None:
            self.mbarriers.complete_bytes(barrier, place, thread, size, column, crosses=False)

    def list_landing(self, grid_number: int, slot: int) -> list[Load]:
        """Return the loads in flight to a CTA's shared memory."""
        return [
            load
            for load in self.loads.values()
            if slot in load.slots and self.state.find_grid(load.thread).number == grid_number
        ]

    def signals(self, barrier: Barrier) -> bool:
        """Tell whether a copy in flight will signal a barrier."""
        return any(st_barrier is barrier for st_barrier, *_ in self._st.values()) or any(
            load_barrier is barrier and slot >= 0
            for load in self.loads.values()
            for (_, load_barrier, _), slot in zip(load.writes, load.slots, strict=True)
        )

    def report_landing(self, grid_number: int, slot: int, place: Place, thread: int) -> None:
        """Report loads that land, or may land, after their CTA has exited."""
        for load in self.list_landing(grid_number, slot):
            detail = "no thread of this CTA has waited for the bytes"
            self.state.report(rules.LANDS_AFTER_EXIT, place, detail, thread=thread, other=load.place)
        for landing in self._landings.pop((grid_number, slot), {}).values():
            if not landing.is_waited_for_elsewhere(slot):
                detail = "no other thread has waited for the bytes"
                self.state.report(rules.LANDS_AFTER_EXIT, place, detail, thread=thread, other=landing.place)

    def forget_observed(self, grid_number: int, slot: int, threads: Ints) -> None:
        """Forget the loads to a CTA's shared memory whose completion its exiting threads have observed."""
        landings = self._landings.get((grid_number, slot))
        if not landings:
            return
        clocks = self.state.clocks
        rows, columns = np.unique(clocks.row_of[threads]), np.array(list(landings))
        times = clocks.table[rows[:, None, None], np.array([SEEN, RAN])[:, None], columns].max(axis=(0, 1))
        for column, latest in zip(columns.tolist(), times.tolist(), strict=True):
            if latest >= self.state.records.time[landings[column].record]:
                del landings[column]
