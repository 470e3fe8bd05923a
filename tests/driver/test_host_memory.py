"""Memory of the program that calls may not read or write: an error of the call, and not the end of the process."""

from __future__ import annotations

import ctypes
import mmap

import pytest

from pyptx.driver import host_memory
from pyptx.driver.codes import DriverError
from tests.driver.conftest import Run

PAGES = """\
import ctypes, mmap
from calls import *
start()
C, PAGE = ctypes.CDLL(None), mmap.PAGESIZE
C.mmap.restype = ctypes.c_uint64
C.mprotect.argtypes = [ctypes.c_uint64, ctypes.c_size_t, ctypes.c_int]

def map_pages(*protections):
    \"\"\"Return the address of pages side by side: 0 cannot be accessed, 1 can be read, 3 can be written, too.\"\"\"
    address = C.mmap(None, ctypes.c_size_t(PAGE * len(protections)), 3, 0x22, -1, 0)
    for at, protection in enumerate(protections):
        C.mprotect(address + at * PAGE, PAGE, protection)
    return address

memory, out = ask("cuMemAlloc_v2", 2 * PAGE), ctypes.byref(ctypes.c_uint64())
"""


def test_copies_from_and_to_protected_memory_are_refused(run_program: Run) -> None:
    program = """\
closed, constant, both = map_pages(0), map_pages(1, 1), map_pages(3, 1)
stream = ask("cuStreamCreate", 0)
print([try_call("cuMemcpyHtoD_v2", memory, address, 64) for address in (closed, constant, both)], end=" ")
print([try_call("cuMemcpyDtoH_v2", address, memory, 64) for address in (closed, constant, both)], end=" ")
print([try_call("cuMemcpyDtoHAsync_v2", address, memory, 64, stream) for address in (constant, both)], end=" ")
print([try_call("cuMemcpyDtoH_v2", both + PAGE - 32, memory, size) for size in (32, 33)], end=" ")
print(try_call("cuMemcpy", constant, memory, 64), try_call("cuMemcpy", memory, constant, 64), end=" ")
call("cuMemHostRegister_v2", constant + PAGE, PAGE, 8)
print(try_call("cuMemcpyDtoH_v2", constant + PAGE, memory, 64), try_call("cuDeviceGetCount", constant), end=" ")
print(try_call("cuCtxSynchronize"))
"""
    process = run_program(PAGES + program)
    assert process.stdout == "[1, 0, 0] [1, 1, 0] [1, 0] [0, 1] 1 0 1 1 0\n", process.stderr
    assert "cuMemcpyDtoH_v2: the program has no 64 bytes of memory that can be written at 0x" in process.stderr


@pytest.mark.parametrize("order", ["sync", "deferred"])
def test_memory_that_is_closed_after_the_call_is_no_end(order: str, run_program: Run) -> None:
    program = """\
page, stream = map_pages(3), ask("cuStreamCreate", 0)
call("cuMemHostRegister_v2", page, PAGE, 0)
call("cuMemcpyDtoHAsync_v2", page, memory, 64, stream)
C.mprotect(page, PAGE, 1)
print(try_call("cuStreamSynchronize", stream))
"""
    process = run_program(PAGES + program, order=order)
    assert process.stdout == f"{int(order == 'deferred')}\n", process.stderr


def test_nothing_is_read_after_the_end_of_a_short_image(run_program: Run) -> None:
    program = """\
end = map_pages(3, 0) + PAGE
for text in (b"", b"x", b"//"):
    ctypes.memmove(end - len(text) - 1, text + b"\\0", len(text) + 1)
    print(try_call("cuModuleLoadData", out, end - len(text) - 1), end=" ")
ctypes.memset(end - 2, ord("x"), 2)
print(try_call("cuModuleLoadData", out, end - 2))
"""
    process = run_program(PAGES + program)
    assert process.stdout == "218 218 218 1\n", process.stderr


def test_a_system_that_cannot_prepare_pages_is_asked_for_its_mappings(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(start: int, end: int, *, writes: bool) -> bool:
        return False

    monkeypatch.setattr(host_memory, "_prepare", refuse)
    size = 2 * mmap.PAGESIZE
    with mmap.mmap(-1, size) as pages, mmap.mmap(-1, size, prot=mmap.PROT_READ) as constant:
        address, fixed = (find_address(item) for item in (pages, constant))
        host_memory.require(address, size, writes=True)
        host_memory.require(fixed, size)
        for start, count, writes in ((fixed, size, True), (8, 8, False), (fixed, 1 << 44, False)):
            with pytest.raises(DriverError):
                host_memory.require(start, count, writes=writes)


def find_address(pages: mmap.mmap) -> int:
    """Return the address of memory, which need not be writable."""
    view = ctypes.py_object(pages)
    buffer = (ctypes.c_ssize_t * 11)()
    ctypes.pythonapi.PyObject_GetBuffer(view, buffer, 0)
    ctypes.pythonapi.PyBuffer_Release(buffer)
    return buffer[0]
