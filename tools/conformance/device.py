"""Runs cases on the GPU of this machine: assembles them, loads the cubins and launches through `cuda.core`."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np

from pyptx.toolchain import assemble
from tools.conformance.forms import Array, Case
from tools.conformance.modules import CTAS, THREADS, batches, module
from tools.conformance.simulated import empty, given


class Gpu:
    """The first device, with a stream."""

    def __init__(self) -> None:
        self.core: Any = import_module("cuda.core")
        self.driver: Any = import_module("cuda.bindings.driver")
        self.device: Any = self.core.Device()
        self.device.set_current()
        self.stream: Any = self.device.create_stream()
        self.loaded: tuple[bytes, Any] = b"", None

    @property
    def arch(self) -> int:
        """The number of its target."""
        major, minor = self.device.compute_capability
        return 10 * major + minor

    def describe(self) -> str:
        """Return the device, its target and the driver, in words."""
        _, version = self.driver.cuDriverGetVersion()
        return f"{self.device.name}, sm_{self.arch}, driver {version // 1000}.{version % 1000 // 10}"

    def launch(self, cubin: bytes, name: str, arrays: tuple[Array, ...]) -> None:
        """Run an entry on arrays and copy what it left in them back."""
        kernel = self._kernel(cubin, name)
        buffers = [self.device.memory_resource.allocate(array.nbytes, stream=self.stream) for array in arrays]
        self.stream.sync()
        for buffer, array in zip(buffers, arrays, strict=True):
            self._checked(self.driver.cuMemcpyHtoD(int(buffer.handle), array.ctypes.data, array.nbytes))
        config = self.core.LaunchConfig(grid=CTAS, block=THREADS)
        self.core.launch(self.stream, config, kernel, *[buffer.handle for buffer in buffers])
        self.stream.sync()
        for buffer, array in zip(buffers, arrays, strict=True):
            self._checked(self.driver.cuMemcpyDtoH(array.ctypes.data, int(buffer.handle), array.nbytes))
            buffer.close(self.stream)

    def _kernel(self, cubin: bytes, name: str) -> object:
        """Return an entry of a cubin; the last cubin stays loaded."""
        if self.loaded[0] is not cubin:
            self.loaded = cubin, self.core.ObjectCode.from_cubin(cubin)
        return self.loaded[1].get_kernel(name)

    def _checked(self, returned: tuple[Any, ...]) -> None:
        if int(returned[0]) != 0:
            raise RuntimeError(f"the driver answered {returned[0]!r}")


def run(gpu: Gpu, cases: list[Case], seed: int) -> Iterator[tuple[Case, Array]]:
    """Yield each case that this device can run, with what it computes."""
    own = [case for case in cases if case.where.arch == gpu.arch]
    for where, version, together in batches(own):
        cubin = assemble(module(where, version, together), where.name).data
        for number, case in enumerate(together):
            operands, results = np.ascontiguousarray(given(case, seed)), empty(case)
            gpu.launch(cubin, f"c{number}", (operands, results))
            yield case, results
