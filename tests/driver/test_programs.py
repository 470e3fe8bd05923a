"""Whole programs that call the driver through ctypes: right results, and errors like a GPU's."""

from __future__ import annotations

import pytest

from tests.driver.conftest import Run

ADD = """\
import ctypes
from calls import *
start()
add = load(VECTOR_ADD, "add")
size = 4000
a, b, c = (ask("cuMemAlloc_v2", size) for _ in range(3))
values = (ctypes.c_float * 1000)(*range(1000))
call("cuMemcpyHtoD_v2", a, values, size)
call("cuMemcpyHtoD_v2", b, values, size)
call("cuMemsetD32_v2", c, 0, 1000)
"""
"""Three arrays of 1000 elements on the device, and a kernel that adds the first two."""
OUTPUT = """\
result = (ctypes.c_float * 1000)()
call("cuMemcpyDtoH_v2", result, c, size)
print([result[i] for i in (0, 1, 999)])
"""


def test_a_kernel_computes_in_the_memory_of_the_device(run_program: Run) -> None:
    process = run_program(ADD + "print(launch(add, 4, 256, a, b, c, 1000))\n" + OUTPUT)
    assert (process.stdout, process.stderr) == ("0\n[1.0, 3.0, 1999.0]\n", "")


def test_parameters_can_be_passed_in_one_buffer(run_program: Run) -> None:
    program = """\
import struct
data = ctypes.create_string_buffer(struct.pack("<3QI", a, b, c, 1000), 28)
buffer = 1, ctypes.addressof(data)

def launch_with(*items):
    options = (ctypes.c_void_p * (len(items) + 1))(*items, None)
    return try_call("cuLaunchKernel", add, 4, 1, 1, 256, 1, 1, 0, None, None, options)

exact, short = ctypes.c_size_t(28), ctypes.c_size_t(27)
print(launch_with(*buffer), launch_with(*buffer, 2, ctypes.addressof(short)), launch_with())
print(try_call("cuCtxSynchronize"))
call("cuMemcpyDtoH_v2", values, c, size)
print(values[1], launch_with(2, ctypes.addressof(exact), *buffer), try_call("cuCtxSynchronize"))
"""
    process = run_program(ADD + program + OUTPUT)
    assert process.stdout == "1 1 1\n0\n0.0 0 0\n[1.0, 3.0, 1999.0]\n"
    lines = [f"pyptx: cuLaunchKernel: `add` takes 28 bytes of parameters, the launch passes {n}" for n in (0, 27, 0)]
    assert process.stderr.splitlines() == lines


def test_a_variable_keeps_what_the_host_writes(run_program: Run) -> None:
    program = """\
module = ctypes.c_uint64()
call("cuFuncGetModule", ctypes.byref(module), add)
address, bytes = ctypes.c_uint64(), ctypes.c_uint64()
call("cuModuleGetGlobal_v2", ctypes.byref(address), ctypes.byref(bytes), module.value, b"bias")
call("cuMemcpyHtoD_v2", address.value, (ctypes.c_float * 1)(100.0), bytes.value)
launch(add, 4, 256, a, b, c, 1000)
launch(add, 4, 256, a, c, c, 1000)
"""
    process = run_program(ADD + program + OUTPUT)
    assert (process.stdout, process.stderr) == ("[200.0, 203.0, 3197.0]\n", "")


def test_an_access_out_of_bounds_names_the_line_of_the_allocation(run_program: Run) -> None:
    program = ADD + "print(launch(add, 4, 256, a, b, c, 1001), try_call('cuCtxSynchronize'))\n"
    program += "call('cuDevicePrimaryCtxReset_v2', 0)\nprint(try_call('cuCtxSynchronize'))"
    process = run_program(program)
    assert process.stdout == "700 700\n0\n"
    first, fault, *_ = process.stderr.splitlines()
    assert first == "pyptx: launch of `add`, grid (4, 1, 1), block (256, 1, 1) at program.py:11"
    assert "error[PTX1110]: `ld.global.f32` accesses 4 bytes at 0x" in fault
    assert "the nearest allocation is `allocation 1 from program.py:6`, 4000 bytes at 0x" in fault
    assert fault.endswith("0 bytes after its end")


