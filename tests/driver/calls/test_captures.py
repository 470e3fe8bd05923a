"""What a program asks about captures, their dependencies, and captures that end with their stream or context."""

from __future__ import annotations

import ctypes
import struct
from typing import NamedTuple

from pyptx.driver.settings import Settings
from tests.driver.direct import Direct, make_room

GLOBAL, THREAD_LOCAL, RELAXED = 0, 1, 2
NONE, ACTIVE, INVALIDATED = 0, 1, 2
ADD, SET = 0, 1
NON_BLOCKING = 1


class Info(NamedTuple):
    """What is known of a capture: the nodes that the next operation follows, with the data of the edges."""

    status: int
    number: int
    graph: int
    nodes: list[int]
    edges: bytes


def ask_info(direct: Direct, stream: int) -> Info:
    """Ask by all versions of the function, which agree."""
    status, number, graph, nodes, edges, count = (make_room(1) for _ in range(6))
    direct.call("cuStreamGetCaptureInfo_v3", stream, status, number, graph, nodes, edges, count)
    values = [(ctypes.c_uint64 * 1).from_address(nodes[0] + 8 * index)[0] for index in range(count[0])]
    info = Info(status[0], number[0], graph[0], values, ctypes.string_at(edges[0], 8 * count[0]))
    others = [make_room(1) for _ in range(5)]
    direct.call("cuStreamGetCaptureInfo", stream, *others[:2])
    assert [value[0] for value in others] == [info.status, info.number, 0, 0, 0]
    direct.call("cuStreamGetCaptureInfo_v2", stream, *others)
    assert [value[0] for value in others[:3]] == [info.status, info.number, info.graph]
    assert others[4][0] == len(values)
    handles = struct.unpack(f"<{len(values)}Q", ctypes.string_at(others[3][0], 8 * len(values)))
    assert list(handles) == values
    assert direct.tell("cuStreamIsCapturing", stream) == info.status
    return info


def begin(direct: Direct, stream: int, mode: int = GLOBAL, thread: int = 1) -> int:
    """Begin a capture and return its graph."""
    direct.call("cuStreamBeginCapture_v2", stream, mode, thread=thread)
    return ask_info(direct, stream).graph


def join(direct: Direct, stream: int, other: int) -> int:
    """Make a stream wait for another."""
    event = direct.ask("cuEventCreate", 0)
    direct.call("cuEventRecord", event, other)
    return direct.try_call("cuStreamWaitEvent", stream, event, 0)


def make(count: int = 1) -> tuple[Direct, int, int, int]:
    """Return a driver, two streams and memory."""
    direct = Direct(Settings(count=count))
    first, second = (direct.ask("cuStreamCreate", NON_BLOCKING) for _ in range(2))
    return direct, first, second, direct.ask("cuMemAlloc_v2", 64)


def exists(direct: Direct, graph: int) -> bool:
    return direct.try_call("cuGraphGetNodes", graph, 0, make_room(1)) == 0


def test_a_capture_is_described_by_its_number_graph_and_dependencies() -> None:
    direct, first, second, memory = make()
    rooms = [make_room(1, 7) for _ in range(6)]
    direct.call("cuStreamGetCaptureInfo_v3", first, *rooms)
    assert [room[0] & 0xFFFFFFFF for room in rooms] == [NONE, 7, 7, 7, 7, 7]
    graph, other = begin(direct, first), begin(direct, second, RELAXED)
    assert ask_info(direct, first) == (ACTIVE, 1, graph, [], b"")
    assert ask_info(direct, second) == (ACTIVE, 2, other, [], b"")
    direct.call("cuMemsetD8Async", memory, 1, 64, first)
    nodes = make_room(2)
    direct.call("cuGraphGetNodes", graph, nodes, make_room(1, 2))
    assert ask_info(direct, first) == (ACTIVE, 1, graph, nodes[:1], bytes(8))
    assert ask_info(direct, second).nodes == []
    assert direct.try_call("cuStreamSynchronize", first) == 900
    assert ask_info(direct, first).status == INVALIDATED
    assert ask_info(direct, second).status == ACTIVE
    assert direct.tell("cuStreamEndCapture", second) == other


