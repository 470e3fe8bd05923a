"""Programs that build graphs node by node, change them and launch them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.driver.conftest import Run

START = """\
import ctypes, struct
from calls import *
start()
add = load(VECTOR_ADD, "add")
size = 4000
a, b, c = (ask("cuMemAlloc_v2", size) for _ in range(3))
stream = ask("cuStreamCreate", 1)
graph = ask("cuGraphCreate", 0)
kept = []

def pack_kernel(*arguments, grid=4):
    values = [ctypes.c_uint64(value) for value in arguments]
    pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
    kept.append((values, pointers))
    return struct.pack("<Q7I4xQQQQ", add, grid, 1, 1, 256, 1, 1, 0, ctypes.addressof(pointers), 0, 0, 0)

def pack_copy(target, source, width):
    device = 2
    side = lambda address: (0, 0, 0, 0, device, 0, address, 0, 0, 0, 0)
    return struct.pack("<4QI4x6Q4QI4x6Q3Q", *side(source), *side(target), width, 1, 1)

def pack_fill(target, value):
    return struct.pack("<QQIIQQQ", target, 0, value, 4, 1000, 1, 0)

def add_node(kind, nodes, *arguments, graph=None):
    handles = (ctypes.c_uint64 * max(1, len(nodes)))(*nodes)
    return ask(f"cuGraphAdd{kind}Node", graph or globals()["graph"], handles, len(nodes), *arguments)

def instantiate(graph, flags=0):
    return ask("cuGraphInstantiateWithFlags", graph, flags)

def launch_graph(executable):
    code = try_call("cuGraphLaunch", executable, stream)
    call("cuStreamSynchronize", stream)
    return code

def tell(name, handle):
    result = ctypes.c_uint64()
    call(name, handle, ctypes.byref(result))
    return result.value

def fetch(address):
    result = (ctypes.c_float * 1000)()
    call("cuMemcpyDtoH_v2", result, address, size)
    return result[999]

def list_nodes(name, handle, room=8):
    nodes, count = (ctypes.c_uint64 * room)(*[1] * room), ctypes.c_uint64(room)
    call(name, handle, nodes, ctypes.byref(count))
    return list(nodes[: count.value])

ONE, TWO = 0x3F800000, 0x40000000
"""

FOUR_NODES = """\
fill_a = add_node("Memset", [], pack_fill(a, ONE), 0)
fill_b = add_node("Memset", [], pack_fill(b, TWO), 0)
sum = add_node("Kernel", [fill_a, fill_b], pack_kernel(a, b, c, 1000))
copy = add_node("Memcpy", [sum], pack_copy(a, c, size), 0)
"""
"""a = 1, b = 2, c = a + b + 1, a = c."""


def run(run_program: Run, program: str) -> str:
    process = run_program(START + program)
    assert (process.returncode, process.stderr) == (0, "")
    return process.stdout


def test_nodes_run_after_those_on_which_they_depend(run_program: Run) -> None:
    program = """\
copy = add_node("Memcpy", [], pack_copy(a, c, size), 0)
sum = ask("cuGraphAddKernelNode_v2", graph, None, 0, pack_kernel(a, b, c, 1000))
fills = [add_node("Memset", [], pack_fill(target, ONE), 0) for target in (a, b)]
starts, ends = (ctypes.c_uint64 * 3)(*fills, sum), (ctypes.c_uint64 * 3)(sum, sum, copy)
call("cuGraphAddDependencies", graph, starts, ends, 3)
executable = instantiate(graph)
print(launch_graph(executable), fetch(a), fetch(c))
print(try_call("cuGraphAddDependencies", graph, starts, ends, 3), try_call("cuGraphDestroy", graph))
print(launch_graph(executable), try_call("cuGraphExecDestroy", executable), launch_graph(executable))
"""
    assert run(run_program, program) == "0 3.0 3.0\n1 0\n0 0 1\n"


def test_a_program_reads_the_nodes_and_edges(run_program: Run) -> None:
    program = (
        FOUR_NODES
        + """\
nodes = list_nodes("cuGraphGetNodes", graph)
print([nodes.index(node) for node in (fill_a, fill_b, sum, copy)], len(list_nodes("cuGraphGetNodes", graph, 2)))
print([nodes.index(node) for node in list_nodes("cuGraphGetRootNodes", graph)])
print([nodes.index(node) for node in list_nodes("cuGraphNodeGetDependencies", sum)])
print([nodes.index(node) for node in list_nodes("cuGraphNodeGetDependentNodes", sum)])
starts, ends, count = (ctypes.c_uint64 * 5)(), (ctypes.c_uint64 * 5)(), ctypes.c_uint64(5)
call("cuGraphGetEdges", graph, starts, ends, ctypes.byref(count))
print([(nodes.index(start), nodes.index(end)) for start, end in zip(starts[:3], ends)], count.value, starts[4])
kind = ctypes.c_int()
for node in (fill_a, sum, copy):
    call("cuGraphNodeGetType", node, ctypes.byref(kind))
    print(kind.value, end=" ")
