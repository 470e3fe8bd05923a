"""Launches cases on the GPU of this machine through the CUDA driver, in a child process that a fault or a hang ends."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection

import numpy as np

from pyptx import driver
from pyptx.diagnostics import PtxError
from pyptx.isa.targets import FIRST_PTX
from pyptx.runtime.bindings import CallError, call, get_capability, retain
from tools.conformance.forms import Array, Case
from tools.conformance.modules import CTAS, THREADS
from tools.conformance.needs import missing
from tools.conformance.simulated import draw_operands, empty


class NoGpuError(Exception):
    """There is no GPU to run on; the message gives the reason."""


@dataclass(frozen=True)
class Device:
    """What a GPU is: its name with the driver's version, and the target that has all of its instructions."""

    description: str
    target: str

    @property
    def arch(self) -> int:
        """The number of the target."""
        return int(self.target[3:].rstrip("a"))


@dataclass(frozen=True)
class Load:
    """A cubin to load and the cases of its entries `c0`, `c1`, …"""

    cubin: bytes
    cases: tuple[Case, ...]


def serve(connection: Connection, simulated: str | None, seed: int) -> None:
    """Answer a parent: send the Device, or the reason why there is none; then for each `(load, start)` received, send
    the results of its cases from that number on. A launch that fails sends the reason and ends this process."""
    try:
        device = _open_device(simulated)
    except NoGpuError as why:
        connection.send(str(why))
        return
    connection.send(device)
    try:
        while (request := connection.recv()) is not None:
            load, start = request
            module = call("cuModuleLoadData", load.cubin)
            for number, case in enumerate(load.cases[start:], start):
                operands, results = np.ascontiguousarray(draw_operands(case, seed)), empty(case)
                _launch(module, f"c{number}", (operands, results))
                connection.send(results)
            call("cuModuleUnload", module)
    except CallError as why:
        connection.send(str(why))


def _open_device(simulated: str | None) -> Device:
    """Make the first device current and describe it."""
    lacking = missing()
    if lacking:
        raise NoGpuError(f"this Python lacks {', '.join(lacking)}: pip install {' '.join(lacking)}")
    if simulated:
        driver.activate(simulated, from_images=True, check="none")
    try:
        major, minor = get_capability(0)
        call("cuCtxSetCurrent", retain(0))
        name, version = call("cuDeviceGetName", 128, 0), call("cuDriverGetVersion")
    except (CallError, PtxError) as why:
        raise NoGpuError(f"no GPU to run on: {why}") from why
    target = f"sm_{major}{minor}"
    text = name.partition(b"\0")[0].decode()
    description = f"{text}, {target}, driver {version // 1000}.{version % 1000 // 10}{', simulated' * bool(simulated)}"
    return Device(description, f"{target}a" if f"{target}a" in FIRST_PTX else target)


def _launch(module: object, name: str, arrays: Sequence[Array]) -> None:
    """Run an entry on arrays and copy them back."""
    function = call("cuModuleGetFunction", module, name.encode())
    buffers = [int(call("cuMemAlloc", array.nbytes)) for array in arrays]
    for buffer, array in zip(buffers, arrays, strict=True):
        call("cuMemcpyHtoD", buffer, array.ctypes.data, array.nbytes)
    values = (ctypes.c_uint64 * len(buffers))(*buffers)
    start = ctypes.addressof(values)
    pointers = (ctypes.c_void_p * len(buffers))(*(start + 8 * n for n in range(len(buffers))))
    call("cuLaunchKernel", function, CTAS, 1, 1, THREADS, 1, 1, 0, 0, ctypes.addressof(pointers), 0)
    call("cuCtxSynchronize")
    for buffer, array in zip(buffers, arrays, strict=True):
        call("cuMemcpyDtoH", array.ctypes.data, buffer, array.nbytes)
        call("cuMemFree", buffer)
