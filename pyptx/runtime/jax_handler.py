"""The handler of XLA's foreign function interface that runs kernels on the CPU: XLA calls it from C, from any of its
threads, with the addresses of the buffers and the attributes of the custom call.

Knows the call frame and nothing of JAX's Python side.
"""

from __future__ import annotations

import ctypes
import time
import traceback
import warnings
from collections.abc import Sequence
from ctypes import c_char
from math import prod
from threading import get_ident
from typing import Any

import numpy as np

from pyptx.diagnostics import HazardWarning, PtxError
from pyptx.runtime import simulation
from pyptx.runtime.arrays import Array, fill, get_numpy_dtype
from pyptx.runtime.jax_attributes import CustomCall, create_launch, is_outdated, read_attributes
from pyptx.runtime.xla_frames import (
    DTYPES,
    EXECUTE,
    FUNCTION,
    INTERNAL,
    MAJOR,
    METADATA,
    SILENT_MINOR,
    STRING,
    AttributeArray,
    CallFrame,
    ErrorArguments,
    Span,
)  # fmt: skip

_MOST_CALLS = 1024


def handle(address: int) -> int | None:
    """Answer a call by XLA; return an error of XLA, or None. `address` is that of the call frame."""
    thread = get_ident()
    _INSIDE.add(thread)
    frame = CallFrame.from_address(address)
    boundary = _Boundary(frame)
    with boundary:
        if frame.extension and frame.extension.contents.type == METADATA:
            _describe_handler(frame)
        elif frame.stage == EXECUTE:
            _execute(frame)
    _LATEST[0] = time.monotonic()
    _INSIDE.discard(thread)
    return boundary.error


_INSIDE: set[int] = set()
"""The threads that are in a call."""
_LATEST = [0.0]
"""When the latest call ended."""
_QUIET = 0.03
"""Seconds after which no further call is expected at the end of the process."""


def wait_for_calls() -> None:
    """Wait until no thread of XLA is in Python, and for a moment none has entered it."""
    while _INSIDE or time.monotonic() - _LATEST[0] < _QUIET:
        time.sleep(_QUIET / 10)


class _Boundary:
    """Turns whatever is raised inside of it into an error of XLA: what reached the caller, which is C code, would be
    lost, and the run would seem to have succeeded."""

    def __init__(self, frame: Any) -> None:
        self.frame, self.error = frame, None

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, raised: Any, trace: Any) -> bool:
        if raised is not None:
            is_ours = isinstance(raised, PtxError | HazardWarning)
            text = str(raised) if is_ours else "".join(traceback.format_exception(raised))
            arguments = ErrorArguments(ctypes.sizeof(ErrorArguments), None, text.encode(), INTERNAL)
            self.error = self.frame.api.contents.create_error(ctypes.addressof(arguments))
        return True


def _describe_handler(frame: Any) -> None:
    """Answer which version of the interface the handler was built for: any minor one, hence XLA's own."""
    metadata = frame.extension.contents.metadata.contents
    metadata.version.major = MAJOR
    metadata.version.minor = frame.api.contents.version.minor if frame.api else SILENT_MINOR
    metadata.traits = 0


_CALLS: dict[bytes, CustomCall] = {}


def _execute(frame: Any) -> None:
    call = _find_call(frame.attributes)
    inputs = [_view(item, name) for item, name in zip(_list(frame.inputs), call.dtypes, strict=False)]
    names = call.dtypes[len(call.dtypes) - call.outputs :]
    results = [_view(item, name) for item, name in zip(_list(frame.results), names, strict=True)]
    count = len(call.dtypes) - call.outputs
    # Further inputs are the initial values of the outputs, which XLA has put where the outputs are.
    fresh = results if frame.inputs.count == count else []
    for array in inputs:
        array.flags.writeable = False
    run_call(call, inputs[:count], results, fresh)


def run_call(call: CustomCall, inputs: Sequence[Array], results: Sequence[Array], fresh: Sequence[Array]) -> None:
    """Run a call, and show its warnings. `fresh` are the results without initial values."""
    for array in fresh:
        fill(array)
    launch = create_launch(call, [*inputs, *results], fresh)
    result = simulation.simulate(launch, cooperative=call.is_cooperative)
    for text in simulation.list_warnings(result):
        warnings.warn_explicit(text, HazardWarning, f"<kernel {call.entry}>", 1, registry=_SHOWN)


_SHOWN: dict[Any, Any] = {}
"""Which warnings were shown, as the module `warnings` keeps it for each module."""


def _list(buffers: Any) -> list[Any]:
    return [buffers.items[index].contents for index in range(buffers.count)]


def _view(buffer: Any, dtype: str) -> Array:
    """Return the memory of a buffer as an array."""
    shape = tuple(buffer.dims[: buffer.rank])
    element = get_numpy_dtype(dtype)
    memory: Any = (c_char * (element.itemsize * prod(shape))).from_address(buffer.data)
    return np.frombuffer(memory, np.uint8).view(element).reshape(shape)


def _find_call(attributes: Any) -> CustomCall:
    digest = _read(attributes, 0).tobytes()
    call = _CALLS.get(digest)
    if call is None or is_outdated(call.module, digest):
        names = [
            ctypes.string_at(span.contents.data, span.contents.size).decode()
            for span in attributes.names[: attributes.count]
        ]
        call = read_attributes({name: _read(attributes, index) for index, name in enumerate(names)})
        while len(_CALLS) >= _MOST_CALLS and digest not in _CALLS:
            _CALLS.pop(next(iter(_CALLS)), None)
        _CALLS[digest] = call
    return call


def _read(attributes: Any, index: int) -> Any:
    """Return the value of an attribute."""
    kind, item = attributes.types[index], attributes.items[index]
    if kind == STRING:
        span = Span.from_address(item)
        return ctypes.string_at(span.data, span.size).decode()
    array = AttributeArray.from_address(item)
    element = np.dtype(DTYPES[array.dtype])
    return np.frombuffer(ctypes.string_at(array.data, array.size * element.itemsize), element)


HANDLER = FUNCTION(handle)
"""The handler as a C function. XLA keeps its address for the life of the process, and so does this module."""