call("cuGraphRemoveDependencies", graph, starts, ends, 1)
call("cuGraphDestroyNode", fill_b)
print(len(list_nodes("cuGraphGetNodes", graph)), len(list_nodes("cuGraphNodeGetDependencies", sum)))
"""
    )
    expected = ["[0, 1, 2, 3] 2", "[0, 1]", "[0, 1]", "[3]", "[(0, 2), (1, 2), (2, 3)] 3 0", "2 0 1 3 0"]
    assert run(run_program, program).splitlines() == expected


def test_a_cycle_is_refused(run_program: Run) -> None:
    program = """\
nodes = [add_node("Empty", []) for _ in range(2)]
forth, back = (ctypes.c_uint64 * 2)(*nodes), (ctypes.c_uint64 * 2)(*reversed(nodes))
call("cuGraphAddDependencies", graph, forth, back, 2)
print(try_call("cuGraphInstantiateWithFlags", ctypes.byref(ctypes.c_uint64()), graph, 0))
"""
    process = run_program(START + program)
    assert process.stdout == "1\n"
    assert process.stderr == "pyptx: cuGraphInstantiateWithFlags: the graph has a cycle\n"


def test_parameters_of_nodes_are_read_and_replaced(run_program: Run) -> None:
    program = (
        FOUR_NODES
        + """\
data = ctypes.create_string_buffer(72)
call("cuGraphKernelNodeGetParams_v2", sum, data)
function, gx, *_, pointers, extra, kernel, context = struct.unpack("<Q7I4xQQQQ", data.raw)
first = ctypes.cast(pointers, ctypes.POINTER(ctypes.POINTER(ctypes.c_uint64)))
print(function == add, kernel == add, gx, [first[index][0] for index in range(3)] == [a, b, c])
call("cuGraphMemsetNodeGetParams", fill_b, data)
print(struct.unpack("<QQIIQQ", data.raw[:40]) == (b, 0, TWO, 4, 1000, 1))
box = ctypes.create_string_buffer(200)
call("cuGraphMemcpyNodeGetParams", copy, box)
print(box.raw == pack_copy(a, c, size))
executable = instantiate(graph)
call("cuGraphMemsetNodeSetParams", fill_b, pack_fill(b, ONE))
print(launch_graph(executable), fetch(a), launch_graph(instantiate(graph)), fetch(a))
call("cuGraphExecKernelNodeSetParams_v2", executable, sum, pack_kernel(b, b, c, 1000))
print(launch_graph(executable), fetch(a))
call("cuGraphExecMemsetNodeSetParams", executable, fill_b, pack_fill(b, ONE), 0)
print(launch_graph(executable), fetch(a))
call("cuGraphExecMemcpyNodeSetParams", executable, copy, pack_copy(a, b, size), 0)
print(launch_graph(executable), fetch(a))
print(try_call("cuGraphExecMemsetNodeSetParams", executable, sum, pack_fill(b, ONE), 0))
"""
    )
    lines = ["True True 4 True", "True", "True", "0 4.0 0 3.0", "0 5.0", "0 3.0", "0 1.0", "1"]
    assert run(run_program, program).splitlines() == lines


def test_attributes_of_a_kernel_node_reach_its_launch(run_program: Run) -> None:
    program = """\
text = '''.version 8.0
.target sm_90
.address_size 64
.visible .entry ranks(.param .u64 out)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %cluster_ctarank;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r2;
    ret;
}
'''
add = load(text, "ranks")
node = ask("cuGraphAddKernelNode_v2", graph, None, 0, pack_kernel(a))
value = struct.pack("<3I52x", 2, 1, 1)
call("cuGraphKernelNodeSetAttribute", node, 4, value)
result = ctypes.create_string_buffer(64)
call("cuGraphKernelNodeGetAttribute", node, 4, result)
launch_graph(instantiate(graph))
ranks = (ctypes.c_uint32 * 4)()
call("cuMemcpyDtoH_v2", ranks, a, 16)
print(result.raw == value, list(ranks))
"""
    assert run(run_program, program) == "True [0, 1, 0, 1]\n"


def test_a_disabled_node_does_not_run(run_program: Run) -> None:
    program = (
        FOUR_NODES
        + """\
