"""Nodes of graphs: creation of each kind, and their parameters."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from dataclasses import replace

from pyptx.driver.calls.copies import COPY_3D, pack_box, read_box
from pyptx.driver.calls.graphs import get_executable, get_graph, get_node, read_edges
from pyptx.driver.calls.launches import Config, make_launch, read_parameters
from pyptx.driver.calls.pools import make_allocation
from pyptx.driver.codes import Code, DriverError
from pyptx.driver.graphs import ChildGraph, Executable, Node, clone, own
from pyptx.driver.host_memory import read, read_ints, write, write_pointer
from pyptx.driver.modules import Kernel
from pyptx.driver.operations import (
    Allocate,
    Copy,
    Empty,
    Event,
    Fill,
    Free,
    HostCall,
    Launch,
    Operation,
    RecordEvent,
    WaitEvent,
)
from pyptx.driver.process import Context, Driver, Thread
from pyptx.driver.signatures import entry

_KERNEL, _KERNEL_CONTEXT = struct.Struct("<Q7I4xQQ"), struct.Struct("<QQ")
_FILL, _HOST, _POINTER = struct.Struct("<QQIIQQ"), struct.Struct("<QQ"), struct.Struct("<Q")
_COPY_OFFSET = 16
"""Where the copy begins in a `CUDA_MEMCPY_NODE_PARAMS`."""
_ALLOCATION = struct.Struct("<II ii QQH54x QQQQ")
_ADDRESS_OFFSET = _ALLOCATION.size - 8
_PARAMETERS_OFFSET, _PARAMETERS_SIZE = 16, 256
"""Where the parameters of a node's kind begin in a `CUgraphNodeParams`, and the size of all."""
_ATTRIBUTE_SIZE = 64
_MOVE = 1


def _read_launch(driver: Driver, thread: Thread, address: int, old: Operation | None = None) -> Launch:
    """Return the launch of a `CUDA_KERNEL_NODE_PARAMS`, with the attributes of an earlier one."""
    handle, *sizes, parameters, extra = _KERNEL.unpack(read(address, _KERNEL.size))
    return _make_launch(driver, driver.get_context(thread), handle, sizes, parameters, extra, old)


def _read_launch_with_context(driver: Driver, thread: Thread, address: int, old: Operation | None = None) -> Launch:
    """Return the launch of a `CUDA_KERNEL_NODE_PARAMS_v2`."""
    handle, *sizes, parameters, extra = _KERNEL.unpack(read(address, _KERNEL.size))
    kernel, context = _KERNEL_CONTEXT.unpack(read(address + _KERNEL.size, _KERNEL_CONTEXT.size))
    owner = driver.handles.get(context, Context, Code.ERROR_INVALID_CONTEXT) if context else driver.get_context(thread)
    return _make_launch(driver, owner, handle or kernel, sizes, parameters, extra, old)


def _make_launch(
    driver: Driver, context: Context, handle: int, sizes: list[int], parameters: int, extra: int, old: Operation | None
) -> Launch:
    kernel = driver.handles.get(handle, Kernel, Code.ERROR_INVALID_VALUE)
    gx, gy, gz, bx, by, bz, shared = sizes
    attributes = old.attributes if isinstance(old, Launch) else {}
    config = Config((gx, gy, gz), (bx, by, bz), shared, 0, attributes)
    return make_launch(driver, context, kernel, config, read_parameters(kernel, parameters, extra))


def _read_fill(driver: Driver, thread: Thread, address: int, old: Operation | None = None) -> Fill:
    target, pitch, value, element, width, height = _FILL.unpack(read(address, _FILL.size))
    if element not in (1, 2, 4):
        raise DriverError(Code.ERROR_INVALID_VALUE)
    return Fill(target, pitch, value, element, width, height)


def _read_copy_node(driver: Driver, thread: Thread, address: int, old: Operation | None = None) -> Copy:
    return read_box(address + _COPY_OFFSET)


def _read_host(driver: Driver, thread: Thread, address: int, old: Operation | None = None) -> HostCall:
    function, data = _HOST.unpack(read(address, _HOST.size))
    if not function:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    return HostCall(function, data)


def _read_child(driver: Driver, thread: Thread, address: int, old: Operation | None = None) -> ChildGraph:
    handle, ownership = struct.unpack("<QI", read(address, 12))
    graph = get_graph(driver, handle)
    return own(graph if ownership == _MOVE else clone(driver, graph))


def _get_event(driver: Driver, handle: int) -> Event:
    return driver.handles.get(handle, Event, Code.ERROR_INVALID_VALUE)


