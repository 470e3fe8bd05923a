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
from tools.conformance.simulated import draw_operands, empty


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
        self._require_gpu()
        self.device: Any = self.core.Device()
        self.device.set_current()
        self.stream: Any = self.device.create_stream()
        self.last_entry: tuple[bytes, Any] = b"", None

    @property
    def arch(self) -> int:
        """The number of the target."""
        major, minor = self.device.compute_capability
        return 10 * major + minor

    @property
    def target(self) -> str:
        """The target that has every instruction of this device."""
        variant = f"sm_{self.arch}a"
        return variant if variant in FIRST_PTX else f"sm_{self.arch}"

    def describe(self) -> str:
        """Return a description of the device, its target and the driver."""
        version = self._check_status(self.driver.cuDriverGetVersion())[0]
        return f"{self.device.name}, sm_{self.arch}, driver {version // 1000}.{version % 1000 // 10}"

    def launch(self, cubin: bytes, name: str, arrays: tuple[Array, ...]) -> None:
        """Run an entry on arrays and copy the results back."""
        kernel = self._kernel(cubin, name)
        buffers = [self.device.memory_resource.allocate(array.nbytes, stream=self.stream) for array in arrays]
        self.stream.sync()
        for buffer, array in zip(buffers, arrays, strict=True):
            self._check_status(self.driver.cuMemcpyHtoD(int(buffer.handle), array.ctypes.data, array.nbytes))
        config = self.core.LaunchConfig(grid=CTAS, block=THREADS)
        self.core.launch(self.stream, config, kernel, *buffers)
        self.stream.sync()
        for buffer, array in zip(buffers, arrays, strict=True):
            self._check_status(self.driver.cuMemcpyDtoH(array.ctypes.data, int(buffer.handle), array.nbytes))
            buffer.close(self.stream)

    def _kernel(self, cubin: bytes, name: str) -> object:
        """Return an entry of a cubin; the last cubin stays loaded."""
        if self.last_entry[0] is not cubin:
            self.last_entry = cubin, self.core.ObjectCode.from_cubin(cubin)
        return self.last_entry[1].get_kernel(name)

    def _require_gpu(self) -> None:
        """Raise NoGpuError if there is no driver or no device."""
        try:
            self._check_status(self.driver.cuInit(0))
            count = self._check_status(self.driver.cuDeviceGetCount())[0]
        except RuntimeError as why:
            raise NoGpuError(f"no GPU to compare with: {why}") from why
        if not count:
            raise NoGpuError("no GPU to compare with: the driver reports none")

    def _check_status(self, results: tuple[Any, ...]) -> tuple[Any, ...]:
        if int(results[0]) != 0:
            raise RuntimeError(f"the driver returned {results[0]!r}")
        return results[1:]


def run(gpu: Gpu, cases: list[Case], seed: int) -> Iterator[tuple[Case, Array]]:
    """Yield each case that this device can run, with its results."""
    eligible = [case for case in cases if case.target.arch == gpu.arch]
    for target, version, batch in batches(eligible):
        for cubin, accepted in _assemble_batch(target, version, batch):
            for number, case in enumerate(accepted):
                operands, results = np.ascontiguousarray(draw_operands(case, seed)), empty(case)
                _launch_entry(gpu, cubin, f"c{number}", case, (operands, results))
                yield case, results


def _launch_entry(gpu: Gpu, cubin: bytes, name: str, case: Case, arrays: tuple[Array, ...]) -> None:
    is_finished = False
    try:
        gpu.launch(cubin, name, arrays)
        is_finished = True
    finally:
        if not is_finished:
            print(f"the device was running: {case.text}")


def _assemble_batch(target: Target, version: Version, batch: list[Case]) -> Iterator[tuple[bytes, list[Case]]]:
    """Yield a cubin with its cases: one for all, or if ptxas rejects some, one for each that it accepts."""
    try:
        yield assemble(module(target, version, batch), target.name).data, batch
    except PtxError as why:
        if len(batch) == 1:
            print(f"not assembled: {batch[0].text}  {str(why).splitlines()[0]}")
            return
        for case in batch:
            yield from _assemble_batch(target, version, [case])
