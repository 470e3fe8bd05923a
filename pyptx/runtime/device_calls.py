"""Runs a call on arrays in device memory: chooses the stream, allocates the outputs, and orders the launch."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from pyptx.diagnostics import PtxError
from pyptx.driver import AFTER_RESTART
from pyptx.runtime import device_views, streams
from pyptx.runtime.arrays import Array, Described, DeviceView, get_numpy_dtype
from pyptx.runtime.bindings import CallError, call, in_context, load_api, relax_captures
from pyptx.runtime.device_array import DeviceArray
from pyptx.runtime.failures import explain_failures
from pyptx.runtime.launching import launch
from pyptx.runtime.planning import Plan, locate_errors
from pyptx.runtime.rules import ARRAYS


def run(
    plan: Plan, views: Mapping[str, DeviceView], library: str, device: int, stream: Any, *, cooperative: bool,
    programmatic: bool, launcher: Callable[..., None] | None = None,
) -> tuple[list[Any], bytes]:  # fmt: skip
    """Run a plan on the arrays that a caller passed, by tensor name. Return the outputs that are allocated, and the
    parameters of the launch. A `launcher` from an earlier call takes the addresses of the tensors, and has the other
    parameters."""
    names = [name for name, _ in plan.definition.tensors]
    missing = [name for name in names if name not in views]
    inputs = [*views.values(), *(value for value in plan.scalars.values() if isinstance(value, DeviceView))]
    with explain_failures(plan), in_context(device), locate_errors(plan.definition):
        current = streams.find_current(library, device)
        launch_stream = _choose_stream(stream, current, inputs)
        if stream is not None:
            streams.check_device(launch_stream, device)
        owner = streams.find_owner(stream, library, device)
        if streams.is_capturing(launch_stream):
            _check_capture(launch_stream, missing if library != "torch" else (), {**views, **plan.scalars}, current)
        allocations = allocate(plan.outputs, library, device, launch_stream, owner) if missing else []
        if plan.is_empty:
            return [value for _, value in allocations], b""
        memory = {**views, **dict(zip(missing, (view for view, _ in allocations), strict=True))}
        others = list_streams(inputs, current)
        streams.order_after(launch_stream, others)
        _synchronize_exports(inputs, launch_stream)
        addresses, parameters = {name: view.address for name, view in memory.items()}, b""
        if launcher is None or streams.is_capturing(launch_stream):
            parameters = launch(
                plan, addresses, device=device, stream=launch_stream, cooperative=cooperative,
                programmatic=programmatic,
            )  # fmt: skip
        else:
            launcher(*addresses.values(), stream=launch_stream)
        streams.order_before(launch_stream, list_streams(inputs, None))
        is_current = current is None or streams.is_same(launch_stream, current)
        _keep([*inputs, *memory.values()], launch_stream, is_current=is_current)
    return [value for _, value in allocations], parameters


def _check_capture(stream: int, missing: Sequence[str], values: Mapping[str, Any], current: int | None) -> None:
    """Refuse what would invalidate the capture of a stream, or its graph: a graph with the allocation of an output
    could be replayed only once, and a capture cannot wait for streams that are not part of it. PyTorch's allocator has
    memory for graphs."""
    streams_of = {name: value.stream for name, value in values.items() if isinstance(value, DeviceView)}
    apart = [name for name, other in streams_of.items() if other is not None and streams.is_apart(other, stream)]
    if missing:
        names, problem = missing, "a call that is captured in a graph cannot allocate its outputs"
        help = "pass arrays as out=, and keep them as long as the graph"
    elif apart:
        names, problem = apart, "a call that is captured in a graph cannot wait for the stream of an array"
        help = "make the arrays in the stream that is captured"
    elif current is not None and streams.is_apart(current, stream):
        names, problem = ["stream"], "a call that is captured in a graph cannot wait for the current stream"
        help = "make the captured stream the current one, as torch.cuda.graph(…) does, and omit stream="
    else:
        return
    raise PtxError([ARRAYS.report(None, f"{', '.join(f'`{name}`' for name in names)}: {problem}", help=help)])


def _choose_stream(stream: Any, current: int | None, views: Sequence[DeviceView]) -> int:
    """Return the stream that the caller passes, or the current one of the library, or the first that an array names."""
    if stream is not None:
        return streams.read_stream(stream)
    if current is not None:
        return current
    return next((view.stream for view in views if view.stream is not None), 0)


def list_streams(views: Iterable[DeviceView], current: int | None) -> list[int]:
    """Return the streams whose work the memory of arrays waits for."""
    own = [view.stream for view in views if view.stream is not None]
    return own if current is None else [current, *own]


def _synchronize_exports(views: Iterable[DeviceView], stream: int) -> None:
    """Make a stream wait for arrays whose libraries know their streams."""
    for view in {id(view.owner): view for view in views if view.exports_dlpack}.values():
        view.owner[0].__dlpack__(stream=stream or streams.LEGACY)


def allocate(
    descriptions: Sequence[Described], library: str, device: int, stream: int, owner: object = None
) -> list[tuple[DeviceView, Any]]:
    """Return arrays of a library, uninitialized, with their views; they keep the owner of the stream."""
    results = [_allocate(description, library, device, stream, owner) for description in descriptions]
    if library == "torch":
        return [(device_views.view_tensor(value), value) for value in results]  # pyright: ignore[reportReturnType]
    return [(_view_result(value), value if library != "cupy" else _to_cupy(value)) for value in results]


def _allocate(description: Described, library: str, device: int, stream: int, owner: object) -> Any:
    if library != "torch":
        return DeviceArray(description, device, stream, owner)
    torch: Any = sys.modules["torch"]
    place = torch.device("cuda", device) if torch.cuda.is_initialized() else torch.device("cpu")
    return torch.empty(description.shape, dtype=getattr(torch, description.dtype), device=place)


def _view_result(value: DeviceArray) -> DeviceView:
    return DeviceView(value.address, value.shape, value.dtype_name, True, value.device, value, value.stream)


def _to_cupy(value: DeviceArray) -> Any:
    return sys.modules["cupy"].from_dlpack(value)


_PENDING: list[tuple[Any, list[Any]]] = []
"""What must live until a launch has ended, with an event after the launch: arrays with DLPack, whose libraries know
nothing of it; and CPU tensors, whose memory PyTorch's allocator does not reuse in the order of a stream."""
_LOCK = threading.Lock()


