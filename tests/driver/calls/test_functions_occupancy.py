"""How many CTAs and clusters of a kernel fit, as the driver says."""

from __future__ import annotations

from tests.driver.conftest import Run

START = """\
import ctypes, struct
from calls import *
start()
add = load(VECTOR_ADD, "add")
grid, block = ctypes.c_int(), ctypes.c_int()
MEASURE = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int)

def suggest(function, dynamic, limit):
    name = "cuOccupancyMaxPotentialBlockSize"
    call(name, ctypes.byref(grid), ctypes.byref(block), add, function, dynamic, limit)
    return grid.value, block.value

def ask_clusters(name, cluster, shared):
    attribute = ctypes.create_string_buffer(struct.pack("<I4x3I52x", 4, *cluster))
    address = ctypes.addressof(attribute)
    return ask(name, add, struct.pack("<7I4xQQI4x", 32, 1, 1, 256, 1, 1, shared, 0, address, 1))
"""


def run(run_program: Run, program: str) -> str:
    process = run_program(START + program)
    assert (process.returncode, process.stderr) == (0, "")
    return process.stdout


def test_the_suggested_threads_fill_the_device(run_program: Run) -> None:
    program = """\
print(suggest(None, 0, 0), suggest(None, 0, 100), suggest(None, 40000, 0))
print(suggest(MEASURE(lambda threads: 200 * threads), 0, 0))
"""
    # An SM of an H100 has 2048 threads, 32 CTAs and 233472 bytes of shared memory, 1024 of each CTA's for the system.
    assert run(run_program, program) == "(264, 1024) (4224, 64) (264, 1024)\n(264, 576)\n"


def test_clusters_share_the_ctas_that_fit(run_program: Run) -> None:
    program = """\
print([ask_clusters("cuOccupancyMaxActiveClusters", (size, 1, 1), 0) for size in (1, 4, 8)])
print(ask_clusters("cuOccupancyMaxActiveClusters", (4, 1, 1), 100000))
print(ask_clusters("cuOccupancyMaxPotentialClusterSize", (1, 1, 1), 0))
call("cuFuncSetAttribute", add, 14, 1)
print(ask_clusters("cuOccupancyMaxPotentialClusterSize", (1, 1, 1), 0))
"""
    assert run(run_program, program) == "[1056, 264, 132]\n66\n8\n16\n"


def test_the_ctas_of_an_sm_share_its_memory_and_threads(run_program: Run) -> None:
    program = """\
def get(name, *arguments):
    result = ctypes.c_uint64()
    return try_call(f"cuOccupancy{name}", ctypes.byref(result), add, *arguments) or result.value

print([get("AvailableDynamicSMemPerBlock", ctas, 64) for ctas in (0, 1, 2, 3, 32, 300)])
print([get("MaxActiveBlocksPerMultiprocessor", threads, 0) for threads in (0, 64, 256, 1024)])
print([get("MaxActiveBlocksPerMultiprocessorWithFlags", 64, shared, 0) for shared in (40000, 115712, 115713)])
"""
    # Each CTA has at most 232448 of the 233472 bytes, 1024 of which are for the system.
    assert run(run_program, program).splitlines() == [
        "[1, 232448, 115712, 76800, 6272, 0]", "[1, 32, 8, 2]", "[5, 2, 1]"
    ]  # fmt: skip


def test_preferences_for_caches_are_accepted(run_program: Run) -> None:
    program = """\
print(try_call("cuFuncSetCacheConfig", add, 2), try_call("cuKernelSetCacheConfig", add, 2, 0))
print(try_call("cuKernelSetCacheConfig", add, 2, 1), try_call("cuKernelSetCacheConfig", 5, 2, 0))
"""
    assert run(run_program, program) == "0 0\n101 400\n"


def test_a_cooperative_grid_has_as_many_ctas_as_fit(run_program: Run) -> None:
    program = """\
result = ctypes.c_int()
def try_both(grid, threads, shared):
    pointers = (ctypes.c_void_p * 4)(*[ctypes.addressof(ctypes.c_uint64(0))] * 4)
    sizes = (grid, 1, 1, threads, 1, 1, shared)
    attribute = ctypes.create_string_buffer(struct.pack("<Q64s", 2, b"\\1"))
    config = struct.pack("<7I4xQQI4x", *sizes, 0, ctypes.addressof(attribute), 1)
    return (try_call("cuLaunchCooperativeKernel", add, *sizes, 0, pointers),
            try_call("cuLaunchKernelEx", config, add, pointers, None))

for threads, shared in ((1024, 0), (1, 0), (32, 40000), (64, 0)):
    name = "cuOccupancyMaxActiveBlocksPerMultiprocessor"
    most = 132 * ask(name, add, threads, shared)
    print(try_both(most, threads, shared), try_both(most + 1, threads, shared), end=" ")
print(try_both(100000, 1024, 0), launch(add, 100000, 1, 0, 0, 0, 0))
"""
    process = run_program(START + program, check="none")
    assert process.stdout == "(0, 0) (720, 720) " * 4 + "(720, 720) 0\n", process.stderr
    assert process.stderr.splitlines()[-1] == (
        "pyptx: cuLaunchKernelEx: `add` has 100000 CTAs in a cooperative launch; the device can run 264 at once: "
        "launch at most as many per SM as cuOccupancyMaxActiveBlocksPerMultiprocessor returns"
    )


def test_a_node_of_a_graph_becomes_cooperative_only_if_its_ctas_fit(run_program: Run) -> None:
    program = """\
graph, node, edges = ask("cuGraphCreate", 0), ctypes.c_uint64(), ctypes.c_uint64()
pointers = (ctypes.c_void_p * 4)(*[ctypes.addressof(ctypes.c_uint64(0))] * 4)
for grid in (264, 265):
    description = struct.pack("<Q7I4xQ3Q", add, grid, 1, 1, 1024, 1, 1, 0, ctypes.addressof(pointers), 0, 0, 0)
    call("cuGraphAddKernelNode_v2", ctypes.byref(node), graph, None, 0, description)
    print(try_call("cuGraphKernelNodeSetAttribute", node.value, 2, struct.pack("<I60x", 1)))
"""
    process = run_program(START + program)
    assert process.stdout == "0\n720\n", process.stderr