def test_freed_memory_is_named(run_program: Run) -> None:
    process = run_program(ADD + "call('cuMemFree_v2', b)\nprint(launch(add, 4, 256, a, b, c, 1000))")
    assert process.stdout == "700\n"
    assert "`allocation 2 from program.py:6`, 4000 bytes at 0x" in process.stderr
    assert process.stderr.splitlines()[1].endswith("was freed")


RACE = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry reverse(.param .u64 out)
{
    .reg .b32 %r<6>;
    .reg .b64 %rd<4>;
    .shared .align 4 .b32 buffer[64];
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    shl.b32 %r2, %r1, 2;
    mov.u32 %r3, buffer;
    add.u32 %r4, %r3, %r2;
    st.shared.u32 [%r4], %r1;
    BARRIER
    sub.u32 %r5, 252, %r2;
    add.u32 %r5, %r3, %r5;
    ld.shared.u32 %r1, [%r5];
    cvt.u64.u32 %rd2, %r2;
    add.u64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r1;
    ret;
}
"""


TICKETS = '''\
import ctypes
from calls import *
start()
kernel = load("""
.version 8.0
.target sm_80
.address_size 64
.global .u32 next;
.visible .entry draw(.param .u64 out)
{
    .reg .pred %p<2>;
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    shr.u32 %r2, %r1, 5;
    mul.wide.u32 %rd2, %r2, 4;
    add.u64 %rd3, %rd1, %rd2;
    and.b32 %r1, %r1, 31;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 ret;
    atom.global.add.u32 %r2, [next], 1;
    st.global.u32 [%rd3], %r2;
    ret;
}
""", "draw")
out, tickets = ask("cuMemAlloc_v2", 64), (ctypes.c_uint32 * 16)()
print(launch(kernel, 1, 512, out), try_call("cuMemcpyDtoH_v2", tickets, out, 64), *tickets)
'''


def test_the_schedule_and_the_seed_choose_the_order_of_warps(run_program: Run) -> None:
    settings = [("eager", 0), ("adversarial", 1), ("random", 2), ("random", 3)]
    tickets = [run_program(TICKETS, schedule=name, seed=seed).stdout.split() for name, seed in settings]
    assert [sorted(map(int, words)) for words in tickets] == [[0, 0, *range(16)]] * 4
    assert len(set(map(tuple, tickets))) == 4
    assert run_program(TICKETS, schedule="random", seed=3).stdout.split() == tickets[-1]


@pytest.mark.parametrize(
    ("barrier", "stop", "code"), [("bar.sync 0;", True, 0), ("", True, 719), ("", False, 0)],
    ids=["with a barrier", "without one", "without one, only reported"],
)  # fmt: skip
def test_a_missing_barrier_is_reported(run_program: Run, barrier: str, stop: bool, code: int) -> None:
    program = f'from calls import *\nstart()\nkernel = load("""{RACE.replace("BARRIER", barrier)}""", "reverse")\n'
    program += 'out = ask("cuMemAlloc_v2", 256)\nprint(launch(kernel, 1, 64, out))'
    process = run_program(program, stop=stop)
    assert process.stdout == f"{code}\n"
    assert ("PTX0901" in process.stderr) == (not barrier)
    assert process.stderr.count("error[") == (not barrier)


def test_nothing_is_checked_on_request(run_program: Run) -> None:
    program = f'from calls import *\nstart()\nkernel = load("""{RACE.replace("BARRIER", "")}""", "reverse")\n'
    process = run_program(program + 'print(launch(kernel, 1, 64, ask("cuMemAlloc_v2", 256)))', check="none")
    assert (process.stdout, process.stderr) == ("0\n", "")


def test_calls_before_initialization_and_without_a_context_fail(run_program: Run) -> None:
    program = """\
from calls import *
import ctypes
result = ctypes.c_uint64()
print(try_call("cuDeviceGetCount", ctypes.byref(result)), try_call("cuMemAlloc_v2", ctypes.byref(result), 4))
call("cuInit", 0)
print(try_call("cuDeviceGetCount", ctypes.byref(result)), try_call("cuMemAlloc_v2", ctypes.byref(result), 4))
"""
    assert run_program(program).stdout == "3 3\n0 201\n"


def test_a_forked_process_is_refused(run_program: Run) -> None:
    program = """\