executable = instantiate(graph)
empty = add_node("Empty", [])
call("cuGraphNodeSetEnabled", executable, copy, 0)
enabled = ctypes.c_uint32()
call("cuGraphNodeGetEnabled", executable, copy, ctypes.byref(enabled))
print(launch_graph(executable), fetch(a), enabled.value)
call("cuGraphNodeSetEnabled", executable, copy, 1)
print(launch_graph(executable), fetch(a), try_call("cuGraphNodeSetEnabled", executable, empty, 0))
"""
    )
    assert run(run_program, program) == "0 1.0 0\n0 4.0 1\n"


def test_an_executable_graph_takes_over_a_graph_of_the_same_shape(run_program: Run) -> None:
    program = (
        FOUR_NODES
        + """\
executable, clone = instantiate(graph), ask("cuGraphClone", graph)
copied = ask("cuGraphNodeFindInClone", fill_a, clone)
call("cuGraphMemsetNodeSetParams", copied, pack_fill(a, TWO))

def update(graph):
    result = ctypes.create_string_buffer(24)
    code = try_call("cuGraphExecUpdate_v2", executable, graph, result)
    change, node, _ = struct.unpack("<i4xQQ", result.raw)
    return code, change, node

print(update(clone), launch_graph(executable), fetch(a))
print(launch_graph(instantiate(graph)), fetch(a))
extra = add_node("Empty", [], graph=clone)
print(update(clone))
other = ask("cuGraphCreate", 0)
empty = add_node("Empty", [], graph=other)
code, change, node = update(other)
print(code, change, node == empty)
other = ask("cuGraphCreate", 0)
first = add_node("Memset", [], pack_fill(a, ONE), 0, graph=other)
second = add_node("Memset", [first], pack_fill(a, ONE), 0, graph=other)
code, change, node = update(other)
print(code, change, node == second)
place, change = ctypes.c_uint64(7), ctypes.c_int(7)
code = try_call("cuGraphExecUpdate", executable, other, ctypes.byref(place), ctypes.byref(change))
print(code, change.value, place.value == second)
code = try_call("cuGraphExecUpdate", executable, graph, ctypes.byref(place), ctypes.byref(change))
print(code, change.value, place.value)
"""
    )
    lines = ["(0, 0, 0) 0 5.0", "0 4.0", "(910, 2, 0)", "910 3 True", "910 2 True", "910 2 True", "0 0 0"]
    assert run(run_program, program).splitlines() == lines


def test_an_executable_graph_takes_over_child_graphs_of_the_same_shape(run_program: Run) -> None:
    program = """\
def make(value, source, *extra):
    child = ask("cuGraphCreate", 0)
    add_node("Memset", [], pack_fill(a, value), 0, graph=child)
    for _ in extra:
        add_node("Empty", [], graph=child)
    graph = ask("cuGraphCreate", 0)
    node = add_node("ChildGraph", [], child, graph=graph)
    add_node("Memcpy", [node], pack_copy(b, source, size), 0, graph=graph)
    return graph

def update(graph):
    result = ctypes.create_string_buffer(24)
    code = try_call("cuGraphExecUpdate_v2", executable, graph, result)
    return code, *struct.unpack("<i4xQQ", result.raw)[:2]

executable = instantiate(make(ONE, a))
print(launch_graph(executable), fetch(a), fetch(b))
print(update(make(TWO, b)), launch_graph(executable), fetch(a), fetch(b))
print(update(make(ONE, a, "one more")), launch_graph(executable), fetch(a), fetch(b))
"""
    lines = ["0 1.0 1.0", "(0, 0, 0) 0 2.0 1.0", "(910, 2, 0) 0 2.0 1.0"]
    assert run(run_program, program).splitlines() == lines


def test_a_child_graph_is_a_copy(run_program: Run) -> None:
    program = """\