def test_dependencies_are_added_or_replaced_with_the_data_of_their_edges() -> None:
    direct, first, _, memory = make()
    graph = begin(direct, first)
    nodes, data = list[int](), [bytes([number] * 8) for number in (1, 2, 3)]
    for _ in range(3):
        direct.call("cuStreamUpdateCaptureDependencies", first, 0, 0, SET)
        direct.call("cuMemsetD8Async", memory, 1, 64, first)
        nodes += ask_info(direct, first).nodes
    one, two, three = (struct.pack("<Q", node) for node in nodes)
    name = "cuStreamUpdateCaptureDependencies"
    direct.call(f"{name}_v2", first, one + two, data[0] + data[1], 2, SET)
    assert ask_info(direct, first)[3:] == (nodes[:2], data[0] + data[1])
    direct.call(f"{name}_v2", first, two + three, data[2] * 2, 2, ADD)
    assert ask_info(direct, first)[3:] == (nodes, data[0] + data[2] * 2)
    direct.call(name, first, one, 1, ADD)
    assert ask_info(direct, first)[3:] == (nodes, bytes(8) + data[2] * 2)
    for words in ((two + two, 0, 2, SET), (two, 0, 1, 2), (struct.pack("<Q", graph), 0, 1, SET)):
        assert direct.try_call(f"{name}_v2", first, *words) == 1
    assert ask_info(direct, first)[3:] == (nodes, bytes(8) + data[2] * 2)
    direct.call(f"{name}_v2", first, three, data[0], 1, SET)
    direct.call("cuMemsetD8Async", memory, 1, 64, first)
    (last,) = ask_info(direct, first).nodes
    before, edges = make_room(3), make_room(3)
    direct.call("cuGraphNodeGetDependencies_v2", last, before, edges, make_room(1, 3))
    assert (list(before), bytes(edges)) == ([nodes[2], 0, 0], data[0] + bytes(16))
    # What no later node of the stream follows has not joined.
    assert direct.tell("cuStreamEndCapture", first) == graph
    assert direct.try_call(name, first, 0, 0, SET) == 401
    begin(direct, first)
    assert direct.try_call("cuStreamSynchronize", first) == 900
    assert direct.try_call(name, first, 0, 0, SET) == 901


def test_a_capture_into_a_graph_begins_after_its_nodes() -> None:
    direct, first, second, memory = make()
    graph, other = (direct.ask("cuGraphCreate", 0) for _ in range(2))
    nodes = [direct.ask("cuGraphAddEmptyNode", graph, 0, 0) for _ in range(2)]
    stranger = direct.ask("cuGraphAddEmptyNode", other, 0, 0)
    handles, data = struct.pack("<QQ", *nodes), bytes(range(1, 17))
    name = "cuStreamBeginCaptureToGraph"
    for wrong in (struct.pack("<QQ", nodes[0], nodes[0]), struct.pack("<QQ", nodes[0], stranger)):
        assert direct.try_call(name, first, graph, wrong, data, 2, GLOBAL) == 1
    assert direct.try_call(name, first, graph, handles, data, 2, 3) == 1
    assert direct.try_call(name, first, nodes[0], handles, data, 2, GLOBAL) == 400
    assert direct.try_call(name, 0, graph, handles, data, 2, GLOBAL) == 900
    direct.call(name, first, graph, handles, data, 2, GLOBAL)
    assert ask_info(direct, first) == (ACTIVE, 1, graph, nodes, data)
    assert direct.try_call(name, first, graph, handles, data, 2, GLOBAL) == 401
    direct.call("cuMemsetD8Async", memory, 1, 64, first)
    (node,) = ask_info(direct, first).nodes
    edges = make_room(2)
    direct.call("cuGraphNodeGetDependencies_v2", node, 0, edges, make_room(1, 2))
    assert bytes(edges) == data
    assert direct.try_call("cuGraphDestroy", graph) == 1
    # The graph is the program's, also if the capture fails.
    assert direct.try_call("cuStreamSynchronize", first) == 900
    result = make_room(1, 7)
    assert (direct.try_call("cuStreamEndCapture", first, result), result[0]) == (901, 0)
    assert exists(direct, graph)
    direct.call("cuGraphDestroy", graph)
    own = begin(direct, second)
    assert direct.try_call("cuStreamQuery", second) == 900
    assert direct.try_call("cuStreamEndCapture", second, result) == 901
    assert not exists(direct, own)