from calls import *
import os, ctypes
start()
child = os.fork()
if not child:
    os._exit(try_call("cuCtxSynchronize") | 16 * (try_call("cuInit", 0) != 3))
print(os.waitpid(child, 0)[1] >> 8, try_call("cuCtxSynchronize"))
"""
    process = run_program(program)
    assert process.stdout == "3 0\n"
    assert process.stderr == (
        "pyptx: a forked process cannot use the CUDA driver of its parent: start processes with `spawn`\n"
    )


def test_every_thread_has_its_own_context(run_program: Run) -> None:
    program = """\
from calls import *
import ctypes, threading
start()
result = ctypes.c_uint64()
codes = [try_call("cuMemAlloc_v2", ctypes.byref(result), 4)]
thread = threading.Thread(target=lambda: codes.append(try_call("cuMemAlloc_v2", ctypes.byref(result), 4)))
thread.start()
thread.join()
print(codes)
"""
    assert run_program(program).stdout == "[0, 201]\n"


def test_invalid_ptx_says_why(run_program: Run) -> None:
    program = """\
from calls import *
import ctypes
start()
text = VECTOR_ADD.replace("add.f32", "add.f33")
log = ctypes.create_string_buffer(400)
names, values = (ctypes.c_int * 2)(5, 6), (ctypes.c_void_p * 2)(ctypes.addressof(log), 400)
module = ctypes.c_uint64()
image = ctypes.create_string_buffer(text.encode())
print(try_call("cuModuleLoadDataEx", ctypes.byref(module), image, 2, names, values))
print(log.value.decode())
"""
    process = run_program(program)
    code, first, *_ = process.stdout.splitlines()
    assert code == "218"
    assert first.startswith("<ptx>:27:8: error[PTX0102]: `.f33` cannot follow `add`: expected ")


def test_ten_thousand_allocations_cost_little(run_program: Run) -> None:
    program = """\
from calls import *
start()
blocks = [ask("cuMemAlloc_v2", 256) for _ in range(10000)]
assert len(set(blocks)) == 10000
for block in blocks:
    call("cuMemFree_v2", block)
print(try_call("cuMemFree_v2", blocks[0]), try_call("cuMemFree_v2", 0))
"""
    assert run_program(program).stdout == "1 0\n"


def test_a_launch_over_the_limits_is_refused_and_explained(run_program: Run) -> None:
    program = (
        ADD
        + """\
limits = ((0, 32, 0), (1, 0, 0), (1, 1025, 0), (1, 32, 49152), (1, 32, 49153), (1, 32, 1 << 20))
print([launch(add, grid, block, a, b, c, 0, shared=shared) for grid, block, shared in limits])
call("cuFuncSetAttribute", add, 8, 49153)
print(launch(add, 1, 32, a, b, c, 0, shared=49153), try_call("cuFuncSetAttribute", add, 8, 232449))
"""
    )
    process = run_program(program)
    assert process.stdout == "[1, 1, 1, 0, 1, 1]\n0 1\n"
    limit = "pyptx: cuLaunchKernel: `add` asks for {} bytes of dynamic shared memory; the limit is 49152{}"
    raise_it = ", until the program raises the attribute MAX_DYNAMIC_SHARED_SIZE_BYTES of the function"
    assert process.stderr.splitlines() == [limit.format(49153, raise_it), limit.format(1 << 20, "")]


def test_attributes_tell_the_cluster_that_a_kernel_requires(run_program: Run) -> None:
    program = """\
text = ".version 8.0 .target sm_90 .address_size 64 .entry other(.param .u64 x) {} {{ ret; }}"
for rules in ("", ".explicitcluster", ".explicitcluster .reqnctapercluster 2, 3", ".reqnctapercluster 4"):
    kernel, value = load(text.format(rules), "other"), ctypes.c_int(7)
    values = []
    for attribute in (10, 11, 12, 13):
        call("cuFuncGetAttribute", ctypes.byref(value), attribute, kernel)
        values.append(value.value)
    print(values)
"""
    process = run_program(ADD + program)
    assert process.stdout == "[0, 0, 0, 0]\n[1, 0, 0, 0]\n[1, 2, 3, 1]\n[0, 4, 1, 1]\n", process.stderr


@pytest.mark.parametrize("order", ["sync", "deferred"])
def test_a_launch_that_does_not_fit_the_kernel_fails_at_once_and_alone(run_program: Run, order: str) -> None:
    program = """\
