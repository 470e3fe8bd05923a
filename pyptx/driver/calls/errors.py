"""Initialization, versions, and the names of errors."""

from __future__ import annotations

import ctypes
import sys

from pyptx.driver.codes import Code, DriverError
from pyptx.driver.host_memory import write_int, write_pointer
from pyptx.driver.process import Driver, Thread
from pyptx.driver.signatures import entry

VERSION = 13050
"""The version of CUDA whose functions the library has."""
_NVIDIA_RUNTIME = (
    "NVIDIA's runtime library in this program needs NVIDIA's driver: build the program with `nvcc -cudart shared`"
)


@entry("cuInit", "uint", is_early=True)
def initialize(driver: Driver, thread: Thread, flags: int) -> None:
    if flags:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    driver.is_initialized = True


@entry("cuDriverGetVersion", "result", is_early=True)
def get_version(driver: Driver, thread: Thread, result: int) -> None:
    write_int(result, VERSION)


@entry("cuGetErrorName", "int result", is_early=True)
def get_error_name(driver: Driver, thread: Thread, number: int, result: int) -> None:
    write_pointer(result, 0)
    write_pointer(result, keep_text(driver, _find_code(number).spelling))


@entry("cuGetErrorString", "int result", is_early=True)
def get_error_string(driver: Driver, thread: Thread, number: int, result: int) -> None:
    write_pointer(result, 0)
    write_pointer(result, keep_text(driver, _find_code(number).meaning))


def _find_code(number: int) -> Code:
    try:
        return Code(number)
    except ValueError:
        raise DriverError(Code.ERROR_INVALID_VALUE) from None


def keep_text(driver: Driver, text: str) -> int:
    """Return the address of a string that stays valid."""
    buffer = driver.texts.setdefault(text, ctypes.create_string_buffer(text.encode()))
    return ctypes.addressof(buffer)


@entry("cuGetExportTable", "pointer pointer", is_early=True)
def get_export_table(driver: Driver, thread: Thread, table: int, identity: int) -> None:
    """NVIDIA's runtime library asks for private tables, which the simulation does not have. Some Python packages ask,
    too, and do without."""
    if not table or not identity:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    write_pointer(table, 0)
    is_python = bool(sys.orig_argv)
    text = "" if is_python or _NVIDIA_RUNTIME in driver.texts else _NVIDIA_RUNTIME
    keep_text(driver, _NVIDIA_RUNTIME)
    raise DriverError(Code.ERROR_NOT_FOUND, text)


@entry("cuProfilerStart cuProfilerStop")
def ignore_profiler(driver: Driver, thread: Thread) -> None:
    """Profile nothing."""
