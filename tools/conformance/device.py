"""Runs cases on the GPU of this machine: assembles them, loads the cubins and launches through `cuda.core`."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np

from pyptx.diagnostics import PtxError
from pyptx.isa.targets import FIRST_PTX, Target, Version
from pyptx.toolchain import assemble
from tools.conformance.forms import Array, Case
from tools.conformance.modules import CTAS, THREADS, batches, module
from tools.conformance.needs import missing
from tools.conformance.simulated import empty, given


class NoGpuError(Exception):
    """There is no GPU to compare with; the message gives the reason."""


class Gpu:
    """The first device, with a stream."""

    def __init__(self) -> None:
        lacking = missing()
        if lacking:
            raise NoGpuError(f"this Python lacks {', '.join(lacking)}: pip install {' '.join(lacking)}")
        self.core: Any = import_module("cuda.core")
        self.driver: Any = import_module("cuda.bindings.driver")
        self._found()
        self.device: Any = self.core.Device()
        self.device.set_current()
        self.stream: Any = self.device.create_stream()
        self.loaded: tuple[bytes, Any] = b"", None

    @property
    def arch(self) -> int:
        """The number of the target."""
        major, minor = self.device.compute_capability
        return 10 * major + minor

    @property
    def target(self) -> str:
        """The target that has every instruction of this device."""
        own = f"sm_{self.arch}a"
        return own if own in FIRST_PTX else f"sm_{self.arch}"

    def describe(self) -> str:
        """Return a description of the device, its target and the driver."""
        version = self._checked(self.driver.cuDriverGetVersion())[0]
        return f"{self.device.name}, sm_{self.arch}, driver {version // 1000}.{version % 1000 // 10}"

    def launch(self, cubin: bytes, name: str, arrays: tuple[Array, ...]) -> None:
        """Run an entry on arrays and copy the results back."""
        kernel = self._kernel(cubin, name)
        buffers = [self.device.memory_resource.allocate(array.nbytes, stream=self.stream) for array in arrays]
        self.stream.sync()
        for buffer, array in zip(buffers, arrays, strict=True):
            self._checked(self.driver.cuMemcpyHtoD(int(buffer.handle), array.ctypes.data, array.nbytes))
        config = self.core.LaunchConfig(grid=CTAS, block=THREADS)
        self.core.launch(self.stream, config, kernel, *buffers)
        self.stream.sync()
        for buffer, array in zip(buffers, arrays, strict=True):
            self._checked(self.driver.cuMemcpyDtoH(array.ctypes.data, int(buffer.handle), array.nbytes))
            buffer.close(self.stream)

    def _kernel(self, cubin: bytes, name: str) -> object:
        """Return an entry of a cubin; the last cubin stays loaded."""
        if self.loaded[0] is not cubin:
            self.loaded = cubin, self.core.ObjectCode.from_cubin(cubin)
        return self.loaded[1].get_kernel(name)

    def _found(self) -> None:
        """Raise NoGpuError if there is no driver or no device."""
        try:
            self._checked(self.driver.cuInit(0))
            count = self._checked(self.driver.cuDeviceGetCount())[0]
        except RuntimeError as why:
            raise NoGpuError(f"no GPU to compare with: {why}") from why
        if not count:
            raise NoGpuError("no GPU to compare with: the driver reports none")

    def _checked(self, returned: tuple[Any, ...]) -> tuple[Any, ...]:
        if int(returned[0]) != 0:
            raise RuntimeError(f"the driver returned {returned[0]!r}")
        return returned[1:]


def run(gpu: Gpu, cases: list[Case], seed: int) -> Iterator[tuple[Case, Array]]:
    """Yield each case that this device can run, with its results."""
    own = [case for case in cases if case.where.arch == gpu.arch]
    for where, version, together in batches(own):
        for cubin, kept in _assembled(where, version, together):
            for number, case in enumerate(kept):
                operands, results = np.ascontiguousarray(given(case, seed)), empty(case)
                _launched(gpu, cubin, f"c{number}", case, (operands, results))
                yield case, results


def _launched(gpu: Gpu, cubin: bytes, name: str, case: Case, arrays: tuple[Array, ...]) -> None:
    done = False
    try:
        gpu.launch(cubin, name, arrays)
        done = True
    finally:
        if not done:
            print(f"the device was running: {case.text}")


def _assembled(where: Target, version: Version, together: list[Case]) -> Iterator[tuple[bytes, list[Case]]]:
    """Yield a cubin with its cases: one for all, or if ptxas rejects some, one for each that it accepts."""
    try:
        yield assemble(module(where, version, together), where.name).data, together
    except PtxError as why:
        if len(together) == 1:
            print(f"not assembled: {together[0].text}  {str(why).splitlines()[0]}")
            return
        for case in together:
            yield from _assembled(where, version, [case])
