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
    """A cubin to load, and the entries to run with their cases."""

    cubin: bytes
    cases: tuple[tuple[str, Case], ...]


def serve(connection: Connection, simulated: str | None, seed: int) -> None:
    """Answer a parent: send the Device, or the reason why there is none; then for each Load received, send the results
    of its cases. A launch that fails sends the reason and ends this process."""
    try:
        device = _open_device(simulated)
    except NoGpuError as why:
        connection.send(str(why))
        return
    connection.send(device)
    try:
        while (load := connection.recv()) is not None:
            connection.send(_launch(load, seed))
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


def _launch(load: Load, seed: int) -> list[Array]:
    """Run the entries of a cubin and return their results. All operands and results are copied at once: where other
    programs use the GPU, each call that waits for it takes milliseconds."""
    operands = [np.ascontiguousarray(draw_operands(case, seed)) for _, case in load.cases]
    results = [empty(case) for _, case in load.cases]
    data = np.concatenate([array.reshape(-1) for array in (*operands, *results)])
    module = call("cuModuleLoadData", load.cubin)
    buffer = int(call("cuMemAlloc", data.nbytes))
    call("cuMemcpyHtoD", buffer, data.ctypes.data, data.nbytes)
    ends = np.cumsum([array.size for array in (*operands, *results)])
    starts = [
        buffer + data.itemsize * int(end - array.size) for end, array in zip(ends, (*operands, *results), strict=True)
    ]
    for (name, _), *addresses in zip(load.cases, starts, starts[len(operands) :], strict=False):
        _submit(call("cuModuleGetFunction", module, name.encode()), addresses)
    call("cuCtxSynchronize")
    call("cuMemcpyDtoH", data.ctypes.data, buffer, data.nbytes)
    call("cuMemFree", buffer)
    call("cuModuleUnload", module)
    parts = np.split(data, ends[:-1])[len(operands) :]
    return [part.reshape(array.shape) for part, array in zip(parts, results, strict=True)]


def _submit(function: object, addresses: Sequence[int]) -> None:
    """Submit a launch whose parameters are addresses."""
    values = (ctypes.c_uint64 * len(addresses))(*addresses)
    start = ctypes.addressof(values)
    pointers = (ctypes.c_void_p * len(addresses))(*(start + 8 * n for n in range(len(addresses))))
    call("cuLaunchKernel", function, CTAS, 1, 1, THREADS, 1, 1, 0, 0, ctypes.addressof(pointers), 0)
