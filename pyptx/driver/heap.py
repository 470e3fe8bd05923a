"""Memory that a program allocates or registers: real memory of this process, known to the simulator by its address."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyptx.driver import host_memory
from pyptx.driver.codes import Code, DriverError
from pyptx.driver.pages import PAGE, renew_pages
from pyptx.driver.pools import Location, Pool
from pyptx.sim.hazards.ranges import Ranges
from pyptx.sim.state.address_space import AddressSpace
from pyptx.sim.state.regions import Region

Bytes = NDArray[np.uint8]
ALIGNMENT = 512
_WINDOWS_END = 0x5_0000_0000
"""The simulator's own windows of parameters, shared and local memory and functions end here."""
_MOST_FRESH = 1 << 28
"""Of larger allocations, uninitialized bytes are not looked for."""
_QUARANTINE_COUNT, _QUARANTINE_BYTES = 256, 1 << 28
"""How much freed memory is kept from being reused, so that accesses after the end of its life are found."""


@dataclass(slots=True)
class Allocation:
    """Memory with one owner. `kind` is `device`, `managed`, `host` (page-locked), `registered`, `mapped`, `bound` (to
    a multicast object, without a mapping of the program) or `imported` (from another process); `data` keeps memory of
    ours alive."""

    address: int
    size: int
    kind: str
    device: int
    number: int
    place: str
    """Where the program allocated it."""
    data: Any = None
    pool: Pool | None = None
    access: dict[Location, int] | None = None
    """Which locations may access it, if that was said of this memory; otherwise, contexts say it."""
    handle: bytes = b""
    """What other processes open it with, if the program asked for that, and the file of its pages."""
    file: int = -1

    @property
    def is_freed_as_device_memory(self) -> bool:
        """Whether `cuMemFree` frees it, like all memory of pools."""
        return self.pool is not None or self.kind in ("device", "managed")

    @property
    def name(self) -> str:
        """The name in findings."""
        place = f" from {self.place}" if self.place else ""
        return f"allocation {self.number}{place}"


