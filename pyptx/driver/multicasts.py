"""Multicast objects: addresses behind which each device of a team has memory, which `multimem` instructions access."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from pyptx.driver.codes import Code, DriverError
from pyptx.driver.host_memory import view
from pyptx.driver.pools import DEVICE, READ_WRITE
from pyptx.driver.virtual_memory import GRANULARITY, Backing, Mapping, Physical, Range
from pyptx.sim.state.multicasts import Multicasts, Window

if TYPE_CHECKING:
    from pyptx.driver.process import Driver


@dataclass(frozen=True, slots=True)
class Binding:
    """Memory of a device at an offset of a multicast object."""

    device: int
    offset: int
    size: int
    physical: Physical
    physical_offset: int


@dataclass(eq=False)
class Multicast(Backing):
    """A multicast object: the number of devices in its team, those that were added, and what is bound."""

    team: int
    devices: list[int] = field(default_factory=list[int])
    bindings: list[Binding] = field(default_factory=list[Binding])

    def map_at(self, address: int, size: int) -> None:
        """Nothing is at its addresses: the replicas have others."""

    def bind(self, binding: Binding) -> None:
        """Bind memory. DriverError if the device already has memory there."""
        end = binding.offset + binding.size
        if any(
            item.device == binding.device and item.offset < end and binding.offset < item.offset + item.size
            for item in self.bindings
        ):
            raise DriverError(Code.ERROR_INVALID_VALUE)
        self.bindings.append(binding)
        binding.physical.mappings += 1

    def unbind(self, driver: Driver, bindings: list[Binding]) -> None:
        """Undo bindings, and free memory that nothing else uses."""
        for binding in bindings:
            self.bindings.remove(binding)
            binding.physical.mappings -= 1
            binding.physical.free_unused(driver)

    def close(self, driver: Driver) -> None:
        driver.multicasts.remove(self)
        self.unbind(driver, list(self.bindings))

    def list_windows(self, driver: Driver, mapping: Mapping, device: int) -> Iterator[Window]:
        """Yield the parts of a mapping for a device, cut where a binding begins or ends."""
        ends = {item.offset for item in self.bindings} | {item.offset + item.size for item in self.bindings}
        cuts = sorted({0, mapping.size} | {end for end in ends if end < mapping.size})
        for start, end in pairwise(cuts):
            replicas = [
                find_address(driver, item.physical, item.physical_offset, item.size) + start - item.offset
                for device in self.devices
                for item in self.bindings
                if item.device == device and item.offset <= start < item.offset + item.size
            ]
            problem = ""
            if mapping.access.get((DEVICE, device)) != READ_WRITE:
                problem = f"device {device} may not access this mapping of the multicast object, see cuMemSetAccess"
            elif len(replicas) < self.team:
                problem = f"only {len(replicas)} of {self.team} devices have memory bound to the multicast object here"
            yield Window(mapping.address + start, end - start, tuple(replicas), problem)


def await_team(driver: Driver, multicast: Multicast) -> None:
    """Wait until all devices of the team have been added, as the driver does: other threads may add them."""
    if len(multicast.devices) < multicast.team:
        size = f"{len(multicast.devices)} of {multicast.team}"
        text = f"the call waits for cuMulticastAddDevice, as the team of the object has {size} devices"
        sys.stderr.write(f"pyptx: {text}\n")
        driver.change.wait_for(lambda: len(multicast.devices) == multicast.team)


def find_address(driver: Driver, physical: Physical, offset: int, size: int) -> int:
    """Return where kernels find a part of physical memory: where the program mapped it, so that its accesses there and
    through the multicast object are compared; otherwise, at addresses of ours."""
    ranges = driver.handles.list(Range)
    for mapping in (mapping for item in ranges for mapping in item.mappings.values()):
        is_visible = mapping.backing is physical and mapping.address in driver.heap.allocations
        if is_visible and offset + size <= mapping.size:
            return mapping.address + offset
    if physical.alias is None:
        physical.alias = item = Range.reserve(physical.size, GRANULARITY)
        physical.map_at(item.address, physical.size)
        data = view(item.address, physical.size)
        driver.heap.register(item.address, data, "bound", physical.device)
    return physical.alias.address + offset


def list_multicasts(driver: Driver, device: int) -> Multicasts | None:
    """Return the multicast objects that kernels of a device may name, None if there is none."""
    if not driver.multicasts:
        return None
    windows = [
        window
        for item in driver.handles.list(Range)
        for mapping in item.mappings.values()
        if isinstance(mapping.backing, Multicast)
        for window in mapping.backing.list_windows(driver, mapping, device)
    ]
    return Multicasts(windows)
