"""Streams: creation, order, and host functions in them."""

from __future__ import annotations

from pyptx.driver.captures import forbid_waiting, forbid_waiting_for_all, join, leave
from pyptx.driver.codes import Code, DriverError
from pyptx.driver.conflicts import check_recorded
from pyptx.driver.host_memory import write_int, write_pointer
from pyptx.driver.operations import Callback, Event, HostCall, WaitEvent
from pyptx.driver.process import Driver, Thread
from pyptx.driver.signatures import entry
from pyptx.driver.streams import Stream, find_stream, find_work, find_work_of_device, poll, submit, wait

_EXTERNAL = 1
"""In a capture, the wait is a node of the graph."""
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
    leave(driver, driver.handles.remove(handle, Stream))


@entry("cuStreamSynchronize", "pointer")
def wait_for_stream(driver: Driver, thread: Thread, handle: int) -> None:
    stream = find_stream(driver, thread, handle)
    forbid_waiting(driver, stream)
    wait(driver, find_work(driver, stream))


@entry("cuStreamQuery", "pointer")
def query_stream(driver: Driver, thread: Thread, handle: int) -> None:
    stream = find_stream(driver, thread, handle)
    forbid_waiting(driver, stream)
    poll(driver, find_work(driver, stream))


@entry("cuCtxSynchronize")
def wait_for_context(driver: Driver, thread: Thread) -> None:
    device = driver.get_context(thread).device
    forbid_waiting_for_all(driver, device)
    wait(driver, find_work_of_device(driver, device))


@entry("cuCtxSynchronize_v2", "pointer")
def wait_for_named_context(driver: Driver, thread: Thread, handle: int) -> None:
    wait_for_context(driver, thread)


@entry("cuStreamWaitEvent", "pointer pointer uint")
def wait_for_event(driver: Driver, thread: Thread, handle: int, event: int, flags: int) -> None:
    stream, target = find_stream(driver, thread, handle), driver.handles.get(event, Event)
    if flags & ~_EXTERNAL:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    if stream.capture is not None and flags:
        submit(driver, stream, WaitEvent(target))
    elif stream.capture is not None or target.capture is not None:
        join(stream, target)
    else:
        check_recorded(driver, target)
        submit(driver, stream, WaitEvent(target))


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


@entry("cuLaunchHostFunc", "pointer pointer pointer")
def call_host(driver: Driver, thread: Thread, handle: int, function: int, data: int) -> None:
    stream = find_stream(driver, thread, handle)
    if not function:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    submit(driver, stream, HostCall(function, data))


@entry("cuLaunchHostFunc_v2", "pointer pointer pointer uint")
def call_host_in_mode(driver: Driver, thread: Thread, handle: int, function: int, data: int, mode: int) -> None:
    call_host(driver, thread, handle, function, data)


@entry("cuStreamAddCallback", "pointer pointer pointer uint")
def add_callback(driver: Driver, thread: Thread, handle: int, function: int, data: int, flags: int) -> None:
    stream = find_stream(driver, thread, handle)
    if not function or flags:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    submit(driver, stream, Callback(function, stream.handle, data))
