"""Devices and their properties."""

from __future__ import annotations

from pyptx.driver.codes import Code, DriverError
from pyptx.driver.host_memory import read_text, write, write_int, write_pointer, write_text
from pyptx.driver.process import Driver, Thread
from pyptx.driver.signatures import entry

_PEER_ATTRIBUTES = {1: 0, 2: 1, 3: 1, 4: 0}
"""By their number in the enum `CUdevice_P2PAttribute`: rank, access, atomic operations, access to arrays."""
_LAST_ATTRIBUTE = 161


@entry("cuDeviceGet", "result int")
def get_device(driver: Driver, thread: Thread, result: int, ordinal: int) -> None:
    driver.get_device(ordinal)
    write_int(result, ordinal)


@entry("cuDeviceGetCount", "result")
def count_devices(driver: Driver, thread: Thread, result: int) -> None:
    write_int(result, len(driver.devices))


@entry("cuDeviceGetName", "result int int")
def get_name(driver: Driver, thread: Thread, result: int, size: int, ordinal: int) -> None:
    write_text(result, driver.get_device(ordinal).name, size)


@entry("cuDeviceGetUuid cuDeviceGetUuid_v2", "result int")
def get_uuid(driver: Driver, thread: Thread, result: int, ordinal: int) -> None:
    write(result, driver.get_device(ordinal).make_uuid(ordinal))


@entry("cuDeviceTotalMem_v2", "result int")
def get_total_memory(driver: Driver, thread: Thread, result: int, ordinal: int) -> None:
    write_pointer(result, driver.get_device(ordinal).memory)


@entry("cuDeviceGetAttribute", "result int int")
def get_attribute(driver: Driver, thread: Thread, result: int, attribute: int, ordinal: int) -> None:
    driver.get_device(ordinal)
    if not 0 < attribute <= _LAST_ATTRIBUTE:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    write_int(result, driver.attributes[ordinal].get(attribute, 0))


@entry("cuDeviceComputeCapability", "pointer pointer int")
def get_capability(driver: Driver, thread: Thread, major: int, minor: int, ordinal: int) -> None:
    for address, value in zip((major, minor), driver.get_device(ordinal).capability, strict=True):
        write_int(address, value)


@entry("cuDeviceGetPCIBusId", "result int int")
def get_bus(driver: Driver, thread: Thread, result: int, size: int, ordinal: int) -> None:
    driver.get_device(ordinal)
    write_text(result, f"0000:{ordinal + 1:02X}:00.0", size)


@entry("cuDeviceGetByPCIBusId", "result pointer")
def find_by_bus(driver: Driver, thread: Thread, result: int, text: int) -> None:
    names = [f"0000:{ordinal + 1:02X}:00.0" for ordinal in range(len(driver.devices))]
    name = read_text(text).upper()
    if name not in names:
        raise DriverError(Code.ERROR_INVALID_DEVICE)
    write_int(result, names.index(name))


@entry("cuDeviceCanAccessPeer", "result int int")
def can_access_peer(driver: Driver, thread: Thread, result: int, ordinal: int, peer: int) -> None:
    driver.get_device(ordinal)
    driver.get_device(peer)
    write_int(result, int(ordinal != peer))


@entry("cuDeviceGetP2PAttribute", "result int int int")
def get_peer_attribute(driver: Driver, thread: Thread, result: int, attribute: int, ordinal: int, peer: int) -> None:
    """Answer like devices behind a switch: each accesses the memory of the others, also by atomic operations."""
    driver.get_device(ordinal)
    driver.get_device(peer)
    if ordinal == peer:
        raise DriverError(Code.ERROR_INVALID_DEVICE)
    if attribute not in _PEER_ATTRIBUTES:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    write_int(result, _PEER_ATTRIBUTES[attribute])
