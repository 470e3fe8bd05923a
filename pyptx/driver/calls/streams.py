"""Streams: creation, order, and host functions in them."""

from __future__ import annotations

import ctypes

from pyptx.driver.codes import Code, DriverError
from pyptx.driver.host_memory import write_int, write_pointer
from pyptx.driver.process import Driver, Thread
from pyptx.driver.signatures import entry
from pyptx.driver.streams import Event, Stream, find_stream, submit, synchronize

_HOST_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
_GREATEST_PRIORITY = -5


@entry("cuStreamCreate", "result uint")
def create_stream(driver: Driver, thread: Thread, result: int, flags: int) -> None:
    create_with_priority(driver, thread, result, flags, 0)


@entry("cuStreamCreateWithPriority", "result uint int")
def create_with_priority(driver: Driver, thread: Thread, result: int, flags: int, priority: int) -> None:
    device = driver.get_context(thread).device
    if flags not in (0, 1):
        raise DriverError(Code.ERROR_INVALID_VALUE)
    priority = max(_GREATEST_PRIORITY, min(0, priority))
    write_pointer(result, driver.handles.add(lambda handle: Stream(handle, device, flags, priority)).handle)


@entry("cuStreamDestroy_v2 cuStreamDestroy", "pointer")
def destroy_stream(driver: Driver, thread: Thread, handle: int) -> None:
    driver.get_context(thread)
    driver.handles.remove(handle, Stream)


@entry("cuStreamSynchronize", "pointer")
def wait_for_stream(driver: Driver, thread: Thread, handle: int) -> None:
    find_stream(driver, thread, handle)
    synchronize(driver)


@entry("cuStreamQuery", "pointer")
def query_stream(driver: Driver, thread: Thread, handle: int) -> None:
    find_stream(driver, thread, handle)
    synchronize(driver)


@entry("cuCtxSynchronize")
def wait_for_context(driver: Driver, thread: Thread) -> None:
    driver.get_context(thread)
    synchronize(driver)


@entry("cuCtxSynchronize_v2", "pointer")
def wait_for_named_context(driver: Driver, thread: Thread, handle: int) -> None:
    driver.get_context(thread)
    synchronize(driver)


@entry("cuStreamWaitEvent", "pointer pointer uint")
def wait_for_event(driver: Driver, thread: Thread, handle: int, event: int, flags: int) -> None:
    find_stream(driver, thread, handle)
    driver.handles.get(event, Event)


@entry("cuStreamGetPriority", "pointer result")
def get_priority(driver: Driver, thread: Thread, handle: int, result: int) -> None:
    write_int(result, find_stream(driver, thread, handle).priority)


@entry("cuStreamGetFlags", "pointer result")
def get_flags(driver: Driver, thread: Thread, handle: int, result: int) -> None:
    write_int(result, find_stream(driver, thread, handle).flags)


@entry("cuStreamGetId", "pointer result")
def get_identity(driver: Driver, thread: Thread, handle: int, result: int) -> None:
    write_pointer(result, find_stream(driver, thread, handle).handle)


@entry("cuStreamGetDevice", "pointer result")
def get_device(driver: Driver, thread: Thread, handle: int, result: int) -> None:
    write_int(result, find_stream(driver, thread, handle).device)


@entry("cuStreamGetCtx", "pointer result")
def get_context(driver: Driver, thread: Thread, handle: int, result: int) -> None:
    find_stream(driver, thread, handle)
    write_pointer(result, driver.get_context(thread).handle)


@entry("cuStreamGetCtx_v2", "pointer result pointer")
def get_contexts(driver: Driver, thread: Thread, handle: int, result: int, green: int) -> None:
    get_context(driver, thread, handle, result)
    write_pointer(green, 0)


@entry("cuStreamIsCapturing", "pointer result")
def is_capturing(driver: Driver, thread: Thread, handle: int, result: int) -> None:
    find_stream(driver, thread, handle)
    write_int(result, 0)


@entry("cuStreamGetCaptureInfo_v2", "pointer pointer pointer pointer pointer pointer")
def get_capture(
    driver: Driver, thread: Thread, handle: int, status: int, identity: int, graph: int, nodes: int, count: int
) -> None:
    is_capturing(driver, thread, handle, status)


@entry("cuStreamGetCaptureInfo_v3", "pointer pointer pointer pointer pointer pointer pointer")
def get_capture_with_edges(
    driver: Driver, thread: Thread, handle: int, status: int, identity: int, graph: int, nodes: int, edges: int,
    count: int,
) -> None:  # fmt: skip
    is_capturing(driver, thread, handle, status)


@entry("cuLaunchHostFunc", "pointer pointer pointer")
def call_host(driver: Driver, thread: Thread, handle: int, function: int, data: int) -> None:
    stream = find_stream(driver, thread, handle)
    if not function:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    submit(driver, stream, lambda: _HOST_FUNCTION(function)(data))


@entry("cuLaunchHostFunc_v2", "pointer pointer pointer uint")
def call_host_in_mode(driver: Driver, thread: Thread, handle: int, function: int, data: int, mode: int) -> None:
    call_host(driver, thread, handle, function, data)


@entry("cuStreamAddCallback", "pointer pointer pointer uint")
def add_callback(driver: Driver, thread: Thread, handle: int, function: int, data: int, flags: int) -> None:
    stream = find_stream(driver, thread, handle)
    if not function or flags:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    submit(driver, stream, lambda: _CALLBACK(function)(stream.handle, 0, data))
