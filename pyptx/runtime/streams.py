"""Streams: which one a launch goes to, and events that order it after and before the work of others."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from pyptx.diagnostics import PtxError
from pyptx.runtime.bindings import call, load_api
from pyptx.runtime.rules import ARRAYS

LEGACY, PER_THREAD = 1, 2
"""Handles of the two default streams; 0 stands for the legacy one as well."""


def read_stream(value: object) -> int:
    """Return the handle of the stream that a caller passes: a number, or an object with `__cuda_stream__`."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    protocol: Any = getattr(value, "__cuda_stream__", None)
    if protocol is not None:
        return int(protocol()[1])
    for name in ("cuda_stream", "ptr"):  # of PyTorch and CuPy
        handle = getattr(value, name, None)
        if isinstance(handle, int):
            return handle
    message = f"`stream`: expected a handle or an object with __cuda_stream__, found {type(value).__name__}"
    raise PtxError([ARRAYS.report(None, message)])


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
