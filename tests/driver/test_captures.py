"""Programs that capture streams into graphs, and what a capture forbids."""

from __future__ import annotations

import pytest

from tests.driver.conftest import Run

START = """\
import ctypes, threading
from calls import *
start()
add = load(VECTOR_ADD, "add")
size = 4000
a, b, c = (ask("cuMemAlloc_v2", size) for _ in range(3))
host = (ctypes.c_float * 1000)(*range(1000))
call("cuMemsetD32_v2", a, 0, 1000)
call("cuMemsetD32_v2", b, 0, 1000)
call("cuCtxSynchronize")
GLOBAL, THREAD_LOCAL, RELAXED = 0, 1, 2
first, second, blocking = ask("cuStreamCreate", 1), ask("cuStreamCreate", 1), ask("cuStreamCreate", 0)
event, other = ask("cuEventCreate", 0), ask("cuEventCreate", 0)

def begin(stream=None, mode=GLOBAL):
    call("cuStreamBeginCapture_v2", first if stream is None else stream, mode)

def end(stream=None):
    graph = ctypes.c_uint64(7)
    code = try_call("cuStreamEndCapture", first if stream is None else stream, ctypes.byref(graph))
    return code, bool(graph.value)

def get_status(stream):
    status = ctypes.c_int()
    call("cuStreamIsCapturing", stream, ctypes.byref(status))
    return status.value

def finish(stream=None):
    graph = ctypes.c_uint64()
    call("cuStreamEndCapture", first if stream is None else stream, ctypes.byref(graph))
    return graph.value

def run_graph(graph, times=1):
    executable = ask("cuGraphInstantiateWithFlags", graph, 0)
    for _ in range(times):
        call("cuGraphLaunch", executable, second)
    call("cuStreamSynchronize", second)

def fetch(address):
    result = (ctypes.c_float * 1000)()
    call("cuMemcpyDtoH_v2", result, address, size)
    return result[999]

def record(event, stream):
    call("cuEventRecord", event, stream)

def count_nodes(graph):
    count = ctypes.c_uint64()
    call("cuGraphGetNodes", graph, None, ctypes.byref(count))
    return count.value
"""


def run(run_program: Run, program: str, **options: object) -> str:
    process = run_program(START + program, **options)
    assert (process.returncode, process.stderr) == (0, "")
    return process.stdout


def test_captured_operations_run_when_the_graph_is_launched(run_program: Run) -> None:
    program = """\
calls = []
notice = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda data: calls.append(data))
begin()
call("cuMemcpyHtoDAsync_v2", a, host, size, first)
call("cuMemsetD32Async", b, 0x40000000, 1000, first)
launch(add, 4, 256, a, b, c, 1000, stream=first)
call("cuMemcpyDtoDAsync_v2", b, c, size, first)
call("cuLaunchHostFunc", first, notice, 5)
print(get_status(first), fetch(a), calls)
graph = finish()
print(get_status(first), count_nodes(graph))
host[999] = 50
run_graph(graph, times=2)
print(fetch(b), calls)
"""
    assert run(run_program, program) == "1 0.0 []\n0 5\n53.0 [5, 5]\n"


def test_streams_join_a_capture_by_events(run_program: Run) -> None:
    program = """\
begin()
launch(add, 4, 256, a, b, c, 1000, stream=first)
record(event, first)
call("cuStreamWaitEvent", second, event, 0)
launch(add, 4, 256, c, c, a, 1000, stream=second)
launch(add, 4, 256, c, c, b, 1000, stream=first)
record(other, second)
call("cuStreamWaitEvent", first, other, 0)
launch(add, 4, 256, a, b, c, 1000, stream=first)
status, number, graph, nodes, count = (ctypes.c_uint64() for _ in range(5))
arguments = [ctypes.byref(value) for value in (status, number, graph, nodes)]
call("cuStreamGetCaptureInfo_v3", first, *arguments, None, ctypes.byref(count))
print(get_status(first), get_status(second), count.value)
kernel = ctypes.cast(nodes.value, ctypes.POINTER(ctypes.c_uint64))[0]
call("cuGraphNodeGetDependencies", kernel, None, ctypes.byref(count))
print(count.value, finish() == graph.value, get_status(second))
run_graph(graph.value)
print(fetch(a), fetch(b), fetch(c))
"""
    assert run(run_program, program) == "1 1 1\n2 True 0\n3.0 3.0 7.0\n"