import struct
def launch_clusters(kernel, grid, cluster, *addresses):
    attribute = ctypes.create_string_buffer(struct.pack("<I4x3I52x", 4, cluster, 1, 1))
    config = struct.pack("<7I4xQQI4x", grid, 1, 1, 128, 1, 1, 0, 0, ctypes.addressof(attribute), 1)
    values = [ctypes.c_uint64(address) for address in addresses]
    pointers = (ctypes.c_void_p * 4)(*map(ctypes.addressof, values))
    return try_call("cuLaunchKernelEx", config, kernel, pointers, None)

text = ".version 8.0 .target sm_90 .address_size 64 .entry other(.param .u64 x) {} {{ ret; }}"
others = [load(text.format(rule), "other") for rule in (".maxntid 64", ".reqntid 64", ".explicitcluster")]
print(launch(add, 8, 128, a, b, c, 1000), [launch(other, 4, 128, 0) for other in others])
print(launch_clusters(add, 8, 3, a, b, c, 0), launch_clusters(add, 8, 4, a, b, c, 0), try_call("cuCtxSynchronize"))
"""
    process = run_program(ADD + program + OUTPUT, order=order)
    assert process.stdout == "0 [1, 1, 1]\n1 0 0\n[1.0, 3.0, 1999.0]\n", process.stderr
    assert "launch of `add`, grid (8, 1, 1), block (128, 1, 1), clusters of (3, 1, 1) at " in process.stderr
    assert "error[PTX1103]: grid (8, 1, 1) is not a multiple of the cluster (3, 1, 1)\n" in process.stderr


def test_streams_and_events_have_their_options(run_program: Run) -> None:
    program = """\
from calls import *
import ctypes
start()
result = ctypes.c_uint64()
out = ctypes.byref(result)
print([try_call("cuStreamCreate", out, flags) for flags in (0, 1, 2)])
print([try_call("cuEventCreate", out, flags) for flags in (0, 1, 2, 4, 7, 8)])
streams = [ask("cuStreamCreateWithPriority", flags, priority) for flags, priority in ((0, -9), (1, -3), (0, 4))]

def get(name, stream):
    number = ctypes.c_int()
    call(name, stream, ctypes.byref(number))
    return number.value

print([(get("cuStreamGetFlags", stream), get("cuStreamGetPriority", stream)) for stream in streams])
call("cuStreamDestroy_v2", streams[0])
print(try_call("cuStreamSynchronize", streams[0]), try_call("cuStreamSynchronize", streams[1]))
"""
    expected = "[0, 0, 1]\n[0, 0, 0, 0, 0, 1]\n[(0, -5), (1, -3), (0, 0)]\n400 0\n"
    assert run_program(program).stdout == expected


def test_the_time_between_events_counts_instructions(run_program: Run) -> None:
    program = (
        ADD
        + """\
events = [ask("cuEventCreate", 0) for _ in range(3)]
untimed = ask("cuEventCreate", 2)
call("cuEventRecord", events[0], 0)
launch(add, 4, 256, a, b, c, 1000)
call("cuEventRecord", events[1], 0)
call("cuEventRecord", untimed, 0)
elapsed = ctypes.c_float()
call("cuEventElapsedTime", ctypes.byref(elapsed), events[0], events[1])
print(round(elapsed.value * 1e6))
print([try_call("cuEventElapsedTime", ctypes.byref(elapsed), events[0], other) for other in (events[2], untimed)])
"""
    )
    instructions = 1024 * 10 + 1000 * 10 + 1024
    assert run_program(program).stdout == f"{instructions}\n[400, 400]\n"


def test_ranges_of_copies_end_with_their_allocation(run_program: Run) -> None:
    program = (
        ADD
        + """\
def copy(address, size):
    return try_call("cuMemcpyHtoD_v2", address, values, size)

