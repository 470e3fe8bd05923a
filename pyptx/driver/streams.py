"""Streams. In `sync` order an operation runs when it is submitted, as with CUDA_LAUNCH_BLOCKING=1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyptx.driver.captures import Capture, forbid_legacy, forbid_waiting
from pyptx.driver.codes import Code, DriverError
from pyptx.driver.operations import Event, Operation
from pyptx.driver.pools import Pool
from pyptx.driver.process import Driver, Thread

LEGACY, PER_THREAD_STREAM = 1, 2
"""The handles of the default streams."""
_NON_BLOCKING = 1


@dataclass(eq=False)
class Stream:
    """A stream, and the capture that it takes part in."""

    handle: int
    device: int
    flags: int = 0
    priority: int = 0
    capture: Capture | None = None
    answers: Any = None
    """Arrays of the last answer about the capture, which the program may still read."""

    @property
    def is_legacy(self) -> bool:
        """Whether it waits for all blocking streams."""
        return self.handle == LEGACY

    @property
    def is_blocking(self) -> bool:
        """Whether the legacy stream waits for it."""
        return not self.flags & _NON_BLOCKING


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


def submit(driver: Driver, stream: Stream, operation: Operation) -> None:
    """Run an operation of a stream, or record it in the stream's capture."""
    if stream.capture is not None:
        stream.capture.add(driver, stream, operation)
        return
    forbid_legacy(driver, stream)
    operation.run(driver)


def run_and_wait(driver: Driver, stream: Stream, operation: Operation) -> None:
    """Run an operation of a stream and wait for it, which a capture forbids."""
    forbid_waiting(driver, stream)
    submit(driver, stream, operation)
    synchronize(driver)


def synchronize(driver: Driver) -> None:
    """Wait for all streams."""
    for pool in driver.handles.list(Pool):
        pool.trim_to_threshold()


def measure_milliseconds(driver: Driver, start: Event, end: Event) -> float:
    """Return a time between events that grows with the instructions between them: 1 ns each, and no GPU's time."""
    if start.time is None or end.time is None:
        raise DriverError(Code.ERROR_INVALID_HANDLE)
    return (end.time - start.time) * 1e-6
