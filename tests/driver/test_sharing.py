"""Programs that open the memory of another process."""

from __future__ import annotations

from tests.driver.conftest import Run

START = """\
import ctypes, os, subprocess, sys
from calls import *
start()

class Handle(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char * 64)]

def export(address):
    handle = Handle()
    call("cuIpcGetMemHandle", ctypes.byref(handle), address)
    return bytes(handle)

def open_memory(data, flags=1):
    result = ctypes.c_uint64()
    handle = Handle.from_buffer_copy(data)
    code = CUDA.cuIpcOpenMemHandle_v2(ctypes.byref(result), handle, flags)
    return code, result.value

def fetch(address, count=3):
    values = (ctypes.c_float * count)()
    call("cuMemcpyDtoH_v2", values, address, 4 * count)
    return list(values)
"""


def test_two_processes_share_memory(run_program: Run) -> None:
    program = """\
add = load(VECTOR_ADD, "add")
if len(sys.argv) > 1:
    data = bytes.fromhex(sys.argv[1])
    code, memory = open_memory(data)
    print(code, open_memory(data)[1] == memory, fetch(memory), launch(add, 1, 64, memory, memory, memory, 33))
    print(launch(add, 1, 64, memory, memory, memory, 34), flush=True)
    call("cuDevicePrimaryCtxReset_v2", 0)
    print([try_call("cuMemFree_v2", memory), *(try_call("cuIpcCloseMemHandle", memory) for _ in range(3))], flush=True)
    os._exit(0)
memory, size = ask("cuMemAlloc_v2", 132), 132
call("cuMemcpyHtoD_v2", memory, (ctypes.c_float * 33)(*range(33)), size)
data = export(memory)
assert export(memory + 8) == data
words = [sys.executable, __file__, data.hex()]
sys.stdout.flush()
subprocess.run(words, check=True)
print(fetch(memory), launch(add, 1, 64, memory, memory, memory, 33), fetch(memory), open_memory(data)[0])
call("cuMemFree_v2", memory)
other = ask("cuMemAlloc_v2", 132)
words[0:2] = [sys.executable, "-c", START + "print(open_memory(bytes.fromhex(sys.argv[1]))[0])"]
subprocess.run(words, check=True)
"""
    process = run_program(f"START = {START!r}\n{START}{program}")
    assert process.stdout.splitlines() == [
        "0 True [0.0, 1.0, 2.0] 0", "700", "[1, 0, 0, 1]", "[1.0, 3.0, 5.0] 0 [3.0, 7.0, 11.0] 201", "400",
    ]  # fmt: skip
    assert process.stderr.count("error[PTX1110]") == 1


def test_other_memory_has_no_handle(run_program: Run) -> None:
    program = """\
handle = ctypes.byref(Handle())
print([try_call("cuIpcGetMemHandle", handle, address) for address in (
    5, ask("cuMemAllocHost_v2", 64), ask("cuMemAllocManaged", 64, 1), ask("cuMemAllocAsync", 64, 0))])
print(open_memory(bytes(64))[0], open_memory(bytes(64), 0)[0], try_call("cuIpcCloseMemHandle", 5))
"""
    process = run_program(START + program)
    assert (process.stdout, process.stderr) == ("[1, 1, 1, 1]\n400 1 1\n", "")
