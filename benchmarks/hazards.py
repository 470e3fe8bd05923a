"""Measure the hazard engine alone: lane accesses per second, by the kind of access."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.ratios import Pairs, Round, interleave, measure_best
from pyptx.diagnostics import Span
from pyptx.sim.hazards import Access, Bytes, Group, Hazards, Place, Space, load, store
from pyptx.sim.hazards.state import Grid

SHARED, REPEATS = 65536, 200


def main() -> None:
    for title, make in CASES.items():
        event, lanes = make()
        rate = lanes / measure_best(lambda event=event: [event() for _ in range(REPEATS)]) * REPEATS
        print(f"{title:<58} {rate / 1e6:8.1f} M lane-accesses/s")


def _engine(threads: int, ctas: int = 1) -> tuple[Hazards, Grid]:
    engine = Hazards()
    engine.state.add_buffer(1 << 20, 1 << 26, "input")
    grid = engine.launch(_place(0), threads, slots=ctas, shared_bytes=SHARED)
    engine.start(grid, range(ctas), range(ctas))
    return engine, grid


def _place(line: int) -> Place:
    return Place(Span(line, 1), "")


def make_exchange(threads: int, ctas: int, size: int, barriers: bool = True) -> tuple[Callable[[], None], int]:
    """Store, barrier, load by other threads, barrier: the life of a tile in shared memory."""
    engine, grid = _engine(threads, ctas)
    numbers = np.concatenate([grid.list_threads(slot) for slot in range(ctas)])
    base = np.repeat([grid.find_shared_base(slot) for slot in range(ctas)], threads)
    group = Group(numbers)
    own_cells = base + np.tile(np.arange(threads), ctas) * size
    other_cells = base + np.tile((np.arange(threads) + 37) % threads, ctas) * size
    write, read = store(_place(1), Space.SHARED, size), load(_place(2), Space.SHARED, size)
    groups = [Group(grid.list_threads(slot)) for slot in range(ctas)]

    def event() -> None:
        engine.access(write, group, own_cells)
        for cta_group in groups if barriers else ():
            engine.barriers.bar(cta_group, _place(3), 0, None, "sync")
        engine.access(read, group, other_cells if barriers else own_cells)
        for cta_group in groups if barriers else ():
            engine.barriers.bar(cta_group, _place(4), 0, None, "sync")

    engine.access(write, group, own_cells)
    for cta_group in groups:
        engine.barriers.bar(cta_group, _place(3), 0, None, "sync")
    event()
    assert len(engine.findings) == 0
    return event, 2 * len(numbers)


def make_stores(threads: int, size: int) -> tuple[Callable[[], None], int]:
    """Store a tile repeatedly from the same threads: the access alone."""
    engine, grid = _engine(threads)
    group = Group(grid.list_threads(0))
    addresses = grid.find_shared_base(0) + np.arange(threads) * size
    access = store(_place(1), Space.SHARED, size)
    return lambda: engine.access(access, group, addresses), threads


def make_loads(threads: int, size: int) -> tuple[Callable[[], None], int]:
    """Load a tile that was written before a barrier."""
    engine, grid = _engine(threads)
    group = Group(grid.list_threads(0))
    addresses = grid.find_shared_base(0) + np.arange(threads) * size
    engine.access(store(_place(1), Space.SHARED, size), group, addresses)
    engine.barriers.bar(group, _place(2), 0, None, "sync")
    access = load(_place(3), Space.SHARED, size)
    return lambda: engine.access(access, group, addresses), threads


def make_global_loads(threads: int, ctas: int) -> tuple[Callable[[], None], int]:
    """Load a read-only buffer, coalesced."""
    engine, grid = _engine(threads, ctas)
    numbers = np.concatenate([grid.list_threads(slot) for slot in range(ctas)])
    group = Group(numbers)
    addresses = (1 << 20) + np.arange(len(numbers)) * 16
    access = Access(_place(1), Space.GLOBAL, 16, False)
    return lambda: engine.access(access, group, addresses), len(numbers)


def make_copies() -> tuple[Callable[[], None], int]:
    """Load 16 KiB in bulk, wait for it in 128 threads, and read it by wgmma; count 16-byte granules."""
    engine, grid = _engine(160)
    thread, base = grid.find_thread(0, 128), grid.find_shared_base(0)
    engine.mbarriers.init(thread, _place(1), base, 1)
    producer, consumers = Group(np.array([thread])), Group(np.arange(128) + grid.find_thread(0))
    engine.barriers.bar(Group(grid.list_threads(0)), _place(2), 0, None, "sync")
    target, source = Bytes.run(Space.SHARED, base + 16384, 16384), Bytes.run(Space.GLOBAL, 1 << 20, 16384)
    places = [_place(line) for line in range(3, 12)]
    engine.wgmma.fence(consumers)
    phase = [0]

    def event() -> None:
        engine.mbarriers.arrive(producer, places[0], base, expect=16384)
        engine.copies.land(engine.copies.bulk_load(thread, places[1], source, [(target, base)]))
        engine.mbarriers.wait(consumers, places[2], base, phase[0] & 1)
        engine.wgmma.issue(consumers, places[3], [target], frozenset(range(32)))
        engine.wgmma.commit(consumers)
        engine.wgmma.wait(consumers, 0)
        engine.barriers.bar(Group(grid.list_threads(0)), places[4], 0, None, "sync")
        phase[0] += 1

    event()
    assert len(engine.findings) == 0
    return event, 2 * 1024


CASES: dict[str, Callable[[], tuple[Callable[[], None], int]]] = {
    "128 lanes, 16 bytes each: stores": lambda: make_stores(128, 16),
    "128 lanes, 16 bytes each: loads": lambda: make_loads(128, 16),
    "128 lanes, 4 bytes each: loads": lambda: make_loads(128, 4),
    "1024 lanes, 16 bytes each: stores": lambda: make_stores(1024, 16),
    "128 lanes, 16 bytes: store, bar, load, bar": lambda: make_exchange(128, 1, 16),
    "32 CTAs of 128 lanes, 16 bytes: store, bar, load, bar": lambda: make_exchange(128, 32, 16),
    "32 CTAs of 128 lanes, 4 bytes: store, bar, load, bar": lambda: make_exchange(128, 32, 4),
    "4096 lanes, 16 bytes: store, load of their own": lambda: make_exchange(128, 32, 16, False),
    "4096 lanes, 16 bytes each: global loads": lambda: make_global_loads(128, 32),
    "16 KiB by bulk load and wgmma, in granules": make_copies,
}


def list_pairs() -> Pairs:
    """Compare the engine's accesses with NumPy, which scatters the bytes of as many lanes."""
    return {f"{title} / NumPy's scatter": partial(compare, make) for title, make in CASES.items()}


def compare(make: Callable[[], tuple[Callable[[], None], int]]) -> Round:
    """Compare an event with moving 16 bytes per lane access."""
    event, lanes = make()
    memory, places = np.zeros((SHARED, 16), np.uint8), (np.arange(lanes) * 37) % SHARED
    values = np.ones((lanes, 16), np.uint8)
    return interleave(event, lambda: memory.__setitem__(places, values))


if __name__ == "__main__":
    main()
