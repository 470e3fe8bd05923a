"""Captures: sequences of operations that become a graph instead of running, and what is forbidden meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

from pyptx.driver.codes import Code, DriverError
from pyptx.driver.graphs import PLAIN_EDGE, Graph, Node, create, find_ancestors
from pyptx.driver.operations import Event, Operation
from pyptx.driver.process import Driver, Thread

if TYPE_CHECKING:
    from pyptx.driver.streams import Stream


class Mode(IntEnum):
    """Which calls a capture forbids, by its number in the enum `CUstreamCaptureMode`."""

    GLOBAL = 0
    THREAD_LOCAL = 1
    RELAXED = 2


class Status(IntEnum):
    """Whether a stream is capturing, by its number in the enum `CUstreamCaptureStatus`."""

    NONE = 0
    ACTIVE = 1
    INVALIDATED = 2


@dataclass(eq=False)
class Capture:
    """A capture: the stream and thread that began it, its graph, and the streams that joined it with the nodes that
    their next operation follows."""

    number: int
    origin: Stream
    mode: Mode
    thread: Thread
    graph: Graph
    is_own: bool
    """Whether the graph was created for the capture."""
    status: Status = Status.ACTIVE
    frontiers: dict[Stream, dict[Node, bytes]] = field(default_factory=dict["Stream", dict[Node, bytes]])

    def require_valid(self) -> None:
        """Refuse to continue a capture that an error has invalidated."""
        if self.status is Status.INVALIDATED:
            raise DriverError(Code.ERROR_STREAM_CAPTURE_INVALIDATED)

    def fail(self, code: Code) -> DriverError:
        """Invalidate the capture and return the error to raise."""
        self.status = Status.INVALIDATED
        return DriverError(code)

    def add(self, driver: Driver, stream: Stream, operation: Operation) -> None:
        """Record an operation of a stream."""
        self.require_valid()
        if operation.kind < 0:
            raise self.fail(Code.ERROR_STREAM_CAPTURE_UNSUPPORTED)
        node = self.graph.add(driver, operation, self.frontiers[stream])
        self.frontiers[stream] = {node: PLAIN_EDGE}


def begin(
    driver: Driver, thread: Thread, stream: Stream, mode: int, graph: Graph | None, frontier: dict[Node, bytes]
) -> None:
    """Begin to capture a stream, into a new graph or after nodes of an existing one."""
    if mode not in list(Mode):
        raise DriverError(Code.ERROR_INVALID_VALUE)
    if stream.is_legacy:
        raise DriverError(Code.ERROR_STREAM_CAPTURE_UNSUPPORTED)
    if stream.capture is not None:
        raise DriverError(Code.ERROR_ILLEGAL_STATE)
    driver.capture_count += 1
    target = graph or create(driver)
    capture = Capture(driver.capture_count, stream, Mode(mode), thread, target, graph is None)
    capture.frontiers[stream] = frontier
    stream.capture = capture
    driver.captures.append(capture)


def end(driver: Driver, thread: Thread, stream: Stream) -> Graph:
    """End the capture that began in a stream; return its graph. DriverError if the capture has failed."""
    capture = stream.capture
    if capture is None:
        raise DriverError(Code.ERROR_ILLEGAL_STATE)
    if capture.origin is not stream:
        raise capture.fail(Code.ERROR_STREAM_CAPTURE_UNMATCHED)
    if capture.mode is not Mode.RELAXED and capture.thread is not thread:
        raise DriverError(Code.ERROR_STREAM_CAPTURE_WRONG_THREAD)
    joined = find_ancestors(capture.frontiers[stream])
    code = None
    if capture.status is Status.INVALIDATED:
        code = Code.ERROR_STREAM_CAPTURE_INVALIDATED
    elif any(node not in joined for frontier in capture.frontiers.values() for node in frontier):
        code = Code.ERROR_STREAM_CAPTURE_UNJOINED
    _stop(driver, capture)
    if code is not None:
        if capture.is_own:
            capture.graph.destroy(driver)
        raise DriverError(code)
    return capture.graph


def _stop(driver: Driver, capture: Capture) -> None:
    driver.captures.remove(capture)
    for stream in capture.frontiers:
        stream.capture = None
    capture.status = Status.NONE


def drop(driver: Driver, device: int) -> None:
    """End the captures on a device whose context ends."""
    for capture in [capture for capture in driver.captures if capture.origin.device == device]:
        _stop(driver, capture)


def leave(driver: Driver, stream: Stream) -> None:
    """End the capture that began in a stream that is destroyed; others may go, but their work must have joined."""
    capture = stream.capture
    if capture is not None and capture.origin is stream:
        _stop(driver, capture)
        if capture.is_own:
            capture.graph.destroy(driver)


def record(stream: Stream, capture: Capture, event: Event) -> None:
    """Record an event in a capture: it stands for the operations of the stream so far."""
    capture.require_valid()
    event.capture, event.nodes = capture, list(capture.frontiers[stream])


def join(stream: Stream, event: Event) -> None:
    """Make a stream wait for an event if one of them is capturing: the stream joins the capture of the event."""
    ours, theirs = stream.capture, event.capture
    if theirs is None:
        if ours is not None and event.is_recorded:
            raise ours.fail(Code.ERROR_STREAM_CAPTURE_ISOLATION)
        return
    if theirs.status is Status.NONE:
        raise DriverError(Code.ERROR_CAPTURED_EVENT)
    for capture in (theirs, ours or theirs):
        capture.require_valid()
    if stream.is_legacy:
        raise theirs.fail(Code.ERROR_STREAM_CAPTURE_IMPLICIT)
    if ours not in (None, theirs):
        ours.fail(Code.ERROR_STREAM_CAPTURE_MERGE)
        raise theirs.fail(Code.ERROR_STREAM_CAPTURE_MERGE)
    stream.capture = theirs
    theirs.frontiers[stream] = theirs.frontiers.get(stream, {}) | dict.fromkeys(event.nodes, PLAIN_EDGE)


def forbid_legacy(driver: Driver, stream: Stream) -> None:
    """Refuse the legacy stream while it would wait for streams that are capturing."""
    if not stream.is_legacy:
        return
    for capture in driver.captures:
        if any(other.is_blocking and other.device == stream.device for other in capture.frontiers):
            raise capture.fail(Code.ERROR_STREAM_CAPTURE_IMPLICIT)


def forbid_waiting(driver: Driver, stream: Stream) -> None:
    """Refuse to wait for a stream that is capturing, or to ask whether it is idle."""
    forbid_legacy(driver, stream)
    if stream.capture is not None:
        stream.capture.require_valid()
        raise stream.capture.fail(Code.ERROR_STREAM_CAPTURE_UNSUPPORTED)


def forbid_waiting_for_all(driver: Driver, device: int) -> None:
    """Refuse to wait for a device while one of its streams is capturing."""
    for capture in driver.captures:
        if capture.origin.device == device:
            capture.require_valid()
            raise capture.fail(Code.ERROR_STREAM_CAPTURE_UNSUPPORTED)


def forbid_waiting_for_event(event: Event) -> None:
    """Refuse to wait for an event that a capture recorded, or to ask for its time."""
    if event.capture is not None:
        if event.capture.status is not Status.NONE:
            event.capture.status = Status.INVALIDATED
        raise DriverError(Code.ERROR_CAPTURED_EVENT)


def forbid_unsafe(driver: Driver, thread: Thread) -> None:
    """Refuse calls that a captured graph would not repeat, such as allocations, in threads where captures do so."""
    if thread.capture_mode == Mode.RELAXED:
        return
    for capture in driver.captures:
        is_own = capture.thread is thread and capture.mode is not Mode.RELAXED
        if is_own or (thread.capture_mode == Mode.GLOBAL and capture.mode is Mode.GLOBAL):
            raise capture.fail(Code.ERROR_STREAM_CAPTURE_UNSUPPORTED)