class Heap:
    """The allocations of a process by address."""

    def __init__(self, kinds_with_pages: frozenset[str] = frozenset({"device"})) -> None:
        self._kinds_with_pages = kinds_with_pages
        """Which allocations have pages of their own: they can be shared with other processes, or protected."""
        self.space = AddressSpace()
        self.allocations: dict[int, Allocation] = {}
        self.used: dict[int, int] = {}
        """Bytes of device memory in use, by device."""
        self.count = 0
        self._freed = deque[Allocation]()
        self._freed_bytes = 0
        self.mappings = 0
        """How many allocations are mappings."""
        self._fresh: dict[int, Region] = {}
        """Device memory that is not known to have a value in every byte."""
        self._fresh_starts: NDArray[np.int64] | None = None
        """Its addresses in order, None if they have changed."""
        self.reuses = 0
        """How often freed memory was given back, whose addresses may belong to new allocations since."""

    def allocate(self, size: int, kind: str, device: int, limit: int, place: str = "") -> Allocation:
        """Allocate memory; DriverError if the device, of `limit` bytes, or this machine has no room for it."""
        if self.used.get(device, 0) + size > limit:
            raise DriverError(Code.ERROR_OUT_OF_MEMORY)
        data = self.reserve(size, PAGE) if kind in self._kinds_with_pages else self.reserve(size)
        allocation = self.register(data.ctypes.data, data, kind, device, place)
        if kind == "device" and size <= _MOST_FRESH:
            region = self._fresh[allocation.address] = self.space.regions[
                bisect_left(self.space.starts, allocation.address)
            ]
            region.fresh, region.initial = True, np.zeros(size, np.bool_)
            self._fresh_starts = None
        return allocation

    def reserve(self, size: int, alignment: int = ALIGNMENT) -> Bytes:
        """Return memory of this process that no allocation uses yet, aligned at both ends."""
        if not size:
            raise DriverError(Code.ERROR_INVALID_VALUE)
        try:
            buffer = np.empty(size + 2 * alignment, np.uint8)
        except (MemoryError, ValueError):
            raise DriverError(Code.ERROR_OUT_OF_MEMORY) from None
        start = -buffer.ctypes.data % alignment
        return buffer[start : start + size]

    def register(self, address: int, data: Bytes, kind: str, device: int, place: str = "") -> Allocation:
        """Make memory at its address known; DriverError if it is already."""
        if address < _WINDOWS_END:
            text = f"memory at {address:#x} lies in the windows of the simulator's other state spaces"
            raise DriverError(Code.ERROR_NOT_SUPPORTED, text)
        self.count += 1
        allocation = Allocation(address, len(data), kind, device, self.count, place, data)
        try:
            self.space.register(allocation.name, address, data)
        except ValueError:
            raise DriverError(Code.ERROR_HOST_MEMORY_ALREADY_REGISTERED) from None
        self.allocations[address] = allocation
        self.mappings += kind == "mapped"
        if kind in ("device", "managed"):
            self.used[device] = self.used.get(device, 0) + len(data)
        return allocation

    def free(self, address: int, kinds: tuple[str, ...]) -> Allocation:
        """Free an allocation of one of these kinds; later accesses name it."""
        allocation = self.allocations.get(address)
        if allocation is None or allocation.kind not in kinds:
            raise DriverError(Code.ERROR_INVALID_VALUE)
        del self.allocations[address]
        self.mappings -= allocation.kind == "mapped"
        self.end_fresh(address)
        self.space.free(address)
        if allocation.kind in ("device", "managed"):
            self.used[allocation.device] -= allocation.size
        if allocation.pool is not None:
            allocation.pool.give(allocation.size)
        if allocation.file >= 0:
            renew_pages(address, allocation.size + -allocation.size % PAGE)
            os.close(allocation.file)
        if allocation.kind not in ("registered", "mapped", "bound", "imported"):
            self._quarantine(allocation)
        return allocation

    def _quarantine(self, allocation: Allocation) -> None:
        """Keep freed memory for a while."""
        self._freed.append(allocation)
        self._freed_bytes += allocation.size
        while len(self._freed) > _QUARANTINE_COUNT or self._freed_bytes > _QUARANTINE_BYTES:
            self._freed_bytes -= self._freed.popleft().size
            self.reuses += 1

    def add_values(self, writes: Iterable[Ranges]) -> None:
        """Record which bytes have been written."""
        for ranges in writes:
            for address in self._find_fresh(ranges):
                region = self._fresh[address]
                assert region.initial is not None
                first = int(np.searchsorted(ranges.ends, address, "right"))
                last = int(np.searchsorted(ranges.starts, address + region.size, "left"))
                starts, ends = np.maximum(ranges.starts[first:last] - address, 0), ranges.ends[first:last] - address
                for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
                    region.initial[start:end] = True
                if first < last and region.initial.all():
                    self.end_fresh(address)

    def _find_fresh(self, ranges: Ranges) -> list[int]:
        """Return the fresh memory that ranges may overlap, without looking at all of it."""
        if not self._fresh or not len(ranges.starts):
            return []
        if self._fresh_starts is None:
            self._fresh_starts = np.array(sorted(self._fresh), np.int64)
        starts = self._fresh_starts
        lows = np.maximum(np.searchsorted(starts, ranges.starts, "right") - 1, 0)
        highs = np.searchsorted(starts, ranges.ends, "left")
        marks = np.zeros(len(starts) + 1, np.int64)
        np.add.at(marks, lows, 1)
        np.add.at(marks, highs, -1)
        return starts[marks.cumsum()[:-1] > 0].tolist()

    def end_fresh(self, address: int) -> None:
        """Assume that an allocation has a value in every byte."""
        region = self._fresh.pop(address, None)
        if region is not None:
            self._fresh_starts = None
            region.fresh, region.initial = False, None

    def find(self, address: int) -> Allocation | None:
        """Return the allocation that contains an address."""
        region = self.space.find_region(address)
        if region is None or address >= region.low + region.size:
            return None
        return self.allocations.get(region.low)

    def find_kind(self, address: int) -> str:
        """Return the kind of an address: `device` also for mapped memory and variables of modules; empty if unknown."""
        allocation = self.find(address)
        if allocation is not None:
            return "device" if allocation.kind in ("mapped", "imported") else allocation.kind
        region = self.space.find_region(address)
        return "device" if region is not None and address < region.low + region.size else ""

    def _require_mapped(self, address: int, size: int) -> None:
        """Require that mappings side by side cover a range of addresses."""
        end = address
        while end < address + size:
            allocation = self.find(end)
            if allocation is None or allocation.kind != "mapped":
                raise DriverError(Code.ERROR_INVALID_VALUE)
            end = allocation.address + allocation.size

    def view(self, address: int, size: int) -> Bytes | None:
        """Return bytes of one allocation or module variable; None for memory that is not ours. DriverError if the
        range begins in an allocation and leaves it, or lies in freed memory that nothing else can use yet."""
        region = self.space.find_region(address)
        if region is not None and address < region.low + region.size:
            if address + size > region.low + region.size:
                self._require_mapped(address, size)
                return host_memory.view(address, size)
            return region.data[address - region.low : address - region.low + size]
        freed = self.space.find_freed(address)
        if freed is not None and any(allocation.address == freed.low for allocation in self._freed):
            raise DriverError(Code.ERROR_INVALID_VALUE)
        return None