def test_external_events_are_nodes(run_program: Run) -> None:
    program = """\
EXTERNAL = 1
record(other, second)
begin()
call("cuEventRecordWithFlags", event, first, EXTERNAL)
call("cuStreamWaitEvent", first, other, EXTERNAL)
graph = finish()
print(count_nodes(graph), try_call("cuEventElapsedTime", ctypes.byref(ctypes.c_float()), other, event))
run_graph(graph)
print(try_call("cuEventElapsedTime", ctypes.byref(ctypes.c_float()), other, event))
begin()
record(event, first)
finish()
print(try_call("cuEventQuery", event))
record(event, second)
print(try_call("cuEventQuery", event))
"""
    assert run(run_program, program) == "2 400\n0\n907\n0\n"


def test_a_stream_that_does_not_join_again_is_an_error(run_program: Run) -> None:
    program = """\
begin()
record(event, first)
call("cuStreamWaitEvent", second, event, 0)
launch(add, 4, 256, a, b, c, 1000, stream=second)
print(end(), get_status(second))
begin()
record(event, first)
call("cuStreamWaitEvent", second, event, 0)
print(end())
"""
    assert run(run_program, program) == "(904, False) 0\n(0, True)\n"


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        ("try_call('cuStreamSynchronize', first)", 900),
        ("try_call('cuStreamQuery', first)", 900),
        ("try_call('cuCtxSynchronize')", 900),
        ("try_call('cuMemAlloc_v2', ctypes.byref(ctypes.c_uint64()), 4)", 900),
        ("try_call('cuMemFree_v2', a)", 900),
        ("try_call('cuEventQuery', other)", 900),
        ("try_call('cuModuleLoadData', ctypes.byref(ctypes.c_uint64()), VECTOR_ADD.encode())", 900),
        ("try_call('cuStreamAddCallback', first, ctypes.cast(CUDA.cuInit, ctypes.c_void_p), None, 0)", 900),
        ("try_call('cuEventSynchronize', event)", 907),
        ("try_call('cuEventElapsedTime', ctypes.byref(ctypes.c_float()), event, other)", 907),
        ("try_call('cuStreamWaitEvent', first, other, 0)", 905),
    ],
)
def test_waiting_and_unsafe_calls_invalidate_a_capture(run_program: Run, operation: str, code: int) -> None:
    program = f"""\
record(other, second)
begin()
record(event, first)
print({operation}, get_status(first))
print(launch(add, 4, 256, a, b, c, 1000, stream=first), try_call("cuStreamSynchronize", first))
print(end(), get_status(first))
print(launch(add, 4, 256, a, b, c, 1000, stream=first))
"""
    assert run(run_program, program) == f"{code} 2\n901 901\n(901, False) 0\n0\n"


def test_no_stream_joins_an_invalid_capture(run_program: Run) -> None:
    program = """\
begin()
record(event, first)
print(try_call("cuStreamSynchronize", first), try_call("cuStreamWaitEvent", second, event, 0), get_status(second))
print(end(), try_call("cuStreamWaitEvent", second, event, 0))
"""
    assert run(run_program, program) == "900 901 0\n(901, False) 907\n"


def test_the_legacy_stream_cannot_wait_for_a_capture(run_program: Run) -> None:
    program = """\
begin()
print(try_call("cuMemcpyHtoD_v2", a, host, size), end())
begin(blocking)
print(launch(add, 4, 256, a, b, c, 1000), end(blocking))
begin(blocking)
print(try_call("cuMemcpyHtoD_v2", a, host, size), end(blocking))
print(try_call("cuStreamBeginCapture_v2", 0, RELAXED))
"""
    assert run(run_program, program) == "0 (0, True)\n906 (901, False)\n906 (901, False)\n900\n"


def test_waiting_for_another_device_leaves_a_capture_alone(run_program: Run) -> None:
    program = """\
begin()
call("cuCtxSetCurrent", ask("cuDevicePrimaryCtxRetain", 1))
print(try_call("cuCtxSynchronize"))
call("cuCtxSetCurrent", ask("cuDevicePrimaryCtxRetain", 0))
print(try_call("cuCtxSynchronize"), end()[0])
"""
    assert run(run_program, program, count=2) == "0\n900 901\n"


def test_two_captures_cannot_merge(run_program: Run) -> None:
    program = """\
begin()
begin(second)
record(event, first)
print(try_call("cuStreamWaitEvent", second, event, 0), end()[0], end(second)[0])
"""
    assert run(run_program, program) == "902 901 901\n"


