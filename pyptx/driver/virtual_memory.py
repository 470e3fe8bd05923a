"""Physical memory apart from its addresses: files in memory that are mapped into reserved ranges of this process."""

from __future__ import annotations

import ctypes
import mmap
import os
from dataclasses import dataclass, field

from pyptx.driver.codes import Code, DriverError
from pyptx.driver.pools import Location

GRANULARITY = 2 << 20
"""Sizes and addresses are multiples of it."""
_NO_ACCESS, _FIXED, _NO_RESERVE = 0, 0x10, 0x4000
_FAILED = (1 << 64) - 1
_C = ctypes.CDLL(None, use_errno=True)
_C.mmap.restype = ctypes.c_void_p
_C.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_C.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


@dataclass(eq=False)
class Physical:
    """Physical memory of a device, how often its handle has to be released, and how many mappings it has."""

    handle: int
    device: int
    size: int
    properties: bytes
    file: int
    handles: int = 1
    mappings: int = 0

    @classmethod
    def create(cls, handle: int, device: int, size: int, properties: bytes) -> Physical:
        """Allocate zeroed memory."""
        file = os.memfd_create("pyptx")
        os.ftruncate(file, size)
        return cls(handle, device, size, properties, file)

    def close(self) -> None:
        """Free the memory."""
        os.close(self.file)


@dataclass(eq=False)
class Mapping:
    """Physical memory at an address, and which locations may access it."""

    address: int
    size: int
    physical: Physical
    access: dict[Location, int] = field(default_factory=dict[Location, int])


@dataclass(eq=False)
class Range:
    """A range of reserved addresses, and what is mapped in it by address. `start` and `room` are the range that the
    system reserved to find aligned addresses."""

    address: int
    size: int
    start: int
    room: int
    mappings: dict[int, Mapping] = field(default_factory=dict[int, Mapping])

    @classmethod
    def reserve(cls, size: int, alignment: int) -> Range:
        """Reserve addresses. DriverError if there are none."""
        room = size + max(alignment, GRANULARITY)
        start = _map(0, room, _NO_ACCESS, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE, -1)
        return cls(start + -start % max(alignment, GRANULARITY), size, start, room)

    def map(self, address: int, size: int, physical: Physical) -> None:
        """Map physical memory. DriverError if the addresses are not reserved or have a mapping."""
        end = address + size
        if not self.address <= address < end <= self.address + self.size or size > physical.size:
            raise DriverError(Code.ERROR_INVALID_VALUE)
        if any(item.address < end and address < item.address + item.size for item in self.mappings.values()):
            raise DriverError(Code.ERROR_INVALID_VALUE)
        _map(address, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED | _FIXED, physical.file)
        physical.mappings += 1
        self.mappings[address] = Mapping(address, size, physical)

    def select(self, address: int, size: int) -> list[Mapping]:
        """Return the mappings that fill a part of the range. DriverError if they do not fill it exactly."""
        selection, end = list[Mapping](), address
        while end < address + size and end in self.mappings:
            selection.append(self.mappings[end])
            end += self.mappings[end].size
        if not size or end != address + size:
            raise DriverError(Code.ERROR_INVALID_VALUE)
        return selection

    def unmap(self, mapping: Mapping) -> None:
        """Make the addresses of a mapping reserved only."""
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _FIXED | _NO_RESERVE
        _map(mapping.address, mapping.size, _NO_ACCESS, flags, -1)
        del self.mappings[mapping.address]

    def free(self) -> None:
        """Return the addresses to the system. DriverError if anything is mapped."""
        if self.mappings:
            raise DriverError(Code.ERROR_INVALID_VALUE)
        _C.munmap(self.start, self.room)


def _map(address: int, size: int, protection: int, flags: int, file: int) -> int:
    result = _C.mmap(address or None, size, protection, flags, file, 0)
    if result == _FAILED:
        raise DriverError(Code.ERROR_OUT_OF_MEMORY)
    return int(result)