def _read_wait(driver: Driver, thread: Thread, address: int, old: Operation | None = None) -> WaitEvent:
    return WaitEvent(_get_event(driver, *_POINTER.unpack(read(address, 8))))


def _read_record(driver: Driver, thread: Thread, address: int, old: Operation | None = None) -> RecordEvent:
    return RecordEvent(_get_event(driver, *_POINTER.unpack(read(address, 8))))


def _read_empty(driver: Driver, thread: Thread, address: int, old: Operation | None = None) -> Empty:
    return Empty()


def _read_allocation(driver: Driver, thread: Thread, address: int, old: Operation | None = None) -> Allocate:
    """Return the allocation of a `CUDA_MEM_ALLOC_NODE_PARAMS`, to which the address of the memory is written."""
    kind, _, place, ordinal, *_, size, _ = _ALLOCATION.unpack(read(address, _ALLOCATION.size))
    if (kind, place) != (1, 1):
        raise DriverError(Code.ERROR_NOT_SUPPORTED, "graphs allocate memory of devices only")
    allocation = make_allocation(driver, ordinal, size)
    write_pointer(address + _ADDRESS_OFFSET, allocation.address)
    return allocation


def _read_free(driver: Driver, thread: Thread, address: int, old: Operation | None = None) -> Free:
    return Free(*_POINTER.unpack(read(address, 8)))


_READERS: dict[int, Callable[..., Operation]] = {
    0: _read_launch_with_context, 1: _read_copy_node, 2: _read_fill, 3: _read_host, 4: _read_child, 5: _read_empty,
    6: _read_wait, 7: _read_record, 10: _read_allocation, 11: _read_free,
}  # fmt: skip
"""What reads the parameters of each kind of node in a `CUgraphNodeParams`."""


def _read_node(driver: Driver, thread: Thread, address: int, old: Operation | None = None) -> Operation:
    (kind,) = read_ints(address, 1)
    if kind not in _READERS:
        raise DriverError(Code.ERROR_NOT_SUPPORTED, f"nodes of type {kind} are not simulated")
    return _READERS[kind](driver, thread, address + _PARAMETERS_OFFSET, old)


def _pack_launch(node: Node, operation: Launch) -> bytes:
    """Return a `CUDA_KERNEL_NODE_PARAMS_v2`; the node keeps the memory of the parameters."""
    request = operation.request
    data = ctypes.create_string_buffer(request.parameters)
    start, layout = ctypes.addressof(data), request.kernel.layout
    pointers = (ctypes.c_uint64 * len(layout))(*(start + offset for offset, _ in layout))
    node.answers = data, pointers
    sizes = *request.grid, *request.block, request.shared
    parameters = ctypes.addressof(pointers) if layout else 0
    kernel = request.kernel.handle
    return _KERNEL.pack(kernel, *sizes, parameters, 0) + _KERNEL_CONTEXT.pack(kernel, operation.context.handle)


def _pack_node(node: Node) -> bytes:
    """Return the parameters of a node as in a `CUgraphNodeParams`."""
    match node.operation:
        case Launch() as launch:
            return _pack_launch(node, launch)
        case Copy() as copy:
            return bytes(_COPY_OFFSET) + pack_box(copy)
        case Fill(address, pitch, value, element, width, height):
            return _FILL.pack(address, pitch, value, element, width, height)
        case HostCall(function, data):
            return _HOST.pack(function, data)
        case ChildGraph(graph):
            return struct.pack("<Qi4x", graph.handle, -1)
        case WaitEvent(event) | RecordEvent(event):
            return _POINTER.pack(event.handle)
        case Allocate() as allocation:
            place = 1, 0, 1, allocation.device
            return _ALLOCATION.pack(*place, 0, 0, 0, 0, 0, len(allocation.data), allocation.address)
        case Free(address):
            return _POINTER.pack(address)
        case _:
            return b""


def _add(
    driver: Driver, result: int, handle: int, nodes: int, edges: int, count: int, make: Callable[[], Operation]
) -> None:
    """Add a node, made when the graph and the dependencies are known to be right."""
    graph = get_graph(driver, handle)
    dependencies = read_edges(driver, graph, nodes, edges, count)
    write_pointer(result, graph.add(driver, make(), dependencies).handle)


@entry("cuGraphAddNode", "result pointer pointer size pointer")
def add_node(driver: Driver, thread: Thread, result: int, graph: int, nodes: int, count: int, address: int) -> None:
    add_node_with_edges(driver, thread, result, graph, nodes, 0, count, address)


