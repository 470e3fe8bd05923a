"""Arrays in device memory that this package allocates: results for callers whose library has no arrays of its own."""

from __future__ import annotations

import os
import weakref
from math import prod
from typing import Any

import numpy as np

from pyptx.runtime import dlpack
from pyptx.runtime.arrays import Array, Described, get_numpy_dtype
from pyptx.runtime.bindings import CallError, call, in_context, number_driver
from pyptx.runtime.streams import LEGACY, order_after


class DeviceArray:
    """Contiguous memory of a device, allocated and freed in the order of a stream. Other libraries take it by DLPack or
    `__cuda_array_interface__`; `to_numpy` copies it. The `owner` of the stream lives until the memory is freed:
    a driver crashes with a stream that has been destroyed."""

    def __init__(self, description: Described, device: int, stream: int, owner: object = None) -> None:
        self.shape, self.dtype = description.shape, get_numpy_dtype(description.dtype)
        self.device, self.stream = device, stream
        self.dtype_name = description.dtype
        """NumPy composes a name whenever it is read."""
        self.nbytes = prod(self.shape) * self.dtype.itemsize
        self.address = 0
        if self.nbytes:
            with in_context(device):
                self.address = int(call("cuMemAllocAsync", self.nbytes, stream))
            process = (os.getpid(), number_driver())
            weakref.finalize(self, _free, self.address, device, stream, process, owner).atexit = False

    def to_numpy(self) -> Array:
        """Return a copy in the CPU's memory, when the work of the stream has ended."""
        array = np.empty(self.shape, self.dtype)
        if self.nbytes:
            with in_context(self.device):
                call("cuMemcpyDtoHAsync", array.ctypes.data, self.address, self.nbytes, self.stream)
                call("cuStreamSynchronize", self.stream)
        return array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("memory of a device is copied: copy=False is impossible")
        return self.to_numpy().astype(dtype or self.dtype, copy=False)

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.stream

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self.dtype.kind not in "biufc":
            raise AttributeError(f"__cuda_array_interface__ has no type {self.dtype.name}; use DLPack")
        return {
            "shape": self.shape, "typestr": self.dtype.str, "data": (self.address, False), "version": 3,
            "strides": None, "stream": self.stream or LEGACY,
        }  # fmt: skip

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CUDA, self.device

    def __dlpack__(
        self, *, stream: int | None = None, max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None, copy: bool | None = None,
    ) -> object:  # fmt: skip
        """Return the memory for another library, whose stream then waits for the work of this array's."""
        if copy or dl_device not in (None, self.__dlpack_device__()):
            raise BufferError("the memory can be exported without a copy only, to its own device")
        if stream != dlpack.NO_STREAM:
            with in_context(self.device):
                order_after(LEGACY if stream is None else stream, [self.stream])
        versioned = max_version is not None and max_version[0] >= 1
        return dlpack.make_capsule(
            self, self.address, self.shape, self.dtype, self.__dlpack_device__(), versioned=versioned
        )

    def __repr__(self) -> str:
        return f"<{self.dtype.name} array of shape {self.shape} on device {self.device}>"


def _free(address: int, device: int, stream: int, process: tuple[int, int], owner: object) -> None:
    """Free memory when the work that its stream has so far has ended, unless its driver is gone."""
    if process != (os.getpid(), number_driver()):
        return
    try:
        with in_context(device):
            call("cuMemFreeAsync", address, stream)
    except CallError as why:
        # After a fault of a kernel, the context and its memory are lost.
        if why.code not in _LOST:
            raise


_LOST = frozenset((4, 201, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719))
"""Codes of a driver that has ended, or of a context that a kernel's fault has made unusable."""
