"""Streams: which one a launch goes to, and events that order it after and before the work of others."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, NoReturn

from pyptx.diagnostics import PtxError
from pyptx.runtime.bindings import CallError, call, load_api
from pyptx.runtime.rules import ARRAYS

LEGACY, PER_THREAD = 1, 2
"""Handles of the two default streams; 0 stands for the legacy one as well."""


def read_stream(value: object) -> int:
    """Return the handle of the stream that a caller passes: a number, or an object with `__cuda_stream__`."""
    handle = value if isinstance(value, int) and not isinstance(value, bool) else read_protocol(value)
    for name in ("cuda_stream", "ptr"):  # of PyTorch and CuPy
        handle = getattr(value, name, None) if handle is None else handle
    if not isinstance(handle, int):
        type_name = type(value).__name__
        _refuse(f"expected a handle or an object with __cuda_stream__, found {type_name}")
    if handle < 0:
        _refuse(f"expected a non-negative handle, found {handle}")
    return handle


def read_protocol(value: object) -> int | None:
    """Return the handle that `__cuda_stream__` of an object returns, None if it has none."""
    protocol: Any = getattr(value, "__cuda_stream__", None)
    result = None if protocol is None else protocol()
    return None if result is None else int(result[1])


def find_device(stream: int) -> int | None:
    """Return the device of a stream that a caller passes, None for the default streams, which every device has."""
    if stream <= PER_THREAD:
        return None
    try:
        return int(call("cuStreamGetDevice", stream))
    except CallError as why:
        if why.code not in _NO_STREAM:
            raise
        _refuse(f"expected the handle of a stream, found {stream}: {why}")


_NO_STREAM = frozenset((1, 400))
"""Codes of a handle that is none: CUDA_ERROR_INVALID_VALUE and CUDA_ERROR_INVALID_HANDLE."""


def check_device(stream: int, device: int) -> None:
    """Refuse a stream of another device than that of the arrays."""
    other = find_device(stream)
    if other not in (None, device):
        _refuse(f"expected a stream of device {device}, where the arrays are, found one of device {other}")


def _refuse(problem: str) -> NoReturn:
    help = "pass a stream of the arrays' device, such as torch.cuda.current_stream(device), or omit it"
    raise PtxError([ARRAYS.report(None, f"`stream`: {problem}", help=help)])


def find_current(library: str, device: int) -> int | None:
    """Return the current stream of a library on a device, None if it has none."""
    if library == "torch":
        cuda: Any = sys.modules["torch"].cuda
        return int(cuda.current_stream(device).cuda_stream) if cuda.is_initialized() else 0
    if library == "cupy":
        cuda = sys.modules["cupy"].cuda
        with cuda.Device(device):
            return int(cuda.get_current_stream().ptr)
    return None


def find_owner(value: object, library: str, device: int) -> object:
    """Return the object that destroys the stream of a call when it goes: the one passed, or CuPy's current stream."""
    if value is None and library == "cupy":
        cuda = sys.modules["cupy"].cuda
        with cuda.Device(device):
            return cuda.get_current_stream()
    return value


def is_same(first: int, second: int) -> bool:
    """Return whether two handles are of the same stream."""
    return (first or LEGACY) == (second or LEGACY)


def is_capturing(stream: int) -> bool:
    """Return whether work of a stream becomes part of a graph."""
    code, status = load_api().cuStreamIsCapturing(stream)
    return bool(code or status)


def is_apart(other: int, captured: int) -> bool:
    """Return whether a captured stream cannot wait for another, which is not captured."""
    # A capture never contains the legacy stream, about which the driver does not answer during some.
    return not is_same(other, captured) and ((other or LEGACY) == LEGACY or not is_capturing(other))


def order_after(stream: int, others: Iterable[int]) -> None:
    """Make a stream wait for the work that others have so far."""
    for other in {handle or LEGACY for handle in others}:
        if not is_same(stream, other):
            _wait(stream, other)


def order_before(stream: int, others: Iterable[int]) -> None:
    """Make others wait for the work that a stream has so far."""
    for other in {handle or LEGACY for handle in others}:
        if not is_same(stream, other):
            _wait(other, stream)


def _wait(stream: int, other: int) -> None:
    """Make a stream wait for what another has so far."""
    event = call("cuEventCreate", load_api().CUevent_flags.CU_EVENT_DISABLE_TIMING)
    try:
        call("cuEventRecord", event, other)
        call("cuStreamWaitEvent", stream, event, 0)
    finally:
        call("cuEventDestroy", event)
