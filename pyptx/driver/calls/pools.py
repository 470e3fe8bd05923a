"""Memory pools, and allocations in stream order."""

from __future__ import annotations

import struct

from pyptx.driver.captures import forbid_legacy
from pyptx.driver.codes import Code, DriverError
from pyptx.driver.host_memory import read, read_ints, read_pointers, write_int, write_pointer
from pyptx.driver.operations import Allocate, Born, Free
from pyptx.driver.pools import DEVICE, HOST, HOST_NUMA, MANAGED, NO_LOCATION, PINNED, Location, Pool
from pyptx.driver.process import Driver, Thread, find_caller
from pyptx.driver.signatures import entry
from pyptx.driver.streams import Stream, find_stream, submit

_PROPERTIES = struct.Struct("<IIiiQQH54x")
_ACCESS = struct.Struct("<iiI")
_LARGEST_FLAGS, _LAST_SETTING = (0, 1, 3), 4
_RESERVED_CURRENT, _RESERVED_HIGH, _USED_CURRENT, _USED_HIGH = 5, 6, 7, 8
_NO_SHARING = "memory pools of the simulated driver cannot be shared with other processes"


def _find_default(driver: Driver, location: Location, kind: int) -> Pool:
    """Return the default pool of a location, created when first asked for."""
    _check_location(driver, location, kind)
    if location[0] != DEVICE and kind == PINNED:
        location = HOST, 0
    for pool in driver.handles.list(Pool):
        if pool.is_default and (pool.location, pool.type) == (location, kind):
            return pool
    return driver.handles.add(lambda handle: Pool(handle, location, kind, is_default=True))


def _find_current(driver: Driver, location: Location, kind: int) -> Pool:
    """Return the pool that the program chose for a location, or its default."""
    return driver.pools.get((location, kind)) or _find_default(driver, location, kind)


def _check_location(driver: Driver, location: Location, kind: int) -> None:
    """Refuse locations that have no pool."""
    if location[0] == DEVICE:
        driver.get_device(location[1])
    elif location[0] not in (HOST, HOST_NUMA) and not (kind == MANAGED and location[0] == NO_LOCATION):
        raise DriverError(Code.ERROR_INVALID_VALUE)
    if kind not in (PINNED, MANAGED):
        raise DriverError(Code.ERROR_INVALID_VALUE)


def _choose(driver: Driver, location: Location, kind: int, pool: Pool) -> None:
    """Make a pool the current one of a location."""
    if (pool.location, pool.type) != (location, kind):
        raise DriverError(Code.ERROR_INVALID_VALUE)
    driver.pools[location, kind] = pool


def _get(driver: Driver, handle: int) -> Pool:
    return driver.handles.get(handle, Pool, Code.ERROR_INVALID_VALUE)


def _read_location(driver: Driver, address: int) -> Location:
    kind, ordinal = read_ints(address, 2)
    return kind, ordinal


@entry("cuDeviceGetDefaultMemPool", "result int")
def get_default_of_device(driver: Driver, thread: Thread, result: int, ordinal: int) -> None:
    write_pointer(result, _find_default(driver, (DEVICE, ordinal), PINNED).handle)


@entry("cuDeviceGetMemPool", "result int")
def get_pool_of_device(driver: Driver, thread: Thread, result: int, ordinal: int) -> None:
    driver.get_device(ordinal)
    write_pointer(result, _find_current(driver, (DEVICE, ordinal), PINNED).handle)


@entry("cuDeviceSetMemPool", "int pointer")
def set_pool_of_device(driver: Driver, thread: Thread, ordinal: int, handle: int) -> None:
    driver.get_device(ordinal)
    _choose(driver, (DEVICE, ordinal), PINNED, _get(driver, handle))


@entry("cuMemGetDefaultMemPool", "result pointer int")
def get_default(driver: Driver, thread: Thread, result: int, location: int, kind: int) -> None:
    write_pointer(result, _find_default(driver, _read_location(driver, location), kind).handle)


@entry("cuMemGetMemPool", "result pointer int")
def get_pool(driver: Driver, thread: Thread, result: int, location: int, kind: int) -> None:
    write_pointer(result, _find_current(driver, _read_location(driver, location), kind).handle)


