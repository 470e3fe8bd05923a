"""Arrays in device memory, of whatever library, as the launch of a kernel sees them.

While the simulated driver is active, CPU tensors of PyTorch count as arrays of device 0.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from pyptx.runtime import dlpack
from pyptx.runtime.arrays import DeviceView, Unusable, get_numpy_dtype
from pyptx.runtime.bindings import CallError, call, load_api
from pyptx.runtime.device_array import DeviceArray
from pyptx.runtime.streams import read_protocol


def view(value: Any, writable: bool) -> DeviceView | Unusable | None:
    """Return a view of an array in device memory; None for anything else."""
    if isinstance(value, DeviceArray):
        return DeviceView(value.address, value.shape, value.dtype_name, True, value.device, value, value.stream)
    kind = getattr(value, "__dlpack_device__", None)
    if kind is not None and int(kind()[0]) in (dlpack.CUDA, dlpack.CUDA_MANAGED):
        return _view_dlpack(value, writable)
    interface = getattr(value, "__cuda_array_interface__", None)
    return None if interface is None else _view_interface(value, interface, writable)


def _view_dlpack(value: Any, writable: bool) -> DeviceView | Unusable:
    try:
        capsule = value.__dlpack__(stream=dlpack.NO_STREAM, max_version=(1, 0))
    except TypeError:
        capsule = value.__dlpack__(stream=dlpack.NO_STREAM)
    except (BufferError, RuntimeError) as why:
        return Unusable(f"it does not export its memory: {why}")
    try:
        content = dlpack.read(capsule)
    except ValueError as why:
        return Unusable(f"expected an array of numbers, found {why}")
    if writable and content.is_read_only:
        return Unusable("expected a writable array, found a read-only one")
    address, shape, dtype, is_contiguous, (_, device), _ = content
    stream = read_protocol(value)
    return DeviceView(address, shape, dtype, is_contiguous, device, (value, capsule), stream, exports_dlpack=True)


def _view_interface(value: Any, interface: dict[str, Any], writable: bool) -> DeviceView | Unusable:
    address, is_read_only = interface["data"]
    if writable and is_read_only:
        return Unusable("expected a writable array, found a read-only one")
    if interface.get("mask") is not None:
        return Unusable("expected an array without a mask, which kernels ignore")
    shape, dtype = tuple(interface["shape"]), np.dtype(interface["typestr"])
    if dtype.kind not in "biufc":
        return Unusable(f"expected an array of numbers, found {dtype}")
    strides = interface.get("strides")
    plain = np.lib.stride_tricks.as_strided(np.empty(0, dtype), shape, strides) if strides is not None else None
    try:
        device = int(call("cuPointerGetAttribute", _name_ordinal(), address)) if address else 0
    except CallError as why:
        return Unusable(f"expected an array on a CUDA device, found an address that the driver does not know: {why}")
    is_contiguous = plain is None or bool(plain.flags.c_contiguous)
    stream = interface.get("stream")
    stream = read_protocol(value) if stream is None else stream
    return DeviceView(address, shape, dtype.name, is_contiguous, device, value, stream)


def _name_ordinal() -> Any:
    return load_api().CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL


def view_tensor(tensor: Any) -> DeviceView | Unusable:
    """Return a view of an ordinary, dense PyTorch tensor on a CUDA device, or on the CPU for the simulated driver."""
    name = str(tensor.dtype).removeprefix("torch.")
    dtype = "uint8" if name == "float4_e2m1fn_x2" else name
    try:
        get_numpy_dtype(dtype)
    except TypeError:
        return Unusable(f"expected an array of numbers, found dtype {name}")
    plain = tensor.detach()
    if tensor.device.type == "cuda":
        return DeviceView(
            plain.data_ptr(), tuple(plain.shape), dtype, plain.is_contiguous(), tensor.device.index, plain
        )
    register(plain)
    return DeviceView(plain.data_ptr(), tuple(plain.shape), dtype, plain.is_contiguous(), 0, plain)


def register(tensor: Any) -> None:
    """Let kernels of the simulated driver reach the memory of a CPU tensor."""
    from pyptx.driver.connection import start
    from pyptx.driver.host_tensors import register as register_storage

    storage = tensor.untyped_storage()
    if storage.nbytes():
        driver = start()
        with driver.lock:
            register_storage(driver, storage)


def list_guards() -> tuple[tuple[object, object, object], ...]:
    """Return what must stay the same for CPU tensors to count as a device's (`pyptx.dsl.guards`)."""
    connection = sys.modules.get("pyptx.driver.connection")
    return () if connection is None else connection.list_guards()


def is_torch_simulated(view: DeviceView) -> bool:
    """Return whether a view is of a CPU tensor."""
    torch: Any = sys.modules.get("torch")
    return torch is not None and isinstance(view.owner, torch.Tensor) and view.owner.device.type == "cpu"
