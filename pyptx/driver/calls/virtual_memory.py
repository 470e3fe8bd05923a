"""Virtual memory management: reserved addresses, physical memory, mappings, and access to them."""

from __future__ import annotations

import struct

from pyptx.driver.codes import Code, DriverError
from pyptx.driver.host_memory import read, view, write, write_pointer
from pyptx.driver.pools import DEVICE, PINNED, READ, READ_WRITE, Location
from pyptx.driver.process import Driver, Thread, find_caller
from pyptx.driver.signatures import entry
from pyptx.driver.streams import synchronize
from pyptx.driver.virtual_memory import GRANULARITY, Physical, Range

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


def _find_range(driver: Driver, address: int) -> Range:
    """Return the range that contains an address."""
    for item in driver.handles.list(Range):
        if item.address <= address < item.address + item.size:
            return item
    raise DriverError(Code.ERROR_INVALID_VALUE)


def _check_size(size: int) -> None:
    if not size or size % GRANULARITY:
        raise DriverError(Code.ERROR_INVALID_VALUE)


def _find(driver: Driver, handle: int) -> Physical:
    """Return the physical memory of a handle that has not been released."""
    physical = driver.handles.get(handle, Physical, Code.ERROR_INVALID_VALUE)
    if not physical.handles:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    return physical


def _free_unused(driver: Driver, physical: Physical) -> None:
    """Free physical memory that has neither handles nor mappings."""
    if not physical.handles and not physical.mappings:
        driver.heap.used[physical.device] -= physical.size
        driver.handles.remove(physical.handle, Physical)
        physical.close()


@entry("cuMemGetAllocationGranularity", "result pointer uint")
def get_granularity(driver: Driver, thread: Thread, result: int, properties: int, option: int) -> None:
    _read_device(driver, properties)
    if option > 1:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    write_pointer(result, GRANULARITY)


@entry("cuMemAddressReserve", "result size size pointer size")
def reserve(driver: Driver, thread: Thread, result: int, size: int, alignment: int, address: int, flags: int) -> None:
    _check_size(size)
    if flags or alignment & (alignment - 1):
        raise DriverError(Code.ERROR_INVALID_VALUE)
    # The wanted address is a hint that may be ignored.
    item = Range.reserve(size, alignment)
    driver.handles.add(lambda handle: item)
    write_pointer(result, item.address)


@entry("cuMemAddressFree", "pointer size")
def free_addresses(driver: Driver, thread: Thread, address: int, size: int) -> None:
    item = _find_range(driver, address)
    if (item.address, item.size) != (address, size):
        raise DriverError(Code.ERROR_INVALID_VALUE)
    item.free()
    driver.handles.discard(item)


@entry("cuMemCreate", "result size pointer size")
def create(driver: Driver, thread: Thread, result: int, size: int, properties: int, flags: int) -> None:
    device, data = _read_device(driver, properties)
    _check_size(size)
    if flags:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    if driver.heap.used.get(device, 0) + size > driver.devices[device].memory:
        raise DriverError(Code.ERROR_OUT_OF_MEMORY)
    physical = driver.handles.add(lambda handle: Physical.create(handle, device, size, data))
    driver.heap.used[device] = driver.heap.used.get(device, 0) + size
    write_pointer(result, physical.handle)


@entry("cuMemRelease", "size")
def release(driver: Driver, thread: Thread, handle: int) -> None:
    physical = _find(driver, handle)
    physical.handles -= 1
    _free_unused(driver, physical)


@entry("cuMemRetainAllocationHandle", "result pointer")
def retain(driver: Driver, thread: Thread, result: int, address: int) -> None:
    for mapping in _find_range(driver, address).mappings.values():
        if mapping.address <= address < mapping.address + mapping.size:
            mapping.physical.handles += 1
            write_pointer(result, mapping.physical.handle)
            return
    raise DriverError(Code.ERROR_INVALID_VALUE)


@entry("cuMemGetAllocationPropertiesFromHandle", "result size")
def get_properties(driver: Driver, thread: Thread, result: int, handle: int) -> None:
    write(result, _find(driver, handle).properties)


@entry("cuMemMap", "pointer size size size size")
def map_memory(driver: Driver, thread: Thread, address: int, size: int, offset: int, handle: int, flags: int) -> None:
    physical = _find(driver, handle)
    _check_size(size)
    if offset or flags or address % GRANULARITY:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    _find_range(driver, address).map(address, size, physical)


@entry("cuMemUnmap", "pointer size")
def unmap(driver: Driver, thread: Thread, address: int, size: int) -> None:
    item = _find_range(driver, address)
    selection = item.select(address, size)
    synchronize(driver)
    for mapping in selection:
        if mapping.address in driver.heap.allocations:
            driver.heap.free(mapping.address, ("mapped",))
        item.unmap(mapping)
        mapping.physical.mappings -= 1
        _free_unused(driver, mapping.physical)


@entry("cuMemSetAccess", "pointer size pointer size")
def set_access(driver: Driver, thread: Thread, address: int, size: int, descriptions: int, count: int) -> None:
    selection = _find_range(driver, address).select(address, size)
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
        if mapping.address not in driver.heap.allocations and any(mapping.access.values()):
            driver.heap.register(
                mapping.address, view(mapping.address, mapping.size), "mapped", mapping.physical.device, find_caller()
            ).access = mapping.access


@entry("cuMemGetAccess", "result pointer pointer")
def get_access(driver: Driver, thread: Thread, result: int, location: int, address: int) -> None:
    kind, ordinal = _LOCATION.unpack(read(location, _LOCATION.size))
    for mapping in _find_range(driver, address).mappings.values():
        if mapping.address <= address < mapping.address + mapping.size:
            write_pointer(result, mapping.access.get((kind, ordinal), _NO_ACCESS))
            return
    raise DriverError(Code.ERROR_INVALID_VALUE)
