"""Memory of a program: what was freed, and what the program uses again."""

from __future__ import annotations

import os
import random

import numpy as np
import pytest

from pyptx.driver.codes import Code, DriverError
from pyptx.driver.heap import ALIGNMENT, Heap
from pyptx.driver.pages import PAGE
from pyptx.driver.sharing import export
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
    for other in others[:-1]:
        heap.free(other, ("device",))
    with pytest.raises(DriverError):
        heap.view(freed, 64)
    heap.free(others[-1], ("device",))
    assert heap.view(freed, 64) is None
    with pytest.raises(DriverError):
        heap.view(others[-1], 64)


def test_freed_memory_is_kept_up_to_256_mebibytes() -> None:
    heap = Heap(frozenset())
    first, second, small = (heap.allocate(size, "host", 0, 1 << 30).address for size in (1 << 27, 1 << 27, 1))
    for address in (first, second):
        heap.free(address, ("host",))
    assert heap.reuses == 0
    with pytest.raises(DriverError):
        heap.view(first, 1)
    heap.free(small, ("host",))
    assert heap.reuses == 1
    assert heap.view(first, 1) is None
    with pytest.raises(DriverError):
        heap.view(second, 1)


def refuse(heap: Heap, size: int, limit: int, kind: str = "device") -> Code:
    """Return the code with which an allocation is refused."""
    with pytest.raises(DriverError) as error:
        heap.allocate(size, kind, 1, limit)
    return error.value.code


def test_the_memory_of_each_device_is_limited() -> None:
    heap = Heap()
    heap.allocate(60, "device", 0, 100)
    first = heap.allocate(60, "managed", 1, 100).address
    assert refuse(heap, 41, 100) == Code.ERROR_OUT_OF_MEMORY
    second = heap.allocate(40, "device", 1, 100)
    heap.allocate(100, "host", 2, 100)
    assert heap.used == {0: 60, 1: 100}
    heap.free(first, ("device", "managed"))
    assert heap.used == {0: 60, 1: 40}
    heap.free(second.address, ("device",))
    assert heap.used == {0: 60, 1: 0}
    assert (second.number, heap.count) == (3, 4)
    assert refuse(Heap(), 101, 100) == Code.ERROR_OUT_OF_MEMORY
    assert refuse(heap, 0, 100) == Code.ERROR_INVALID_VALUE
    assert refuse(heap, 1 << 62, 1 << 63) == Code.ERROR_OUT_OF_MEMORY


@pytest.mark.parametrize("alignment", [64, ALIGNMENT, 4096])
def test_memory_is_aligned_and_has_room_to_its_end(alignment: int) -> None:
    data = Heap().reserve(3 * alignment + 5, alignment)
    assert (data.ctypes.data % alignment, len(data)) == (0, 3 * alignment + 5)
    assert Heap().allocate(1, "host", 0, 1).address % 512 == 0
    assert data.base is not None
    assert len(data.base) - (data.ctypes.data - data.base.ctypes.data) >= 4 * alignment


def test_an_allocation_is_found_by_each_of_its_addresses() -> None:
    heap = Heap()
    allocation = heap.allocate(64, "device", 0, 64, "a.py:1")
    assert heap.allocate(10, "host", 0, 74).name == "allocation 2"
    low = allocation.address
    assert [heap.find(low + offset) is allocation for offset in (-1, 0, 63, 64)] == [False, True, True, False]
    assert [heap.find_kind(low + offset) for offset in (-1, 0, 63, 64)] == ["", "device", "device", ""]
    view = heap.view(low + 3, 61)
    assert view is not None
    assert (view.ctypes.data, len(view), heap.view(low + 64, 1)) == (low + 3, 61, None)
    part = heap.view(low + 3, 5)
    assert part is not None
    assert len(part) == 5
    assert allocation.name == "allocation 1 from a.py:1"
    with pytest.raises(DriverError):
        heap.free(low, ("host", "managed"))
    with pytest.raises(DriverError):
        heap.free(low + 1, ("device",))
    with pytest.raises(DriverError) as error:
        heap.register(low + 60, heap.reserve(64), "registered", 0)
    assert error.value.code == Code.ERROR_HOST_MEMORY_ALREADY_REGISTERED