ranges = ((a, 4001), (a + 3999, 1), (a + 3999, 2), (a + 4000, 1), (a - 1, 1), (a + 4000, 0))
print([copy(*place) for place in ranges])
base, size = ctypes.c_uint64(), ctypes.c_uint64()
out = ctypes.byref(base), ctypes.byref(size)
print([try_call("cuMemGetAddressRange_v2", *out, a + at) for at in (0, 3999, 4000)], base.value == a, size.value)
call("cuMemFree_v2", a)
print(copy(a, 4))
"""
    )
    assert run_program(program).stdout == "[1, 0, 1, 1, 1, 0]\n[0, 0, 500] True 4000\n1\n"


def test_rows_are_copied_and_filled(run_program: Run) -> None:
    program = """\
from calls import *
import ctypes, struct
start()
pitch = ctypes.c_uint64()
block = ctypes.c_uint64()
call("cuMemAllocPitch_v2", ctypes.byref(block), ctypes.byref(pitch), 5, 3, 4)
call("cuMemsetD2D8_v2", block.value, pitch.value, ord("."), 5, 3)
source, target = ctypes.create_string_buffer(b"abcdefghijkl"), ctypes.create_string_buffer(20)
host, device = 1, 2

def copy(*words):
    call("cuMemcpy2D_v2", struct.pack("<QQI4xQQQQQQI4xQQQQQQ", *words))

# Two bytes each of rows 1 and 2 of the source, 4 bytes wide, go to column 1 of rows 0 and 1.
copy(1, 1, host, ctypes.addressof(source), 0, 0, 4, 1, 0, device, 0, block.value, 0, pitch.value, 2, 2)
copy(0, 0, device, 0, block.value, 0, pitch.value, 0, 0, host, ctypes.addressof(target), 0, 0, 6, 5, 3)
print(pitch.value, target.raw.replace(bytes(1), b" ").decode())
"""
    assert run_program(program).stdout == "512 .fg.. .jk.. .....   \n"


def test_boxes_are_copied(run_program: Run) -> None:
    program = """\
from calls import *
import ctypes, struct
start()
block = ask("cuMemAlloc_v2", 24)
call("cuMemcpyHtoD_v2", block, ctypes.create_string_buffer(b"abcdefghijklmnopqrstuvwx", 24), 24)
target = ctypes.create_string_buffer(b"." * 18, 18)
host, device = 1, 2
# Of two slices of 3 rows of 4 bytes, rows 1 and 2 from column 1 go to row 1, column 1 of slices of 3 by 3 bytes.
source_side = 1, 1, 0, 0, device, 0, block, 0, 0, 4, 3
target_side = 1, 1, 0, 0, host, ctypes.addressof(target), 0, 0, 0, 3, 3
call("cuMemcpy3D_v2", struct.pack("<4QI4x6Q4QI4x6Q3Q", *source_side, *target_side, 2, 2, 2))
print(target.raw.decode())
print(try_call("cuMemcpy3D_v2", struct.pack("<4QI4x6Q4QI4x6Q3Q", *source_side, *target_side, 5, 2, 2)))
"""
    assert run_program(program).stdout == "....fg.jk....rs.vw\n1\n"


def test_more_memory_than_the_device_has_is_refused(run_program: Run) -> None:
    program = """\
from calls import *
import ctypes
start()
result = ctypes.c_uint64()
print([try_call("cuMemAlloc_v2", ctypes.byref(result), size) for size in (0, 1 << 40, (1 << 64) - 1)])
"""
    assert run_program(program).stdout == "[1, 2, 2]\n"


@pytest.mark.parametrize("order", ["sync", "deferred"])
def test_two_threads_launch_and_allocate_at_the_same_time(run_program: Run, order: str) -> None:
    program = """\
import threading
context = ask("cuDevicePrimaryCtxRetain", 0)
totals = {}

def work(number):
    call("cuCtxSetCurrent", context)
    stream, mine = ask("cuStreamCreate", 1), ask("cuMemAlloc_v2", size)
    call("cuMemsetD32Async", mine, 0, 1000, stream)
    for _ in range(10):
        launch(add, 1, 256, mine, b, mine, 100 * number, stream=stream)
        blocks = [ask("cuMemAlloc_v2", 256) for _ in range(20)]
        for block in blocks:
            call("cuMemFree_v2", block)
    result = (ctypes.c_float * 1000)()
    call("cuMemcpyDtoHAsync_v2", result, mine, size, stream)
    totals[number] = sum(result)

