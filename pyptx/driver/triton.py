"""Run Triton's kernels on the simulator: PyTorch tensors on the CPU, and the PTX that Triton compiles.

`activate()` serves a running Python; `pyptx simulate` calls it when a program imports Triton. Needs no C compiler and
no driver library: Triton's launcher calls Python. What measures a function runs it once, and the time is a count of
instructions.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import count
from math import prod
from typing import Any, NamedTuple

from pyptx.driver import AFTER_RESTART
from pyptx.driver.codes import DriverError
from pyptx.driver.connection import restart, start
from pyptx.driver.host_tensors import register
from pyptx.driver.launching import Request, launch
from pyptx.driver.modules import Kernel, LoadedImage, load_text
from pyptx.driver.process import Driver, Thread, find_callers
from pyptx.isa.limits import sm_limits
from pyptx.tensormap import ElementType, Fill, Im2col, L2Promotion, Swizzle, TensorMap, encode, validate

_NUMBERS = {"fp16": "<e", "fp32": "<f", "fp64": "<d"}
_ELEMENTS = {element.driver_value: element for element in ElementType}
_SWIZZLES = (Swizzle.NONE, Swizzle.B32, Swizzle.B64, Swizzle.B128)
_BENCHMARKS = "do_bench", "do_bench_cudagraph", "do_bench_proton"
_ORDINALS = count()
"""The number of the device for each driver."""
_SCRATCH_POINTERS = 2
"""The last parameters of every kernel: memory for the kernel, and for a profiler."""


class Argument(NamedTuple):
    """How Triton's launcher describes an argument: a constant, a value, or a tuple of arguments."""

    nested_tuple: Sequence[Argument] | None
    type: int


_CONSTANT, _VALUE, _TUPLE = range(3)


def activate(device: str | None = None, **options: Any) -> None:
    """Make Triton run kernels on the simulator from now on. `device` is the GPU to pretend; the options are those of
    `pyptx simulate`: check, schedule, seed, stop. Another call chooses anew: Triton compiles its kernels again."""
    restart(device, options)
    if install not in AFTER_RESTART:
        install()


def install() -> None:
    """Make the simulator the active driver of Triton, and again whenever another replaces it."""
    if install not in AFTER_RESTART:
        AFTER_RESTART.append(install)
    driver = start()
    driver.is_initialized = True
    nvidia: Any = import_module("triton.backends.nvidia.driver")
    nvidia.PyKernelArg, nvidia.ARG_CONSTEXPR, nvidia.ARG_KERNEL, nvidia.ARG_TUPLE = Argument, _CONSTANT, _VALUE, _TUPLE
    knobs: Any = import_module("triton.knobs")
    knobs.runtime.add_stages_inspection_hook = keep_ptx
    active: Any = import_module("triton.runtime").driver
    active.set_active(_make_driver(nvidia, driver))
    testing: Any = import_module("triton.testing")
    for name in _BENCHMARKS:
        setattr(testing, name, partial(measure, driver))
    torch: Any = import_module("torch") if find_spec("torch") is not None else None
    if torch is not None:
        method = torch.Tensor.data_ptr
        torch.Tensor.data_ptr = _Tracer(driver, method.data_ptr if isinstance(method, _Tracer) else method)


def _make_driver(nvidia: Any, driver: Driver) -> Any:
    """Return a driver for Triton: its own, with launches on the simulator and tensors on the CPU."""
    launcher, number = Launcher(driver), next(_ORDINALS)

    class SimulatedDriver(nvidia.CudaDriver):
        def __init__(self) -> None:
            self.utils, self.launcher_cls = launcher, nvidia.CudaLauncher
            # Triton keeps kernels by this number: those of an earlier driver are compiled again.
            self.get_current_device = lambda: number
            self.set_current_device = launcher.set_current_device
            self.get_benchmarker = lambda: partial(measure, driver)

        def get_device_capability(self, device: object = None) -> tuple[int, int]:
            return driver.devices[0].capability

        def get_current_stream(self, device: object = None) -> int:
            return 0

        def get_active_torch_device(self) -> Any:
            torch: Any = import_module("torch")
            return torch.device("cpu")

        def allocate_default_profile_scratch(self, size: int, alignment: int, stream: int) -> Any:
            torch: Any = import_module("torch")
            return torch.zeros(size, dtype=torch.int8)

    return SimulatedDriver()


