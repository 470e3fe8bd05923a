"""nvJitLink through cuda-bindings: PTX to cubin inside this process, without a driver or GPU.

Knows the library's calls and options; `messages.py` interprets its messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any, Protocol, cast

from pyptx.toolchain.tools import report_missing


class _Library(Protocol):
    """The functions used from `cuda.bindings.nvjitlink`, a compiled module without type information."""

    InputType: Any
    nvJitLinkError: type[Exception]  # noqa: N815 - the library's name

    def version(self) -> tuple[int, int]: ...
    def create(self, num_options: int, options: list[str]) -> int: ...
    def add_data(self, handle: int, input_type: int, data: bytes, size: int, name: str) -> None: ...
    def complete(self, handle: int) -> None: ...
    def get_linked_cubin_size(self, handle: int) -> int: ...
    def get_linked_cubin(self, handle: int, cubin: bytearray) -> None: ...
    def get_error_log_size(self, handle: int) -> int: ...
    def get_error_log(self, handle: int, log: bytearray) -> None: ...
    def get_info_log_size(self, handle: int) -> int: ...
    def get_info_log(self, handle: int, log: bytearray) -> None: ...
    def destroy(self, handle: int) -> None: ...


@lru_cache(maxsize=1)
def _load_library() -> _Library:
    try:
        library = cast(_Library, import_module("cuda.bindings.nvjitlink"))
        library.version()
    except (ImportError, RuntimeError) as error:
        raise report_missing("nvjitlink", why=str(error)) from error
    return library


def version() -> str:
    """Return the library's version, such as "13.5"; ToolMissing if it is not installed."""
    major, minor = _load_library().version()
    return f"{major}.{minor}"


def link(ptx: bytes, options: Sequence[str]) -> tuple[bytes | None, str]:
    """Assemble one PTX module; return the cubin (None if it was rejected) and the log."""
    library = _load_library()
    try:
        handle = library.create(len(options), list(options))
    except library.nvJitLinkError as error:
        return None, f"nvlink fatal : options {' '.join(options)} rejected: {error}"
    try:
        return _link(library, handle, ptx), _read_log(library, handle)
    finally:
        library.destroy(handle)


def _link(library: _Library, handle: int, ptx: bytes) -> bytes | None:
    try:
        library.add_data(handle, library.InputType.PTX, ptx, len(ptx), "input.ptx")
        library.complete(handle)
        cubin = bytearray(library.get_linked_cubin_size(handle))
        library.get_linked_cubin(handle, cubin)
    except library.nvJitLinkError:
        return None
    return bytes(cubin)


def _read_log(library: _Library, handle: int) -> str:
    error, info = bytearray(library.get_error_log_size(handle)), bytearray(library.get_info_log_size(handle))
    if error:
        library.get_error_log(handle, error)
    if info:
        library.get_info_log(handle, info)
    return (error + info).replace(b"\0", b"").decode("utf-8", "replace")
