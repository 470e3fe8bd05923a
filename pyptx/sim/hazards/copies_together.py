"""Equal bulk copies of many threads, usually one per CTA, processed at once if none conflicts.

Otherwise these functions do nothing; `Copies` then processes the copies one by one and reports findings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyptx.sim.base.events import Access, Bytes, Clock, Family, Ints, Place, Runs, Space
from pyptx.sim.hazards.copies import Copies, Load, Stores
from pyptx.sim.hazards.rows import make_rows
from pyptx.sim.hazards.shadow import Shadow
from pyptx.sim.hazards.tiles import Ready, Tiles


@dataclass(frozen=True, slots=True)
class _Global:
    """Accesses to global memory ready to store in its shadow, which may be absent or not yet written."""

    access: Access
    shadow: Shadow | None
    starts: Ints
    length: int
    ready: Ready | None

    def store(self, tiles: Tiles, records: Ints) -> None:
        if self.ready is not None:
            tiles.store(self.ready, records)
        elif self.shadow is not None:
            self.shadow.log_run_readers(self.starts, self.length, (records * 64).astype(np.int32))


def bulk_load_all(
    copies: Copies, threads: Ints, place: Place, source: Runs, targets: Ints, barriers: Ints, size: int
) -> list[int] | None:
    """Issue the bulk loads of several threads, with a row of target addresses and of mbarriers each; every target gets
    `size` bytes. Return the operations for `land_all`; None, with nothing done, if one may conflict."""
    state, (count, targets_per_copy) = copies.state, targets.shape
    grid = state.find_grid(int(threads[0]))
    issuers, starts = threads.repeat(targets_per_copy), targets.reshape(-1)
    reads = _compare_global(
        copies, copies.make_access(place, Space.GLOBAL, source.length, Family.BULK_LOAD, False), threads, source
    )
    writing = copies.make_access(place, Space.SHARED, size, Family.BULK_LOAD, True)
    rows = make_rows(starts[:, None], size)
    writes = copies.tiles.compare(writing, issuers[:, None], Space.SHARED, rows, grid.shared)
    if reads is None or writes is None:
        return None
    find = copies.mbarriers.find
    pairs = list(zip(issuers.tolist(), barriers.reshape(-1).tolist(), strict=True))
    barrier_lives = [find(place, thread, address, "signal of a copy") for thread, address in pairs]
    columns = np.array(
        [copies.find_column(barrier, thread) for barrier, (thread, _) in zip(barrier_lives, pairs, strict=True)],
        np.int64,
    )
    operations = copies.tiles.begin_operations(count)
    sources = _make_records(copies, reads.access, threads, columns[::targets_per_copy], operations)
    record_numbers = _make_records(copies, writing, issuers, columns, operations.repeat(targets_per_copy))
    far = starts // grid.shared_stride != (issuers - grid.first_thread) // grid.stride
    for index in np.flatnonzero(far).tolist():
        target_bytes = Bytes.run(Space.SHARED, int(starts[index]), size)
        copies.lifetimes.record_remote(place, int(issuers[index]), target_bytes, int(record_numbers[index]) * 64)
    for record, (thread, address) in zip(record_numbers.tolist(), pairs, strict=True):
        copies.lifetimes.end_with(place, thread, address, record * 64)
    reads.store(copies.tiles, sources)
    copies.tiles.store(writes, record_numbers)
    ends = [(record, barrier, size) for record, barrier in zip(record_numbers.tolist(), barrier_lives, strict=True)]
    for barrier in barrier_lives:
        if barrier is not None:
            barrier.copied_bytes += size
    slots = (targets // grid.shared_stride).tolist()
    numbers = operations.tolist()
    for index, (number, thread, record) in enumerate(zip(numbers, threads.tolist(), sources.tolist(), strict=True)):
        copies.loads[number] = Load(
            thread,
            place,
            ends[index * targets_per_copy : index * targets_per_copy + targets_per_copy],
            [record],
            slots[index],
        )
    return numbers


def land_all(copies: Copies, operations: list[int]) -> None:
    """Land bulk loads at all their targets."""
    state, records, times = copies.state, list[int](), list[int]()
    for operation in operations:
        load = copies.loads.pop(operation)
        now = state.clocks.now
        records += load.sources
        for index, (record, _, _) in enumerate(load.writes):
            records.append(record)
            copies.record_arrival(load, index)
        times += [now] * (len(records) - len(times))
    state.records.time[records] = times


def bulk_store_all(
    copies: Copies, threads: Ints, place: Place, sources: Ints, size: int, target: Runs
) -> list[int] | None:
    """Issue the bulk stores of several threads, `size` bytes from one address of shared memory each. Return the
    operations; None, with nothing done, if one may conflict."""
    state, grid = copies.state, copies.state.find_grid(int(threads[0]))
    reading = copies.make_access(place, Space.SHARED, size, Family.BULK_STORE, False)
    rows = make_rows(sources[:, None], size)
    reads = copies.tiles.compare(reading, threads[:, None], Space.SHARED, rows, grid.shared)
    writing = copies.make_access(place, Space.GLOBAL, target.length, Family.BULK_STORE, True)
    writes = _compare_global(copies, writing, threads, target) if reads is not None else None
    if reads is None or writes is None:
        return None
    operations = copies.tiles.begin_operations(len(threads))
    books, domains = (
        [copies.stores.setdefault(t, Stores()) for t in threads.tolist()],
        [*map(state.find_domain, threads)],
    )
    every: list[list[int]] = []
    for access, stream in ((reading, "bulk.read"), (writing, "bulk")):
        columns = [state.find_channel(d, stream, t) for d, t in zip(domains, threads.tolist(), strict=True)]
        record_numbers = _make_records(copies, access, threads, np.array(columns, np.int64), operations)
        every.append(record_numbers.tolist())
        if access is reading:
            copies.tiles.store(reads, record_numbers)
        else:
            writes.store(copies.tiles, record_numbers)
    for book, source, record in zip(books, *every, strict=True):
        book.place = place
        book.open[0].append(source)
        book.open[1].append(record)
    return operations.tolist()


def _compare_global(copies: Copies, access: Access, threads: Ints, runs: Runs) -> _Global | None:
    """Compare accesses to global memory with earlier ones. Return None if one may conflict."""
    state, memory, tiles = copies.state, copies.memory, copies.tiles
    shadow_memory = state.find_shadow(Space.GLOBAL, state.find_grid(int(threads[0])), runs.low)
    if shadow_memory is None:
        last_shadow = state.find_shadow(Space.GLOBAL, state.find_grid(int(threads[0])), runs.high - 1)
        return _Global(access, None, runs.starts, runs.length, None) if last_shadow is None else None
    shadow, base = shadow_memory
    if runs.high > base + shadow.size:
        return None
    starts = runs.starts - base
    if not shadow.written:
        if not access.writes:
            return _Global(access, shadow, starts, runs.length, None)
        memory.readers.replay(shadow)
    rows = make_rows(starts, runs.length)
    ready = tiles.compare(access, threads[:, None], Space.GLOBAL, rows, shadow)
    return None if ready is None else _Global(access, shadow, starts, runs.length, ready)


def _make_records(copies: Copies, access: Access, threads: Ints, columns: Ints, operations: Clock) -> Ints:
    """Add a record for each thread's operation."""
    lives = copies.state.clocks.life_of[threads >> 5]
    return copies.state.records.add_operations(access, lives, columns, operations, threads & 31)