def measure(
    driver: Driver, function: Callable[[], object], *unused: object, quantiles: Sequence[float] | None = None,
    return_mode: str = "mean", grad_to_none: Sequence[Any] | None = None, **options: object,
) -> Any:  # fmt: skip
    """Run a function once, in place of Triton's benchmarks; return the instructions that its kernels executed."""
    for tensor in grad_to_none or ():
        tensor.grad = None
    before = driver.instructions
    function()
    time = float(max(1, driver.instructions - before))
    if quantiles is not None:
        return [time] * len(quantiles) if len(quantiles) > 1 else time
    return [time] if return_mode == "all" else time


def keep_ptx(*arguments: Any) -> tuple[str, str] | None:
    """Take part in Triton's compilation: its last stage, machine code, becomes the PTX itself. Without arguments,
    return the key of this change in Triton's cache."""
    if not arguments:
        key = "pyptx: PTX in place of machine code"
        return key, hashlib.sha256(key.encode()).hexdigest()
    stages: dict[str, Any] = arguments[1]
    stages["cubin"] = _encode
    return None


def _encode(source: str, metadata: object) -> bytes:
    return source.encode()


class _Tracer:
    """The method `data_ptr` of tensors, which also tells the simulator about their memory: kernels may reach whatever
    the program has taken the address of."""

    def __init__(self, driver: Driver, data_ptr: Any) -> None:
        self._driver, self.data_ptr = driver, data_ptr

    def __get__(self, tensor: Any, owner: Any = None) -> Any:
        return self if tensor is None else partial(self, tensor)

    def __call__(self, tensor: Any) -> int:
        address = self.data_ptr(tensor)
        if address and tensor.device.type == "cpu":
            register(self._driver, tensor.untyped_storage())
        return address


