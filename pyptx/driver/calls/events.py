"""Events."""

from __future__ import annotations

import struct

from pyptx.driver.captures import forbid_unsafe, forbid_waiting_for_event, record
from pyptx.driver.codes import Code, DriverError
from pyptx.driver.conflicts import check_recorded
from pyptx.driver.host_memory import write, write_pointer
from pyptx.driver.operations import Event, RecordEvent
from pyptx.driver.process import Driver, Thread
from pyptx.driver.signatures import entry
from pyptx.driver.streams import find_stream, measure_milliseconds, poll, submit, wait

_DISABLE_TIMING = 2
_EXTERNAL = 1
"""In a capture, the record is a node of the graph."""


@entry("cuEventCreate", "result uint")
def create_event(driver: Driver, thread: Thread, result: int, flags: int) -> None:
    device = driver.get_context(thread).device
    if flags & ~7:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    write_pointer(result, driver.handles.add(lambda handle: Event(handle, device, flags)).handle)


@entry("cuEventDestroy_v2 cuEventDestroy", "pointer")
def destroy_event(driver: Driver, thread: Thread, handle: int) -> None:
    driver.get_context(thread)
    driver.handles.remove(handle, Event)


@entry("cuEventRecord", "pointer pointer")
def record_event(driver: Driver, thread: Thread, handle: int, stream: int) -> None:
    record_with_flags(driver, thread, handle, stream, 0)


@entry("cuEventRecordWithFlags", "pointer pointer uint")
def record_with_flags(driver: Driver, thread: Thread, handle: int, stream: int, flags: int) -> None:
    queue, event = find_stream(driver, thread, stream), driver.handles.get(handle, Event)
    if flags & ~_EXTERNAL:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    if queue.capture is not None and not flags:
        record(queue, queue.capture, event)
    else:
        submit(driver, queue, RecordEvent(event))


@entry("cuEventSynchronize", "pointer")
def wait_for_event(driver: Driver, thread: Thread, handle: int) -> None:
    event = _get_waitable(driver, thread, handle)
    check_recorded(driver, event)
    wait(driver, driver.order.after.get(event, 0))


@entry("cuEventQuery", "pointer")
def query_event(driver: Driver, thread: Thread, handle: int) -> None:
    poll(driver, driver.order.after.get(_get_waitable(driver, thread, handle), 0))


def _get_waitable(driver: Driver, thread: Thread, handle: int) -> Event:
    driver.get_context(thread)
    event = driver.handles.get(handle, Event)
    forbid_waiting_for_event(event)
    forbid_unsafe(driver, thread)
    return event


@entry("cuEventElapsedTime cuEventElapsedTime_v2", "result pointer pointer")
def get_elapsed(driver: Driver, thread: Thread, result: int, start: int, end: int) -> None:
    driver.get_context(thread)
    events = driver.handles.get(start, Event), driver.handles.get(end, Event)
    for event in events:
        forbid_waiting_for_event(event)
    if any(event.flags & _DISABLE_TIMING for event in events):
        raise DriverError(Code.ERROR_INVALID_HANDLE)
    write(result, struct.pack("<f", measure_milliseconds(driver, *events)))
