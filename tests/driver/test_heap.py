"""Memory of a program: what was freed, and what the program uses again."""

from __future__ import annotations

import random

import numpy as np
import pytest

from pyptx.driver.codes import DriverError
from pyptx.driver.heap import Heap
from pyptx.sim.hazards.ranges import Ranges


def allocate(heap: Heap) -> int:
    return heap.allocate(64, "device", 0, 1 << 20).address


def test_freed_memory_is_refused_until_the_program_can_get_it_again() -> None:
    """The program may get the address of memory that is no longer kept from the C library, for anything."""
    heap = Heap()
    freed = allocate(heap)
    heap.free(freed, ("device",))
    with pytest.raises(DriverError):
        heap.view(freed, 64)
    others = [allocate(heap) for _ in range(256)]
    for other in others:
        heap.free(other, ("device",))
    assert heap.view(freed, 64) is None
    with pytest.raises(DriverError):
        heap.view(others[-1], 64)


def test_freed_memory_needs_no_record_of_its_bytes() -> None:
    heap = Heap()
    region = heap.space.find_region(allocate(heap))
    assert region is not None
    heap.free(region.low, ("device",))
    assert region.initial is None


def test_memory_that_is_no_longer_registered_is_the_programs() -> None:
    heap = Heap()
    data = heap.reserve(64)
    heap.register(data.ctypes.data, data, "registered", 0)
    heap.free(data.ctypes.data, ("registered",))
    assert heap.view(data.ctypes.data, 64) is None


def test_bytes_that_work_writes_have_values_and_no_others(seed: int) -> None:
    draw, heap = random.Random(seed), Heap()
    allocations = [heap.allocate(64, "device", 0, 1 << 20) for _ in range(20)]
    regions = [heap.space.find_region(allocation.address) for allocation in allocations]
    expected = {allocation.address: np.zeros(64, np.bool_) for allocation in allocations}
    for _ in range(40):
        heap.free(allocate(heap), ("device",))
        starts = np.array([draw.choice(allocations).address + draw.randrange(-80, 80) for _ in range(3)])
        sizes = np.array([draw.randrange(1, 60) for _ in range(3)])
        heap.add_values([Ranges.merge(starts, sizes), Ranges.merge(starts[:0], 1)])
        for start, size in zip(starts, sizes, strict=True):
            for address, values in expected.items():
                values[max(0, start - address) : max(0, start + size - address)] = True
        for region in regions:
            assert region is not None
            initial = np.ones(64, np.bool_) if region.initial is None else region.initial
            assert initial.tolist() == expected[region.low].tolist()