@dataclass
class Launcher:
    """What Triton's launcher calls; the names are Triton's."""

    driver: Driver

    def __post_init__(self) -> None:
        self.thread = Thread(0, [self.driver.primary[0]])
        self.images: dict[int, LoadedImage] = {}

    def set_current_device(self, device: int) -> None:
        """Accept the only device."""

    def load_binary(self, name: str, text: bytes, shared: int, device: int) -> tuple[int, int, int, int, int]:
        """Load PTX; return handles of the module and the kernel, and its registers, spills and most threads."""
        try:
            image = load_text(self.driver, text.decode())
        except DriverError as why:
            raise RuntimeError(str(why)) from None
        kernel = image.get_kernel(name)
        kernel.settings[8] = shared
        self.images[image.handle] = image
        registers = kernel.find_attribute(self.driver, 4) or 0
        return image.handle, kernel.handle, registers, 0, kernel.find_attribute(self.driver, 0) or 0

    def unload_module(self, handle: int) -> None:
        """Unload a module."""
        image = self.images.pop(handle, None)
        if image is not None:
            image.close(self.driver)

    def set_printf_fifo_size(self, size: int) -> None:
        """Accept any size: what kernels print is not buffered."""

    def get_device_properties(self, device: int | None) -> dict[str, int]:
        """Return what Triton and its tuner ask about a device; the CPU's tensors have a device without a number."""
        gpu = self.driver.devices[0]
        limits = sm_limits(gpu.target)
        return {
            "max_shared_mem": limits.shared_per_cta, "max_num_regs": limits.registers, "multiprocessor_count": gpu.sms,
            "warpSize": 32, "sm_clock_rate": gpu.clock, "mem_clock_rate": gpu.memory_clock, "mem_bus_width": gpu.bus,
        }  # fmt: skip

    def fill_tma_descriptor_tiled(
        self, address: int, swizzle: int, element_size: int, element_type: int, block: Sequence[int],
        shape: Sequence[int], strides: Sequence[int], padding: int,
    ) -> bytes:  # fmt: skip
        """Return a tensor map; Triton's shapes and strides start with the slowest dimension."""
        tensor = _describe(address, swizzle, element_size, element_type, shape, strides, padding)
        return encode(validate(replace(tensor, box=tuple(reversed(block)))))

    def fill_tma_descriptor_im2col(
        self, address: int, swizzle: int, element_size: int, element_type: int, block: Sequence[int],
        shape: Sequence[int], strides: Sequence[int], padding: int, lower: Sequence[int], upper: Sequence[int],
        steps: Sequence[int],
    ) -> bytes:  # fmt: skip
        """Return a tensor map for im2col; a block has pixels and channels."""
        tensor = _describe(address, swizzle, element_size, element_type, shape, strides, padding)
        pixels, channels = block
        im2col = Im2col(tuple(reversed(lower)), tuple(reversed(upper)), channels, pixels)
        return encode(validate(replace(tensor, im2col=im2col, element_strides=tuple(reversed(steps)))))

    def build_signature_metadata(self, types: Sequence[str]) -> list[str]:
        """Return what `launch` needs to know about the types of arguments."""
        return list(types)

    def launch(
        self, x: int, y: int, z: int, stream: int, function: int, cooperative: bool, programmatic: bool,
        sizes: tuple[int, int, int], metadata: Any, enter: Any, leave: Any, scratch: Any, profile: Any,
        annotations: Sequence[Argument], types: Sequence[str], arguments: Sequence[Any],
    ) -> None:  # fmt: skip
        """Launch a kernel; RuntimeError if it faults."""
        warps, ctas, shared = sizes
        if not prod((x, y, z)):
            return
        if enter is not None:
            enter(metadata)
        kernel = self.driver.handles.get(function, Kernel)
        values = [*flatten(arguments, annotations), scratch, profile]
        kinds = [*types, *["*i8"] * _SCRATCH_POINTERS]
        data = bytearray(kernel.size)
        for (offset, size), kind, value in zip(kernel.layout, kinds, values, strict=True):
            data[offset : offset + size] = pack(kind, value, size)
        grid, block, cluster = (x * ctas, y, z), (32 * warps, 1, 1), (ctas, 1, 1)
        request = Request(kernel, grid, block, shared, bytes(data), cluster, bool(cooperative), find_callers())
        with self.driver.lock:
            try:
                launch(self.driver, self.driver.get_context(self.thread), request)
            except DriverError as why:
                raise RuntimeError(f"Triton Error [CUDA]: {why.code.meaning}") from None
        if leave is not None:
            leave(metadata)


def _describe(
    address: int, swizzle: int, element_size: int, element_type: int, shape: Sequence[int], strides: Sequence[int],
    padding: int,
) -> TensorMap:  # fmt: skip
    """Return what all kinds of tensor maps have."""
    return TensorMap(
        _ELEMENTS[element_type], address, tuple(reversed(shape)),
        tuple(element_size * stride for stride in reversed(strides[:-1])),
        swizzle=_SWIZZLES[swizzle], l2_promotion=L2Promotion.B128, fill=Fill.NAN if padding else Fill.ZERO,
    )  # fmt: skip


def flatten(arguments: Sequence[Any], annotations: Sequence[Argument]) -> Iterator[Any]:
    """Yield the values that a kernel takes: no constants, and the elements of tuples."""
    for argument, annotation in zip(arguments, annotations, strict=True):
        if annotation.type == _TUPLE:
            yield from flatten(argument, annotation.nested_tuple or ())
        elif annotation.type == _VALUE:
            yield argument


def pack(kind: str, value: Any, size: int) -> bytes:
    """Return the bytes of an argument."""
    if isinstance(value, bytes):
        return value
    if kind.startswith("*"):
        address = value.data_ptr() if hasattr(value, "data_ptr") else value or 0
        return int(address).to_bytes(size, "little")
    if kind == "bf16":
        return struct.pack("<f", value)[2:]
    if kind in _NUMBERS:
        return struct.pack(_NUMBERS[kind], value)
    return (int(value) & ((1 << 8 * size) - 1)).to_bytes(size, "little")
