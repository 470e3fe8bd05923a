"""Reading and writing the memory of this process at addresses that a program passed, and its C library's output."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyptx.driver.codes import Code, DriverError

_POINTER = struct.Struct("<Q")


def read(address: int, size: int) -> bytes:
    """Return bytes. DriverError for a null pointer, unless there is nothing to read."""
    if not size:
        return b""
    _require(address)
    return ctypes.string_at(address, size)


def _require(address: int) -> None:
    if not address:
        raise DriverError(Code.ERROR_INVALID_VALUE)


def view(address: int, size: int) -> NDArray[np.uint8]:
    """Return bytes in place."""
    _require(address)
    buffer: Any = (ctypes.c_uint8 * size).from_address(address)
    return np.frombuffer(buffer, np.uint8)


def read_text(address: int) -> str:
    """Return a string that ends with NUL."""
    _require(address)
    return ctypes.string_at(address).decode("utf-8", "replace")


def read_pointers(address: int, count: int) -> tuple[int, ...]:
    """Return addresses or sizes."""
    return struct.unpack(f"<{count}Q", read(address, 8 * count))


def read_ints(address: int, count: int) -> tuple[int, ...]:
    """Return 32-bit integers."""
    return struct.unpack(f"<{count}i", read(address, 4 * count))


def write(address: int, data: bytes) -> None:
    """Write bytes, unless the address is null: results that a program does not ask for."""
    if address:
        ctypes.memmove(address, data, len(data))


def write_pointer(address: int, value: int) -> None:
    """Write an address, a handle or a size."""
    write(address, _POINTER.pack(value))


def write_int(address: int, value: int) -> None:
    """Write a 32-bit integer."""
    write(address, struct.pack("<I", value & 0xFFFFFFFF))


def write_text(address: int, text: str, size: int) -> None:
    """Write a string, cut to the size of its buffer, and its NUL."""
    if size > 0:
        write(address, text.encode()[: size - 1] + b"\0")


def flush_output() -> None:
    """Write what C code printed, which comes before what a kernel prints."""
    library = ctypes.CDLL(None)
    library.fflush(ctypes.c_void_p.in_dll(library, "stdout"))