@entry("cuGraphAddNode_v2 cuGraphAddNode_v3", "result pointer pointer pointer size pointer")
def add_node_with_edges(
    driver: Driver, thread: Thread, result: int, graph: int, nodes: int, edges: int, count: int, address: int
) -> None:
    _add(driver, result, graph, nodes, edges, count, lambda: _read_node(driver, thread, address))


@entry("cuGraphAddKernelNode", "result pointer pointer size pointer")
def add_kernel(driver: Driver, thread: Thread, result: int, graph: int, nodes: int, count: int, address: int) -> None:
    _add(driver, result, graph, nodes, 0, count, lambda: _read_launch(driver, thread, address))


@entry("cuGraphAddKernelNode_v2", "result pointer pointer size pointer")
def add_kernel_with_context(
    driver: Driver, thread: Thread, result: int, graph: int, nodes: int, count: int, address: int
) -> None:
    _add(driver, result, graph, nodes, 0, count, lambda: _read_launch_with_context(driver, thread, address))


@entry("cuGraphAddMemcpyNode", "result pointer pointer size pointer pointer")
def add_copy(
    driver: Driver, thread: Thread, result: int, graph: int, nodes: int, count: int, address: int, context: int
) -> None:
    _add(driver, result, graph, nodes, 0, count, lambda: read_box(address))


@entry("cuGraphAddMemsetNode", "result pointer pointer size pointer pointer")
def add_fill(
    driver: Driver, thread: Thread, result: int, graph: int, nodes: int, count: int, address: int, context: int
) -> None:
    _add(driver, result, graph, nodes, 0, count, lambda: _read_fill(driver, thread, address))


@entry("cuGraphAddHostNode", "result pointer pointer size pointer")
def add_host(driver: Driver, thread: Thread, result: int, graph: int, nodes: int, count: int, address: int) -> None:
    _add(driver, result, graph, nodes, 0, count, lambda: _read_host(driver, thread, address))


@entry("cuGraphAddChildGraphNode", "result pointer pointer size pointer")
def add_child(driver: Driver, thread: Thread, result: int, graph: int, nodes: int, count: int, child: int) -> None:
    _add(driver, result, graph, nodes, 0, count, lambda: own(clone(driver, get_graph(driver, child))))


@entry("cuGraphAddEmptyNode", "result pointer pointer size")
def add_empty(driver: Driver, thread: Thread, result: int, graph: int, nodes: int, count: int) -> None:
    _add(driver, result, graph, nodes, 0, count, Empty)


@entry("cuGraphAddEventRecordNode", "result pointer pointer size pointer")
def add_record(driver: Driver, thread: Thread, result: int, graph: int, nodes: int, count: int, event: int) -> None:
    _add(driver, result, graph, nodes, 0, count, lambda: RecordEvent(_get_event(driver, event)))


@entry("cuGraphAddEventWaitNode", "result pointer pointer size pointer")
def add_wait(driver: Driver, thread: Thread, result: int, graph: int, nodes: int, count: int, event: int) -> None:
    _add(driver, result, graph, nodes, 0, count, lambda: WaitEvent(_get_event(driver, event)))


@entry("cuGraphAddMemAllocNode", "result pointer pointer size pointer")
def add_allocation(
    driver: Driver, thread: Thread, result: int, graph: int, nodes: int, count: int, address: int
) -> None:
    _add(driver, result, graph, nodes, 0, count, lambda: _read_allocation(driver, thread, address))


@entry("cuGraphAddMemFreeNode", "result pointer pointer size pointer")
def add_free(driver: Driver, thread: Thread, result: int, graph: int, nodes: int, count: int, address: int) -> None:
    _add(driver, result, graph, nodes, 0, count, lambda: Free(address))


def _find(driver: Driver, handle: int, kind: int) -> Node:
    """Return a node of a kind."""
    node = get_node(driver, handle)
    if node.operation.kind != kind:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    return node


def _write(driver: Driver, handle: int, kind: int, result: int, begin: int = 0, size: int | None = None) -> None:
    """Write the parameters of a node of a kind, or a part of them."""
    write(result, _pack_node(_find(driver, handle, kind))[begin:][:size])


@entry("cuGraphNodeGetParams", "pointer result")
def get_parameters(driver: Driver, thread: Thread, handle: int, result: int) -> None:
    node = get_node(driver, handle)
    head = struct.pack("<i12x", node.operation.kind)
    write(result, (head + _pack_node(node)).ljust(_PARAMETERS_SIZE, b"\0"))


@entry("cuGraphKernelNodeGetParams", "pointer result")
def get_kernel(driver: Driver, thread: Thread, handle: int, result: int) -> None:
    _write(driver, handle, Launch.kind, result, 0, _KERNEL.size)