def test_a_capture_ends_with_the_stream_that_began_it() -> None:
    direct, first, second, memory = make()
    graph = begin(direct, first)
    assert join(direct, second, first) == 0
    assert direct.tell("cuStreamIsCapturing", second) == ACTIVE
    direct.call("cuStreamDestroy_v2", first)
    assert (direct.tell("cuStreamIsCapturing", second), exists(direct, graph)) == (NONE, False)
    # No capture forbids anything now.
    direct.call("cuMemFree_v2", memory)
    kept, stream = direct.ask("cuGraphCreate", 0), direct.ask("cuStreamCreate", NON_BLOCKING)
    direct.call("cuStreamBeginCaptureToGraph", stream, kept, 0, 0, 0, GLOBAL)
    direct.call("cuStreamDestroy_v2", stream)
    assert exists(direct, kept)
    direct.call("cuGraphDestroy", kept)


def test_work_of_a_stream_that_left_a_capture_must_have_joined() -> None:
    direct, first, second, memory = make()
    graph = begin(direct, first)
    assert join(direct, second, first) == 0
    direct.call("cuMemsetD8Async", memory, 1, 64, second)
    direct.call("cuStreamDestroy_v2", second)
    assert ask_info(direct, first)[:3] == (ACTIVE, 1, graph)
    assert direct.try_call("cuStreamEndCapture", first, make_room(1)) == 904
    assert not exists(direct, graph)
    idle = direct.ask("cuStreamCreate", NON_BLOCKING)
    direct.call("cuStreamDestroy_v2", idle)


def test_captures_end_with_the_context_of_their_device() -> None:
    direct, first, _, _ = make(2)
    direct.call("cuCtxSetCurrent", direct.contexts[1])
    other = direct.ask("cuStreamCreate", NON_BLOCKING)
    begin(direct, other)
    direct.call("cuCtxSetCurrent", direct.contexts[0])
    graph = begin(direct, first)
    assert direct.try_call("cuGraphDestroy", graph) == 1
    direct.call("cuDevicePrimaryCtxReset_v2", 0)
    assert (ask_info(direct, other).status, direct.tell("cuStreamIsCapturing", first)) == (ACTIVE, NONE)
    direct.call("cuGraphDestroy", graph)
    assert direct.try_call("cuStreamEndCapture", first, make_room(1)) == 401


def test_the_legacy_stream_waits_for_the_blocking_streams_of_its_device() -> None:
    direct = Direct(Settings(count=2))
    direct.call("cuCtxSetCurrent", direct.contexts[1])
    streams = [direct.ask("cuStreamCreate", 0), direct.ask("cuStreamCreate", NON_BLOCKING)]
    for stream in streams:
        begin(direct, stream)
    direct.call("cuCtxSetCurrent", direct.contexts[0])
    assert direct.tell("cuStreamIsCapturing", 0) == NONE
    direct.call("cuCtxSetCurrent", direct.contexts[1])
    assert direct.try_call("cuStreamIsCapturing", 0, make_room(1)) == 906
    assert [direct.tell("cuStreamIsCapturing", stream) for stream in streams] == [INVALIDATED, ACTIVE]
    # A stream that joined counts as well.
    assert direct.try_call("cuStreamEndCapture", streams[0], make_room(1)) == 901
    assert direct.tell("cuStreamIsCapturing", 0) == NONE
    assert join(direct, streams[0], streams[1]) == 0
    assert direct.try_call("cuStreamGetCaptureInfo", 0, make_room(1), 0) == 906
    assert direct.tell("cuStreamIsCapturing", streams[1]) == INVALIDATED


