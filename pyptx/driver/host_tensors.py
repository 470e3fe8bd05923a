"""Memory of PyTorch's CPU tensors, which kernels reach as if it were a device's."""

from __future__ import annotations

import weakref
from typing import Any

from pyptx.driver import host_memory
from pyptx.driver.process import Driver, find_caller


def register(driver: Driver, storage: Any) -> None:  # noqa: ANN401
    """Make the memory of a tensor known until it is freed."""
    address, size = storage.data_ptr(), storage.nbytes()
    region = driver.heap.space.find_region(address)
    if region is not None and region.low == address and region.size == size:
        return
    for other in list(driver.heap.allocations.values()):
        if other.address < address + size and address < other.address + other.size:
            driver.heap.free(other.address, ("registered",))
    allocation = driver.heap.register(address, host_memory.view(address, size), "registered", 0, find_caller())
    weakref.finalize(storage, _forget, driver, allocation.number, address)


def _forget(driver: Driver, number: int, address: int) -> None:
    """Forget freed memory, unless another tensor has it now."""
    allocation = driver.heap.allocations.get(address)
    if allocation is not None and allocation.number == number:
        driver.heap.free(address, ("registered",))
