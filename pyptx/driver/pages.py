"""Pages of this process at fixed addresses: reserved, backed by a file in memory, or private."""

from __future__ import annotations

import ctypes
import mmap

from pyptx.driver.codes import Code, DriverError

PAGE = 4096
_NO_ACCESS, _FIXED, _NO_RESERVE = 0, 0x10, 0x4000
_READ_WRITE = mmap.PROT_READ | mmap.PROT_WRITE
_PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
_FAILED = (1 << 64) - 1
_C = ctypes.CDLL(None, use_errno=True)
_C.mmap.restype = ctypes.c_void_p
_C.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_C.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_C.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


def reserve_pages(size: int) -> int:
    """Return the first of unused addresses. DriverError if there are none."""
    return _map(0, size, _NO_ACCESS, _PRIVATE | _NO_RESERVE, -1)


def map_file(address: int, size: int, file: int) -> None:
    """Put the bytes of a file at addresses, in place of what is there."""
    _map(address, size, _READ_WRITE, mmap.MAP_SHARED | _FIXED, file)


def hide_pages(address: int, size: int) -> None:
    """Make addresses reserved only."""
    _map(address, size, _NO_ACCESS, _PRIVATE | _FIXED | _NO_RESERVE, -1)


def renew_pages(address: int, size: int) -> None:
    """Put zeros of this process at addresses, in place of what is there."""
    _map(address, size, _READ_WRITE, _PRIVATE | _FIXED, -1)


def protect_pages(address: int, size: int, *, is_open: bool) -> None:
    """Allow or forbid all accesses to the pages of an allocation, which has them for itself."""
    _C.mprotect(address, size, _READ_WRITE if is_open else _NO_ACCESS)


def release_pages(address: int, size: int) -> None:
    """Return addresses to the system."""
    _C.munmap(address, size)


def _map(address: int, size: int, protection: int, flags: int, file: int) -> int:
    result = _C.mmap(address or None, size, protection, flags, file, 0)
    if result == _FAILED:
        raise DriverError(Code.ERROR_OUT_OF_MEMORY)
    return int(result)
