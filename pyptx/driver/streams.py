"""Streams and events. In `sync` order an operation runs when it is submitted, as with CUDA_LAUNCH_BLOCKING=1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyptx.driver.codes import Code, DriverError
from pyptx.driver.pools import Pool
from pyptx.driver.process import Driver, Thread

LEGACY, PER_THREAD_STREAM = 1, 2
"""The handles of the default streams."""


@dataclass(eq=False)
class Stream:
    """A stream; `instructions` counts the work done in it, the clock of its events."""

    handle: int
    device: int
    flags: int = 0
    priority: int = 0


@dataclass(eq=False)
class Event:
    """An event, and the clock when it was recorded."""

    handle: int
    device: int
    flags: int
    time: int | None = None


def find_stream(driver: Driver, thread: Thread, handle: int) -> Stream:
    """Return a stream of the current context by its handle; 0 is a default stream."""
    context = driver.get_context(thread)
    if handle == 0:
        handle = PER_THREAD_STREAM if thread.per_thread else LEGACY
    if handle in (LEGACY, PER_THREAD_STREAM):
        number = thread.number if handle == PER_THREAD_STREAM else 0
        key = context.handle, number
        stream = driver.default_streams.get(key)
        if stream is None:
            stream = driver.default_streams[key] = Stream(handle, context.device)
        return stream
    return driver.handles.get(handle, Stream)


def submit(driver: Driver, stream: Stream, work: Callable[[], object]) -> None:
    """Run an operation of a stream."""
    work()


def synchronize(driver: Driver) -> None:
    """Wait for all streams."""
    for pool in driver.handles.list(Pool):
        pool.trim_to_threshold()


def record(driver: Driver, event: Event) -> None:
    """Record an event at the current time."""
    event.time = driver.instructions


def measure_milliseconds(driver: Driver, start: Event, end: Event) -> float:
    """Return a time between events that grows with the instructions between them: 1 ns each, and no GPU's time."""
    if start.time is None or end.time is None:
        raise DriverError(Code.ERROR_INVALID_HANDLE)
    return (end.time - start.time) * 1e-6
