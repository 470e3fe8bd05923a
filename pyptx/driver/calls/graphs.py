"""Graphs: their nodes and edges, and launches of them."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path

from pyptx.driver.captures import forbid_legacy
from pyptx.driver.codes import Code, DriverError
from pyptx.driver.graphs import (
    EDGE_SIZE,
    PLAIN_EDGE,
    Change,
    Executable,
    Graph,
    Node,
    clone,
    create,
    draw,
    own,
)
from pyptx.driver.host_memory import read, read_pointers, read_text, require, write, write_int, write_pointer
from pyptx.driver.process import Driver, Thread
from pyptx.driver.signatures import entry
from pyptx.driver.streams import find_stream, submit, submit_graph

_FLAGS = 1 | 2 | 4 | 8
_INSTANTIATE = struct.Struct("<QQQi4x")
_CAN_BE_DISABLED = (0, 1, 2)
"""Kinds of nodes: kernels, copies and memsets."""


def get_graph(driver: Driver, handle: int) -> Graph:
    """Return a graph. DriverError with the code that graph functions use for other numbers."""
    return driver.handles.get(handle, Graph, Code.ERROR_INVALID_VALUE)


def get_node(driver: Driver, handle: int) -> Node:
    """Return a node."""
    return driver.handles.get(handle, Node, Code.ERROR_INVALID_VALUE)


def get_executable(driver: Driver, handle: int) -> Executable:
    """Return an executable graph."""
    return driver.handles.get(handle, Executable, Code.ERROR_INVALID_VALUE)


def read_nodes(driver: Driver, address: int, count: int) -> list[Node]:
    """Return the nodes of an array."""
    if count > len(driver.handles):
        raise DriverError(Code.ERROR_INVALID_VALUE)
    return [get_node(driver, handle) for handle in read_pointers(address, count)]


def read_edges(driver: Driver, graph: Graph, nodes: int, edges: int, count: int) -> dict[Node, bytes]:
    """Return nodes of a graph on which something depends, and the data of these edges."""
    dependencies = read_nodes(driver, nodes, count)
    if len(set(dependencies)) != count or any(node.graph is not graph for node in dependencies):
        raise DriverError(Code.ERROR_INVALID_VALUE)
    if not edges:
        return dict.fromkeys(dependencies, PLAIN_EDGE)
    data = read(edges, EDGE_SIZE * count)
    return {node: data[index * EDGE_SIZE :][:EDGE_SIZE] for index, node in enumerate(dependencies)}


def _write_list(count: int, *columns: tuple[int, Iterable[bytes]]) -> None:
    """Write columns of equal length, each at its address: as many values as the caller has room for, then zeros. Then
    write the length, which is all that a caller without any address wants."""
    lists = [list(values) for _, values in columns]
    total = len(lists[0])
    if any(address for address, _ in columns):
        (room,) = read_pointers(count, 1)
        for (address, _), values in zip(columns, lists, strict=True):
            if not address:
                continue
            require(address, 8 * room)
            write(address, b"".join(values[:room]) + bytes(8 * max(0, room - total)))
        total = min(total, room)
    write_pointer(count, total)


def _pack(nodes: Iterable[Node]) -> list[bytes]:
    return [struct.pack("<Q", node.handle) for node in nodes]


@entry("cuGraphCreate", "result uint")
def create_graph(driver: Driver, thread: Thread, result: int, flags: int) -> None:
    if flags:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    write_pointer(result, create(driver).handle)


@entry("cuGraphDestroy", "pointer")
def destroy_graph(driver: Driver, thread: Thread, handle: int) -> None:
    graph = get_graph(driver, handle)
    if graph.is_child or any(capture.graph is graph for capture in driver.captures):
        raise DriverError(Code.ERROR_INVALID_VALUE)
    graph.destroy(driver)


@entry("cuGraphClone", "result pointer")
def clone_graph(driver: Driver, thread: Thread, result: int, handle: int) -> None:
    write_pointer(result, clone(driver, get_graph(driver, handle)).handle)


@entry("cuGraphNodeFindInClone", "result pointer pointer")
def find_in_clone(driver: Driver, thread: Thread, result: int, node: int, handle: int) -> None:
    original = get_node(driver, node)
    for copy in get_graph(driver, handle).nodes:
        if copy.original is original:
            write_pointer(result, copy.handle)
            return
    raise DriverError(Code.ERROR_INVALID_VALUE)


@entry("cuGraphDestroyNode", "pointer")
def destroy_node(driver: Driver, thread: Thread, handle: int) -> None:
    node = get_node(driver, handle)
    node.graph.remove(driver, node)


@entry("cuGraphGetNodes", "pointer pointer result")
def list_nodes(driver: Driver, thread: Thread, handle: int, nodes: int, count: int) -> None:
    _write_list(count, (nodes, _pack(get_graph(driver, handle).nodes)))


@entry("cuGraphGetRootNodes", "pointer pointer result")
def list_roots(driver: Driver, thread: Thread, handle: int, nodes: int, count: int) -> None:
    roots = [node for node in get_graph(driver, handle).nodes if not node.dependencies]
    _write_list(count, (nodes, _pack(roots)))


@entry("cuGraphGetEdges", "pointer pointer pointer result")
def list_edges(driver: Driver, thread: Thread, handle: int, starts: int, ends: int, count: int) -> None:
    list_edges_with_data(driver, thread, handle, starts, ends, 0, count)


@entry("cuGraphGetEdges_v2", "pointer pointer pointer pointer result")
def list_edges_with_data(
    driver: Driver, thread: Thread, handle: int, starts: int, ends: int, edges: int, count: int
) -> None:
    rows = [
        (start, node, data) for node in get_graph(driver, handle).nodes for start, data in node.dependencies.items()
    ]
    columns = (starts, _pack(row[0] for row in rows)), (ends, _pack(row[1] for row in rows))
    _write_list(count, *columns, (edges, [row[2] for row in rows]))


@entry("cuGraphNodeGetDependencies", "pointer pointer result")
def list_dependencies(driver: Driver, thread: Thread, handle: int, nodes: int, count: int) -> None:
    list_dependencies_with_data(driver, thread, handle, nodes, 0, count)


@entry("cuGraphNodeGetDependencies_v2", "pointer pointer pointer result")
def list_dependencies_with_data(
    driver: Driver, thread: Thread, handle: int, nodes: int, edges: int, count: int
) -> None:
    dependencies = get_node(driver, handle).dependencies
    _write_list(count, (nodes, _pack(dependencies)), (edges, dependencies.values()))


@entry("cuGraphNodeGetDependentNodes", "pointer pointer result")
def list_dependents(driver: Driver, thread: Thread, handle: int, nodes: int, count: int) -> None:
    list_dependents_with_data(driver, thread, handle, nodes, 0, count)


@entry("cuGraphNodeGetDependentNodes_v2", "pointer pointer pointer result")
def list_dependents_with_data(driver: Driver, thread: Thread, handle: int, nodes: int, edges: int, count: int) -> None:
    dependents = get_node(driver, handle).list_dependents()
    _write_list(count, (nodes, _pack(dependents)), (edges, dependents.values()))


@entry("cuGraphAddDependencies", "pointer pointer pointer size")
def add_dependencies(driver: Driver, thread: Thread, handle: int, starts: int, ends: int, count: int) -> None:
    add_dependencies_with_data(driver, thread, handle, starts, ends, 0, count)


@entry("cuGraphAddDependencies_v2", "pointer pointer pointer pointer size")
def add_dependencies_with_data(
    driver: Driver, thread: Thread, handle: int, starts: int, ends: int, edges: int, count: int
) -> None:
    graph = get_graph(driver, handle)
    pairs = list(zip(read_nodes(driver, starts, count), read_nodes(driver, ends, count), strict=True))
    data = read(edges, EDGE_SIZE * count) if edges else PLAIN_EDGE * count
    for start, end in pairs:
        if start is end or start.graph is not graph or end.graph is not graph or start in end.dependencies:
            raise DriverError(Code.ERROR_INVALID_VALUE)
    for index, (start, end) in enumerate(pairs):
        end.dependencies[start] = data[index * EDGE_SIZE :][:EDGE_SIZE]


@entry("cuGraphRemoveDependencies", "pointer pointer pointer size")
def remove_dependencies(driver: Driver, thread: Thread, handle: int, starts: int, ends: int, count: int) -> None:
    remove_dependencies_with_data(driver, thread, handle, starts, ends, 0, count)


@entry("cuGraphRemoveDependencies_v2", "pointer pointer pointer pointer size")
def remove_dependencies_with_data(
    driver: Driver, thread: Thread, handle: int, starts: int, ends: int, edges: int, count: int
) -> None:
    graph = get_graph(driver, handle)
    pairs = list(zip(read_nodes(driver, starts, count), read_nodes(driver, ends, count), strict=True))
    if any(end.graph is not graph or start not in end.dependencies for start, end in pairs):
        raise DriverError(Code.ERROR_INVALID_VALUE)
    for start, end in pairs:
        end.dependencies.pop(start, None)


@entry("cuGraphNodeGetType", "pointer result")
def get_type(driver: Driver, thread: Thread, handle: int, result: int) -> None:
    write_int(result, get_node(driver, handle).operation.kind)


@entry("cuGraphNodeGetContainingGraph", "pointer result")
def get_containing_graph(driver: Driver, thread: Thread, handle: int, result: int) -> None:
    write_pointer(result, get_node(driver, handle).graph.handle)


@entry("cuGraphNodeGetLocalId", "pointer result")
def get_local_identity(driver: Driver, thread: Thread, handle: int, result: int) -> None:
    write_int(result, get_node(driver, handle).number)


@entry("cuGraphNodeGetToolsId", "pointer result")
def get_tools_identity(driver: Driver, thread: Thread, handle: int, result: int) -> None:
    write_pointer(result, get_node(driver, handle).handle)


@entry("cuGraphGetId", "pointer result")
def get_identity(driver: Driver, thread: Thread, handle: int, result: int) -> None:
    write_int(result, get_graph(driver, handle).handle)


@entry("cuGraphExecGetId", "pointer result")
def get_executable_identity(driver: Driver, thread: Thread, handle: int, result: int) -> None:
    write_int(result, get_executable(driver, handle).handle)


@entry("cuGraphDebugDotPrint", "pointer pointer uint")
def draw_graph(driver: Driver, thread: Thread, handle: int, path: int, flags: int) -> None:
    graph = get_graph(driver, handle)
    try:
        Path(read_text(path)).write_text(draw(graph), "utf-8")
    except OSError:
        raise DriverError(Code.ERROR_INVALID_VALUE) from None


def _instantiate(driver: Driver, handle: int, flags: int) -> int:
    """Create an executable graph and return its handle."""
    graph = get_graph(driver, handle)
    if flags & ~_FLAGS:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    graph.list_in_order()
    copy = own(clone(driver, graph)).graph
    return driver.handles.add(lambda number: Executable(number, copy, flags)).handle


@entry("cuGraphInstantiateWithFlags", "result pointer size")
def instantiate(driver: Driver, thread: Thread, result: int, handle: int, flags: int) -> None:
    write_pointer(result, _instantiate(driver, handle, flags))


@entry("cuGraphInstantiate cuGraphInstantiate_v2", "result pointer pointer pointer size")
def instantiate_with_log(
    driver: Driver, thread: Thread, result: int, handle: int, node: int, log: int, size: int
) -> None:
    write(log, b"\0" if size else b"")
    write_pointer(node, 0)
    write_pointer(result, _instantiate(driver, handle, 0))


@entry("cuGraphInstantiateWithParams", "result pointer result")
def instantiate_with_parameters(driver: Driver, thread: Thread, result: int, handle: int, address: int) -> None:
    flags, stream, _, _ = _INSTANTIATE.unpack(read(address, _INSTANTIATE.size))
    write(address, _INSTANTIATE.pack(flags, stream, 0, 1))
    write_pointer(result, _instantiate(driver, handle, flags))
    write(address, _INSTANTIATE.pack(flags, stream, 0, 0))


@entry("cuGraphExecGetFlags", "pointer result")
def get_flags(driver: Driver, thread: Thread, handle: int, result: int) -> None:
    write_pointer(result, get_executable(driver, handle).flags)


@entry("cuGraphExecDestroy", "pointer")
def destroy_executable(driver: Driver, thread: Thread, handle: int) -> None:
    executable = get_executable(driver, handle)
    driver.handles.remove(handle, Executable)
    executable.graph.destroy(driver)


@entry("cuGraphLaunch", "pointer pointer")
def launch_graph(driver: Driver, thread: Thread, handle: int, stream: int) -> None:
    queue, executable = find_stream(driver, thread, stream), get_executable(driver, handle)
    if queue.capture is not None:
        submit(driver, queue, own(clone(driver, executable.graph)))
    else:
        submit_graph(driver, queue, executable)


@entry("cuGraphUpload", "pointer pointer")
def upload_graph(driver: Driver, thread: Thread, handle: int, stream: int) -> None:
    get_executable(driver, handle)
    forbid_legacy(driver, find_stream(driver, thread, stream))


def _update(driver: Driver, handle: int, graph: int) -> tuple[Change, Node | None]:
    """Update an executable graph, and return why it cannot be."""
    return get_executable(driver, handle).update(get_graph(driver, graph))


@entry("cuGraphExecUpdate", "pointer pointer pointer pointer")
def update(driver: Driver, thread: Thread, handle: int, graph: int, node: int, result: int) -> None:
    change, place = _update(driver, handle, graph)
    write_pointer(node, place.handle if place else 0)
    write_int(result, change)
    if change is not Change.NONE:
        raise DriverError(Code.ERROR_GRAPH_EXEC_UPDATE_FAILURE)


@entry("cuGraphExecUpdate_v2", "pointer pointer pointer")
def update_with_information(driver: Driver, thread: Thread, handle: int, graph: int, result: int) -> None:
    change, place = _update(driver, handle, graph)
    write(result, struct.pack("<i4xQQ", change, place.handle if place else 0, 0))
    if change is not Change.NONE:
        raise DriverError(Code.ERROR_GRAPH_EXEC_UPDATE_FAILURE)


def _find_switch(driver: Driver, handle: int, node: int) -> tuple[Executable, Node]:
    """Return a node of an executable graph that can be disabled."""
    executable = get_executable(driver, handle)
    copy = executable.find(get_node(driver, node))
    if copy.operation.kind not in _CAN_BE_DISABLED:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    return executable, copy


@entry("cuGraphNodeSetEnabled", "pointer pointer uint")
def enable_node(driver: Driver, thread: Thread, handle: int, node: int, is_enabled: int) -> None:
    executable, copy = _find_switch(driver, handle, node)
    (executable.disabled.discard if is_enabled else executable.disabled.add)(copy)


@entry("cuGraphNodeGetEnabled", "pointer pointer result")
def is_enabled(driver: Driver, thread: Thread, handle: int, node: int, result: int) -> None:
    executable, copy = _find_switch(driver, handle, node)
    write_int(result, int(copy not in executable.disabled))
