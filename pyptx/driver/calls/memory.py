"""Allocations of the program, and questions about addresses."""

from __future__ import annotations

from pyptx.driver.captures import forbid_unsafe
from pyptx.driver.codes import Code, DriverError
from pyptx.driver.heap import ALIGNMENT, Allocation
from pyptx.driver.host_memory import read_ints, read_pointers, view, write, write_int, write_pointer
from pyptx.driver.operations import free_memory
from pyptx.driver.process import Driver, Thread, find_caller
from pyptx.driver.signatures import entry
from pyptx.driver.streams import find_stream, synchronize

_DEVICE_MEMORY, _HOST_MEMORY = 2, 1
_KINDS = ("device", "managed", "mapped", "imported")
_ATTRIBUTE_SIZES = {
    **dict.fromkeys((1, 3, 4, 7, 11, 12, 14, 17), 8),
    **dict.fromkeys((2, 9, 16), 4),
    **dict.fromkeys((6, 8, 10, 13, 15), 1),
}
"""The bytes of each attribute of an address."""


def allocate(driver: Driver, thread: Thread, size: int, kind: str) -> Allocation:
    """Allocate memory for the current device."""
    device = driver.get_context(thread).device
    forbid_unsafe(driver, thread)
    limit = driver.devices[device].memory
    return driver.heap.allocate(size, kind, device, limit, find_caller())


@entry("cuMemAlloc_v2", "result size")
def allocate_device(driver: Driver, thread: Thread, result: int, size: int) -> None:
    write_pointer(result, allocate(driver, thread, size, "device").address)


