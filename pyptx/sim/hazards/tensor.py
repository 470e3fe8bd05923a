"""`tcgen05`: allocation of tensor memory, products and copies issued by threads, loads and stores by warps."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pyptx.sim import rules
from pyptx.sim.base.events import Access, Bytes, Family, Ints, Movement, Place, Space, tensor_cells
from pyptx.sim.hazards.groups import Group
from pyptx.sim.hazards.mbarriers import Barrier, MBarriers
from pyptx.sim.hazards.rows import Rows, get_row_bytes, make_rows
from pyptx.sim.hazards.stamps import ORDER, RAN
from pyptx.sim.hazards.state import State
from pyptx.sim.hazards.tiles import Ready, Tiles


@dataclass(slots=True)
class Columns:
    """The allocations of one CTA's tensor memory, by first column."""

    allocations: dict[int, tuple[int, Place]] = field(default_factory=dict[int, tuple[int, Place]])
    smallest: int = 512
    has_relinquished: bool = False


@dataclass(slots=True)
class Commit:
    """A `tcgen05.commit` that has not arrived yet."""

    thread: int
    place: Place
    records: list[int]
    barriers: list[Barrier]
    column: int


class TensorMemory:
    """The tensor memory of all CTAs."""

    def __init__(self, state: State, tiles: Tiles, mbarriers: MBarriers) -> None:
        self.state, self.tiles, self.mbarriers = state, tiles, mbarriers
        self.columns: dict[tuple[int, int], Columns] = {}
        self._pending: dict[int, list[int]] = {}
        self._issued: dict[tuple[int, int], dict[int, Place]] = {}
        self._commits: dict[int, Commit] = {}
        self._moves: dict[tuple[int, Family], list[int]] = {}
        self._cta_group: dict[int, tuple[int, Place]] = {}
        self._accesses: dict[tuple[Place, Space, int, bool, Family, Movement], Access] = {}

    def _make_access(
        self, place: Place, space: Space, length: int, writes: bool, family: Family, movement: Movement = Movement.NONE
    ) -> Access:
        key = (place, space, length, writes, family, movement)
        access = self._accesses.get(key)
        if access is None:
            access = Access(place, space, length, writes, not writes, family=family, movement=movement)
            self._accesses[key] = access
        return access

    def forget(self, threads: Ints) -> None:
        """Forget threads whose numbers are reused."""
        for thread in threads.tolist() if self._pending else ():
            self._pending.pop(thread, None)
        for key in [key for key in self._moves if key[0] * 32 in threads]:
            del self._moves[key]

    # Allocation

    def _locate_cta(self, thread: int) -> tuple[int, int]:
        grid = self.state.find_grid(thread)
        return grid.number, grid.find_slot(thread)

    def alloc(
        self, group: Group, place: Place, column: int, columns: int, cta_group: int = 1, exclusive: bool = False
    ) -> None:
        """Record that `tcgen05.alloc` returned columns from `column`."""
        thread = group.first
        self._check_cta_group(place, thread, cta_group)
        mine = self.columns.setdefault(self._locate_cta(thread), Columns())
        legal = 32 <= columns <= 512 and (columns % 32 == 0 if exclusive else columns & (columns - 1) == 0)
        wrong = (
            f"{columns} columns"
            if not legal
            else f"{columns} columns after a smaller allocation"
            if mine.allocations and columns > mine.smallest
            else "after relinquish_alloc_permit"
            if mine.has_relinquished
            else "not by one whole warp"
            if len(group.warps) != 1 or int(group.masks[0]) != 0xFFFFFFFF
            else ""
        )
        if wrong:
            self.state.report(rules.ALLOC_SIZE, place, wrong, thread=thread)
        mine.allocations[column] = (columns, place)
        mine.smallest = min(mine.smallest, columns)
        grid = self.state.find_grid(thread)
        grid.tensor.clear(grid.find_tensor_base(grid.find_slot(thread)) + column * 128, columns * 128)

    def write_address(self, group: Group, place: Place, address: int) -> None:
        """Record that `tcgen05.alloc` writes the address of its columns to shared memory: a weak store that only its
        own warp may read without a barrier."""
        state, first = self.state, group[[0]]
        access = self._make_access(place, Space.SHARED, 4, True, Family.THREAD)
        operation, column = (
            state.begin_operation(),
            state.find_channel(state.find_domain(group.first), "alloc", group.first),
        )
        state.set_column(operation, column)
        self.tiles.memory.access(access, first, np.array([address], np.int64), operation=operation)
        state.finish(operation)
        state.clocks.learn(group.threads, column, state.clocks.tick(), [*ORDER, RAN])

    def relinquish(self, group: Group) -> None:
        """Execute `tcgen05.relinquish_alloc_permit`."""
        self.columns.setdefault(self._locate_cta(group.first), Columns()).has_relinquished = True

    def dealloc(self, group: Group, place: Place, column: int, columns: int) -> None:
        """Execute `tcgen05.dealloc`: every use of the columns must be complete."""
        thread = group.first
        mine = self.columns.setdefault(self._locate_cta(thread), Columns())
        allocation = mine.allocations.pop(column, None)
        if allocation is None or allocation[0] != columns:
            detail = f"columns {column}…{column + columns - 1} were not allocated this way"
            self.state.report(rules.DEALLOC, place, detail, thread=thread, other=allocation[1] if allocation else None)
            return
        grid = self.state.find_grid(thread)
        target = tensor_cells(grid.find_tensor_base(grid.find_slot(thread)), column, columns)
        access = self._make_access(place, target.space, target.length, True, Family.THREAD)
        record = self._record(access, thread, 0, 0)
        self.tiles.run(access, np.array([thread], np.int64), target, record)

    def _is_allocated(self, thread: int, column: int, columns: int) -> bool:
        """Tell whether columns are inside an allocation of a thread's CTA."""
        allocations = self.columns.setdefault(self._locate_cta(thread), Columns()).allocations
        return any(start <= column and column + columns <= start + size for start, (size, _) in allocations.items())

    def check_allocated(self, thread: int, place: Place, column: int, columns: int) -> None:
        """Report columns that are not inside an allocation."""
        if not self._is_allocated(thread, column, columns):
            detail = f"columns {column}…{column + columns - 1}"
            self.state.report(rules.NOT_ALLOCATED, place, detail, thread=thread)

    def check_exit(self, grid_number: int, slot: int, place: Place, thread: int) -> None:
        """Report allocations that are not freed when a CTA exits."""
        leftover = self.columns.pop((grid_number, slot), None)
        for column, (columns, alloc_place) in (leftover.allocations if leftover else {}).items():
            detail = f"{columns} columns from {column} were never freed"
            self.state.report(rules.DEALLOC, place, detail, thread=thread, other=alloc_place)
        self._issued.pop((grid_number, slot), None)

    def _check_cta_group(self, place: Place, thread: int, cta_group: int) -> None:
        grid = self.state.find_grid(thread)
        first = self._cta_group.setdefault(grid.number, (cta_group, place))
        if first[0] != cta_group:
            detail = f".cta_group::{cta_group}, elsewhere .cta_group::{first[0]}"
            self.state.report(rules.CTA_GROUP, place, detail, thread=thread, other=first[1])
        peer = grid.find_slot(thread) ^ 1
        if cta_group == 2 and grid.cluster > 1 and not self.state.live[grid.list_threads(peer)].any():
            self.state.report(rules.CTA_PAIR, place, "the peer has exited", thread=thread)

    # The thread that issues

    def _record(self, access: Access, thread: int, column: int, operation: int) -> int:
        life = int(self.state.clocks.life_of[thread >> 5])
        return self.state.records.add_operation(access, life, column, operation, thread & 31)

    def _find_column(self, thread: int) -> int:
        return self.state.find_channel(self.state.find_domain(thread), "tcgen05", thread)

    def operate(
        self,
        thread: int,
        place: Place,
        reads: list[Bytes],
        writes: list[Bytes],
        cta_group: int = 1,
        movement: Movement = Movement.NONE,
    ) -> None:
        """Issue a product or a movement. An accumulator that is added to is both read and written."""
        self._check_cta_group(place, thread, cta_group)
        operation = self.state.begin_operation()
        column = self._find_column(thread)
        threads = np.array([thread], np.int64)
        for parts, writing in ((reads, False), (writes, True)):
            for part in parts:
                access = self._make_access(place, part.space, part.length, writing, Family.TCGEN05, movement)
                record = self._record(access, thread, column, operation)
                self._pending.setdefault(thread, []).append(record)
                self.tiles.run(access, threads, part, record)
        self._issued.setdefault(self._locate_cta(thread), {})[thread] = place

    def operate_all(
        self,
        threads: Ints,
        place: Place,
        reads: list[tuple[Space, Rows]],
        writes: list[tuple[Space, Rows]],
        cta_group: int = 1,
    ) -> None:
        """Issue the products of several threads, which have the same number of rows of granules in each part."""
        ready = self._compare_operations(threads, place, reads, writes, cta_group)
        if ready is None:
            for index, thread in enumerate(threads.tolist()):
                own_reads, own_writes = (_select_share(parts, index, len(threads)) for parts in (reads, writes))
                self.operate(thread, place, own_reads, own_writes, cta_group)
            return
        state, operations = self.state, self.tiles.begin_operations(len(threads))
        every = threads.tolist()
        lives = state.clocks.life_of[threads >> 5]
        columns = np.array([self._find_column(thread) for thread in every], np.int64)
        write_rows = [comparison.rows for comparison in ready if comparison.access.writes]
        for comparison in ready:
            rows_per_thread = len(comparison.rows) // len(threads)
            numbers = state.records.add_operations(
                comparison.access,
                lives.repeat(rows_per_thread),
                columns.repeat(rows_per_thread),
                operations.repeat(rows_per_thread),
                comparison.threads[:, 0] & 31,
            )
            for thread, record in zip(comparison.threads[:, 0].tolist(), numbers.tolist(), strict=True):
                self._pending.setdefault(thread, []).append(record)
            # A read of cells that the same operation writes needs no record.
            if comparison.access.writes or not any(comparison.rows.equals(rows) for rows in write_rows):
                self.tiles.store(comparison, numbers)
        for thread in every:
            self._issued.setdefault(self._locate_cta(thread), {})[thread] = place

    def _compare_operations(
        self,
        threads: Ints,
        place: Place,
        reads: list[tuple[Space, Rows]],
        writes: list[tuple[Space, Rows]],
        cta_group: int,
    ) -> list[Ready] | None:
        """Compare equal operations with earlier accesses. Return None if one may conflict."""
        grid = self.state.find_grid(int(threads[0]))
        if self._cta_group.setdefault(grid.number, (cta_group, place))[0] != cta_group:
            return None
        if cta_group == 2 and grid.cluster > 1:
            living = self.state.live[grid.first_thread : grid.first_thread + grid.slots * grid.stride]
            peers = (threads - grid.first_thread) // grid.stride ^ 1
            if not living.reshape(grid.slots, -1)[peers].any(axis=1).all():
                return None
        comparisons: list[Ready] = []
        for parts, writing in ((reads, False), (writes, True)):
            for space, rows in parts:
                access = self._make_access(place, space, 16, writing, Family.TCGEN05)
                issuers = threads.repeat(len(rows) // len(threads))[:, None]
                shadow = grid.shared if space is Space.SHARED else grid.tensor
                ready = self.tiles.compare(access, issuers, space, rows, shadow)
                if ready is None:
                    return None
                comparisons.append(ready)
        return comparisons

    def commit(self, thread: int, place: Place, barriers: list[int], cta_group: int = 1) -> int:
        """Execute `tcgen05.commit`. Return its number for `land_commit`, due when all earlier operations of the thread
        are complete."""
        self._check_cta_group(place, thread, cta_group)
        issuers = self._issued.get(self._locate_cta(thread), {})
        if thread not in issuers and issuers:
            other_thread, other_place = next(iter(issuers.items()))
            detail = f"the operations were issued by {self.state.describe_thread(other_thread)}"
            self.state.report(rules.FOREIGN_COMMIT, place, detail, thread=thread, other=other_place)
        barrier_lives = [self.mbarriers.find(place, thread, address, "tcgen05.commit") for address in barriers]
        operation, column = self.state.begin_operation(), self._find_column(thread)
        records = list(self._pending.get(thread, []))
        for address in barriers if self.state.find_grid(thread).cluster > 1 else ():
            access = self._make_access(place, Space.SHARED, 8, True, Family.TCGEN05)
            arrival = self._record(access, thread, column, operation)
            self.mbarriers.lifetimes.record_remote(place, thread, Bytes.run(Space.SHARED, address, 8), arrival * 64)
            records.append(arrival)
        live = [barrier for barrier in barrier_lives if barrier is not None]
        self._commits[operation] = Commit(thread, place, records, live, column)
        return operation

    def land_commit(self, commit: int) -> None:
        """Complete the operations that a commit tracks."""
        operations = self._commits.pop(commit)
        records, now = self.state.records, self.state.clocks.now
        commit_records = set(operations.records)
        records.complete(operations.records, now)
        self._pending[operations.thread] = [
            r for r in self._pending.get(operations.thread, []) if r not in commit_records
        ]
        for barrier in operations.barriers:
            self.mbarriers.arrive_by_operation(barrier, operations.place, operations.thread, [operations.column], True)

    # Warps

    def move(
        self, group: Group, place: Place, column: int, columns: int, lane: int, lanes: int, *, stores: bool
    ) -> None:
        """Issue `tcgen05.ld` or, with `stores`, `tcgen05.st` by one warp."""
        thread = group.first
        grid = self.state.find_grid(thread)
        quarter = ((thread - grid.first_thread) % grid.stride >> 5) % 4
        if lane >> 5 != quarter:
            detail = f"lanes {lane}…{lane + lanes - 1} by the warp of quarter {quarter}"
            self.state.report(rules.WRONG_QUARTER, place, detail, thread=thread)
            lane = 32 * quarter + lane % 32
        self.check_allocated(thread, place, column, columns)
        family = Family.TMEM_ST if stores else Family.TMEM_LD
        cells = tensor_cells(grid.find_tensor_base(grid.find_slot(thread)), column, columns, lane, lanes)
        access = self._make_access(place, cells.space, cells.length, stores, family)
        operation = self.state.begin_operation()
        stream = self.state.find_channel(self.state.find_domain(thread), family, thread >> 5)
        record = self._record(access, thread, stream, operation)
        self._moves.setdefault((thread >> 5, family), []).append(record)
        self.tiles.run(access, np.array([thread], np.int64), cells, record)

    def move_all(
        self, groups: list[Group], place: Place, column: Ints, columns: int, lane: Ints, lanes: int, *, stores: bool
    ) -> None:
        """Issue the loads or stores of several warps, each with its column and lane."""
        threads = np.array([group.first for group in groups], np.int64)
        family = Family.TMEM_ST if stores else Family.TMEM_LD
        ready = self._compare_moves(threads, place, column, columns, lane, lanes, family) if len(groups) > 1 else None
        if ready is None:
            for group, first, low in zip(groups, column.tolist(), lane.tolist(), strict=True):
                self.move(group, place, first, columns, low, lanes, stores=stores)
            return
        state, warps = self.state, (threads >> 5).tolist()
        streams = [state.find_channel(state.find_domain(warp * 32), family, warp) for warp in warps]
        lives, operations = state.clocks.life_of[threads >> 5], self.tiles.begin_operations(len(groups))
        numbers = state.records.add_operations(
            ready.access, lives, np.array(streams, np.int64), operations, threads & 31
        )  # fmt: skip
        for warp, record in zip(warps, numbers.tolist(), strict=True):
            self._moves.setdefault((warp, family), []).append(record)
        self.tiles.store(ready, numbers)

    def _compare_moves(
        self, threads: Ints, place: Place, column: Ints, columns: int, lane: Ints, lanes: int, family: Family
    ) -> Ready | None:
        """Compare equal loads or stores with earlier accesses. Return None if one may conflict."""
        grid = self.state.find_grid(int(threads[0]))
        slot, within = np.divmod(threads - grid.first_thread, grid.stride)
        quarter, first, last = (within >> 5) % 4, lane // 16, (lane + lanes - 1) // 16
        height = int(last[0] - first[0]) + 1
        if (lane >> 5 != quarter).any() or (lane % 32 + lanes > 32).any() or (last - first + 1 != height).any():
            return None
        if not all(map(self._is_allocated, threads.tolist(), column.tolist(), [columns] * len(threads))):
            return None
        starts = (
            grid.find_tensor_base(1) * slot[:, None]
            + ((column[:, None] + np.arange(columns)) * 8 + first[:, None]) * 16
        )
        access = self._make_access(place, Space.TENSOR, height * 16, family is Family.TMEM_ST, family)
        return self.tiles.compare(
            access, threads[:, None], Space.TENSOR, make_rows(starts, height * 16), grid.tensor
        )  # fmt: skip

    def wait_all(self, groups: list[Group], *, stores: bool) -> None:
        """Execute the waits of several warps."""
        family = Family.TMEM_ST if stores else Family.TMEM_LD
        state, warps = self.state, [group.first >> 5 for group in groups]
        now = state.clocks.tick()
        for warp in warps:
            state.records.complete(self._moves.pop((warp, family), []), now)
        streams = [state.find_channel(state.find_domain(warp * 32), family, warp) for warp in warps]
        state.clocks.learn_each(groups, np.array(streams, np.int64), now)

    def wait(self, group: Group, *, stores: bool) -> None:
        """Execute `tcgen05.wait::ld` or, with `stores`, `tcgen05.wait::st`."""
        self.wait_all([group[group.warp_index == index] for index in range(len(group.warps))], stores=stores)

    def fence(self, group: Group, *, before: bool) -> None:
        """Execute `tcgen05.fence::before_thread_sync` or `::after_thread_sync`."""
        self.state.clocks.fence_tensor_memory(group.threads, before)


def _select_share(parts: list[tuple[Space, Rows]], index: int, count: int) -> list[Bytes]:
    """Return the bytes of one of `count` threads in parts with rows for all of them."""
    shares = [(space, rows, len(rows) // count) for space, rows in parts]
    return [
        get_row_bytes(space, rows, row)
        for space, rows, size in shares
        for row in range(index * size, index * size + size)
    ]
