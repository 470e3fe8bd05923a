"""Memory of the simulated device for the tests, copied with cuda-bindings."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyptx.runtime.arrays import Array, Described
from pyptx.runtime.bindings import call, in_context
from pyptx.runtime.device_array import DeviceArray


class DeviceMemory:
    """Memory of one device."""

    def __init__(self, device: int = 0) -> None:
        self.device = device

    def put(self, array: Array) -> int:
        """Return the address of a copy of an array, which is never freed."""
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

    def make_stream(self) -> int:
        """Return a new stream that no other waits for."""
        with in_context(self.device):
            return int(call("cuStreamCreate", 1))

    def copy(self, array: Array, stream: int = 0) -> DeviceArray:
        """Return a copy of an array, made in the order of a stream."""
        copy = DeviceArray(Described(array.shape, array.dtype.name), self.device, stream)
        data = np.ascontiguousarray(array)
        if copy.nbytes:
            with in_context(self.device):
                call("cuMemcpyHtoDAsync", copy.address, data.ctypes.data, copy.nbytes, stream)
        return copy
