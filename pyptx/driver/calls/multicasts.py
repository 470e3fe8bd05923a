"""Multicast objects: their team of devices, and the memory that is bound to them."""

from __future__ import annotations

import struct

from pyptx.driver.calls.virtual_memory import check_size, find_backing, find_range
from pyptx.driver.codes import Code, DriverError
from pyptx.driver.devices import MULTICAST_SUPPORTED
from pyptx.driver.host_memory import read, write_pointer
from pyptx.driver.multicasts import Binding, Multicast, await_team
from pyptx.driver.process import Driver, Thread
from pyptx.driver.signatures import entry
from pyptx.driver.streams import synchronize
from pyptx.driver.virtual_memory import GRANULARITY, Physical

_PROPERTIES = struct.Struct("<I4xQQQ")
"""A `CUmulticastObjectProp`."""


def _read_properties(driver: Driver, properties: int) -> tuple[int, int]:
    """Return the devices of the team, and the bytes of each. DriverError for an object that is not simulated."""
    team, size, handle_types, flags = _PROPERTIES.unpack(read(properties, _PROPERTIES.size))
    if not 0 < team <= len(driver.devices) or flags:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    if not driver.attributes[0].get(MULTICAST_SUPPORTED):
        raise DriverError(Code.ERROR_NOT_SUPPORTED, f"{driver.devices[0].name} has no multicast")
    if handle_types:
        raise DriverError(Code.ERROR_NOT_SUPPORTED, "multicast objects cannot be shared with other processes")
    return team, size


@entry("cuMulticastGetGranularity", "result pointer int")
def get_granularity(driver: Driver, thread: Thread, result: int, properties: int, option: int) -> None:
    _read_properties(driver, properties)
    if option not in (0, 1):
        raise DriverError(Code.ERROR_INVALID_VALUE)
    write_pointer(result, GRANULARITY)


@entry("cuMulticastCreate", "result pointer")
def create(driver: Driver, thread: Thread, result: int, properties: int) -> None:
    team, size = _read_properties(driver, properties)
    check_size(size)
    multicast = driver.handles.add(lambda handle: Multicast(handle, size, team))
    driver.multicasts.append(multicast)
    write_pointer(result, multicast.handle)


@entry("cuMulticastAddDevice", "size int")
def add_device(driver: Driver, thread: Thread, handle: int, ordinal: int) -> None:
    multicast = find_backing(driver, handle, Multicast)
    driver.get_device(ordinal)
    if ordinal in multicast.devices or len(multicast.devices) == multicast.team:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    multicast.devices.append(ordinal)
    driver.change.notify_all()


def _bind(
    driver: Driver, handle: int, device: int, offset: int, physical: Physical, start: int, size: int, flags: int
) -> None:
    """Bind a part of physical memory."""
    multicast = find_backing(driver, handle, Multicast)
    check_size(size)
    if flags or offset % GRANULARITY or start % GRANULARITY:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    if offset + size > multicast.size or start + size > physical.size or device != physical.device:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    await_team(driver, multicast)
    if device not in multicast.devices:
        raise DriverError(Code.ERROR_INVALID_DEVICE)
    multicast.bind(Binding(device, offset, size, physical, start))


def _find_physical(driver: Driver, address: int) -> tuple[Physical, int]:
    """Return the physical memory at an address, and where in it the address is."""
    mapping = find_range(driver, address).find(address)
    if not isinstance(mapping.backing, Physical):
        raise DriverError(Code.ERROR_INVALID_VALUE)
    return mapping.backing, address - mapping.address


@entry("cuMulticastBindMem", "size size size size size size")
def bind_memory(
    driver: Driver, thread: Thread, handle: int, offset: int, memory: int, start: int, size: int, flags: int
) -> None:
    physical = find_backing(driver, memory, Physical)
    _bind(driver, handle, physical.device, offset, physical, start, size, flags)


@entry("cuMulticastBindMem_v2", "size int size size size size size")
def bind_memory_of_device(
    driver: Driver, thread: Thread, handle: int, device: int, offset: int, memory: int, start: int, size: int,
    flags: int,
) -> None:  # fmt: skip
    _bind(driver, handle, device, offset, find_backing(driver, memory, Physical), start, size, flags)


@entry("cuMulticastBindAddr", "size size pointer size size")
def bind_address(driver: Driver, thread: Thread, handle: int, offset: int, address: int, size: int, flags: int) -> None:
    physical, start = _find_physical(driver, address)
    _bind(driver, handle, physical.device, offset, physical, start, size, flags)


@entry("cuMulticastBindAddr_v2", "size int size pointer size size")
def bind_address_of_device(
    driver: Driver, thread: Thread, handle: int, device: int, offset: int, address: int, size: int, flags: int
) -> None:
    _bind(driver, handle, device, offset, *_find_physical(driver, address), size, flags)


@entry("cuMulticastUnbind", "size int size size")
def unbind(driver: Driver, thread: Thread, handle: int, device: int, offset: int, size: int) -> None:
    multicast = find_backing(driver, handle, Multicast)
    bindings = [item for item in multicast.bindings if (item.device, item.offset, item.size) == (device, offset, size)]
    if not bindings:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    synchronize(driver)
    multicast.unbind(driver, bindings)
