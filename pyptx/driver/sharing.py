"""Memory of a device that other processes may open: its pages become a file in memory when a program asks for a handle.

A handle names the process and its file, so that it is valid as long as the memory lives. Knows no order between
processes: accesses of one are not compared with those of another.
"""

from __future__ import annotations

import mmap
import os
import secrets
import struct
from dataclasses import dataclass

import numpy as np

from pyptx.driver.codes import Code, DriverError
from pyptx.driver.heap import Allocation, Bytes, Heap
from pyptx.driver.pages import PAGE, map_file

HANDLE_SIZE = 64
_HANDLE = struct.Struct("<8sIIQI16s20x")
_MAGIC = b"pyptx 1\0"


@dataclass(slots=True)
class Import:
    """Memory of another process: where it is in this one, and how often it was opened."""

    address: int
    count: int = 1


def export(heap: Heap, allocation: Allocation) -> bytes:
    """Return a handle of memory that `cuMemAlloc` allocated."""
    if allocation.handle:
        return allocation.handle
    size = allocation.size + -allocation.size % PAGE
    name = secrets.token_hex(8)
    file = os.memfd_create(name)
    os.ftruncate(file, size)
    with mmap.mmap(file, size) as pages:
        pages[: allocation.size] = allocation.data.tobytes()
    # The same bytes at the same address, so that views of them stay valid.
    map_file(allocation.address, size, file)
    allocation.file = file
    allocation.handle = _HANDLE.pack(_MAGIC, os.getpid(), file, allocation.size, allocation.device, name.encode())
    # What other processes write is not known.
    heap.end_fresh(allocation.address)
    return allocation.handle


def open_memory(handle: bytes) -> tuple[Bytes, int]:
    """Return the memory of a handle of another process, and its device. DriverError if it is none, or was freed."""
    magic, process, file, size, device, name = _HANDLE.unpack(handle)
    if magic != _MAGIC:
        raise DriverError(Code.ERROR_INVALID_HANDLE)
    if process == os.getpid():
        raise DriverError(Code.ERROR_INVALID_CONTEXT)
    path = f"/proc/{process}/fd/{file}"
    try:
        if os.readlink(path) != f"/memfd:{name.decode()} (deleted)":
            raise DriverError(Code.ERROR_INVALID_HANDLE)
        with open(path, "r+b") as pages:
            return np.frombuffer(mmap.mmap(pages.fileno(), 0), np.uint8)[:size], device
    except OSError:
        raise DriverError(Code.ERROR_INVALID_HANDLE) from None
