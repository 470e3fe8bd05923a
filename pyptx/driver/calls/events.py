"""Events."""

from __future__ import annotations

import struct

from pyptx.driver.codes import Code, DriverError
from pyptx.driver.host_memory import write, write_pointer
from pyptx.driver.process import Driver, Thread
from pyptx.driver.signatures import entry
from pyptx.driver.streams import Event, find_stream, measure_milliseconds, record, submit, synchronize

_DISABLE_TIMING = 2


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
    queue = find_stream(driver, thread, stream)
    event = driver.handles.get(handle, Event)
    submit(driver, queue, lambda: record(driver, event))


@entry("cuEventRecordWithFlags", "pointer pointer uint")
def record_with_flags(driver: Driver, thread: Thread, handle: int, stream: int, flags: int) -> None:
    record_event(driver, thread, handle, stream)


@entry("cuEventSynchronize cuEventQuery", "pointer")
def wait_for_event(driver: Driver, thread: Thread, handle: int) -> None:
    driver.get_context(thread)
    driver.handles.get(handle, Event)
    synchronize(driver)


@entry("cuEventElapsedTime cuEventElapsedTime_v2", "result pointer pointer")
def get_elapsed(driver: Driver, thread: Thread, result: int, start: int, end: int) -> None:
    driver.get_context(thread)
    events = driver.handles.get(start, Event), driver.handles.get(end, Event)
    if any(event.flags & _DISABLE_TIMING for event in events):
        raise DriverError(Code.ERROR_INVALID_HANDLE)
    write(result, struct.pack("<f", measure_milliseconds(driver, *events)))