child = ask("cuGraphCreate", 0)
fill = add_node("Memset", [], pack_fill(a, ONE), 0, graph=child)
node = add_node("ChildGraph", [], child)
add_node("Memcpy", [node], pack_copy(b, a, size), 0)
call("cuGraphMemsetNodeSetParams", fill, pack_fill(a, TWO))
executable = instantiate(graph)
inner = ctypes.c_uint64()
call("cuGraphChildGraphNodeGetGraph", node, ctypes.byref(inner))
print(launch_graph(executable), fetch(b), try_call("cuGraphDestroy", inner.value), try_call("cuGraphDestroy", child))
(part,) = list_nodes("cuGraphGetNodes", inner.value)
call("cuGraphExecMemsetNodeSetParams", executable, part, pack_fill(a, TWO), 0)
print(launch_graph(executable), fetch(b))
other = ask("cuGraphCreate", 0)
add_node("Memset", [], pack_fill(a, ONE), 0, graph=other)
call("cuGraphExecChildGraphNodeSetParams", executable, node, other)
print(launch_graph(executable), fetch(b))
parameters = ctypes.create_string_buffer(struct.pack("<i12xQI", 4, other, 0), 256)
call("cuGraphAddNode_v2", ctypes.byref(inner), graph, None, None, 0, parameters)
print(try_call("cuGraphDestroy", other))
"""
    assert run(run_program, program) == "0 1.0 1 0\n0 2.0\n0 1.0\n0\n"


def test_events_and_host_functions_are_nodes(run_program: Run) -> None:
    program = """\
calls = []
notice = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda data: calls.append(data))
start_event, end_event = ask("cuEventCreate", 0), ask("cuEventCreate", 0)
first = add_node("EventRecord", [], start_event)
call("cuMemsetD32_v2", a, 0, 1000)
call("cuCtxSynchronize")
sum = add_node("Kernel", [first], pack_kernel(a, a, c, 1000))
wait = add_node("EventWait", [sum], start_event)
last = add_node("EventRecord", [wait], start_event)
call("cuGraphEventRecordNodeSetEvent", last, end_event)
host = struct.pack("<QQ", ctypes.cast(notice, ctypes.c_void_p).value, 3)
node = add_node("Host", [last], host)
executable = instantiate(graph)
call("cuGraphExecHostNodeSetParams", executable, node, host[:8] + struct.pack("<Q", 4))
print(launch_graph(executable), calls)
time, event = ctypes.c_float(), ctypes.c_uint64()
call("cuEventElapsedTime", ctypes.byref(time), start_event, end_event)
call("cuGraphEventWaitNodeGetEvent", wait, ctypes.byref(event))
print(time.value > 0, event.value == start_event)
"""
    assert run(run_program, program) == "0 [4]\nTrue True\n"


def test_the_parameters_of_every_kind_of_node_are_read(run_program: Run) -> None:
    program = """\
def read(name, node, size):
    buffer = ctypes.create_string_buffer(b"\\xee" * 300, 300)
    code = try_call(name, node, buffer)
    assert buffer.raw[size:] == b"\\xee" * (300 - size), name
    return code or buffer.raw[:size]

pointers = pack_kernel(a, b, c, 1000)[40:48]
sizes = struct.pack("<7I4x", 2, 3, 4, 8, 4, 5, 16)
kernel = struct.pack("<Q", add) + sizes + pointers + struct.pack("<QQQ", 0, add, ask("cuCtxGetCurrent"))
side = lambda memory, host, device, pitch, rows: struct.pack(
    "<4QI4x6Q", 0, 0, 0, 0, memory, host, device, 0, 0, pitch, rows)
host = ctypes.addressof(ctypes.create_string_buffer(4000))
copy = side(1, host, 0, 64, 6) + side(2, 0, b, 128, 7) + struct.pack("<3Q", 32, 3, 2)
fill = struct.pack("<QQIIQQ", c, 64, 0x8765, 2, 5, 3)
notice = struct.pack("<QQ", ctypes.cast(ctypes.CDLL(None).free, ctypes.c_void_p).value, 0)
events, child = [ask("cuEventCreate", 0) for _ in range(2)], ask("cuGraphCreate", 0)
memory = struct.pack("<IIiiQQH54xQQQQ", 1, 0, 1, 0, 0, 0, 0, 0, 0, size, 0)
block = ctypes.create_string_buffer(memory, len(memory))
KINDS = {  # The number of each kind, its name, what the node is made of, and the functions that read it.
    0: ("Kernel", [kernel], {"KernelNodeGetParams": 56, "KernelNodeGetParams_v2": 72}),
    1: ("Memcpy", [copy, 0], {"MemcpyNodeGetParams": 200}), 2: ("Memset", [fill, 0], {"MemsetNodeGetParams": 40}),
    3: ("Host", [notice], {"HostNodeGetParams": 16}), 4: ("ChildGraph", [child], {"ChildGraphNodeGetGraph": 8}),
    6: ("EventWait", [events[0]], {"EventWaitNodeGetEvent": 8}),
    7: ("EventRecord", [events[1]], {"EventRecordNodeGetEvent": 8}),
    10: ("MemAlloc", [block], {"MemAllocNodeGetParams": 120}),
    11: ("MemFree", [], {"MemFreeNodeGetParams": 8}), 5: ("Empty", [], {}),
}
nodes, data = {}, {}
for kind, (name, words, _) in KINDS.items():
    if name == "MemFree":
        words = [struct.unpack("<Q", block.raw[112:])[0]]
    nodes[kind] = add_node(name, [nodes[10]] if kind == 11 else [], *words)
    data[kind] = words[0] if words else b""