threads = [threading.Thread(target=work, args=[number]) for number in (1, 2)]
call("cuCtxSynchronize")
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sorted(totals.items()))
"""
    process = run_program(ADD + program, order=order)
    sums = [(number, 10 * sum(1 + value for value in range(100 * number))) for number in (1, 2)]
    assert (process.stdout, process.stderr) == (f"{[(number, float(total)) for number, total in sums]}\n", "")


def test_huge_sizes_are_refused(run_program: Run) -> None:
    program = """\
for size in (1 << 40, 1 << 62, (1 << 64) - 1):
    print(
        try_call("cuMemAlloc_v2", ctypes.byref(ctypes.c_uint64()), size),
        try_call("cuMemAllocHost_v2", ctypes.byref(ctypes.c_uint64()), size),
        try_call("cuMemcpyHtoD_v2", a, values, size), try_call("cuMemcpyDtoDAsync_v2", a, b, size, 0),
        try_call("cuMemsetD32_v2", a, 0, size), try_call("cuMemsetD2D8_v2", a, 1 << 60, 0, 4, size),
    )
print(launch(add, (1 << 31), 32, a, b, c, 0), launch(add, 1, 1 << 30, a, b, c, 0))
print(launch(add, 1, 32, a, b, c, 0, shared=(1 << 32) - 1))
"""
    process = run_program(ADD + program)
    assert process.returncode == 0, process.stderr
    assert process.stdout == "2 2 1 1 1 1\n" * 3 + "1 1\n1\n"


def test_an_interrupted_kernel_interrupts_the_program(run_program: Run) -> None:
    program = r"""
from calls import *
import os, signal, threading
# A shell starts background jobs with the signal ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
start()
text = '''.version 8.0
.target sm_80
.address_size 64
.visible .entry spin()
{
    .reg .b32 %r<2>;
LOOP:
    add.u32 %r1, %r1, 1;
    bra LOOP;
}
'''
kernel = load(text, "spin")
threading.Timer(1.0, os.kill, [os.getpid(), signal.SIGINT]).start()
try:
    launch(kernel, 1, 32)
except KeyboardInterrupt:
    print("interrupted")
"""
    assert run_program(program).stdout == "interrupted\n"


def test_only_a_few_functions_work_before_initialization(run_program: Run) -> None:
    program = """\
from calls import *
import pyptx.driver.calls
from pyptx.driver.signatures import ENTRIES
print(*(name for name in ENTRIES if name != "cuInit" and try_call(name, *[0] * 12) != 3))
"""
    early = "cuDriverGetVersion cuGetErrorName cuGetErrorString cuGetExportTable"
    assert run_program(program).stdout.split() == early.split()


def test_a_program_of_cuda_bindings_computes_the_right_sums(run_program: Run) -> None:
    program = """\
import numpy as np
from cuda.bindings import driver
from calls import VECTOR_ADD

def call(result):
    assert result[0] == driver.CUresult.CUDA_SUCCESS, result[0]
    return result[1] if len(result) > 1 else None

call(driver.cuInit(0))
call(driver.cuCtxSetCurrent(call(driver.cuDevicePrimaryCtxRetain(call(driver.cuDeviceGet(0))))))
kernel = call(driver.cuModuleGetFunction(call(driver.cuModuleLoadData(VECTOR_ADD.encode() + b"\\0")), b"add"))
n = 1000
a, b = np.random.default_rng(0).standard_normal((2, n)).astype(np.float32)
c = np.empty(n, np.float32)
stream = call(driver.cuStreamCreate(0))
memory = [call(driver.cuMemAlloc(4 * n)) for _ in range(3)]
for source, target in zip((a, b), memory):
    call(driver.cuMemcpyHtoDAsync(target, source.ctypes.data, 4 * n, stream))
values, kinds = (*memory, n), (None, None, None, ctypes.c_uint32)
call(driver.cuLaunchKernel(kernel, 4, 1, 1, 256, 1, 1, 0, stream, (values, kinds), 0))
call(driver.cuMemcpyDtoHAsync(c.ctypes.data, memory[2], 4 * n, stream))
call(driver.cuStreamSynchronize(stream))
print(np.array_equal(c, a + b + np.float32(1)))
"""
    process = run_program("import ctypes\n" + program, order="deferred")
    assert (process.stdout, process.stderr) == ("True\n", "")
