"""Streams. In order `sync` an operation runs when it is submitted, as with CUDA_LAUNCH_BLOCKING=1; in order `deferred`,
when the host waits for it, as late as possible."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any

from pyptx.driver.captures import Capture, forbid_legacy
from pyptx.driver.codes import Code, DriverError
from pyptx.driver.conflicts import check_source, report_conflicts, report_host_access, report_leaks, require_access
from pyptx.driver.graphs import Executable
from pyptx.driver.launching import communicates, launch_together
from pyptx.driver.operations import Allocate, Born, Event, Launch, Operation, RecordEvent, WaitEvent
from pyptx.driver.ordering import Task
from pyptx.driver.pools import Pool
from pyptx.driver.process import Driver, Thread, find_caller
from pyptx.sim.launch.streams import Start

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
    last_wait: Event | None = None
    """The last event that it waited for."""
    attributes: dict[int, bytes] = field(default_factory=dict[int, bytes])
    """Attributes that the program set."""
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
        number = thread.number if handle == PER_THREAD_STREAM else None
        key = context.handle, number
        stream = driver.default_streams.get(key)
        if stream is None:
            stream = driver.default_streams[key] = Stream(handle, context.device)
        return stream
    return driver.handles.get(handle, Stream)


def submit(driver: Driver, stream: Stream, operation: Operation, *, is_async: bool = True) -> None:
    """Add an operation to a stream, or to the stream's capture. In order `sync` it runs now; if it is not async, the
    host waits for it as the driver API says."""
    if stream.capture is not None:
        stream.capture.add(driver, stream, operation)
        return
    forbid_legacy(driver, stream)
    is_deferred = driver.settings.order == "deferred"
    if is_deferred:
        operation = operation.stage(driver)
    _make_room(driver)
    task = _add(driver, stream, operation, find_work(driver, stream))
    driver.order.after[stream] = task.before | task.bit
    is_awaited = operation.is_awaited(driver, is_async=is_async)
    if not is_deferred or isinstance(operation, Born):
        _run(driver, task)
    if is_awaited:
        wait(driver, task.before | task.bit)


def submit_graph(driver: Driver, stream: Stream, executable: Executable) -> None:
    """Add the nodes of a graph to a stream, after earlier launches of the same graph."""
    order = driver.order
    forbid_legacy(driver, stream)
    _make_room(driver)
    _run_pending(driver, order.after.get(executable, 0))
    executable.begin(driver)
    before = find_work(driver, stream) | order.after.get(executable, 0)
    ends: list[int] = []
    for step in executable.steps:
        previous = before
        for number in step.before:
            previous |= ends[number]
        if step.node in executable.disabled:
            ends.append(previous)
            continue
        task = _add(driver, stream, step.node.operation, previous)
        ends.append(task.before | task.bit)
        if driver.settings.order != "deferred":
            _run(driver, task)
        elif isinstance(task.operation, Allocate):
            # From now on, the host may submit copies of this memory.
            _run_pending(driver, task.before | task.bit)
    for end in ends:
        before |= end
    order.after[stream] = order.after[executable] = before


def _add(driver: Driver, stream: Stream, operation: Operation, before: int) -> Task:
    """Add a task to a stream."""
    order = driver.order
    if isinstance(operation, WaitEvent):
        stream.last_wait = operation.event
        before |= order.after.get(operation.event, 0)
    task = order.add(operation, before, stream, find_caller(), stream.last_wait)
    if isinstance(operation, RecordEvent):
        event = operation.event
        event.is_recorded, event.place, event.capture = True, task.place, None
        order.after[event] = task.before | task.bit
    return task


def _make_room(driver: Driver) -> None:
    """Wait for all tasks if there are very many, or if addresses mean other memory now."""
    if driver.order.is_full or driver.heap.reuses != driver.reuses:
        driver.reuses = driver.heap.reuses
        wait(driver, driver.order.every)


def find_work(driver: Driver, stream: Stream) -> int:
    """Return what ends before the next work of a stream begins: its last work; and the legacy stream waits for the
    blocking streams of its device, and they for it."""
    previous = driver.order.after.get(stream, 0)
    if stream.is_blocking:
        for other, tasks in driver.order.after.items():
            if isinstance(other, Stream) and other.device == stream.device and other.is_blocking:
                previous |= tasks if stream.is_legacy or other.is_legacy else 0
    return previous


def _run(driver: Driver, task: Task) -> None:
    """Run a task, with others if they may wait for each other."""
    group, starts = _find_group(driver, task) if driver.settings.order == "deferred" else ([task], [])
    for member in group:
        driver.order.done |= member.bit
        check_source(driver, member)
    if len(group) > 1:
        launches = [item.operation for item in group if isinstance(item.operation, Launch)]
        outcomes = launch_together(driver, [(item.context, item.request) for item in launches], starts)
        accessed = [outcome.find_accessed_memory() for outcome in outcomes]
        for member, outcome in zip(group, outcomes, strict=True):
            pairs = zip(group, outcomes, strict=True)
            member.unobserved = {
                other.number: outcome.find_accessed_memory(observer) for other, observer in pairs if other is not member
            }
    else:
        accessed = [task.operation.run(driver)]
    for member, memory in zip(group, accessed, strict=True):
        member.accessed = memory
        driver.heap.add_values((memory.writes, memory.strong_writes))
        report_conflicts(driver, member, group)
        for access in member.by_host:
            report_host_access(driver, member, access)
        require_access(driver, member)


def _find_group(driver: Driver, task: Task) -> tuple[list[Task], list[Start]]:
    """Return the launches to run with one that may run now, and when each starts: all that may run now if it polls
    memory that they may write, or those that follow it by programmatic dependent launch."""
    order, launch = driver.order, task.operation
    group, starts = [task], [Start.AFTER]
    if not isinstance(launch, Launch):
        return group, starts
    pending = list(order.find(order.every & ~order.done & ~task.bit))
    if communicates(driver, launch.request):
        group += [item for item in pending if isinstance(item.operation, Launch) and not item.before & ~order.done]
        return group, [Start.ANY_TIME] * len(group)
    missing = task.bit
    for item in pending:
        follows = item.stream is task.stream and item.before & ~order.done == missing
        if follows and isinstance(item.operation, Launch) and item.operation.is_programmatic:
            group.append(item)
            starts.append(Start.PROGRAMMATIC)
            missing |= item.bit
    return group, starts


def _run_pending(driver: Driver, tasks: int) -> None:
    """Run pending tasks, those that were submitted last first, as far as their order allows. After an error, no pending
    task runs."""
    while (task := driver.order.choose_last(tasks)) is not None:
        try:
            _run(driver, task)
        except DriverError:
            driver.order.drop()
            raise


def wait(driver: Driver, tasks: int) -> None:
    """Make the host wait for tasks."""
    _run_pending(driver, tasks)
    driver.order.wait(tasks)
    for pool in driver.handles.list(Pool):
        pool.trim_to_threshold()


def poll(driver: Driver, tasks: int) -> None:
    """Report whether tasks have ended, DriverError if they have not. Each call runs one more, so that programs that ask
    again and again go on."""
    task = driver.order.choose_last(tasks)
    if task is not None:
        _run_pending(driver, task.bit)
    if driver.order.choose_last(tasks) is not None:
        raise DriverError(Code.ERROR_NOT_READY)
    wait(driver, tasks)


def find_work_of_device(driver: Driver, device: int) -> int:
    """Return the tasks of all streams of a device."""
    work = 0
    for stream, tasks in driver.order.after.items():
        if isinstance(stream, Stream) and stream.device == device:
            work |= tasks
    return work


def synchronize(driver: Driver) -> None:
    """Wait for all streams."""
    wait(driver, driver.order.every)


def finish(driver: Driver) -> None:
    """At the end of the program, run what it has never waited for, so that mistakes in it are found."""
    with driver.lock, driver.watch.open_memory() if driver.watch else nullcontext():
        with suppress(DriverError):
            _run_pending(driver, driver.order.every)
        driver.order.drop()
        for device in range(len(driver.devices)):
            report_leaks(driver, device)
        if driver.records is not None:
            driver.records.close()
            driver.records = None


def measure_milliseconds(driver: Driver, start: Event, end: Event) -> float:
    """Return a time between events that grows with the instructions between them: 1 ns each, and no GPU's time."""
    if not start.is_recorded or not end.is_recorded:
        raise DriverError(Code.ERROR_INVALID_HANDLE)
    if any(driver.order.choose_last(driver.order.after.get(event, 0)) is not None for event in (start, end)):
        raise DriverError(Code.ERROR_NOT_READY)
    if start.time is None or end.time is None:
        # An error has ended the work before.
        raise DriverError(Code.ERROR_NOT_READY)
    return (end.time - start.time) * 1e-6