own = tell("cuGraphChildGraphNodeGetGraph", nodes[4])
data[4], data[10] = struct.pack("<Qi4x", own, -1), block.raw
data |= {kind: struct.pack("<Q", data[kind]) for kind in (6, 7, 11)} | {1: bytes(16) + copy}
for kind, (_, _, functions) in KINDS.items():
    found = read("cuGraphNodeGetParams", nodes[kind], 256)
    if kind == 0:
        places = struct.unpack("<Q", found[56:64])[0]
        values = [ctypes.c_uint64.from_address(place).value
                  for place in (ctypes.c_uint64 * 3).from_address(places)]
        data[0] = kernel[:40] + found[56:64] + kernel[48:]
        print(values == [a, b, c], end=" ")
    print(kind, found == (struct.pack("<i12x", kind) + data[kind]).ljust(256, b"\\0"), own not in (0, child), end=" ")
    for name, size in functions.items():
        found = read(f"cuGraph{name}", nodes[kind], size)
        begin = 16 if kind == 1 else 0
        if kind == 0:
            found = found[:40] + data[0][40:48] + found[48:]
        others = [read(f"cuGraph{name}", node, 0) for other, node in nodes.items() if other != kind]
        print(found == data[kind][begin : begin + size], others == [1] * 9, end=" ")
    print()
"""
    pair = "True True"
    assert [line.rstrip() for line in run(run_program, program).splitlines()] == [
        f"True 0 {pair} {pair} {pair}", *(f"{kind} {pair} {pair}" for kind in (1, 2, 3, 4, 6, 7, 10, 11)), f"5 {pair}"
    ]  # fmt: skip


def test_kernels_and_copies_of_nodes_are_replaced(run_program: Run) -> None:
    program = (
        FOUR_NODES
        + """\
pack_any = lambda kind, data: ctypes.create_string_buffer(struct.pack("<i12x", kind) + data, 256)
executable = instantiate(graph)
call("cuGraphKernelNodeSetParams", sum, pack_kernel(b, b, c, 1000)[:56])
print(launch_graph(instantiate(graph)), fetch(a), launch_graph(executable), fetch(a))
call("cuGraphExecKernelNodeSetParams", executable, sum, pack_kernel(a, a, c, 1000)[:56])
print(launch_graph(executable), fetch(a))
call("cuGraphExecNodeSetParams", executable, fill_a, pack_any(2, pack_fill(a, TWO)))
print(launch_graph(executable), fetch(a))
data = pack_kernel(a, b, c, 1000)
call("cuGraphKernelNodeSetParams_v2", sum, bytes(8) + data[:56][8:] + struct.pack("<QQ", add, 0))
call("cuGraphNodeSetParams_v2", fill_b, pack_any(2, pack_fill(b, ONE)))
print(launch_graph(instantiate(graph)), fetch(a))
call("cuGraphMemcpyNodeSetParams", copy, pack_copy(a, b, size))
print(launch_graph(instantiate(graph)), fetch(a))
for name, words in {
    "KernelNodeSetParams": (copy, data), "KernelNodeSetParams_v2": (copy, data),
    "MemcpyNodeSetParams": (sum, pack_copy(a, b, size)), "MemsetNodeSetParams": (sum, pack_fill(a, ONE)),
    "NodeSetParams": (sum, pack_any(2, pack_fill(b, ONE))),
    "ExecKernelNodeSetParams": (executable, copy, data), "ExecKernelNodeSetParams_v2": (executable, copy, data),
    "ExecMemcpyNodeSetParams": (executable, sum, pack_copy(a, b, size), 0),
    "ExecNodeSetParams": (executable, sum, pack_any(2, pack_fill(b, ONE))),
}.items():
    print(try_call(f"cuGraph{name}", *words), end=" ")
for end in struct.pack("<QQ", 0, 0), struct.pack("<QQ", 0, 7):
    print(try_call("cuGraphKernelNodeSetParams_v2", sum, bytes(8) + data[:56][8:] + end), end=" ")