def test_a_capture_ends_in_its_stream_and_thread(run_program: Run) -> None:
    program = """\
print(end()[0])
begin()
print(try_call("cuStreamBeginCapture_v2", first, GLOBAL), get_status(first))
context = ask("cuCtxGetCurrent")

def end_elsewhere():
    call("cuCtxSetCurrent", context)
    print(end()[0])

thread = threading.Thread(target=end_elsewhere)
thread.start()
thread.join()
record(event, first)
call("cuStreamWaitEvent", second, event, 0)
print(end(second)[0], end()[0])
begin(mode=RELAXED)
thread = threading.Thread(target=end_elsewhere)
thread.start()
thread.join()
"""
    assert run(run_program, program) == "401\n401 1\n908\n903 901\n0\n"


def test_the_mode_of_a_capture_decides_which_threads_may_allocate(run_program: Run) -> None:
    program = """\
context = ask("cuCtxGetCurrent")
codes = []

def allocate():
    codes.append(try_call("cuMemAlloc_v2", ctypes.byref(ctypes.c_uint64()), 4))

def allocate_elsewhere():
    call("cuCtxSetCurrent", context)
    allocate()

for mode in (GLOBAL, THREAD_LOCAL, RELAXED):
    for function in (allocate, allocate_elsewhere):
        begin(mode=mode)
        thread = threading.Thread(target=function)
        thread.start() if function is allocate_elsewhere else function()
        thread.join() if function is allocate_elsewhere else None
        end()
mode = ctypes.c_int(RELAXED)
call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))
begin()
allocate()
print(codes, mode.value, end()[0])
wrong = ctypes.c_int(3)
print(try_call("cuThreadExchangeStreamCaptureMode", ctypes.byref(wrong)), wrong.value)
"""
    assert run(run_program, program) == "[900, 900, 900, 0, 0, 0, 0] 0 0\n1 3\n"


def test_dependencies_of_a_capture_can_be_replaced(run_program: Run) -> None:
    program = """\
begin()
for _ in range(2):
    launch(add, 4, 256, a, b, c, 1000, stream=first)
call("cuStreamUpdateCaptureDependencies", first, None, 0, 1)
code = try_call("cuStreamUpdateCaptureDependencies", first, None, 0, 2)
launch(add, 4, 256, a, b, c, 1000, stream=first)
graph = finish()
roots = ctypes.c_uint64()
call("cuGraphGetRootNodes", graph, None, ctypes.byref(roots))
print(roots.value, code, try_call("cuStreamUpdateCaptureDependencies", first, None, 0, 1))
"""
    assert run(run_program, program) == "2 1 401\n"


def test_memory_of_a_graph_exists_while_the_graph_runs(run_program: Run) -> None:
    program = """\
begin()
block = ask("cuMemAllocAsync", size, first)
call("cuMemsetD32Async", block, 0x40000000, 1000, first)
launch(add, 4, 256, a, block, c, 1000, stream=first)
call("cuMemFreeAsync", block, first)
run_graph(finish(), times=2)
print(fetch(c), try_call("cuMemsetD32_v2", block, 0, 1000))
begin()
block = ask("cuMemAllocAsync", size, first)
kept = finish()
executable = ask("cuGraphInstantiateWithFlags", kept, 0)
call("cuGraphLaunch", executable, second)
call("cuStreamSynchronize", second)
print(try_call("cuMemsetD32_v2", block, 0, 1000), try_call("cuGraphLaunch", executable, second))
call("cuCtxSynchronize")
call("cuMemFreeAsync", block, second)
print(try_call("cuGraphLaunch", executable, second))
"""
    assert run(run_program, program) == "3.0 1\n0 1\n0\n"


def test_a_launched_graph_is_captured_as_a_child(run_program: Run) -> None:
    program = """\
begin()
launch(add, 4, 256, a, b, a, 1000, stream=first)
executable = ask("cuGraphInstantiateWithFlags", finish(), 0)
begin()
call("cuGraphLaunch", executable, first)
call("cuGraphLaunch", executable, first)
graph = finish()
print(count_nodes(graph), fetch(a))
run_graph(graph)
print(fetch(a))
"""
    assert run(run_program, program) == "2 0.0\n2.0\n"


def test_a_fault_in_a_graph_names_the_captured_launch(run_program: Run) -> None:
    program = """\
begin()
launch(add, 4, 256, a, b, c, 1001, stream=first)
executable = ask("cuGraphInstantiateWithFlags", finish(), 0)
print(try_call("cuGraphLaunch", executable, second))
"""
    process = run_program(START + program)
    line = len((START + program).splitlines()) - 2
    assert process.stdout == "700\n"
    assert process.stderr.startswith(
        f"pyptx: launch of `add`, grid (4, 1, 1), block (256, 1, 1) at program.py:{line}\n"
    )
