"""Memory that other processes open by a handle."""

from __future__ import annotations

from pyptx.driver.codes import Code, DriverError
from pyptx.driver.host_memory import read, write, write_pointer
from pyptx.driver.process import Driver, Thread, find_caller
from pyptx.driver.sharing import HANDLE_SIZE, Import, export, open_memory
from pyptx.driver.signatures import entry
from pyptx.driver.streams import synchronize

_LAZY_ENABLE_PEER_ACCESS = 1


@entry("cuIpcGetMemHandle", "result pointer")
def get_handle(driver: Driver, thread: Thread, result: int, address: int) -> None:
    driver.get_context(thread)
    allocation = driver.heap.find(address)
    if allocation is None or allocation.kind != "device" or allocation.pool is not None:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    synchronize(driver)
    write(result, export(driver.heap, allocation))


@entry("cuIpcOpenMemHandle cuIpcOpenMemHandle_v2", "result handle uint")
def open_handle(driver: Driver, thread: Thread, result: int, handle: int, flags: int) -> None:
    driver.get_context(thread)
    if flags != _LAZY_ENABLE_PEER_ACCESS:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    data = read(handle, HANDLE_SIZE)
    item = driver.imports.get(data)
    if item is None:
        memory, device = open_memory(data)
        driver.get_device(device)
        address = memory.ctypes.data
        driver.heap.register(address, memory, "imported", device, find_caller())
        driver.imports[data] = Import(address)
    else:
        item.count += 1
        address = item.address
    write_pointer(result, address)


@entry("cuIpcCloseMemHandle", "pointer")
def close_handle(driver: Driver, thread: Thread, address: int) -> None:
    driver.get_context(thread)
    data = next((data for data, item in driver.imports.items() if item.address == address), None)
    if data is None:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    item = driver.imports[data]
    item.count -= 1
    if not item.count:
        synchronize(driver)
        del driver.imports[data]
        driver.heap.free(address, ("imported",))