def test_nothing_waits_for_a_device_with_a_capture() -> None:
    direct, first, _, _ = make(2)
    begin(direct, first)
    direct.call("cuCtxSetCurrent", direct.contexts[1])
    direct.call("cuCtxSynchronize")
    direct.call("cuCtxSetCurrent", direct.contexts[0])
    codes = [direct.try_call(name) for name in ("cuCtxSynchronize", "cuCtxSynchronize")]
    assert (codes, direct.try_call("cuStreamQuery", first)) == ([900, 901], 901)


def test_a_capture_and_other_work_do_not_wait_for_each_other() -> None:
    direct, first, second, _ = make()
    event = direct.ask("cuEventCreate", 0)
    begin(direct, first)
    # An event without a record, and one of a capture that has ended.
    direct.call("cuStreamWaitEvent", first, event, 0)
    direct.call("cuEventRecord", event, second)
    assert direct.try_call("cuStreamWaitEvent", first, event, 0) == 905
    assert direct.try_call("cuEventRecord", event, first) == 901
    assert direct.try_call("cuStreamEndCapture", first, make_room(1)) == 901
    begin(direct, first)
    direct.call("cuEventRecord", event, first)
    assert direct.try_call("cuStreamWaitEvent", 0, event, 0) == 906
    assert direct.tell("cuStreamIsCapturing", first) == INVALIDATED
    assert direct.try_call("cuStreamEndCapture", first, make_room(1)) == 901
    assert [direct.try_call("cuStreamWaitEvent", stream, event, 0) for stream in (0, second)] == [907, 907]
    assert direct.try_call("cuEventSynchronize", event) == 907
    # Which leaves the status of a capture that has ended.
    assert direct.try_call("cuStreamWaitEvent", second, event, 0) == 907


def test_a_capture_ends_in_the_thread_that_began_it_unless_it_is_relaxed() -> None:
    direct, first, second, _ = make()
    direct.call("cuCtxSetCurrent", direct.contexts[0], thread=2)
    for mode, code in ((GLOBAL, 908), (THREAD_LOCAL, 908), (RELAXED, 0)):
        begin(direct, first, mode, thread=2)
        assert direct.try_call("cuStreamEndCapture", first, make_room(1)) == code
        if code:
            direct.call("cuStreamEndCapture", first, make_room(1), thread=2)
    for mode in (-1, 3):
        assert direct.try_call("cuStreamBeginCapture_v2", first, mode) == 1
    direct.call("cuStreamBeginCapture", first)
    assert join(direct, second, first) == 0
    assert direct.try_call("cuStreamEndCapture", second, make_room(1)) == 903
    assert direct.tell("cuStreamIsCapturing", first) == INVALIDATED


def test_captures_forbid_allocations_by_their_mode_and_that_of_the_thread() -> None:
    direct, first, _, _ = make()
    direct.call("cuCtxSetCurrent", direct.contexts[0], thread=2)
    found: dict[tuple[int, int, int], int] = {}
    for mode in (GLOBAL, THREAD_LOCAL, RELAXED):
        for thread in (1, 2):
            for own in (GLOBAL, THREAD_LOCAL, RELAXED):
                direct.call("cuStreamBeginCapture_v2", first, mode)
                exchanged = struct.pack("<i", own)
                direct.call("cuThreadExchangeStreamCaptureMode", exchanged, thread=thread)
                found[mode, thread, own] = direct.try_call("cuMemAlloc_v2", make_room(1), 64, thread=thread)
                direct.try_call("cuStreamEndCapture", first, make_room(1))
    refused = {key for key, code in found.items() if code == 900}
    assert set(found.values()) == {0, 900}
    assert refused == {
        (GLOBAL, 1, GLOBAL), (GLOBAL, 1, THREAD_LOCAL), (GLOBAL, 2, GLOBAL), (THREAD_LOCAL, 1, GLOBAL),
        (THREAD_LOCAL, 1, THREAD_LOCAL),
    }  # fmt: skip
    modes = make_room(1, THREAD_LOCAL)
    for previous in (RELAXED, THREAD_LOCAL):
        direct.call("cuThreadExchangeStreamCaptureMode", modes)
        assert modes[0] == previous
    for wrong in (3, 0xFFFFFFFF):
        assert direct.try_call("cuThreadExchangeStreamCaptureMode", make_room(1, wrong)) == 1
