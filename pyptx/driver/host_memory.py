"""Reading and writing the memory of this process at addresses that a program passed, and its C library's output.

An address without memory is an error of the call, and not the end of the process.
"""

from __future__ import annotations

import ctypes
import mmap
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyptx.driver.codes import Code, DriverError

_POINTER = struct.Struct("<Q")
_PAGE = mmap.PAGESIZE
_LAST = (1 << 64) - 1
_C: Any = ctypes.CDLL(None)
_C.madvise.argtypes = [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int]
_C.strnlen.argtypes = [ctypes.c_uint64, ctypes.c_size_t]
_C.strnlen.restype = ctypes.c_size_t
_POPULATE_READ, _POPULATE_WRITE = 22, 23
"""Advices of `madvise` that prepare pages for reads or writes, and fail where these would."""
_MAPPINGS = Path("/proc/self/maps")
_MOST_VALUES = 1 << 20


def read(address: int, size: int) -> bytes:
    """Return bytes. DriverError for a null pointer, unless there is nothing to read, and where there is no memory."""
    if not size:
        return b""
    return view(address, size).tobytes()


def require(address: int, size: int, *, writes: bool = False) -> None:
    """Require memory at each of some addresses that can be read, or written."""
    if not address:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    start, end = address & -_PAGE, address + size
    if end > _LAST or not (_prepare(start, end, writes=writes) or _is_mapped(start, end, "w" if writes else "r")):
        kind = "memory that can be written" if writes else "memory"
        raise DriverError(Code.ERROR_INVALID_VALUE, f"the program has no {size} bytes of {kind} at {address:#x}")


def _prepare(start: int, end: int, *, writes: bool) -> bool:
    """Return whether Linux could prepare pages, which it does since 5.14, and not for the memory of every device."""
    return _C.madvise(start, end - start, _POPULATE_WRITE if writes else _POPULATE_READ) == 0


def _is_mapped(start: int, end: int, right: str) -> bool:
    """Return whether mappings with a right cover a range of addresses; looking at all mappings takes longer."""
    for line in _MAPPINGS.read_text("utf-8", "replace").splitlines():
        low, high, rights = re.split("[- ]", line, maxsplit=3)[:3]
        if start < end and int(low, 16) <= start < int(high, 16) and right in rights:
            start = int(high, 16)
    return start >= end


def view(address: int, size: int, *, writes: bool = False) -> NDArray[np.uint8]:
    """Return bytes in place, to read or to write."""
    require(address, size, writes=writes)
    buffer: Any = (ctypes.c_uint8 * size).from_address(address)
    return np.frombuffer(buffer, np.uint8)


def read_text(address: int) -> str:
    """Return a string that ends with NUL. What follows is not the string's, and is not read."""
    text, is_cut = b"", True
    while is_cut:
        size = _PAGE - address % _PAGE
        require(address, size)
        length = _C.strnlen(address, size)
        text += ctypes.string_at(address, length)
        address, is_cut = address + length, length == size
    return text.decode("utf-8", "replace")


def _require_few(count: int) -> None:
    """Refuse a list of a length that no program means, before memory is needed for it."""
    if count > _MOST_VALUES:
        raise DriverError(Code.ERROR_INVALID_VALUE, f"a list of {count} values")


def read_pointers(address: int, count: int) -> tuple[int, ...]:
    """Return addresses or sizes."""
    _require_few(count)
    return struct.unpack(f"<{count}Q", read(address, 8 * count))


def read_ints(address: int, count: int) -> tuple[int, ...]:
    """Return 32-bit integers."""
    _require_few(count)
    return struct.unpack(f"<{count}i", read(address, 4 * count))


def write(address: int, data: bytes) -> None:
    """Write bytes, unless the address is null: results that a program does not ask for."""
    if address:
        require(address, len(data), writes=True)
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
    _C.fflush(ctypes.c_void_p.in_dll(_C, "stdout"))
