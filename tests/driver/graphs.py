"""What programs that build graphs begin with, and how the tests run them."""

from __future__ import annotations

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