@entry("cuMemSetMemPool", "pointer int pointer")
def set_pool(driver: Driver, thread: Thread, location: int, kind: int, handle: int) -> None:
    _choose(driver, _read_location(driver, location), kind, _get(driver, handle))


@entry("cuMemPoolCreate", "result pointer")
def create_pool(driver: Driver, thread: Thread, result: int, properties: int) -> None:
    values = _PROPERTIES.unpack(read(properties, _PROPERTIES.size))
    kind, shareable, place, ordinal, security, limit, _ = values
    _check_location(driver, (place, ordinal), kind)
    if security or (kind == MANAGED and limit):
        raise DriverError(Code.ERROR_INVALID_VALUE)
    if shareable:
        raise DriverError(Code.ERROR_NOT_SUPPORTED, _NO_SHARING)
    write_pointer(result, driver.handles.add(lambda handle: Pool(handle, (place, ordinal), kind, limit)).handle)


@entry("cuMemPoolDestroy", "pointer")
def destroy_pool(driver: Driver, thread: Thread, handle: int) -> None:
    pool = _get(driver, handle)
    if pool.is_default:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    driver.handles.remove(handle, Pool)
    driver.pools = {key: other for key, other in driver.pools.items() if other is not pool}


@entry("cuMemPoolGetAttribute", "pointer int result")
def get_attribute(driver: Driver, thread: Thread, handle: int, attribute: int, result: int) -> None:
    pool = _get(driver, handle)
    sizes = {
        4: pool.settings[4], _RESERVED_CURRENT: pool.reserved.current, _RESERVED_HIGH: pool.reserved.high,
        _USED_CURRENT: pool.used.current, _USED_HIGH: pool.used.high, 13: pool.limit,
    }  # fmt: skip
    numbers = {key: pool.settings[key] for key in (1, 2, 3)}
    numbers |= {9: pool.type, 10: 0, 11: pool.location[1], 12: pool.location[0], 14: 0, 15: -1}
    if attribute in sizes:
        write_pointer(result, sizes[attribute])
    elif attribute in numbers:
        write_int(result, numbers[attribute])
    else:
        raise DriverError(Code.ERROR_INVALID_VALUE)


@entry("cuMemPoolSetAttribute", "pointer int pointer")
def set_attribute(driver: Driver, thread: Thread, handle: int, attribute: int, address: int) -> None:
    pool = _get(driver, handle)
    if attribute in (1, 2, 3):
        (pool.settings[attribute],) = read_ints(address, 1)
        return
    meters = {_RESERVED_HIGH: pool.reserved, _USED_HIGH: pool.used}
    (value,) = read_pointers(address, 1)
    if attribute == _LAST_SETTING:
        pool.settings[attribute] = value
    elif attribute in meters and not value:
        meters[attribute].high = meters[attribute].current
    else:
        raise DriverError(Code.ERROR_INVALID_VALUE)


@entry("cuMemPoolSetAccess", "pointer pointer size")
def set_access(driver: Driver, thread: Thread, handle: int, descriptions: int, count: int) -> None:
    pool = _get(driver, handle)
    changes: dict[Location, int] = {}
    for index in range(min(count, len(driver.devices) + 1)):
        kind, ordinal, flags = _ACCESS.unpack(read(descriptions + index * _ACCESS.size, _ACCESS.size))
        _check_location(driver, (kind, ordinal), PINNED)
        if flags not in _LARGEST_FLAGS or ((kind, ordinal) == pool.location and not flags):
            raise DriverError(Code.ERROR_INVALID_VALUE)
        changes[kind, ordinal] = flags
    pool.access |= changes


@entry("cuMemPoolGetAccess", "result pointer pointer")
def get_access(driver: Driver, thread: Thread, result: int, handle: int, location: int) -> None:
    pool, place = _get(driver, handle), _read_location(driver, location)
    _check_location(driver, place, PINNED)
    write_int(result, pool.access.get(place, 0))


@entry("cuMemPoolTrimTo", "pointer size")
def trim_pool(driver: Driver, thread: Thread, handle: int, keep: int) -> None:
    _get(driver, handle).trim(keep)


