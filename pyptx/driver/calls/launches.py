"""Launches: from the arguments of the call to the bytes of the parameters."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from math import prod
from operator import gt

from pyptx.driver.codes import Code, DriverError
from pyptx.driver.host_memory import read, read_pointers
from pyptx.driver.launching import Dim3, Request, check_request
from pyptx.driver.modules import NON_PORTABLE_CLUSTER, Kernel
from pyptx.driver.operations import Launch
from pyptx.driver.process import Context, Driver, Thread, find_callers
from pyptx.driver.signatures import entry
from pyptx.driver.streams import find_stream, submit
from pyptx.isa.limits import LARGEST_BLOCK, LARGEST_GRID, sm_limits

_CONFIG = struct.Struct("<7I4xQQI")
_ATTRIBUTE = struct.Struct("<I4x64s")
_COOPERATIVE, _CLUSTER = 2, 4
"""Launch attributes by their number in the enum `CUlaunchAttributeID`."""
_END, _BUFFER, _BUFFER_SIZE = 0, 1, 2
"""Keys of the launch's `extra` list."""
_PORTABLE_CLUSTER, _LARGEST_CLUSTER = 8, 16


@dataclass(frozen=True, slots=True)
class Config:
    """How a program asks for a launch, apart from the kernel and its parameters."""

    grid: Dim3
    block: Dim3
    shared: int
    stream: int = 0
    attributes: dict[int, bytes] = field(default_factory=dict[int, bytes])

    @property
    def cluster(self) -> Dim3:
        """The CTAs of a cluster."""
        return struct.unpack_from("<3I", self.attributes[_CLUSTER]) if _CLUSTER in self.attributes else (1, 1, 1)

    @property
    def cooperative(self) -> bool:
        """Whether all CTAs run at the same time."""
        return bool(self.attributes.get(_COOPERATIVE, b"\0")[0])


def read_config(address: int) -> Config:
    """Return a `CUlaunchConfig`."""
    gx, gy, gz, bx, by, bz, shared, stream, attributes, count = _CONFIG.unpack(read(address, _CONFIG.size))
    values = dict(_ATTRIBUTE.iter_unpack(read(attributes, _ATTRIBUTE.size * count)))
    return Config((gx, gy, gz), (bx, by, bz), shared, stream, values)


def limit_cluster(kernel: Kernel) -> int:
    """Return the most CTAs of a cluster."""
    return _LARGEST_CLUSTER if kernel.settings.get(NON_PORTABLE_CLUSTER) else _PORTABLE_CLUSTER


def _launch(driver: Driver, thread: Thread, handle: int, config: Config, parameters: int, extra: int) -> None:
    queue, context = find_stream(driver, thread, config.stream), driver.get_context(thread)
    kernel = driver.handles.get(handle, Kernel)
    launch = make_launch(driver, context, kernel, config, read_parameters(kernel, parameters, extra))
    check_request(driver, launch.request)
    submit(driver, queue, launch)


def make_launch(driver: Driver, context: Context, kernel: Kernel, config: Config, parameters: bytes) -> Launch:
    """Return a launch in a context. DriverError for one that its device refuses."""
    device = context.device
    grid, block, shared, cluster = config.grid, config.block, config.shared, config.cluster
    limits = sm_limits(driver.devices[device].target)
    sizes, largest = (*grid, *block), (*LARGEST_GRID, *LARGEST_BLOCK)
    is_too_large = prod(block) > limits.threads_per_cta or any(map(gt, sizes, largest))
    if is_too_large or not all(sizes):
        raise DriverError(Code.ERROR_INVALID_VALUE)
    most = kernel.limit_shared(driver, device)
    if shared > most:
        text = f"`{kernel.name}` asks for {shared} bytes of dynamic shared memory; the limit is {most}"
        if shared <= limits.shared_per_cta:
            text += ", until the program raises the attribute MAX_DYNAMIC_SHARED_SIZE_BYTES of the function"
        raise DriverError(Code.ERROR_INVALID_VALUE, text)
    if not all(cluster) or prod(cluster) > limit_cluster(kernel):
        raise DriverError(Code.ERROR_INVALID_CLUSTER_SIZE)
    if config.cooperative:
        most = kernel.count_resident(driver, device, prod(block), shared) * driver.devices[device].sms
        if prod(grid) > most:
            text = (
                f"`{kernel.name}` has {prod(grid)} CTAs in a cooperative launch; the device can run {most} at once: "
                "launch at most as many per SM as cuOccupancyMaxActiveBlocksPerMultiprocessor returns"
            )
            raise DriverError(Code.ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, text)
    request = Request(kernel, grid, block, shared, parameters, cluster, config.cooperative, find_callers())
    return Launch(context, request, config.attributes)


def read_parameters(kernel: Kernel, parameters: int, extra: int) -> bytes:
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
    _launch(driver, thread, handle, Config((gx, gy, gz), (bx, by, bz), shared, stream), parameters, extra)


@entry("cuLaunchCooperativeKernel", "pointer uint uint uint uint uint uint uint pointer pointer")
def launch_cooperative(
    driver: Driver, thread: Thread, handle: int, gx: int, gy: int, gz: int, bx: int, by: int, bz: int, shared: int,
    stream: int, parameters: int,
) -> None:  # fmt: skip
    config = Config((gx, gy, gz), (bx, by, bz), shared, stream, {_COOPERATIVE: b"\1"})
    _launch(driver, thread, handle, config, parameters, 0)


@entry("cuLaunchKernelEx", "pointer pointer pointer pointer")
def launch_with_attributes(
    driver: Driver, thread: Thread, config: int, handle: int, parameters: int, extra: int
) -> None:
    _launch(driver, thread, handle, read_config(config), parameters, extra)
