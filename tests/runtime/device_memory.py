"""Memory of the simulated device for the tests, allocated and copied with cuda-bindings."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyptx.runtime.arrays import Array
from pyptx.runtime.bindings import call, in_context


class DeviceMemory:
    """Memory of one device."""

    def __init__(self, device: int = 0) -> None:
        self.device = device

    def put(self, array: Array) -> int:
        """Return the address of a copy of an array."""
        data = np.ascontiguousarray(array)
        with in_context(self.device):
            address = int(call("cuMemAlloc", data.nbytes))
            call("cuMemcpyHtoD", address, data.ctypes.data, data.nbytes)
        return address

    def get(self, address: int, shape: tuple[int, ...], dtype: Any) -> Array:
        """Return what is at an address, when all work has ended."""
        array = np.empty(shape, dtype)
        with in_context(self.device):
            call("cuCtxSynchronize")
            call("cuMemcpyDtoH", array.ctypes.data, address, array.nbytes)
        return array
