"""Streams: creation, order, and host functions in them."""

from __future__ import annotations

import struct

from pyptx.driver.captures import forbid_waiting, forbid_waiting_for_all, join, leave
from pyptx.driver.codes import Code, DriverError
from pyptx.driver.conflicts import check_recorded
from pyptx.driver.host_memory import read, write, write_int, write_pointer
from pyptx.driver.operations import Callback, Event, HostCall, WaitEvent
from pyptx.driver.process import Driver, Thread
from pyptx.driver.signatures import entry
from pyptx.driver.streams import Stream, find_stream, find_work, find_work_of_device, poll, submit, wait

_EXTERNAL = 1
"""In a capture, the wait is a node of the graph."""
_GREATEST_PRIORITY = -5
_PRIORITY = 8
_ATTRIBUTES = {1: b"", 3: b"", _PRIORITY: b"", 9: b"\0\1", 10: b""}
"""The attributes of streams by their number in the enum `CUlaunchAttributeID`: window of the L2 cache, how the host
waits, priority, map of domains, domain; and their values if the program has not set them."""
_ATTRIBUTE_SIZE = 64


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


@entry("cuStreamSetAttribute", "pointer int result")
def set_attribute(driver: Driver, thread: Thread, handle: int, attribute: int, value: int) -> None:
    """Keep an attribute, which says how work is to run, and not what it does."""
    stream = find_stream(driver, thread, handle)
    if attribute not in _ATTRIBUTES:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    stream.attributes[attribute] = read(value, _ATTRIBUTE_SIZE)
    if attribute == _PRIORITY:
        stream.priority = max(_GREATEST_PRIORITY, min(0, *struct.unpack_from("<i", stream.attributes.pop(attribute))))


@entry("cuStreamGetAttribute", "pointer int result")
def get_attribute(driver: Driver, thread: Thread, handle: int, attribute: int, result: int) -> None:
    stream = find_stream(driver, thread, handle)
    if attribute not in _ATTRIBUTES:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    default = struct.pack("<i", stream.priority) if attribute == _PRIORITY else _ATTRIBUTES[attribute]
    write(result, stream.attributes.get(attribute, default).ljust(_ATTRIBUTE_SIZE, b"\0"))


@entry("cuStreamCopyAttributes", "pointer pointer")
def copy_attributes(driver: Driver, thread: Thread, target: int, source: int) -> None:
    stream, other = (find_stream(driver, thread, handle) for handle in (target, source))
    stream.attributes, stream.priority = dict(other.attributes), other.priority


@entry("cuCtxResetPersistingL2Cache")
def reset_persisting(driver: Driver, thread: Thread) -> None:
    driver.get_context(thread)


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