@entry("cuGraphKernelNodeGetParams_v2", "pointer result")
def get_kernel_with_context(driver: Driver, thread: Thread, handle: int, result: int) -> None:
    _write(driver, handle, Launch.kind, result)


@entry("cuGraphMemcpyNodeGetParams", "pointer result")
def get_copy(driver: Driver, thread: Thread, handle: int, result: int) -> None:
    _write(driver, handle, Copy.kind, result, _COPY_OFFSET, COPY_3D.size)


@entry("cuGraphMemsetNodeGetParams", "pointer result")
def get_fill(driver: Driver, thread: Thread, handle: int, result: int) -> None:
    _write(driver, handle, Fill.kind, result)


@entry("cuGraphHostNodeGetParams", "pointer result")
def get_host(driver: Driver, thread: Thread, handle: int, result: int) -> None:
    _write(driver, handle, HostCall.kind, result)


@entry("cuGraphChildGraphNodeGetGraph", "pointer result")
def get_child(driver: Driver, thread: Thread, handle: int, result: int) -> None:
    _write(driver, handle, ChildGraph.kind, result, 0, 8)


@entry("cuGraphEventRecordNodeGetEvent", "pointer result")
def get_recorded(driver: Driver, thread: Thread, handle: int, result: int) -> None:
    _write(driver, handle, RecordEvent.kind, result)


@entry("cuGraphEventWaitNodeGetEvent", "pointer result")
def get_awaited(driver: Driver, thread: Thread, handle: int, result: int) -> None:
    _write(driver, handle, WaitEvent.kind, result)


@entry("cuGraphMemAllocNodeGetParams", "pointer result")
def get_allocation(driver: Driver, thread: Thread, handle: int, result: int) -> None:
    _write(driver, handle, Allocate.kind, result)


@entry("cuGraphMemFreeNodeGetParams", "pointer result")
def get_free(driver: Driver, thread: Thread, handle: int, result: int) -> None:
    _write(driver, handle, Free.kind, result)


def _replace(node: Node, operation: Operation) -> None:
    """Give a node another operation of its kind."""
    if node.operation.kind != operation.kind:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    node.operation = operation


def _find_copy(driver: Driver, handle: int, node: int, kind: int) -> tuple[Executable, Node]:
    """Return an executable graph, and its copy of a node of a kind."""
    executable = get_executable(driver, handle)
    return executable, executable.find(_find(driver, node, kind))


@entry("cuGraphNodeSetParams cuGraphNodeSetParams_v2", "pointer pointer")
def set_parameters(driver: Driver, thread: Thread, handle: int, address: int) -> None:
    node = get_node(driver, handle)
    _replace(node, _read_node(driver, thread, address, node.operation))


@entry("cuGraphExecNodeSetParams", "pointer pointer pointer")
def set_executable_parameters(driver: Driver, thread: Thread, handle: int, node: int, address: int) -> None:
    executable = get_executable(driver, handle)
    copy = executable.find(get_node(driver, node))
    _replace(copy, _read_node(driver, thread, address, copy.operation))
    executable.sort()


@entry("cuGraphKernelNodeSetParams", "pointer pointer")
def set_kernel(driver: Driver, thread: Thread, handle: int, address: int) -> None:
    node = _find(driver, handle, Launch.kind)
    _replace(node, _read_launch(driver, thread, address, node.operation))


@entry("cuGraphKernelNodeSetParams_v2", "pointer pointer")
def set_kernel_with_context(driver: Driver, thread: Thread, handle: int, address: int) -> None:
    node = _find(driver, handle, Launch.kind)
    _replace(node, _read_launch_with_context(driver, thread, address, node.operation))


@entry("cuGraphExecKernelNodeSetParams", "pointer pointer pointer")
def set_executable_kernel(driver: Driver, thread: Thread, handle: int, node: int, address: int) -> None:
    _, copy = _find_copy(driver, handle, node, Launch.kind)
    _replace(copy, _read_launch(driver, thread, address, copy.operation))


@entry("cuGraphExecKernelNodeSetParams_v2", "pointer pointer pointer")
def set_executable_kernel_with_context(driver: Driver, thread: Thread, handle: int, node: int, address: int) -> None:
    _, copy = _find_copy(driver, handle, node, Launch.kind)
    _replace(copy, _read_launch_with_context(driver, thread, address, copy.operation))


@entry("cuGraphMemcpyNodeSetParams", "pointer pointer")
def set_copy(driver: Driver, thread: Thread, handle: int, address: int) -> None:
    _replace(get_node(driver, handle), read_box(address))