def _keep(views: Sequence[DeviceView], stream: int, *, is_current: bool) -> None:
    """Keep the memory of arrays until the launch in a stream has ended, unless their libraries do."""
    tensors = [view.owner for view in views if hasattr(view.owner, "record_stream")]
    owners = [view.owner for view in views if view.exports_dlpack]
    owners += [tensor for tensor in tensors if tensor.device.type == "cpu"]
    if owners and not streams.is_capturing(stream):
        keep_until_done(owners, stream)
    on_device = [tensor for tensor in tensors if tensor.device.type == "cuda"]
    if on_device and not is_current:
        lend(on_device, stream)


def lend(tensors: Sequence[Any], stream: int) -> None:
    """Make PyTorch's allocator keep the memory of tensors until the work that a stream has so far has ended."""
    torch: Any = sys.modules["torch"]
    external = torch.cuda.ExternalStream(stream, device=tensors[0].device)
    for tensor in tensors:
        tensor.record_stream(external)


def keep_until_done(owners: list[Any], stream: int) -> None:
    """Keep objects until the work that a stream has so far has ended."""
    with _LOCK:
        # Others only append, at any time.
        pending = [_PENDING.pop() for _ in range(len(_PENDING))]
    with relax_captures():
        for item in pending:
            if _is_done(item[0]):
                call("cuEventDestroy", item[0])
            else:
                _PENDING.append(item)
    event = call("cuEventCreate", load_api().CUevent_flags.CU_EVENT_DISABLE_TIMING)
    call("cuEventRecord", event, stream)
    _PENDING.append((event, owners))


def _is_done(event: Any) -> bool:
    try:
        call("cuEventQuery", event)
    except CallError as why:
        return why.name != "CUDA_ERROR_NOT_READY"
    return True


AFTER_RESTART.append(_PENDING.clear)


def choose_device(stream: Any) -> int:
    """Return the device for a call without arrays: that of its stream, or of the current context, or 0."""
    device = streams.find_device(streams.read_stream(stream))
    if device is not None:
        return device
    return int(call("cuCtxGetDevice")) if int(call("cuCtxGetCurrent")) else 0


_ALIGNMENT = 16


def fetch(view: DeviceView) -> Array:
    """Return a copy of an array in device memory, when all work of its device has ended; at an address as aligned, so
    that the simulator finds what is misaligned on the device."""
    dtype = get_numpy_dtype(view.dtype)
    size = prod(view.shape) * dtype.itemsize
    room = np.empty(size + _ALIGNMENT, np.uint8)
    start = (view.address - room.ctypes.data) % _ALIGNMENT
    array = room[start : start + size].view(dtype).reshape(view.shape)
    if array.nbytes:
        with in_context(view.device):
            call("cuCtxSynchronize")
            call("cuMemcpyDtoH", array.ctypes.data, view.address, array.nbytes)
    return array


def store(view: DeviceView, array: Array) -> None:
    """Copy an array to device memory."""
    if array.nbytes:
        with in_context(view.device):
            call("cuMemcpyHtoD", view.address, array.ctypes.data, array.nbytes)
            call("cuCtxSynchronize")
