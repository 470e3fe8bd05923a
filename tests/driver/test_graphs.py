"""Programs that build graphs node by node, change them and launch them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.driver.conftest import Run
from tests.driver.graphs import FOUR_NODES, START, run


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