@entry("cuMemPoolExportToShareableHandle", "pointer pointer int size")
def export_pool(driver: Driver, thread: Thread, result: int, handle: int, kind: int, flags: int) -> None:
    raise DriverError(Code.ERROR_NOT_SUPPORTED, _NO_SHARING)


@entry("cuMemPoolImportFromShareableHandle", "pointer pointer int size")
def import_pool(driver: Driver, thread: Thread, result: int, handle: int, kind: int, flags: int) -> None:
    raise DriverError(Code.ERROR_NOT_SUPPORTED, _NO_SHARING)


@entry("cuMemPoolExportPointer", "pointer pointer")
def export_pointer(driver: Driver, thread: Thread, result: int, address: int) -> None:
    raise DriverError(Code.ERROR_NOT_SUPPORTED, _NO_SHARING)


@entry("cuMemPoolImportPointer", "pointer pointer pointer")
def import_pointer(driver: Driver, thread: Thread, result: int, handle: int, data: int) -> None:
    raise DriverError(Code.ERROR_NOT_SUPPORTED, _NO_SHARING)


def _allocate(driver: Driver, thread: Thread, pool: Pool, size: int, stream: Stream) -> int:
    """Allocate memory of a pool and return its address; in a capture, memory that the graph allocates."""
    device = pool.location[1] if pool.location[0] == DEVICE else stream.device
    if stream.capture is not None:
        allocation = make_allocation(driver, device, size)
        submit(driver, stream, allocation)
        return allocation.address
    forbid_legacy(driver, stream)
    pool.take(size)
    try:
        memory = driver.heap.allocate(size, pool.kind, device, driver.devices[device].memory, find_caller())
    except DriverError:
        pool.give(size)
        raise
    memory.pool = pool
    submit(driver, stream, Born(memory.address, size))
    return memory.address


def make_allocation(driver: Driver, device: int, size: int) -> Allocate:
    """Return the allocation of memory by a graph."""
    return Allocate(find_graph_pool(driver, device), driver.heap.reserve(size), device, find_caller())


def find_graph_pool(driver: Driver, device: int) -> Pool:
    """Return the pool that counts the memory of graphs on a device."""
    driver.get_device(device)
    return driver.graph_pools.setdefault(device, Pool(0, (DEVICE, device)))


@entry("cuDeviceGetGraphMemAttribute", "int int result")
def get_graph_memory(driver: Driver, thread: Thread, ordinal: int, attribute: int, result: int) -> None:
    pool = find_graph_pool(driver, ordinal)
    meters = pool.used.current, pool.used.high, pool.reserved.current, pool.reserved.high
    if not 0 <= attribute < len(meters):
        raise DriverError(Code.ERROR_INVALID_VALUE)
    write_pointer(result, meters[attribute])


@entry("cuDeviceSetGraphMemAttribute", "int int pointer")
def reset_graph_memory(driver: Driver, thread: Thread, ordinal: int, attribute: int, address: int) -> None:
    pool = find_graph_pool(driver, ordinal)
    meters = {1: pool.used, 3: pool.reserved}
    if attribute not in meters or read_pointers(address, 1)[0]:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    meters[attribute].high = meters[attribute].current


@entry("cuDeviceGraphMemTrim", "int")
def trim_graph_memory(driver: Driver, thread: Thread, ordinal: int) -> None:
    find_graph_pool(driver, ordinal).trim(0)


@entry("cuMemAllocAsync", "result size pointer")
def allocate_in_order(driver: Driver, thread: Thread, result: int, size: int, stream: int) -> None:
    queue = find_stream(driver, thread, stream)
    pool = _find_current(driver, (DEVICE, queue.device), PINNED)
    write_pointer(result, _allocate(driver, thread, pool, size, queue))


@entry("cuMemAllocFromPoolAsync", "result size pointer pointer")
def allocate_from_pool(driver: Driver, thread: Thread, result: int, size: int, handle: int, stream: int) -> None:
    queue = find_stream(driver, thread, stream)
    write_pointer(result, _allocate(driver, thread, _get(driver, handle), size, queue))


@entry("cuMemFreeAsync", "pointer pointer")
def free_in_order(driver: Driver, thread: Thread, address: int, stream: int) -> None:
    submit(driver, find_stream(driver, thread, stream), Free(address))
