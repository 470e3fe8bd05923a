"""Global memory: which allocation owns an address, which were freed, and where new ones go.

Each launch has its own address space; a host that keeps memory between launches passes one to several. Memory that
exists elsewhere is registered at its real address.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from pyptx.sim.base.formats import Array
from pyptx.sim.program.frames import align_up
from pyptx.sim.program.variables import GLOBAL_BASE, GUARD, Allocation
from pyptx.sim.state.regions import Region

_ALIGNMENT = 256


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
        self.freed: list[Freed] = []
        self._next = low

    def reserve(self, size: int, alignment: int = _ALIGNMENT) -> int:
        """Reserve addresses, with unused bytes on both sides, and return the first."""
        address = align_up(self._next, alignment)
        while (region := self._find_overlap(address - GUARD, size + 2 * GUARD)) is not None:
            address = align_up(region.low + region.size + GUARD, alignment)
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
        insort(self.regions, region, key=lambda region: region.low)
        self.starts = [region.low for region in self.regions]
        end = address + region.size
        self.freed = [freed for freed in self.freed if freed.low + freed.size <= address or end <= freed.low]
        return region

    def load(self, allocations: Iterable[Allocation]) -> None:
        """Register the variables of a program, whose initial contents are never written."""
        for item in allocations:
            self.register(
                item.name, item.address, item.data, space=item.space, writable=item.writable, lent=item.lent
            )  # fmt: skip

    def free(self, address: int) -> None:
        """Free the allocation that starts at an address; later accesses fail. Raise ValueError if there is none."""
        region = self.find_region(address)
        if region is None or region.low != address:
            raise ValueError(f"no allocation starts at {address:#x}")
        self.freed.append(Freed(region.name, region.low, region.size))
        self.regions.remove(region)
        self.starts = [region.low for region in self.regions]
        # Sites cache the region that they hit last.
        region.size, region.data = 0, np.zeros(0, np.uint8)

    def find_region(self, address: int) -> Region | None:
        """Return the last region that starts at or before an address."""
        index = bisect_right(self.starts, address) - 1
        return self.regions[index] if index >= 0 else None

    def find_freed(self, address: int) -> Freed | None:
        """Return the last freed allocation that contained an address."""
        return next((freed for freed in reversed(self.freed) if freed.low <= address < freed.low + freed.size), None)

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
