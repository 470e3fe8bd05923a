"""The capsules by which array libraries exchange memory (DLPack): reads and creates them. Knows no library."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

CPU, CUDA, CUDA_MANAGED = 1, 2, 13
LEGACY_STREAM, NO_STREAM = 1, -1
"""Streams of `__dlpack__`: the legacy default stream, and no synchronization at all."""
_VERSION = (1, 0)
_READ_ONLY = 1
_MOST_DTYPES = 64
_CODES = {
    "i": 0, "u": 1, "f": 2, "bfloat16": 4, "c": 5, "b": 6, "float8_e3m4": 7, "float8_e4m3": 8,
    "float8_e4m3b11fnuz": 9, "float8_e4m3fn": 10, "float8_e4m3fnuz": 11, "float8_e5m2": 12, "float8_e5m2fnuz": 13,
    "float8_e8m0fnu": 14, "float6_e2m3fn": 15, "float6_e3m2fn": 16, "float4_e2m1fn": 17,
}  # fmt: skip
"""DLPack's codes by the kind of NumPy's dtypes, or the name of ml_dtypes'."""
_NAMES = {code: name for name, code in _CODES.items()}
_KINDS = {0: "int", 1: "uint", 2: "float", 5: "complex"}


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    )  # fmt: skip


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter))


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", _Deleter),
        ("flags", ctypes.c_uint64), ("tensor", _Tensor),
    )  # fmt: skip


_KINDS_OF_CAPSULE: dict[bytes, Any] = {b"dltensor": _Managed, b"dltensor_versioned": _Versioned}
# Functions of its own: whoever sets the signature of a shared one, as `jax.ffi.pycapsule` does, sets it for all.
_API: Any = ctypes.PyDLL(None)
_API.PyCapsule_GetPointer.restype = ctypes.c_void_p
_API.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_API.PyCapsule_GetName.restype = ctypes.c_char_p
_API.PyCapsule_GetName.argtypes = [ctypes.py_object]
_API.PyCapsule_New.restype = ctypes.py_object
_API.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Content(NamedTuple):
    """The memory that a capsule describes."""

    address: int
    shape: tuple[int, ...]
    dtype: str
    is_contiguous: bool
    device: tuple[int, int]
    is_read_only: bool


def read(capsule: object) -> Content:
    """Return what a capsule describes, without consuming it: it must live while the memory is used. ValueError for a
    capsule that is no DLPack tensor, or a dtype that NumPy has no name for."""
    name: bytes | None = _API.PyCapsule_GetName(capsule)
    kind = _KINDS_OF_CAPSULE.get(name or b"")
    if kind is None:
        raise ValueError(f"__dlpack__ returned a capsule named {name!r}")
    managed = kind.from_address(_API.PyCapsule_GetPointer(capsule, name))
    is_versioned = kind is _Versioned
    if is_versioned and managed.major != _VERSION[0]:
        raise ValueError(f"__dlpack__ returned version {managed.major}.{managed.minor} of the format")
    tensor = managed.tensor
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else _compute_strides(shape)
    is_contiguous = not prod(shape) or all(
        size == 1 or stride == step for size, stride, step in zip(shape, strides, _compute_strides(shape), strict=True)
    )
    return Content(
        (tensor.data or 0) + tensor.offset, shape, _name_dtype(tensor.code, tensor.bits, tensor.lanes), is_contiguous,
        (tensor.device_type, tensor.device), is_versioned and bool(managed.flags & _READ_ONLY),
    )  # fmt: skip


def _compute_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _name_dtype(code: int, bits: int, lanes: int) -> str:
    if lanes == 1 and code in _KINDS:
        return f"{_KINDS[code]}{bits}"
    if code == _CODES["float4_e2m1fn"] and lanes == 2:
        return "uint8"
    if lanes != 1 or code not in _NAMES:
        raise ValueError(f"elements of type {code} with {bits} bits in {lanes} lanes")
    return "bool" if code == _CODES["b"] else _NAMES[code]


@dataclass(slots=True)
class _Export:
    """What a capsule keeps alive."""

    owner: object
    managed: Any
    shape: Any


_EXPORTS: dict[int, _Export] = {}


def _forget(address: int | None, exports: dict[int, _Export] = _EXPORTS) -> None:
    exports.pop(address or 0, None)


_FORGET = _Deleter(_forget)


def make_capsule(
    owner: object, address: int, shape: tuple[int, ...], dtype: np.dtype[Any], device: tuple[int, int], *,
    versioned: bool,
) -> object:  # fmt: skip
    """Return a capsule for contiguous memory that lives as long as its owner."""
    managed = _Versioned() if versioned else _Managed()
    array = (ctypes.c_int64 * (2 * len(shape)))(*shape, *_compute_strides(shape))
    tensor = managed.tensor
    tensor.data, (tensor.device_type, tensor.device), tensor.ndim = address or None, device, len(shape)
    tensor.code, tensor.bits, tensor.lanes = describe_dtype(dtype)
    tensor.shape = ctypes.cast(array, ctypes.POINTER(ctypes.c_int64))
    tensor.strides = ctypes.cast(ctypes.byref(array, 8 * len(shape)), ctypes.POINTER(ctypes.c_int64))
    managed.deleter = _FORGET
    if versioned:
        managed.major, managed.minor = _VERSION
    start = ctypes.addressof(managed)
    _EXPORTS[start] = _Export(owner, managed, array)
    return _API.PyCapsule_New(start, b"dltensor_versioned" if versioned else b"dltensor", _DESTROY)


@lru_cache(_MOST_DTYPES)  # NumPy composes a name whenever it is read
def describe_dtype(dtype: np.dtype[Any]) -> tuple[int, int, int]:
    """Return the code, bits and lanes of a dtype."""
    return _CODES[dtype.name if dtype.name in _CODES else dtype.kind], _count_bits(dtype), 1


def _count_bits(dtype: np.dtype[Any]) -> int:
    for bits in (4, 6):
        if dtype.name.startswith(f"float{bits}_"):
            return bits
    return 8 * dtype.itemsize


# Only with addresses: a capsule that is being destroyed must not become an object again.
_is_valid: Any = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_get_pointer: Any = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def _destroy(
    capsule: int, names: tuple[bytes, ...] = tuple(_KINDS_OF_CAPSULE), is_valid: Any = _is_valid,
    get_pointer: Any = _get_pointer, forget: Any = _forget,
) -> None:  # fmt: skip
    """Free what a capsule describes, unless a consumer has taken it over, which renames the capsule. The defaults are
    there when the interpreter ends and the module's variables are gone."""
    for name in names:
        if is_valid(capsule, name):
            forget(get_pointer(capsule, name))


_DESTROY_CALLBACK = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_destroy)
_DESTROY = ctypes.cast(_DESTROY_CALLBACK, ctypes.c_void_p)