print(try_call("cuGraphKernelNodeSetParams_v2", sum, data[:56] + struct.pack("<QQ", 0, 7)))
"""
    )
    lines = ["0 5.0 0 4.0", "0 3.0", "0 5.0", "0 3.0", "0 1.0", "1 1 1 1 1 1 1 1 1 1 201 201"]
    assert run(run_program, program).splitlines() == lines


def test_one_function_adds_nodes_of_every_kind(run_program: Run) -> None:
    program = """\
def add_any(kind, data, *nodes):
    parameters = ctypes.create_string_buffer(struct.pack("<i12x", kind) + data, 256)
    handles = (ctypes.c_uint64 * max(1, len(nodes)))(*nodes)
    node = ask("cuGraphAddNode_v2", graph, handles, None, len(nodes), parameters)
    return node, parameters.raw[16:]

memory = struct.pack("<IIiiQQH54xQQQQ", 1, 0, 1, 0, 0, 0, 0, 0, 0, size, 0)
allocation, data = add_any(10, memory)
block = struct.unpack_from("<Q", data, 112)[0]
fill, _ = add_any(2, pack_fill(block, ONE), allocation)
sum, _ = add_any(0, pack_kernel(block, block, c, 1000), fill)
copy, _ = add_any(1, bytes(16) + pack_copy(a, c, size), sum)
free, _ = add_any(11, struct.pack("<Q", block), copy)
executable = instantiate(graph)
used = ctypes.c_uint64()
print(launch_graph(executable), launch_graph(executable), fetch(a))
for attribute in (0, 1):
    call("cuDeviceGetGraphMemAttribute", 0, attribute, ctypes.byref(used))
    print(used.value)
result = ctypes.create_string_buffer(256)
call("cuGraphNodeGetParams", fill, result)
print(result.raw[:56] == struct.pack("<i12x", 2) + pack_fill(block, ONE)[:40])
parameters = ctypes.create_string_buffer(struct.pack("<i12x", 13), 256)
print(try_call("cuGraphAddNode_v2", ctypes.byref(used), graph, None, None, 0, parameters))
"""
    process = run_program(START + program)
    assert process.stdout == "0 0 3.0\n0\n4096\nTrue\n801\n"
    assert process.stderr == "pyptx: cuGraphAddNode_v2: nodes of type 13 are not simulated\n"


@pytest.mark.parametrize(("flags", "codes"), [(0, "0 1"), (1, "0 0")], ids=["without auto free", "with auto free"])
def test_memory_that_was_not_freed_stops_the_next_launch(run_program: Run, flags: int, codes: str) -> None:
    program = f"""\
memory = ctypes.create_string_buffer(struct.pack("<IIiiQQH54xQQQQ", 1, 0, 1, 0, 0, 0, 0, 0, 0, size, 0))
add_node("MemAlloc", [], memory)
executable = instantiate(graph, {flags})
print(launch_graph(executable), launch_graph(executable))
"""
    assert run(run_program, program) == codes + "\n"


def test_the_memory_of_graphs_is_counted_and_its_peaks_are_reset(run_program: Run) -> None:
    program = """\
def get():
    values = [ctypes.c_uint64() for _ in range(4)]
    for attribute, value in enumerate(values):
        call("cuDeviceGetGraphMemAttribute", 0, attribute, ctypes.byref(value))
    return [value.value for value in values]

def reset(attribute, value=0):
    return try_call("cuDeviceSetGraphMemAttribute", 0, attribute, ctypes.byref(ctypes.c_uint64(value)))

memory = ctypes.create_string_buffer(struct.pack("<IIiiQQH54xQQQQ", 1, 0, 1, 0, 0, 0, 0, 0, 0, size, 0))
node = add_node("MemAlloc", [], memory)
add_node("MemFree", [node], struct.unpack_from("<Q", memory.raw, 112)[0])
print(get(), launch_graph(instantiate(graph)))
current, high, reserved, most = get()
print(current, high, 0 < reserved == most)
call("cuDeviceGraphMemTrim", 0)
print(get() == [0, high, 0, most], reset(1), get() == [0, 0, 0, most], reset(3), get())
print([reset(attribute) for attribute in (0, 2, 4)], reset(1, 1))
"""
    assert run(run_program, program).splitlines() == [
        "[0, 0, 0, 0] 0", "0 4096 True", "True 0 True 0 [0, 0, 0, 0]", "[1, 1, 1] 1"
    ]  # fmt: skip


def test_every_way_to_instantiate_gives_a_graph_that_runs(run_program: Run) -> None:
    program = (
        FOUR_NODES
        + """\
