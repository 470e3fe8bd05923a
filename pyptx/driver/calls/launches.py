"""Launches: from the arguments of the call to the bytes of the parameters."""

from __future__ import annotations

import struct
from math import prod

from pyptx.driver.codes import Code, DriverError
from pyptx.driver.host_memory import read, read_pointers
from pyptx.driver.launching import Dim3, Request, launch
from pyptx.driver.modules import NON_PORTABLE_CLUSTER, Kernel
from pyptx.driver.process import Driver, Thread, find_caller
from pyptx.driver.signatures import entry
from pyptx.driver.streams import find_stream, submit
from pyptx.isa.limits import sm_limits

_CONFIG = struct.Struct("<7I4xQQI")
_ATTRIBUTE = struct.Struct("<I4x64s")
_COOPERATIVE, _CLUSTER = 2, 4
_END, _BUFFER, _BUFFER_SIZE = 0, 1, 2
"""Keys of the launch's `extra` list."""
_PORTABLE_CLUSTER, _LARGEST_CLUSTER = 8, 16


def _launch(
    driver: Driver, thread: Thread, handle: int, grid: Dim3, block: Dim3, shared: int, stream: int, parameters: int,
    extra: int, attributes: dict[int, bytes],
) -> None:  # fmt: skip
    queue, context = find_stream(driver, thread, stream), driver.get_context(thread)
    kernel = driver.handles.get(handle, Kernel)
    limits = sm_limits(driver.devices[context.device].target)
    if not all((*grid, *block)) or max(grid[1:]) > 65535 or block[2] > 64 or prod(block) > limits.threads_per_cta:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    most = kernel.limit_shared(driver, context.device)
    if shared > most:
        text = f"`{kernel.name}` asks for {shared} bytes of dynamic shared memory; the limit is {most}"
        if shared <= limits.shared_per_cta:
            text += ", until the program raises the attribute MAX_DYNAMIC_SHARED_SIZE_BYTES of the function"
        raise DriverError(Code.ERROR_INVALID_VALUE, text)
    cluster: Dim3 = struct.unpack_from("<3I", attributes[_CLUSTER]) if _CLUSTER in attributes else (1, 1, 1)
    largest = _LARGEST_CLUSTER if kernel.settings.get(NON_PORTABLE_CLUSTER) else _PORTABLE_CLUSTER
    if not all(cluster) or prod(cluster) > largest:
        raise DriverError(Code.ERROR_INVALID_CLUSTER_SIZE)
    cooperative = bool(attributes.get(_COOPERATIVE, b"\0")[0])
    request = Request(
        kernel, grid, block, shared, _read_parameters(kernel, parameters, extra), cluster, cooperative, find_caller()
    )
    submit(driver, queue, lambda: launch(driver, context, request))


def _read_parameters(kernel: Kernel, parameters: int, extra: int) -> bytes:
    """Return the bytes of the parameters, from pointers to each, or from a buffer."""
    if parameters:
        data = bytearray(kernel.size)
        for (offset, size), address in zip(kernel.layout, read_pointers(parameters, len(kernel.layout)), strict=True):
            if not address:
                raise DriverError(Code.ERROR_INVALID_VALUE)
            data[offset : offset + size] = read(address, size)
        return bytes(data)
    buffer = size = 0
    while extra:
        key, value = read_pointers(extra, 2) if read_pointers(extra, 1)[0] else (_END, 0)
        if key == _END:
            break
        buffer, size = (value, size) if key == _BUFFER else (buffer, read_pointers(value, 1)[0])
        extra += 16
    if size < kernel.size:
        if kernel.layout:
            text = f"`{kernel.name}` takes {kernel.size} bytes of parameters, the launch passes {size}"
            raise DriverError(Code.ERROR_INVALID_VALUE, text)
        return b""
    return read(buffer, kernel.size)


@entry("cuLaunchKernel", "pointer uint uint uint uint uint uint uint pointer pointer pointer")
def launch_kernel(
    driver: Driver, thread: Thread, handle: int, gx: int, gy: int, gz: int, bx: int, by: int, bz: int, shared: int,
    stream: int, parameters: int, extra: int,
) -> None:  # fmt: skip
    _launch(driver, thread, handle, (gx, gy, gz), (bx, by, bz), shared, stream, parameters, extra, {})


@entry("cuLaunchCooperativeKernel", "pointer uint uint uint uint uint uint uint pointer pointer")
def launch_cooperative(
    driver: Driver, thread: Thread, handle: int, gx: int, gy: int, gz: int, bx: int, by: int, bz: int, shared: int,
    stream: int, parameters: int,
) -> None:  # fmt: skip
    attributes = {_COOPERATIVE: b"\1"}
    _launch(driver, thread, handle, (gx, gy, gz), (bx, by, bz), shared, stream, parameters, 0, attributes)


@entry("cuLaunchKernelEx", "pointer pointer pointer pointer")
def launch_with_attributes(
    driver: Driver, thread: Thread, config: int, handle: int, parameters: int, extra: int
) -> None:
    if not config:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    gx, gy, gz, bx, by, bz, shared, stream, address, count = _CONFIG.unpack(read(config, _CONFIG.size))
    attributes = dict(_ATTRIBUTE.iter_unpack(read(address, _ATTRIBUTE.size * count)))
    _launch(driver, thread, handle, (gx, gy, gz), (bx, by, bz), shared, stream, parameters, extra, attributes)
