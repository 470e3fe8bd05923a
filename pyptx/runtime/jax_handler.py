"""The handler of XLA's foreign function interface that runs kernels on the CPU: XLA calls it from C, from any of its
threads, with the addresses of the buffers and the attributes of the custom call.

Knows the call frame and nothing of JAX's Python side. Its structures are the parts of XLA's C API that are the same in
all minor versions of major version 0.
"""

from __future__ import annotations

import ctypes
import traceback
import warnings
from ctypes import POINTER, Structure, c_char, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_void_p
from math import prod
from typing import Any

import numpy as np

from pyptx.diagnostics import HazardWarning, PtxError
from pyptx.runtime import simulation
from pyptx.runtime.arrays import Array, fill, get_numpy_dtype
from pyptx.runtime.jax_attributes import CustomCall, create_launch, read_attributes

_METADATA, _EXECUTE, _INTERNAL, _MAJOR = 1, 3, 13, 0
"""A type of extension, a stage, an error code, and the version of the interface."""
_ARRAY, _STRING = 1, 4
"""Types of attributes."""
_DTYPES = {5: np.int64, 6: np.uint8, 9: np.uint64}
"""XLA's numbers of the types that arrays of attributes have."""
_MOST_CALLS = 1024


class _Version(Structure):
    _fields_ = (("size", c_size_t), ("extension", c_void_p), ("major", c_int), ("minor", c_int))


class _Metadata(Structure):
    _fields_ = (("size", c_size_t), ("version", _Version), ("traits", c_uint32))


class _Extension(Structure):
    _fields_ = (("size", c_size_t), ("type", c_int), ("next", c_void_p), ("metadata", POINTER(_Metadata)))


class _Api(Structure):
    _fields_ = (
        ("size", c_size_t), ("extension", c_void_p), ("version", _Version), ("internal", c_void_p),
        ("create_error", ctypes.CFUNCTYPE(c_void_p, c_void_p)),
    )  # fmt: skip


class _ErrorArguments(Structure):
    _fields_ = (("size", c_size_t), ("extension", c_void_p), ("message", c_char_p), ("code", c_int))


class _Buffer(Structure):
    _fields_ = (
        ("size", c_size_t), ("extension", c_void_p), ("dtype", c_int), ("data", c_void_p), ("rank", c_int64),
        ("dims", POINTER(c_int64)),
    )  # fmt: skip


class _Buffers(Structure):
    _fields_ = (
        ("size", c_size_t), ("extension", c_void_p), ("count", c_int64), ("types", c_void_p),
        ("items", POINTER(POINTER(_Buffer))),
    )  # fmt: skip


class _Span(Structure):
    _fields_ = (("data", c_void_p), ("size", c_size_t))


class _AttributeArray(Structure):
    _fields_ = (("dtype", c_int), ("size", c_size_t), ("data", c_void_p))


class _Attributes(Structure):
    _fields_ = (
        ("size", c_size_t), ("extension", c_void_p), ("count", c_int64), ("types", POINTER(c_int)),
        ("names", POINTER(POINTER(_Span))), ("items", POINTER(c_void_p)),
    )  # fmt: skip


class _CallFrame(Structure):
    _fields_ = (
        ("size", c_size_t), ("extension", POINTER(_Extension)), ("api", POINTER(_Api)), ("context", c_void_p),
        ("stage", c_int), ("inputs", _Buffers), ("results", _Buffers), ("attributes", _Attributes),
    )  # fmt: skip


def handle(address: int) -> int | None:
    """Answer a call by XLA; return an error of XLA, or None. `address` is that of the call frame."""
    frame = _CallFrame.from_address(address)
    boundary = _Boundary(frame)
    with boundary:
        if frame.extension and frame.extension.contents.type == _METADATA:
            _describe_handler(frame)
        elif frame.stage == _EXECUTE:
            _execute(frame)
    return boundary.error


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
            arguments = _ErrorArguments(ctypes.sizeof(_ErrorArguments), None, text.encode(), _INTERNAL)
            self.error = self.frame.api.contents.create_error(ctypes.addressof(arguments))
        return True


def _describe_handler(frame: Any) -> None:
    """Answer which version of the interface the handler was built for: any minor one, hence XLA's own."""
    metadata, version = frame.extension.contents.metadata.contents, frame.api.contents.version
    metadata.version.major, metadata.version.minor = _MAJOR, version.minor
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
    for array in fresh:
        fill(array)
    launch = create_launch(call, [*inputs[:count], *results], fresh)
    result = simulation.simulate(launch, cooperative=call.cooperative)
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
    if call is None:
        names = [
            ctypes.string_at(span.contents.data, span.contents.size).decode()
            for span in attributes.names[: attributes.count]
        ]
        call = read_attributes({name: _read(attributes, index) for index, name in enumerate(names)})
        while len(_CALLS) >= _MOST_CALLS:
            _CALLS.pop(next(iter(_CALLS)), None)
        _CALLS[digest] = call
    return call


def _read(attributes: Any, index: int) -> Any:
    """Return the value of an attribute."""
    kind, item = attributes.types[index], attributes.items[index]
    if kind == _STRING:
        span = _Span.from_address(item)
        return ctypes.string_at(span.data, span.size).decode()
    array = _AttributeArray.from_address(item)
    element = np.dtype(_DTYPES[array.dtype])
    return np.frombuffer(ctypes.string_at(array.data, array.size * element.itemsize), element)


HANDLER = ctypes.CFUNCTYPE(c_void_p, c_void_p)(handle)
"""The handler as a C function. XLA keeps its address for the life of the process, and so does this module."""
