"""Physical memory apart from its addresses: files in memory that are mapped into reserved ranges of this process."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyptx.driver.codes import Code, DriverError
from pyptx.driver.pages import hide_pages, map_file, release_pages, reserve_pages
from pyptx.driver.pools import Location

if TYPE_CHECKING:
    from pyptx.driver.process import Driver

GRANULARITY = 2 << 20
"""Sizes and addresses are multiples of it."""


@dataclass(eq=False)
class Backing(ABC):
    """What a program maps at addresses: how often its handle has to be released, and how much else uses it."""

    handle: int
    size: int
    handles: int = field(default=1, init=False)
    mappings: int = field(default=0, init=False)

    @abstractmethod
    def map_at(self, address: int, size: int) -> None:
        """Put it at addresses of this process. DriverError if there is no room."""

    @abstractmethod
    def close(self, driver: Driver) -> None:
        """Free it."""

    def free_unused(self, driver: Driver) -> None:
        """Free it if it has neither handles nor mappings."""
        if not self.handles and not self.mappings:
            driver.handles.discard(self)
            self.close(driver)


@dataclass(eq=False)
class Physical(Backing):
    """Physical memory of a device. `alias` is where it is for accesses through a multicast object."""

    device: int
    properties: bytes
    file: int
    alias: Range | None = None

    @classmethod
    def create(cls, handle: int, device: int, size: int, properties: bytes) -> Physical:
        """Allocate zeroed memory."""
        file = os.memfd_create("pyptx")
        os.ftruncate(file, size)
        return cls(handle, size, device, properties, file)

    def map_at(self, address: int, size: int) -> None:
        map_file(address, size, self.file)

    def close(self, driver: Driver) -> None:
        driver.heap.used[self.device] -= self.size
        if self.alias is not None:
            driver.heap.free(self.alias.address, ("bound",))
            self.alias.free()
        os.close(self.file)


@dataclass(eq=False)
class Mapping:
    """Physical memory or a multicast object at an address, and which locations may access it."""

    address: int
    size: int
    backing: Backing
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
        start = reserve_pages(room)
        return cls(start + -start % max(alignment, GRANULARITY), size, start, room)

    def map(self, address: int, size: int, backing: Backing) -> None:
        """Map a backing. DriverError if the addresses are not reserved or have a mapping."""
        end = address + size
        if not self.address <= address < end <= self.address + self.size or size > backing.size:
            raise DriverError(Code.ERROR_INVALID_VALUE)
        if any(item.address < end and address < item.address + item.size for item in self.mappings.values()):
            raise DriverError(Code.ERROR_INVALID_VALUE)
        backing.map_at(address, size)
        backing.mappings += 1
        self.mappings[address] = Mapping(address, size, backing)

    def find(self, address: int) -> Mapping:
        """Return the mapping that contains an address. DriverError if there is none."""
        for mapping in self.mappings.values():
            if mapping.address <= address < mapping.address + mapping.size:
                return mapping
        raise DriverError(Code.ERROR_INVALID_VALUE)

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
        hide_pages(mapping.address, mapping.size)
        del self.mappings[mapping.address]

    def free(self) -> None:
        """Return the addresses to the system. DriverError if anything is mapped."""
        if self.mappings:
            raise DriverError(Code.ERROR_INVALID_VALUE)
        release_pages(self.start, self.room)