def test_a_variable_of_a_module_is_device_memory_without_an_allocation() -> None:
    heap = Heap()
    data = heap.reserve(64)
    low = data.ctypes.data
    heap.space.register("variable", low, data)
    assert [heap.find_kind(low + offset) for offset in (-1, 0, 63, 64)] == ["", "device", "device", ""]
    assert heap.find(low) is None


def test_a_view_may_cross_mappings_side_by_side_and_nothing_else() -> None:
    heap = Heap()
    data = heap.reserve(256)
    start = data.ctypes.data
    kinds = ("mapped", "mapped", "registered")
    for offset, kind in zip((0, 64, 128), kinds, strict=True):
        heap.register(start + offset, data[offset : offset + 64], kind, 0)
    assert [heap.find_kind(start + offset) for offset in (0, 127, 128)] == ["device", "device", "registered"]
    assert heap.mappings == 2
    view = heap.view(start + 60, 68)
    assert view is not None
    assert (view.ctypes.data, len(view)) == (start + 60, 68)
    for offset, size in ((60, 69), (128, 65)):
        with pytest.raises(DriverError):
            heap.view(start + offset, size)
    heap.free(start + 64, ("mapped",))
    assert heap.mappings == 1
    with pytest.raises(DriverError):
        heap.view(start, 65)


def test_only_memory_outside_the_windows_of_the_simulator_can_be_registered() -> None:
    heap, data = Heap(), np.zeros(64, np.uint8)
    with pytest.raises(DriverError) as error:
        heap.register(0x4_FFFF_FFFF, data, "registered", 0)
    assert error.value.code == Code.ERROR_NOT_SUPPORTED
    assert heap.register(0x5_0000_0000, data, "registered", 0).number == 1


def test_bytes_without_a_value_are_looked_for_in_device_memory_up_to_256_mebibytes() -> None:
    heap = Heap()
    for size, kind, is_fresh in ((1 << 28, "device", True), ((1 << 28) + 1, "device", False), (64, "managed", False)):
        region = heap.space.find_region(heap.allocate(size, kind, 0, 1 << 30).address)
        assert region is not None
        assert (region.fresh, region.initial is not None) == (is_fresh, is_fresh)


def test_freed_memory_needs_no_record_of_its_bytes() -> None:
    heap = Heap()
    region = heap.space.find_region(allocate(heap))
    assert region is not None
    heap.free(region.low, ("device",))
    assert region.initial is None


def test_bytes_of_memory_that_is_allocated_later_are_marked() -> None:
    heap = Heap()
    for _ in range(2):
        region = heap.space.find_region(allocate(heap))
        assert region is not None
        assert region.initial is not None
        heap.add_values([Ranges.merge(np.array([region.low]), 32)])
        assert region.initial.tolist() == [True] * 32 + [False] * 32
        assert region.fresh


def test_memory_that_is_shared_is_private_again_when_it_is_freed() -> None:
    heap = Heap()
    allocation = heap.allocate(2 * PAGE + 1, "device", 0, 1 << 20)
    allocation.data[:] = 7
    export(heap, allocation)
    file = os.dup(allocation.file)
    try:
        os.pwrite(file, b"\1", 2 * PAGE)
        assert allocation.data[2 * PAGE - 1 :].tolist() == [7, 1]
        heap.free(allocation.address, ("device",))
        os.pwrite(file, bytes([2]) * 3 * PAGE, 0)
        assert not allocation.data.any()
    finally:
        os.close(file)


@pytest.mark.parametrize(("kind", "expected"), [("device", True), ("managed", True), ("host", False), ("bound", False)])
def test_memory_that_is_freed_as_device_memory(kind: str, expected: bool) -> None:
    assert Heap().allocate(64, kind, 0, 64).is_freed_as_device_memory == expected


@pytest.mark.parametrize("kind", ["registered", "mapped", "bound", "imported"])
def test_memory_that_is_no_longer_registered_is_the_programs(kind: str) -> None:
    heap = Heap()
    data = heap.reserve(64)
    allocation = heap.register(data.ctypes.data, data, kind, 0)
    assert heap.find_kind(data.ctypes.data) == {"mapped": "device", "imported": "device"}.get(kind, kind)
    assert heap.free(data.ctypes.data, ("device", kind)) is allocation
    assert heap.find_kind(data.ctypes.data) == ""
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
            assert region.fresh == (not initial.all())