parameters = ctypes.create_string_buffer(struct.pack("<QQQi4x", 2, stream, 7, 7))
executables = [
    ask("cuGraphInstantiate", graph, None, None, 0),
    ask("cuGraphInstantiate_v2", graph, ctypes.byref(ctypes.c_uint64()), ctypes.create_string_buffer(8), 8),
    ask("cuGraphInstantiateWithParams", graph, parameters),
]
print(struct.unpack("<QQQi4x", parameters.raw[:32])[2:])
for executable in executables:
    call("cuMemsetD32_v2", a, 0, 1000)
    call("cuCtxSynchronize")
    print(try_call("cuGraphUpload", executable, stream), launch_graph(executable), fetch(a))
"""
    )
    assert run(run_program, program) == "(0, 0)\n" + "0 0 4.0\n" * 3


def test_parameters_say_that_a_graph_could_not_be_instantiated(run_program: Run) -> None:
    program = """\
parameters = ctypes.create_string_buffer(struct.pack("<QQQi4x", 1 << 40, stream, 7, 7))
code = try_call("cuGraphInstantiateWithParams", ctypes.byref(ctypes.c_uint64()), graph, parameters)
print(code, struct.unpack("<QQQi4x", parameters.raw[:32]) == (1 << 40, stream, 0, 1))
"""
    assert run(run_program, program) == "1 True\n"


def test_every_kind_of_node_is_drawn(run_program: Run, tmp_path: Path) -> None:
    program = """\
event = ask("cuEventCreate", 0)
memory = ctypes.create_string_buffer(struct.pack("<IIiiQQH54xQQQQ", 1, 0, 1, 0, 0, 0, 0, 0, 0, size, 0))
allocation = add_node("MemAlloc", [], memory)
block = struct.unpack_from("<Q", memory.raw, 112)[0]
add_node("Memset", [], pack_fill(a, ONE), 0)
add_node("Host", [], struct.pack("<QQ", 0x1234, 5))
add_node("ChildGraph", [], ask("cuGraphCreate", 0))
add_node("Empty", [])
add_node("EventWait", [], event)
add_node("EventRecord", [], event)
add_node("MemFree", [allocation], block)
call("cuGraphDebugDotPrint", graph, b"graph.dot", 0)
print(hex(event), hex(block), hex(a))
"""
    event, block, target = run(run_program, program).split()
    lines = (tmp_path / "graph.dot").read_text("utf-8").splitlines()
    labels = [line.partition('label="')[2].removesuffix('"];') for line in lines if "label=" in line]
    assert labels == [
        f"0: allocation of 4000 bytes at {block}", f"1: memset of 1 × 1000 × 4 bytes at {target} to 0x3f800000",
        "2: call of the host function at 0x1234", "3: graph of 0 nodes", "4: empty",
        f"5: wait for event {event}", f"6: record of event {event}", f"7: free of {block}",
    ]  # fmt: skip


def test_a_graph_is_drawn(run_program: Run, tmp_path: Path) -> None:
    output = run(
        run_program, FOUR_NODES + 'call("cuGraphDebugDotPrint", graph, b"graph.dot", 0)\nprint(hex(a), hex(c))'
    )
    target, source = output.split()
    lines = (tmp_path / "graph.dot").read_text("utf-8").splitlines()
    assert (lines[0], lines[-1]) == ("digraph {", "}")
    assert f'    n3 [shape=box, label="3: copy of 4000 bytes from {source} to {target}"];' in lines
    assert "launch of `add`, grid (4, 1, 1), block (256, 1, 1) at program.py:" in lines[3]
    assert lines[5:8] == ["    n0 -> n2;", "    n1 -> n2;", "    n2 -> n3;"]


def test_user_objects_live_as_long_as_the_graphs_that_refer_to_them(run_program: Run) -> None:
    program = """\
destroyed = []
destroy = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(destroyed.append)

def create(address, count=1):
    return ask("cuUserObjectCreate", address, destroy, count, 1)

MOVE = 1
first, second, third = create(1), create(2), create(3, 2)
call("cuGraphRetainUserObject", graph, first, 1, MOVE)
call("cuGraphRetainUserObject", graph, second, 1, 0)
executable = instantiate(graph)
call("cuUserObjectRelease", third, 2)
print(destroyed, try_call("cuUserObjectRelease", third, 1), try_call("cuUserObjectRetain", third, 1))
call("cuGraphReleaseUserObject", graph, second, 1)
call("cuUserObjectRelease", second, 1)
call("cuGraphDestroy", graph)
print(destroyed)
call("cuGraphExecDestroy", executable)
print(destroyed)
"""
    assert run(run_program, program) == "[3] 1 1\n[3]\n[3, 1, 2]\n"


def test_graphs_and_nodes_have_numbers(run_program: Run) -> None:
    program = """\
