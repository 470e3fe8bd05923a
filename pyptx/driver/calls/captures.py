"""Captures of streams."""

from __future__ import annotations

import ctypes

from pyptx.driver.calls.graphs import read_edges
from pyptx.driver.captures import Mode, Status, begin, end, forbid_legacy
from pyptx.driver.codes import Code, DriverError
from pyptx.driver.graphs import Graph
from pyptx.driver.host_memory import read_ints, write_int, write_pointer
from pyptx.driver.process import Driver, Thread
from pyptx.driver.signatures import entry
from pyptx.driver.streams import Stream, find_stream

_ADD, _SET = 0, 1
"""What happens to the dependencies of a capturing stream that a program passes."""


@entry("cuStreamBeginCapture_v2", "pointer int")
def begin_capture(driver: Driver, thread: Thread, handle: int, mode: int) -> None:
    begin(driver, thread, find_stream(driver, thread, handle), mode, None, {})


@entry("cuStreamBeginCapture", "pointer")
def begin_global_capture(driver: Driver, thread: Thread, handle: int) -> None:
    begin_capture(driver, thread, handle, Mode.GLOBAL)


@entry("cuStreamBeginCaptureToGraph", "pointer pointer pointer pointer size int")
def begin_capture_to_graph(
    driver: Driver, thread: Thread, handle: int, graph: int, nodes: int, edges: int, count: int, mode: int
) -> None:
    stream, target = find_stream(driver, thread, handle), driver.handles.get(graph, Graph)
    begin(driver, thread, stream, mode, target, read_edges(driver, target, nodes, edges, count))


@entry("cuStreamEndCapture", "pointer result")
def end_capture(driver: Driver, thread: Thread, handle: int, result: int) -> None:
    write_pointer(result, 0)
    write_pointer(result, end(driver, thread, find_stream(driver, thread, handle)).handle)


@entry("cuStreamIsCapturing", "pointer result")
def is_capturing(driver: Driver, thread: Thread, handle: int, result: int) -> None:
    stream = _find(driver, thread, handle)
    write_int(result, stream.capture.status if stream.capture is not None else Status.NONE)


def _find(driver: Driver, thread: Thread, handle: int) -> Stream:
    """Return a stream about which a program asks."""
    stream = find_stream(driver, thread, handle)
    forbid_legacy(driver, stream)
    return stream


@entry("cuStreamGetCaptureInfo", "pointer result pointer")
def get_capture_identity(driver: Driver, thread: Thread, handle: int, status: int, identity: int) -> None:
    get_capture_with_edges(driver, thread, handle, status, identity, 0, 0, 0, 0)


@entry("cuStreamGetCaptureInfo_v2", "pointer result pointer pointer pointer pointer")
def get_capture(
    driver: Driver, thread: Thread, handle: int, status: int, identity: int, graph: int, nodes: int, count: int
) -> None:
    get_capture_with_edges(driver, thread, handle, status, identity, graph, nodes, 0, count)


@entry("cuStreamGetCaptureInfo_v3", "pointer result pointer pointer pointer pointer pointer")
def get_capture_with_edges(
    driver: Driver, thread: Thread, handle: int, status: int, identity: int, graph: int, nodes: int, edges: int,
    count: int,
) -> None:  # fmt: skip
    stream = _find(driver, thread, handle)
    capture = stream.capture
    write_int(status, capture.status if capture is not None else Status.NONE)
    if capture is None:
        return
    frontier = capture.frontiers[stream]
    write_pointer(identity, capture.number)
    write_pointer(graph, capture.graph.handle)
    write_pointer(count, len(frontier))
    # The program may read these arrays until the stream's next operation.
    handles = (ctypes.c_uint64 * (len(frontier) + 1))(*(node.handle for node in frontier))
    data = ctypes.create_string_buffer(b"".join(frontier.values()))
    stream.answers = handles, data
    write_pointer(nodes, ctypes.addressof(handles))
    write_pointer(edges, ctypes.addressof(data))


@entry("cuStreamUpdateCaptureDependencies", "pointer pointer size uint")
def update_dependencies(driver: Driver, thread: Thread, handle: int, nodes: int, count: int, flags: int) -> None:
    update_dependencies_with_edges(driver, thread, handle, nodes, 0, count, flags)


@entry("cuStreamUpdateCaptureDependencies_v2", "pointer pointer pointer size uint")
def update_dependencies_with_edges(
    driver: Driver, thread: Thread, handle: int, nodes: int, edges: int, count: int, flags: int
) -> None:
    stream = _find(driver, thread, handle)
    capture = stream.capture
    if capture is None:
        raise DriverError(Code.ERROR_ILLEGAL_STATE)
    capture.require_valid()
    if flags not in (_ADD, _SET):
        raise DriverError(Code.ERROR_INVALID_VALUE)
    previous = capture.frontiers[stream] if flags == _ADD else {}
    capture.frontiers[stream] = previous | read_edges(driver, capture.graph, nodes, edges, count)


@entry("cuThreadExchangeStreamCaptureMode", "result")
def exchange_mode(driver: Driver, thread: Thread, address: int) -> None:
    (mode,) = read_ints(address, 1)
    if mode not in list(Mode):
        raise DriverError(Code.ERROR_INVALID_VALUE)
    write_int(address, thread.capture_mode)
    thread.capture_mode = mode