@entry("cuGraphExecMemcpyNodeSetParams", "pointer pointer pointer pointer")
def set_executable_copy(driver: Driver, thread: Thread, handle: int, node: int, address: int, context: int) -> None:
    _replace(_find_copy(driver, handle, node, Copy.kind)[1], read_box(address))


@entry("cuGraphMemsetNodeSetParams", "pointer pointer")
def set_fill(driver: Driver, thread: Thread, handle: int, address: int) -> None:
    _replace(get_node(driver, handle), _read_fill(driver, thread, address))


@entry("cuGraphExecMemsetNodeSetParams", "pointer pointer pointer pointer")
def set_executable_fill(driver: Driver, thread: Thread, handle: int, node: int, address: int, context: int) -> None:
    _replace(_find_copy(driver, handle, node, Fill.kind)[1], _read_fill(driver, thread, address))


@entry("cuGraphHostNodeSetParams", "pointer pointer")
def set_host(driver: Driver, thread: Thread, handle: int, address: int) -> None:
    _replace(get_node(driver, handle), _read_host(driver, thread, address))


@entry("cuGraphExecHostNodeSetParams", "pointer pointer pointer")
def set_executable_host(driver: Driver, thread: Thread, handle: int, node: int, address: int) -> None:
    _replace(_find_copy(driver, handle, node, HostCall.kind)[1], _read_host(driver, thread, address))


@entry("cuGraphExecChildGraphNodeSetParams", "pointer pointer pointer")
def set_executable_child(driver: Driver, thread: Thread, handle: int, node: int, child: int) -> None:
    executable, copy = _find_copy(driver, handle, node, ChildGraph.kind)
    _replace(copy, own(clone(driver, get_graph(driver, child))))
    executable.sort()


@entry("cuGraphEventRecordNodeSetEvent", "pointer pointer")
def set_recorded(driver: Driver, thread: Thread, handle: int, event: int) -> None:
    _replace(get_node(driver, handle), RecordEvent(_get_event(driver, event)))


@entry("cuGraphExecEventRecordNodeSetEvent", "pointer pointer pointer")
def set_executable_recorded(driver: Driver, thread: Thread, handle: int, node: int, event: int) -> None:
    _replace(_find_copy(driver, handle, node, RecordEvent.kind)[1], RecordEvent(_get_event(driver, event)))


@entry("cuGraphEventWaitNodeSetEvent", "pointer pointer")
def set_awaited(driver: Driver, thread: Thread, handle: int, event: int) -> None:
    _replace(get_node(driver, handle), WaitEvent(_get_event(driver, event)))


@entry("cuGraphExecEventWaitNodeSetEvent", "pointer pointer pointer")
def set_executable_awaited(driver: Driver, thread: Thread, handle: int, node: int, event: int) -> None:
    _replace(_find_copy(driver, handle, node, WaitEvent.kind)[1], WaitEvent(_get_event(driver, event)))


def _set_attributes(driver: Driver, node: Node, attributes: dict[int, bytes]) -> None:
    """Give the launch of a node other attributes."""
    if not isinstance(node.operation, Launch):
        raise DriverError(Code.ERROR_INVALID_VALUE)
    context, request = node.operation.context, node.operation.request
    config = Config(request.grid, request.block, request.shared, 0, attributes)
    launch = make_launch(driver, context, request.kernel, config, request.parameters)
    node.operation = replace(launch, request=replace(launch.request, stack=request.stack))


@entry("cuGraphKernelNodeGetAttribute", "pointer int result")
def get_attribute(driver: Driver, thread: Thread, handle: int, attribute: int, result: int) -> None:
    node = get_node(driver, handle)
    if not isinstance(node.operation, Launch):
        raise DriverError(Code.ERROR_INVALID_VALUE)
    write(result, node.operation.attributes.get(attribute, bytes(_ATTRIBUTE_SIZE)).ljust(_ATTRIBUTE_SIZE, b"\0"))


@entry("cuGraphKernelNodeSetAttribute", "pointer int pointer")
def set_attribute(driver: Driver, thread: Thread, handle: int, attribute: int, value: int) -> None:
    node = _find(driver, handle, Launch.kind)
    if isinstance(node.operation, Launch):
        _set_attributes(driver, node, node.operation.attributes | {attribute: read(value, _ATTRIBUTE_SIZE)})


@entry("cuGraphKernelNodeCopyAttributes", "pointer pointer")
def copy_attributes(driver: Driver, thread: Thread, target: int, source: int) -> None:
    other = _find(driver, source, Launch.kind)
    if isinstance(other.operation, Launch):
        _set_attributes(driver, get_node(driver, target), other.operation.attributes)
