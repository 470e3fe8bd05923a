"""The call frame of XLA's foreign function interface, as structures of ctypes: the parts of XLA's C API that are the
same in all minor versions of major version 0."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, Structure, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_void_p

FUNCTION = ctypes.CFUNCTYPE(c_void_p, c_void_p)
"""A function of XLA, or a handler: it takes the address of a structure, and returns an error or none."""
METADATA, INITIALIZE, EXECUTE, INTERNAL, MAJOR = 1, 2, 3, 13, 0
"""A type of extension, two stages, an error code, and the version of the interface."""
SILENT_MINOR = 1
"""The minor version in which XLA asks for metadata without saying its version."""
BUFFER, ARRAY, STRING = 1, 1, 4
"""The type of arguments, and types of attributes."""
DTYPES = {5: "int64", 6: "uint8", 9: "uint64"}
"""XLA's numbers of the types that arrays of attributes have."""


class Version(Structure):
    """A version of the interface."""

    _fields_ = (("size", c_size_t), ("extension", c_void_p), ("major", c_int), ("minor", c_int))


class Metadata(Structure):
    """What a handler says about itself."""

    _fields_ = (("size", c_size_t), ("version", Version), ("traits", c_uint32))


class Extension(Structure):
    """An extension of a call frame that asks for metadata."""

    _fields_ = (("size", c_size_t), ("type", c_int), ("next", c_void_p), ("metadata", POINTER(Metadata)))


class Api(Structure):
    """The first functions of XLA."""

    _fields_ = (
        ("size", c_size_t), ("extension", c_void_p), ("version", Version), ("internal", c_void_p),
        ("create_error", FUNCTION), ("get_message", c_void_p), ("destroy_error", c_void_p),
        ("register_handler", c_void_p), ("get_stream", FUNCTION),
    )  # fmt: skip


class ErrorArguments(Structure):
    """The arguments of `create_error`."""

    _fields_ = (("size", c_size_t), ("extension", c_void_p), ("message", c_char_p), ("code", c_int))


class StreamArguments(Structure):
    """The arguments of `get_stream`."""

    _fields_ = (("size", c_size_t), ("extension", c_void_p), ("context", c_void_p), ("stream", c_void_p))


class Buffer(Structure):
    """An array in memory."""

    _fields_ = (
        ("size", c_size_t), ("extension", c_void_p), ("dtype", c_int), ("data", c_void_p), ("rank", c_int64),
        ("dims", POINTER(c_int64)),
    )  # fmt: skip


class Buffers(Structure):
    """The arguments or results of a call."""

    _fields_ = (
        ("size", c_size_t), ("extension", c_void_p), ("count", c_int64), ("types", c_void_p),
        ("items", POINTER(POINTER(Buffer))),
    )  # fmt: skip


class Span(Structure):
    """A string."""

    _fields_ = (("data", c_void_p), ("size", c_size_t))


class AttributeArray(Structure):
    """An attribute that is an array."""

    _fields_ = (("dtype", c_int), ("size", c_size_t), ("data", c_void_p))


class Attributes(Structure):
    """The attributes of a call, sorted by name."""

    _fields_ = (
        ("size", c_size_t), ("extension", c_void_p), ("count", c_int64), ("types", POINTER(c_int)),
        ("names", POINTER(POINTER(Span))), ("items", POINTER(c_void_p)),
    )  # fmt: skip


class CallFrame(Structure):
    """What a handler is called with."""

    _fields_ = (
        ("size", c_size_t), ("extension", POINTER(Extension)), ("api", POINTER(Api)), ("context", c_void_p),
        ("stage", c_int), ("inputs", Buffers), ("results", Buffers), ("attributes", Attributes),
    )  # fmt: skip
