"""Attributes of kernels, and how many of their CTAs fit on an SM."""

from __future__ import annotations

from pyptx.driver.codes import Code, DriverError
from pyptx.driver.host_memory import write_int, write_pointer
from pyptx.driver.modules import MAX_DYNAMIC_SHARED, Kernel
from pyptx.driver.process import Driver, Thread
from pyptx.driver.signatures import entry
from pyptx.isa.limits import WARP_SIZE, sm_limits

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


def count_resident(driver: Driver, device: int, kernel: Kernel, threads: int, dynamic: int) -> int:
    """Return how many CTAs of a kernel fit on an SM, by threads and shared memory. Registers are the compiler's, which
    the simulation does not run."""
    limits = sm_limits(driver.devices[device].target)
    if threads > limits.threads_per_cta:
        return 0
    rounded = -(-threads // WARP_SIZE) * WARP_SIZE
    shared = kernel.measure_shared(driver) + dynamic + limits.reserved_shared
    by_shared = limits.shared // (-(-shared // limits.shared_granularity) * limits.shared_granularity or 1)
    return max(0, min(limits.ctas, limits.threads // rounded, by_shared))


@entry("cuOccupancyMaxActiveBlocksPerMultiprocessor", "result pointer int size")
def get_resident(driver: Driver, thread: Thread, result: int, handle: int, threads: int, dynamic: int) -> None:
    device = driver.get_context(thread).device
    if threads <= 0:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    write_int(result, count_resident(driver, device, driver.handles.get(handle, Kernel), threads, dynamic))


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
