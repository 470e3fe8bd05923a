"""The lines of calls from C and C++: the stack of this thread by `backtrace` of the C library, and its lines by
`addr2line`, which comes with compilers. Knows no driver function."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
from functools import cache
from typing import NamedTuple

_MOST_FRAMES = 256
_TOOLS = ("addr2line", "llvm-addr2line")
_SECONDS = 60
"""The limit of a tool: it takes seconds for the largest programs."""
_C_LIBRARY = "libc.so"
_HEADERS = "/include/"
"""In the path of files without calls of the user's."""
_STUB, _GENERATED = "__device_stub_", ".stub.c:"
"""In the names of the functions with which nvcc launches a kernel, and in those of their files. A function with the
name of the kernel calls them."""
_IS_FIXED = b"\2\0"
"""The type of an ELF file that is always loaded at its own addresses."""


class Location(NamedTuple):
    """A function and its line, each empty if it is not known, and the place in the program's file."""

    function: str
    line: str
    offset: str


class _Symbol(ctypes.Structure):
    _fields_ = (
        ("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("name", ctypes.c_char_p), ("address", ctypes.c_void_p),
    )  # fmt: skip


def find_native_caller(folder: str) -> str:
    """Return the file and line from which this thread has called the libraries in a folder, or if there is no debug
    information the place in the program's file; an empty string if it has not called them, or nobody can tell."""
    locations = [location for file, address in _list_callers(folder) for location in _list_locations(file, address)]
    locations = _skip_stubs(locations)
    lines = (location.line for location in locations if location.line and _HEADERS not in location.line)
    return next(lines, "") or next((location.offset for location in locations), "")


def _skip_stubs(locations: list[Location]) -> list[Location]:
    """Return the locations beyond the functions with which nvcc launches a kernel."""
    stubs = [index for index, item in enumerate(locations) if _STUB in item.function or _GENERATED in item.line]
    if not stubs:
        return locations
    text, rest = " ".join(locations[index].function for index in stubs), locations[stubs[-1] + 1 :]
    if len(rest) < 2:
        return rest
    kernel, caller, *_ = rest
    name = kernel.function.partition("<")[0]
    is_kernel = any(part in text for part in (f"{_STUB}{name}", f"{_STUB}_{name}", f"{len(name)}{name}"))
    # For an inlined function of C linkage, `addr2line` repeats the name of its caller.
    is_kernel |= (kernel.function, kernel.offset) == (caller.function, caller.offset)
    return rest[1:] if is_kernel else rest


def _list_callers(folder: str) -> list[tuple[str, int]]:
    """Return the frames beyond the libraries in a folder, from the inside: the file of each, and the address of the
    call in that file."""
    library = _load_c()
    if library is None:
        return []
    addresses = (ctypes.c_size_t * _MOST_FRAMES)()
    count = library.backtrace(addresses, _MOST_FRAMES)
    symbols = [_find_symbol(library, address) for address in addresses[:count]]
    names = [os.fsdecode(symbol.file or b"") for symbol in symbols]
    last = max((index for index, name in enumerate(names) if os.path.dirname(name) == folder), default=count)
    frames: list[tuple[str, int]] = []
    # A signal returns to the C library, and may have interrupted a function of it.
    depth = next((index for index, name in enumerate(names[last + 1 :]) if not _is_in_c_library(name)), 0)
    for name, symbol, address in list(zip(names, symbols, addresses[:count], strict=True))[last + 1 + depth :]:
        if not name or _is_in_c_library(name):
            break
        # The program's own name is that of its command, which may be relative.
        file = name if os.path.exists(name) else os.path.realpath("/proc/self/exe")
        # The return address may belong to the next line. A signal has interrupted its own.
        is_interrupted = depth == 1 and not frames
        frames.append((file, address - (not is_interrupted) - (0 if _is_fixed(file) else symbol.base or 0)))
    return frames


def _is_in_c_library(name: str) -> bool:
    return os.path.basename(name).startswith(_C_LIBRARY)


@cache
def _load_c() -> ctypes.CDLL | None:
    """Return the C library, None if it has no `backtrace`."""
    library = ctypes.CDLL(None)
    return library if hasattr(library, "backtrace") and hasattr(library, "dladdr") else None


def _find_symbol(library: ctypes.CDLL, address: int) -> _Symbol:
    symbol = _Symbol()
    library.dladdr(ctypes.c_void_p(address), ctypes.byref(symbol))
    return symbol


@cache
def _is_fixed(file: str) -> bool:
    with open(file, "rb") as stream:
        return stream.read(18)[16:] == _IS_FIXED


@cache
def _list_locations(file: str, address: int) -> list[Location]:
    """Return the location of an address, after those of the functions that were inlined there."""
    offset = f"{os.path.basename(file)}+{address:#x}"
    tool = next(filter(None, map(shutil.which, _TOOLS)), None)
    if tool is None:
        return [Location("", "", offset)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LD_")}
    command = [tool, "-f", "-i", "-e", file, hex(address)]
    try:
        process = subprocess.run(
            command, env=environment, capture_output=True, text=True, errors="replace", check=False, timeout=_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return [Location("", "", offset)]
    lines = process.stdout.splitlines()
    locations = [
        Location(function, _read_line(line), f"{offset} ({function})" if function != "??" else offset)
        for function, line in zip(lines[::2], lines[1::2], strict=False)
    ]
    return locations or [Location("", "", offset)]


def _read_line(text: str) -> str:
    """Return a line as `addr2line` writes it; an empty string if it is not known."""
    match = re.match(r"(?P<file>.+):(?P<line>[1-9]\d*)", text)
    return f"{os.path.normpath(match['file'])}:{match['line']}" if match else ""
