"""Modules and libraries: loading, their kernels and variables."""

from __future__ import annotations

import ctypes
from pathlib import Path

from pyptx.driver.calls.errors import keep_text
from pyptx.driver.captures import forbid_unsafe
from pyptx.driver.codes import Code, DriverError
from pyptx.driver.host_memory import read_ints, read_pointers, read_text, write_int, write_pointer, write_text
from pyptx.driver.modules import Kernel, LoadedImage, load_image
from pyptx.driver.process import Driver, Thread
from pyptx.driver.signatures import entry
from pyptx.driver.streams import synchronize

_ERROR_LOG, _ERROR_LOG_SIZE = 5, 6


def _load(
    driver: Driver, thread: Thread, result: int, address: int, options: dict[int, int], size: int | None = None
) -> None:
    """Load an image in the current context; what is wrong with it goes to the caller's log."""
    context = driver.get_context(thread)
    try:
        image = load_image(driver, address, context.device, size)
    except DriverError as why:
        write_log(options, str(why))
        raise
    context.objects.append(image)
    write_pointer(result, image.handle)


def write_log(options: dict[int, int], text: str) -> None:
    """Write what is wrong to the caller's log, if there is one."""
    if options.get(_ERROR_LOG):
        write_text(options[_ERROR_LOG], text, options.get(_ERROR_LOG_SIZE, 0) & 0xFFFFFFFF)


def read_options(count: int, names: int, values: int) -> dict[int, int]:
    """Return compiler options; values are numbers or pointers in place of pointers."""
    return dict(zip(read_ints(names, count), read_pointers(values, count), strict=True))


def _load_file(driver: Driver, thread: Thread, result: int, name: int) -> None:
    try:
        data = Path(read_text(name)).read_bytes()
    except OSError:
        raise DriverError(Code.ERROR_FILE_NOT_FOUND) from None
    # The text of PTX ends with NUL.
    buffer = ctypes.create_string_buffer(data)
    _load(driver, thread, result, ctypes.addressof(buffer), {}, len(data))


@entry("cuModuleLoad", "result pointer")
def load_module_file(driver: Driver, thread: Thread, result: int, name: int) -> None:
    forbid_unsafe(driver, thread)
    _load_file(driver, thread, result, name)


@entry("cuModuleLoadData cuModuleLoadFatBinary", "result pointer")
def load_module(driver: Driver, thread: Thread, result: int, address: int) -> None:
    forbid_unsafe(driver, thread)
    _load(driver, thread, result, address, {})


@entry("cuModuleLoadDataEx", "result pointer uint pointer pointer")
def load_module_with_options(
    driver: Driver, thread: Thread, result: int, address: int, count: int, names: int, values: int
) -> None:
    forbid_unsafe(driver, thread)
    _load(driver, thread, result, address, read_options(count, names, values))


@entry("cuLibraryLoadData", "result pointer pointer pointer uint pointer pointer uint")
def load_library(
    driver: Driver, thread: Thread, result: int, address: int, names: int, values: int, count: int,
    library_names: int, library_values: int, library_count: int,
) -> None:  # fmt: skip
    _load(driver, thread, result, address, read_options(count, names, values))


@entry("cuLibraryLoadFromFile", "result pointer pointer pointer uint pointer pointer uint")
def load_library_file(
    driver: Driver, thread: Thread, result: int, name: int, names: int, values: int, count: int, library_names: int,
    library_values: int, library_count: int,
) -> None:  # fmt: skip
    _load_file(driver, thread, result, name)


@entry("cuModuleUnload cuLibraryUnload", "pointer")
def unload(driver: Driver, thread: Thread, handle: int) -> None:
    context = driver.get_context(thread)
    image = driver.handles.get(handle, LoadedImage)
    synchronize(driver)
    if image in context.objects:
        context.objects.remove(image)
    image.close(driver)


@entry("cuModuleGetFunction cuLibraryGetKernel", "result pointer pointer")
def get_function(driver: Driver, thread: Thread, result: int, handle: int, name: int) -> None:
    driver.get_context(thread)
    write_pointer(result, driver.handles.get(handle, LoadedImage).get_kernel(read_text(name)).handle)


@entry("cuModuleGetGlobal_v2 cuLibraryGetGlobal cuLibraryGetManaged", "pointer pointer pointer pointer")
def get_variable(driver: Driver, thread: Thread, address: int, size: int, handle: int, name: int) -> None:
    driver.get_context(thread)
    variable = driver.handles.get(handle, LoadedImage).loaded.variables.get(read_text(name))
    if variable is None:
        raise DriverError(Code.ERROR_NOT_FOUND)
    write_pointer(address, variable[0])
    write_pointer(size, variable[1])


@entry("cuLibraryGetModule", "result pointer")
def get_module(driver: Driver, thread: Thread, result: int, handle: int) -> None:
    driver.get_context(thread)
    write_pointer(result, driver.handles.get(handle, LoadedImage).handle)


@entry("cuModuleGetFunctionCount cuLibraryGetKernelCount", "result pointer")
def count_functions(driver: Driver, thread: Thread, result: int, handle: int) -> None:
    driver.get_context(thread)
    write_int(result, len(driver.handles.get(handle, LoadedImage).kernels))


@entry("cuModuleEnumerateFunctions cuLibraryEnumerateKernels", "result uint pointer")
def list_functions(driver: Driver, thread: Thread, result: int, count: int, handle: int) -> None:
    driver.get_context(thread)
    kernels = list(driver.handles.get(handle, LoadedImage).kernels.values())
    for index, kernel in enumerate(kernels[:count]):
        write_pointer(result + 8 * index, kernel.handle)


@entry("cuModuleGetLoadingMode", "result")
def get_loading_mode(driver: Driver, thread: Thread, result: int) -> None:
    write_int(result, 1)


@entry("cuKernelGetFunction", "result pointer")
def get_function_of_kernel(driver: Driver, thread: Thread, result: int, handle: int) -> None:
    driver.get_context(thread)
    write_pointer(result, driver.handles.get(handle, Kernel).handle)


@entry("cuKernelGetLibrary cuFuncGetModule", "result pointer")
def get_owner(driver: Driver, thread: Thread, result: int, handle: int) -> None:
    driver.get_context(thread)
    write_pointer(result, driver.handles.get(handle, Kernel).module.handle)


@entry("cuKernelGetName cuFuncGetName", "result pointer")
def get_name(driver: Driver, thread: Thread, result: int, handle: int) -> None:
    write_pointer(result, keep_text(driver, driver.handles.get(handle, Kernel).name))
