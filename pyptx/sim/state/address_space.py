"""Global memory: who owns which addresses, which bytes were freed, and where new allocations go.

A launch has an address space of its own; a host that keeps memory between launches gives several launches one. Memory
that exists elsewhere is registered at its real address.
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
    """Bytes that belonged to an allocation."""

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
        """Return addresses that no other allocation will get, with unused bytes on both sides."""
        address = align_up(self._next, alignment)
        while (region := self._find_overlap(address - GUARD, size + 2 * GUARD)) is not None:
            address = align_up(region.low + region.size + GUARD, alignment)
        self._next = address + size + GUARD
        return address

    def allocate(
        self, name: str, data: Array, *, writable: bool = True, lent: bool = False, alignment: int = _ALIGNMENT
    ) -> Region:
        """Give bytes the next addresses. The caller's own (`lent`) are copied before the first write."""
        return self.register(name, self.reserve(len(data), alignment), data, writable=writable, lent=lent)

    def register(
        self, name: str, address: int, data: Array, *, space: str = "global", writable: bool = True, lent: bool = False,
        fresh: bool = False,
    ) -> Region:  # fmt: skip
        """Give bytes a fixed address; ValueError when another region lies there."""
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
        """Register the variables of a program, whose first contents stay as they are."""
        for item in allocations:
            self.register(
                item.name, item.address, item.data, space=item.space, writable=item.writable, lent=item.lent
            )  # fmt: skip

    def free(self, address: int) -> None:
        """End the allocation that starts at an address; ValueError when none does. Accesses to it fail from now on."""
        region = self.find_region(address)
        if region is None or region.low != address:
            raise ValueError(f"no allocation starts at {address:#x}")
        self.freed.append(Freed(region.name, region.low, region.size))
        self.regions.remove(region)
        self.starts = [region.low for region in self.regions]
        # Instructions remember the region that they hit last.
        region.size, region.data = 0, np.zeros(0, np.uint8)

    def find_region(self, address: int) -> Region | None:
        """Return the region that begins last before an address."""
        index = bisect_right(self.starts, address) - 1
        return self.regions[index] if index >= 0 else None

    def find_freed(self, address: int) -> Freed | None:
        """Return the latest allocation that held an address and was freed."""
        return next((freed for freed in reversed(self.freed) if freed.low <= address < freed.low + freed.size), None)

    def find_nearest(self, address: int) -> Region | None:
        """Return the region with the least distance to an address, None if there is no memory."""
        return min(
            self.regions,
            key=lambda region: max(region.low - address, address - (region.low + region.size - 1), 0),
            default=None,
        )

    def _find_overlap(self, address: int, size: int) -> Region | None:
        last = self.find_region(address + max(size, 1) - 1)
        return last if last is not None and last.low + max(last.size, 1) > address else None
