"""Virtual memory management: reserved addresses, physical memory, mappings, and access to them."""

from __future__ import annotations

import struct
from typing import TypeVar

from pyptx.driver.codes import Code, DriverError
from pyptx.driver.host_memory import read, view, write, write_pointer
from pyptx.driver.multicasts import Multicast, await_team
from pyptx.driver.pools import DEVICE, PINNED, READ, READ_WRITE, Location
from pyptx.driver.process import Driver, Thread, find_caller
from pyptx.driver.signatures import entry
from pyptx.driver.streams import synchronize
from pyptx.driver.virtual_memory import GRANULARITY, Backing, Physical, Range

Kind = TypeVar("Kind", bound=Backing)
_PROPERTIES = struct.Struct("<IIiiQQ")
"""A `CUmemAllocationProp`."""
_ACCESS = struct.Struct("<iiI")
_LOCATION = struct.Struct("<ii")
_NO_ACCESS = 0


def _read_device(driver: Driver, properties: int) -> tuple[int, bytes]:
    """Return the device of a `CUmemAllocationProp`, and its bytes. DriverError for memory that is not simulated."""
    data = read(properties, _PROPERTIES.size)
    kind, handle_types, place, ordinal, _, _ = _PROPERTIES.unpack(data)
    if kind != PINNED or place != DEVICE or not 0 <= ordinal < len(driver.devices):
        raise DriverError(Code.ERROR_INVALID_VALUE)
    if handle_types:
        raise DriverError(Code.ERROR_NOT_SUPPORTED, "memory cannot be shared with other processes")
    return ordinal, data


def find_range(driver: Driver, address: int) -> Range:
    """Return the range that contains an address."""
    for item in driver.handles.list(Range):
        if item.address <= address < item.address + item.size:
            return item
    raise DriverError(Code.ERROR_INVALID_VALUE)


def check_size(*sizes: int) -> None:
    """Require sizes or addresses that are multiples of the granularity, and not 0."""
    if any(not size or size % GRANULARITY for size in sizes):
        raise DriverError(Code.ERROR_INVALID_VALUE)


def find_backing(driver: Driver, handle: int, kind: type[Kind]) -> Kind:
    """Return the object of a handle that has not been released."""
    backing = driver.handles.get(handle, kind, Code.ERROR_INVALID_VALUE)
    if not backing.handles:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    return backing


@entry("cuMemGetAllocationGranularity", "result pointer uint")
def get_granularity(driver: Driver, thread: Thread, result: int, properties: int, option: int) -> None:
    _read_device(driver, properties)
    if option > 1:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    write_pointer(result, GRANULARITY)


@entry("cuMemAddressReserve", "result size size pointer size")
def reserve(driver: Driver, thread: Thread, result: int, size: int, alignment: int, address: int, flags: int) -> None:
    check_size(size)
    if flags or alignment & (alignment - 1):
        raise DriverError(Code.ERROR_INVALID_VALUE)
    # The wanted address is a hint that may be ignored.
    item = Range.reserve(size, alignment)
    driver.handles.add(lambda handle: item)
    write_pointer(result, item.address)


@entry("cuMemAddressFree", "pointer size")
def free_addresses(driver: Driver, thread: Thread, address: int, size: int) -> None:
    item = find_range(driver, address)
    if (item.address, item.size) != (address, size):
        raise DriverError(Code.ERROR_INVALID_VALUE)
    item.free()
    driver.handles.discard(item)


@entry("cuMemCreate", "result size pointer size")
def create(driver: Driver, thread: Thread, result: int, size: int, properties: int, flags: int) -> None:
    device, data = _read_device(driver, properties)
    check_size(size)
    if flags:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    if driver.heap.used.get(device, 0) + size > driver.devices[device].memory:
        raise DriverError(Code.ERROR_OUT_OF_MEMORY)
    physical = driver.handles.add(lambda handle: Physical.create(handle, device, size, data))
    driver.heap.used[device] = driver.heap.used.get(device, 0) + size
    write_pointer(result, physical.handle)


@entry("cuMemRelease", "size")
def release(driver: Driver, thread: Thread, handle: int) -> None:
    backing = find_backing(driver, handle, Backing)
    backing.handles -= 1
    backing.free_unused(driver)


@entry("cuMemRetainAllocationHandle", "result pointer")
def retain(driver: Driver, thread: Thread, result: int, address: int) -> None:
    backing = find_range(driver, address).find(address).backing
    backing.handles += 1
    write_pointer(result, backing.handle)


@entry("cuMemGetAllocationPropertiesFromHandle", "result size")
def get_properties(driver: Driver, thread: Thread, result: int, handle: int) -> None:
    write(result, find_backing(driver, handle, Physical).properties)


@entry("cuMemMap", "pointer size size size size")
def map_memory(driver: Driver, thread: Thread, address: int, size: int, offset: int, handle: int, flags: int) -> None:
    backing = find_backing(driver, handle, Backing)
    check_size(size, address)
    if offset or flags:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    if isinstance(backing, Multicast):
        await_team(driver, backing)
    find_range(driver, address).map(address, size, backing)


@entry("cuMemUnmap", "pointer size")
def unmap(driver: Driver, thread: Thread, address: int, size: int) -> None:
    item = find_range(driver, address)
    selection = item.select(address, size)
    synchronize(driver)
    for mapping in selection:
        if mapping.address in driver.heap.allocations:
            driver.heap.free(mapping.address, ("mapped",))
        item.unmap(mapping)
        mapping.backing.mappings -= 1
        mapping.backing.free_unused(driver)


@entry("cuMemSetAccess", "pointer size pointer size")
def set_access(driver: Driver, thread: Thread, address: int, size: int, descriptions: int, count: int) -> None:
    selection = find_range(driver, address).select(address, size)
    if not 0 < count <= len(driver.devices):
        raise DriverError(Code.ERROR_INVALID_VALUE)
    changes: dict[Location, int] = {}
    for index in range(count):
        kind, ordinal, flags = _ACCESS.unpack(read(descriptions + index * _ACCESS.size, _ACCESS.size))
        if kind != DEVICE or not 0 <= ordinal < len(driver.devices) or flags not in (_NO_ACCESS, READ, READ_WRITE):
            raise DriverError(Code.ERROR_INVALID_VALUE)
        changes[kind, ordinal] = flags
    synchronize(driver)
    for mapping in selection:
        mapping.access |= changes
        backing = mapping.backing
        is_new = mapping.address not in driver.heap.allocations
        if isinstance(backing, Physical) and is_new and any(mapping.access.values()):
            driver.heap.register(
                mapping.address, view(mapping.address, mapping.size), "mapped", backing.device, find_caller()
            ).access = mapping.access


@entry("cuMemGetAccess", "result pointer pointer")
def get_access(driver: Driver, thread: Thread, result: int, location: int, address: int) -> None:
    kind, ordinal = _LOCATION.unpack(read(location, _LOCATION.size))
    mapping = find_range(driver, address).find(address)
    write_pointer(result, mapping.access.get((kind, ordinal), _NO_ACCESS))