first, second = (add_node("Empty", []) for _ in range(2))
executable = instantiate(graph, 1)
print([tell("cuGraphNodeGetLocalId", node) for node in (first, second)])
print(tell("cuGraphNodeGetContainingGraph", second) == graph, tell("cuGraphExecGetFlags", executable))
ids = [tell("cuGraphNodeGetToolsId", node) for node in (first, second)]
ids += [tell("cuGraphGetId", graph), tell("cuGraphExecGetId", executable)]
print(len(set(ids)), 0 in ids)
"""
    assert run(run_program, program) == "[0, 1]\nTrue 1\n4 False\n"


def test_events_and_host_functions_of_nodes_are_replaced(run_program: Run) -> None:
    program = """\
calls = []
notice = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(calls.append)
events = [ask("cuEventCreate", 0) for _ in range(2)]
pack = lambda value: struct.pack("<QQ", ctypes.cast(notice, ctypes.c_void_p).value, value)
record, wait = (add_node(f"Event{kind}", [], events[0]) for kind in ("Record", "Wait"))
host = add_node("Host", [], pack(3))
executable = instantiate(graph)
get = lambda: (tell("cuGraphEventRecordNodeGetEvent", record), tell("cuGraphEventWaitNodeGetEvent", wait))
call("cuGraphEventRecordNodeSetEvent", record, events[1])
print([events.index(event) for event in get()])
call("cuGraphEventWaitNodeSetEvent", wait, events[1])
print([events.index(event) for event in get()])
buffer = ctypes.create_string_buffer(16)
call("cuGraphHostNodeSetParams", host, pack(4))
call("cuGraphHostNodeGetParams", host, buffer)
print(buffer.raw == pack(4), launch_graph(executable), calls)
call("cuGraphExecHostNodeSetParams", executable, host, pack(5))
for name, node in (("Record", record), ("Wait", wait)):
    call(f"cuGraphExecEvent{name}NodeSetEvent", executable, node, events[1])
    print(try_call(f"cuGraphExecEvent{name}NodeSetEvent", executable, host, events[1]))
print(try_call("cuEventElapsedTime", buffer, *events), launch_graph(executable), calls)
print(try_call("cuEventElapsedTime", buffer, *events), try_call("cuGraphEventRecordNodeSetEvent", wait, events[0]))
call("cuGraphNodeSetParams", host, ctypes.create_string_buffer(struct.pack("<i12x", 3) + pack(6), 256))
call("cuGraphHostNodeGetParams", host, buffer)
print(buffer.raw == pack(6))
"""
    assert run(run_program, program) == "[1, 0]\n[1, 1]\nTrue 0 [3]\n1\n1\n400 0 [3, 5]\n0 1\nTrue\n"


def test_attributes_are_copied_between_nodes(run_program: Run) -> None:
    program = """\
nodes = [add_node("Kernel", [], pack_kernel(a, b, c, 0)) for _ in range(2)]
values = [struct.pack("<3I52x", size, 1, 1) for size in (2, 1)]
result = ctypes.create_string_buffer(64)
for target, node in enumerate(nodes):
    call("cuGraphKernelNodeSetAttribute", node, 4, values[target])
call("cuGraphKernelNodeCopyAttributes", nodes[1], nodes[0])
call("cuGraphKernelNodeGetAttribute", nodes[1], 4, result)
print(result.raw == values[0])
call("cuGraphKernelNodeCopyAttributes", nodes[1], nodes[1])
print(try_call("cuGraphKernelNodeCopyAttributes", nodes[1], add_node("Empty", [])))
"""
    assert run(run_program, program) == "True\n1\n"


def test_a_capture_continues_a_graph(run_program: Run) -> None:
    program = """\
node = add_node("Memset", [], pack_fill(a, ONE), 0)
nodes = (ctypes.c_uint64 * 1)(node)
call("cuStreamBeginCaptureToGraph", stream, graph, nodes, None, 1, 0)
call("cuMemcpyDtoDAsync_v2", b, a, size, stream)
print(ask_graph() == graph, len(list_nodes("cuGraphGetNodes", graph)))
print(launch_graph(instantiate(graph)), fetch(b))
print(try_call("cuStreamBeginCaptureToGraph", stream, graph, (ctypes.c_uint64 * 1)(7), None, 1, 0))
"""
    helper = """\
def ask_graph():
    result = ctypes.c_uint64()
    call("cuStreamEndCapture", stream, ctypes.byref(result))
    return result.value

"""
    assert run(run_program, helper + program) == "True 2\n0 1.0\n1\n"
