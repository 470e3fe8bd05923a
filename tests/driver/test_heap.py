"""Memory of a program: what was freed, and what the program uses again."""

from __future__ import annotations

import pytest

from pyptx.driver.codes import DriverError
from pyptx.driver.heap import Heap


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


def test_memory_that_is_no_longer_registered_is_the_programs() -> None:
    heap = Heap()
    data = heap.reserve(64)
    heap.register(data.ctypes.data, data, "registered", 0)
    heap.free(data.ctypes.data, ("registered",))
    assert heap.view(data.ctypes.data, 64) is None
