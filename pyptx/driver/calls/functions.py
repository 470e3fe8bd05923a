"""Attributes of kernels, and how many of their CTAs fit on an SM."""

from __future__ import annotations

import ctypes
from math import prod

from pyptx.driver.calls.launches import limit_cluster, read_config
from pyptx.driver.codes import Code, DriverError
from pyptx.driver.host_memory import write_int, write_pointer
from pyptx.driver.modules import MAX_DYNAMIC_SHARED, Kernel
from pyptx.driver.process import Driver, Thread
from pyptx.driver.signatures import entry
from pyptx.isa.limits import WARP_SIZE, sm_limits

_SHARED_SIZE = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int)
"""A function of the program that returns the dynamic shared memory of a CTA with so many threads."""
_SETTABLE = (MAX_DYNAMIC_SHARED, 9, 10, 11, 12, 13, 14, 15, 16, 17)


@entry("cuFuncGetAttribute", "result int pointer")
def get_attribute(driver: Driver, thread: Thread, result: int, attribute: int, handle: int) -> None:
    driver.get_context(thread)
    value = driver.handles.get(handle, Kernel).find_attribute(driver, attribute)
    if value is None:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    write_int(result, value)


@entry("cuKernelGetAttribute", "result int pointer int")
def get_kernel_attribute(
    driver: Driver, thread: Thread, result: int, attribute: int, handle: int, ordinal: int
) -> None:
    get_attribute(driver, thread, result, attribute, handle)


@entry("cuFuncSetAttribute", "pointer int int")
def set_attribute(driver: Driver, thread: Thread, handle: int, attribute: int, value: int) -> None:
    device = driver.get_context(thread).device
    kernel = driver.handles.get(handle, Kernel)
    if attribute not in _SETTABLE:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    if attribute == MAX_DYNAMIC_SHARED:
        most = sm_limits(driver.devices[device].target).shared_per_cta - kernel.measure_shared(driver)
        if not 0 <= value <= most:
            raise DriverError(Code.ERROR_INVALID_VALUE)
    kernel.settings[attribute] = value


@entry("cuKernelSetAttribute", "int int pointer int")
def set_kernel_attribute(driver: Driver, thread: Thread, attribute: int, value: int, handle: int, ordinal: int) -> None:
    set_attribute(driver, thread, handle, attribute, value)


@entry("cuFuncSetCacheConfig cuFuncSetSharedMemConfig", "pointer int")
def ignore_preference(driver: Driver, thread: Thread, handle: int, preference: int) -> None:
    driver.get_context(thread)
    driver.handles.get(handle, Kernel)


@entry("cuKernelSetCacheConfig", "pointer int int")
def ignore_kernel_preference(driver: Driver, thread: Thread, handle: int, preference: int, ordinal: int) -> None:
    driver.get_device(ordinal)
    driver.handles.get(handle, Kernel)


@entry("cuFuncLoad", "pointer")
def load_function(driver: Driver, thread: Thread, handle: int) -> None:
    driver.get_context(thread)
    driver.handles.get(handle, Kernel)


@entry("cuFuncIsLoaded", "result pointer")
def is_loaded(driver: Driver, thread: Thread, result: int, handle: int) -> None:
    driver.handles.get(handle, Kernel)
    write_int(result, 1)


@entry("cuFuncGetParamInfo cuKernelGetParamInfo", "pointer size pointer pointer")
def get_parameter(driver: Driver, thread: Thread, handle: int, index: int, offset: int, size: int) -> None:
    layout = driver.handles.get(handle, Kernel).layout
    if index >= len(layout):
        raise DriverError(Code.ERROR_INVALID_VALUE)
    write_pointer(offset, layout[index][0])
    write_pointer(size, layout[index][1])


@entry("cuFuncGetParamCount cuKernelGetParamCount", "pointer result")
def count_parameters(driver: Driver, thread: Thread, handle: int, result: int) -> None:
    write_pointer(result, len(driver.handles.get(handle, Kernel).layout))


@entry("cuOccupancyMaxActiveBlocksPerMultiprocessor", "result pointer int size")
def get_resident(driver: Driver, thread: Thread, result: int, handle: int, threads: int, dynamic: int) -> None:
    device = driver.get_context(thread).device
    write_int(result, driver.handles.get(handle, Kernel).count_resident(driver, device, threads, dynamic))


@entry("cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", "result pointer int size uint")
def get_resident_with_flags(
    driver: Driver, thread: Thread, result: int, handle: int, threads: int, dynamic: int, flags: int
) -> None:
    get_resident(driver, thread, result, handle, threads, dynamic)


@entry("cuOccupancyAvailableDynamicSMemPerBlock", "result pointer int int")
def get_available_shared(driver: Driver, thread: Thread, result: int, handle: int, ctas: int, threads: int) -> None:
    device = driver.get_context(thread).device
    limits = sm_limits(driver.devices[device].target)
    if ctas <= 0:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    share = limits.shared // ctas // limits.shared_granularity * limits.shared_granularity - limits.reserved_shared
    static = driver.handles.get(handle, Kernel).measure_shared(driver)
    write_pointer(result, max(0, min(share, limits.shared_per_cta) - static))


@entry("cuOccupancyMaxPotentialBlockSize", "result result pointer pointer size int")
def suggest_threads(
    driver: Driver, thread: Thread, grid: int, block: int, handle: int, function: int, dynamic: int, limit: int
) -> None:
    """Suggest the most threads that fill an SM, and the CTAs that fill the device."""
    device = driver.get_context(thread).device
    kernel = driver.handles.get(handle, Kernel)
    most = min(limit if limit > 0 else 1024, kernel.find_attribute(driver, 0) or 1024)
    measure = _SHARED_SIZE(function) if function else None
    choices = [
        (threads * kernel.count_resident(driver, device, threads, measure(threads) if measure else dynamic), threads)
        for threads in [*range(WARP_SIZE, most + 1, WARP_SIZE), most]
    ]
    resident, threads = max(choices)
    if not resident:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    write_int(block, threads)
    write_int(grid, resident // threads * driver.devices[device].sms)


@entry("cuOccupancyMaxPotentialBlockSizeWithFlags", "result result pointer pointer size int uint")
def suggest_threads_with_flags(
    driver: Driver, thread: Thread, grid: int, block: int, handle: int, function: int, dynamic: int, limit: int,
    flags: int,
) -> None:  # fmt: skip
    suggest_threads(driver, thread, grid, block, handle, function, dynamic, limit)


@entry("cuOccupancyMaxActiveClusters", "result pointer pointer")
def count_clusters(driver: Driver, thread: Thread, result: int, handle: int, address: int) -> None:
    """Count the clusters that fit on the device, as if all its SMs could form clusters."""
    device = driver.get_context(thread).device
    kernel, config = driver.handles.get(handle, Kernel), read_config(address)
    resident = kernel.count_resident(driver, device, prod(config.block), config.shared)
    write_int(result, resident * driver.devices[device].sms // (prod(config.cluster) or 1))


@entry("cuOccupancyMaxPotentialClusterSize", "result pointer pointer")
def get_largest_cluster(driver: Driver, thread: Thread, result: int, handle: int, address: int) -> None:
    device = driver.get_context(thread).device
    kernel, config = driver.handles.get(handle, Kernel), read_config(address)
    fits = kernel.count_resident(driver, device, prod(config.block), config.shared)
    write_int(result, limit_cluster(kernel) if fits else 0)