@entry("cuMemAllocPitch_v2", "result pointer size size uint")
def allocate_pitched(
    driver: Driver, thread: Thread, result: int, pitch: int, width: int, height: int, element: int
) -> None:
    if element not in (4, 8, 16):
        raise DriverError(Code.ERROR_INVALID_VALUE)
    row = -(-width // ALIGNMENT) * ALIGNMENT
    write_pointer(result, allocate(driver, thread, row * height, "device").address)
    write_pointer(pitch, row)


@entry("cuMemFree_v2", "pointer")
def free_device(driver: Driver, thread: Thread, address: int) -> None:
    driver.get_context(thread)
    if not address:
        return
    forbid_unsafe(driver, thread)
    synchronize(driver)
    free_memory(driver, address)


@entry("cuMemAllocManaged", "result size uint")
def allocate_managed(driver: Driver, thread: Thread, result: int, size: int, flags: int) -> None:
    if flags & 3 not in (1, 2):
        raise DriverError(Code.ERROR_INVALID_VALUE)
    write_pointer(result, allocate(driver, thread, size, "managed").address)


@entry("cuMemAllocHost_v2", "result size")
def allocate_host(driver: Driver, thread: Thread, result: int, size: int) -> None:
    write_pointer(result, allocate(driver, thread, size, "host").address)


@entry("cuMemHostAlloc", "result size uint")
def allocate_host_with_flags(driver: Driver, thread: Thread, result: int, size: int, flags: int) -> None:
    allocate_host(driver, thread, result, size)


@entry("cuMemFreeHost", "pointer")
def free_host(driver: Driver, thread: Thread, address: int) -> None:
    driver.get_context(thread)
    forbid_unsafe(driver, thread)
    synchronize(driver)
    driver.heap.free(address, ("host",))


@entry("cuMemHostRegister_v2", "pointer size uint")
def register_host(driver: Driver, thread: Thread, address: int, size: int, flags: int) -> None:
    context = driver.get_context(thread)
    if not address or not size:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    driver.heap.register(address, view(address, size), "registered", context.device, find_caller())


@entry("cuMemHostUnregister", "pointer")
def unregister_host(driver: Driver, thread: Thread, address: int) -> None:
    driver.get_context(thread)
    synchronize(driver)
    allocation = driver.heap.allocations.get(address)
    if allocation is None or allocation.kind != "registered":
        raise DriverError(Code.ERROR_HOST_MEMORY_NOT_REGISTERED)
    driver.heap.free(address, ("registered",))


@entry("cuMemHostGetDevicePointer_v2", "result pointer uint")
def get_device_pointer(driver: Driver, thread: Thread, result: int, address: int, flags: int) -> None:
    driver.get_context(thread)
    if flags or driver.heap.find(address) is None:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    write_pointer(result, address)


@entry("cuMemHostGetFlags", "result pointer")
def get_host_flags(driver: Driver, thread: Thread, result: int, address: int) -> None:
    driver.get_context(thread)
    _find(driver, address)
    write_int(result, 0)


@entry("cuMemGetInfo_v2", "pointer pointer")
def get_info(driver: Driver, thread: Thread, free: int, total: int) -> None:
    device = driver.get_context(thread).device
    memory = driver.devices[device].memory
    write_pointer(free, memory - driver.heap.used.get(device, 0))
    write_pointer(total, memory)


@entry("cuMemGetAddressRange_v2", "pointer pointer pointer")
def get_range(driver: Driver, thread: Thread, base: int, size: int, address: int) -> None:
    driver.get_context(thread)
    allocation = _find(driver, address, Code.ERROR_NOT_FOUND)
    write_pointer(base, allocation.address)
    write_pointer(size, allocation.size)


def _find(driver: Driver, address: int, code: Code = Code.ERROR_INVALID_VALUE) -> Allocation:
    allocation = driver.heap.find(address)
    if allocation is None:
        raise DriverError(code)
    return allocation


def _write_attribute(driver: Driver, result: int, attribute: int, address: int) -> None:
    """Write an attribute of an address, by its number in the enum `CUpointer_attribute`."""
    allocation = _find(driver, address)
    values = {
        1: driver.primary[allocation.device].handle,
        2: _DEVICE_MEMORY if allocation.kind in _KINDS else _HOST_MEMORY,
        3: address,
        4: 0 if driver.heap.find_kind(address) == "device" else address,
        7: allocation.number,
        8: int(allocation.kind == "managed"),
        9: allocation.device,
        11: allocation.address,
        12: allocation.size,
        13: 1,
        16: 3,
        17: allocation.pool.handle if allocation.pool else 0,
    }
    _write_value(result, attribute, values.get(attribute, 0))


def _write_value(result: int, attribute: int, value: int) -> None:
    if attribute not in _ATTRIBUTE_SIZES:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    write(result, value.to_bytes(_ATTRIBUTE_SIZES[attribute], "little"))


@entry("cuPointerGetAttribute", "result int pointer")
def get_attribute(driver: Driver, thread: Thread, result: int, attribute: int, address: int) -> None:
    driver.get_context(thread)
    _write_attribute(driver, result, attribute, address)


@entry("cuPointerGetAttributes", "uint pointer pointer pointer")
def get_attributes(driver: Driver, thread: Thread, count: int, attributes: int, results: int, address: int) -> None:
    """An address that is not the driver's has the default value of each attribute."""
    driver.get_context(thread)
    numbers = read_ints(attributes, count)
    is_known = driver.heap.find(address) is not None
    for attribute, result in zip(numbers, read_pointers(results, count), strict=True):
        if is_known:
            _write_attribute(driver, result, attribute, address)
        else:
            _write_value(result, attribute, 0)


@entry("cuPointerSetAttribute", "pointer int pointer")
def set_attribute(driver: Driver, thread: Thread, value: int, attribute: int, address: int) -> None:
    driver.get_context(thread)
    _find(driver, address)
    if attribute != 6:
        raise DriverError(Code.ERROR_INVALID_VALUE)


def _accept_hint(driver: Driver, address: int, size: int) -> None:
    """Take a hint about managed memory, which the simulation does not move."""
    allocation = driver.heap.find(address)
    is_other = allocation is not None and allocation.kind != "managed"
    if not size or is_other or driver.heap.view(address, size) is None:
        raise DriverError(Code.ERROR_INVALID_VALUE)


@entry("cuMemAdvise", "pointer size int int")
def advise(driver: Driver, thread: Thread, address: int, size: int, advice: int, ordinal: int) -> None:
    driver.get_context(thread)
    _accept_hint(driver, address, size)


@entry("cuMemAdvise_v2", "pointer size int size")
def advise_for_location(driver: Driver, thread: Thread, address: int, size: int, advice: int, location: int) -> None:
    advise(driver, thread, address, size, advice, 0)


@entry("cuMemPrefetchAsync", "pointer size int pointer")
def prefetch(driver: Driver, thread: Thread, address: int, size: int, ordinal: int, stream: int) -> None:
    find_stream(driver, thread, stream)
    _accept_hint(driver, address, size)


@entry("cuMemPrefetchAsync_v2", "pointer size size uint pointer")
def prefetch_to_location(
    driver: Driver, thread: Thread, address: int, size: int, location: int, flags: int, stream: int
) -> None:
    prefetch(driver, thread, address, size, 0, stream)


@entry("cuStreamAttachMemAsync", "pointer pointer size uint")
def attach(driver: Driver, thread: Thread, stream: int, address: int, size: int, flags: int) -> None:
    prefetch(driver, thread, address, size or 1, 0, stream)
