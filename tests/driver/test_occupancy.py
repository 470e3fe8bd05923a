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
