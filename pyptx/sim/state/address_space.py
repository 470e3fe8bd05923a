"""Global memory: which allocation owns an address, which were freed, and where new ones go.

Each launch has its own address space; a host that keeps memory between launches passes one to several. Memory that
exists elsewhere is registered at its real address.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from pyptx.sim.base.formats import Array
from pyptx.sim.program.frames import align_up
from pyptx.sim.program.variables import GLOBAL_BASE, GUARD, Allocation
from pyptx.sim.state.regions import Region

_ALIGNMENT = 256
_HEAP_SIZE = 8 << 20
"""The bytes that kernels can have allocated at a time, as by default in CUDA (CUDA C++ Programming Guide, Heap Memory
Allocation)."""
_MOST_FREED = 4096
"""The number of freed allocations that are remembered."""


@dataclass(frozen=True, slots=True)
class Freed:
    """An allocation that was freed."""

    name: str
    low: int
    size: int


class AddressSpace:
    """Regions of global memory and constants in the order of their addresses."""

    def __init__(self, low: int = GLOBAL_BASE) -> None:
        """Place allocations from `low` on."""
        self.regions: list[Region] = []
        self.starts: list[int] = []
        self._freed: dict[int, Freed] = {}
        self._freed_starts: list[int] = []
        """The starts of freed allocations, which do not overlap, in order."""
        self._next = low
        self._heap: dict[int, int] = {}
        """The sizes of what kernels have allocated, by address."""
        self._heap_count = 0

    def reserve(self, size: int, alignment: int = _ALIGNMENT) -> int:
        """Reserve addresses, with unused bytes on both sides, and return the first."""
        address = align_up(self._next, alignment)
        while (region := self._find_overlap(address - GUARD, size + 2 * GUARD)) is not None:
            address = align_up(region.low + max(region.size, 1) + GUARD, alignment)
        self._next = address + size + GUARD
        return address

    def allocate(
        self, name: str, data: Array, *, writable: bool = True, lent: bool = False, alignment: int = _ALIGNMENT
    ) -> Region:
        """Allocate bytes at the next free addresses. Bytes lent by the caller are copied before the first write."""
        return self.register(name, self.reserve(len(data), alignment), data, writable=writable, lent=lent)

    def register(
        self, name: str, address: int, data: Array, *, space: str = "global", writable: bool = True, lent: bool = False,
        fresh: bool = False,
    ) -> Region:  # fmt: skip
        """Place bytes at a fixed address. Raise ValueError if they overlap another region."""
        neighbor = self._find_overlap(address, len(data))
        if neighbor is not None:
            end = neighbor.low + neighbor.size - 1
            raise ValueError(
                f"`{name}` at {address:#x} overlaps `{neighbor.name}`, which is at {neighbor.low:#x} … {end:#x}"
            )
        region = Region(name, space, address, len(data), data, writable, lent, fresh)
        index = bisect_right(self.starts, address)
        self.regions.insert(index, region)
        self.starts.insert(index, address)
        self._forget_freed(address, region.size)
        return region

    def load(self, allocations: Iterable[Allocation]) -> None:
        """Register the variables of a program, whose initial contents are never written."""
        for item in allocations:
            self.register(
                item.name, item.address, item.data, space=item.space, writable=item.writable, lent=item.lent
            )  # fmt: skip

    def free(self, address: int) -> None:
        """Free the allocation that starts at an address; later accesses fail. Raise ValueError if there is none."""
        index = bisect_left(self.starts, address)
        if index == len(self.starts) or self.starts[index] != address:
            raise ValueError(f"no allocation starts at {address:#x}")
        region = self.regions.pop(index)
        del self.starts[index]
        if region.size:
            if len(self._freed) == _MOST_FREED:
                self._forget_freed(next(iter(self._freed)), 1)
            self._freed[address] = Freed(region.name, address, region.size)
            insort(self._freed_starts, address)
        # Sites cache the region that they hit last.
        region.size, region.data = 0, np.zeros(0, np.uint8)

    def allocate_on_heap(self, size: int, fill: bytes) -> int:
        """Allocate memory for a kernel, full of 4 bytes, and return its address; 0 if there is no room."""
        if not size or sum(self._heap.values()) + size > _HEAP_SIZE:
            return 0
        self._heap_count += 1
        data = np.resize(np.frombuffer(fill, np.uint8), size)
        address = self.allocate(f"allocation {self._heap_count} of malloc", data).low
        self._heap[address] = size
        return address

    def free_on_heap(self, address: int) -> bool:
        """Free what a kernel allocated; return whether there is such an allocation."""
        if self._heap.pop(address, None) is None:
            return False
        self.free(address)
        return True

    def find_region(self, address: int) -> Region | None:
        """Return the last region that starts at or before an address."""
        index = bisect_right(self.starts, address) - 1
        return self.regions[index] if index >= 0 else None

    def find_freed(self, address: int) -> Freed | None:
        """Return the last freed allocation that contained an address."""
        index = bisect_right(self._freed_starts, address) - 1
        freed = self._freed[self._freed_starts[index]] if index >= 0 else None
        return freed if freed is not None and address < freed.low + freed.size else None

    def _forget_freed(self, address: int, size: int) -> None:
        """Forget the freed allocations whose addresses are used again."""
        first = bisect_right(self._freed_starts, address) - 1
        first += first < 0 or self.find_freed(address) is None
        last = bisect_left(self._freed_starts, address + size)
        for start in self._freed_starts[first:last]:
            del self._freed[start]
        del self._freed_starts[first:last]

    def find_nearest(self, address: int) -> Region | None:
        """Return the region nearest to an address, or None without any."""
        return min(
            self.regions,
            key=lambda region: max(region.low - address, address - (region.low + region.size - 1), 0),
            default=None,
        )

    def _find_overlap(self, address: int, size: int) -> Region | None:
        last = self.find_region(address + max(size, 1) - 1)
        return last if last is not None and last.low + max(last.size, 1) > address else None
