"""Programs whose kernels run at the same time: on two devices, in two streams, and by programmatic dependent launch."""

from __future__ import annotations

import re

import pytest

from tests.driver.conftest import Run

START = """\
import ctypes, struct
from calls import *
call("cuInit", 0)
contexts = [ask("cuDevicePrimaryCtxRetain", device) for device in range(2)]
HEADER = ".version 8.0\\n.target sm_90\\n.address_size 64\\n"

def make(device, text, name):
    call("cuCtxSetCurrent", contexts[device])
    return load(HEADER + text, name)

def allocate(device, size):
    call("cuCtxSetCurrent", contexts[device])
    memory = ask("cuMemAlloc_v2", size)
    call("cuMemsetD8_v2", memory, 0, size)
    return memory

def fetch(address, count):
    result = (ctypes.c_uint32 * count)()
    call("cuMemcpyDtoH_v2", result, address, 4 * count)
    return list(result)
"""
ALL_REDUCE = """\
text = '''
.visible .entry reduce(.param .u64 mine, .param .u64 theirs, .param .u64 out)
{
    .reg .b32 %r<6>;
    .reg .b64 %rd<8>;
    .reg .pred %p<2>;
    ld.param.u64 %rd1, [mine];
    ld.param.u64 %rd2, [theirs];
    ld.param.u64 %rd3, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd4, %r1, 4;
    add.u64 %rd5, %rd1, %rd4;
    add.u64 %rd6, %rd2, %rd4;
    add.u64 %rd7, %rd3, %rd4;
    add.u32 %r2, %r1, %r1;
    st.global.u32 [%rd5], %r2;
    STORE
WAIT:
    LOAD
    setp.eq.u32 %p1, %r3, 0;
    @%p1 bra WAIT;
    ld.global.u32 %r4, [%rd6];
    add.u32 %r4, %r4, %r2;
    st.global.u32 [%rd7], %r4;
    ret;
}
'''
text = text.replace("STORE", STORE).replace("LOAD", LOAD)
buffers, outputs = [allocate(device, 256) for device in range(2)], [allocate(device, 128) for device in range(2)]
for device in PEERS:
    call("cuCtxSetCurrent", contexts[device])
    call("cuCtxEnablePeerAccess", contexts[1 - device], 0)
for context in contexts:
    call("cuCtxSetCurrent", context)
    call("cuCtxSynchronize")
for device in range(2):
    kernel = make(device, text, "reduce")
    stream = ask("cuStreamCreate", 1)
    print(launch(kernel, 1, 32, buffers[device], buffers[1 - device], outputs[device], stream=stream))
for device, context in enumerate(contexts):
    call("cuCtxSetCurrent", context)
    print(try_call("cuCtxSynchronize"))
    print(fetch(outputs[device], 32) == [4 * lane for lane in range(32)] if not try_call("cuCtxSynchronize") else "")
"""
STRONG = """\
PEERS = 0, 1
STORE, LOAD = "st.release.sys.global.u32 [%rd5 + 128], 1;", "ld.acquire.sys.global.u32 %r3, [%rd6 + 128];"
"""
WEAK = STRONG.replace("release", "relaxed").replace("acquire", "relaxed")


def test_kernels_of_two_devices_wait_for_each_other(run_program: Run) -> None:
    process = run_program(START + STRONG + ALL_REDUCE, order="deferred", count=2)
    assert (process.stdout, process.stderr) == ("0\n0\n0\nTrue\n0\nTrue\n", "")


def test_a_race_between_kernels_of_two_devices_is_found(run_program: Run) -> None:
    process = run_program(START + WEAK + ALL_REDUCE, order="deferred", count=2)
    assert re.findall(r"\[(PTX\d+)\]", process.stderr) == ["PTX0901"]
    assert "of `reduce (launch 1)`" in process.stderr
    assert "of `reduce (launch 2)`" in process.stderr


def test_in_sync_order_the_first_of_them_hangs(run_program: Run) -> None:
    process = run_program(START + STRONG + ALL_REDUCE, count=2)
    assert process.stdout.startswith("702\n")


def test_a_kernel_needs_peer_access(run_program: Run) -> None:
    program = START + STRONG + "PEERS = [1]\n" + ALL_REDUCE
    program += """\
call("cuDevicePrimaryCtxReset_v2", 0)
call("cuCtxSetCurrent", contexts[0])
choices = (0, 0), (1, 1), (1, 0), (1, 0)
codes = [try_call("cuCtxEnablePeerAccess", contexts[device], flags) for device, flags in choices]
print(codes, [try_call("cuCtxDisablePeerAccess", contexts[1]) for _ in range(2)])
"""
    process = run_program(program, order="deferred", count=2)
    assert process.stdout == "0\n0\n700\n\n0\nTrue\n[101, 1, 0, 704] [0, 705]\n"
    assert re.findall(r"\[(PTX\d+)\]", process.stderr) == ["PTX1306"]
    message = "the launch of `reduce` at program.py:62 on device 0 reads allocation 2 from program.py:13 on device 1"
    assert message in process.stderr


DEPENDENT = """\
first = make(0, '''
.visible .entry produce(.param .u64 data)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd1, %rd2;
    griddepcontrol.launch_dependents;
    add.u32 %r2, %r1, 1;
    st.global.u32 [%rd3], %r2;
    ret;
}
''', "produce")
second = make(0, '''
.visible .entry consume(.param .u64 data, .param .u64 out)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [data];
    ld.param.u64 %rd2, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.u64 %rd4, %rd1, %rd3;
    add.u64 %rd5, %rd2, %rd3;
    WAIT
    ld.global.u32 %r2, [%rd4];
    st.global.u32 [%rd5], %r2;
    ret;
}
'''.replace("WAIT", WAIT), "consume")
data, out = allocate(0, 128), allocate(0, 128)
call("cuCtxSynchronize")
stream = ask("cuStreamCreate", 1)
call("cuLaunchKernel", first, 1, 1, 1, 32, 1, 1, 0, stream, (ctypes.c_void_p * 1)(
    ctypes.addressof(value := ctypes.c_uint64(data))), None)
attribute = struct.pack("<I4xi60x", 6, PROGRAMMATIC)
values = ctypes.c_uint64(data), ctypes.c_uint64(out)
parameters = (ctypes.c_void_p * 2)(*map(ctypes.addressof, values))
room = ctypes.create_string_buffer(attribute)
config = ctypes.create_string_buffer(
    struct.pack("<7I4xQQI4x", 1, 1, 1, 32, 1, 1, 0, stream, ctypes.addressof(room), 1))
call("cuLaunchKernelEx", config, second, parameters, None)
call("cuStreamSynchronize", stream)
print(fetch(out, 32) == list(range(1, 33)))
"""


@pytest.mark.parametrize(
    ("wait", "programmatic", "order", "output"),
    [
        ("griddepcontrol.wait;", 1, "deferred", "True"), ("", 1, "deferred", "PTX0906"), ("", 0, "deferred", "True"),
        ("", 1, "sync", "True"),
    ],
)  # fmt: skip
def test_a_dependent_launch_overlaps_the_previous_one(
    run_program: Run, wait: str, programmatic: int, order: str, output: str
) -> None:
    program = f"WAIT, PROGRAMMATIC = {wait!r}, {programmatic}\n"
    process = run_program(START + program + DEPENDENT, order=order, count=2)
    codes = re.findall(r"\[(PTX\d+)\]", process.stderr)
    assert codes or process.stderr == ""
    assert (codes or [process.stdout.strip()]) == [output]


PRINTING = """\
kernel = make(0, '''
.extern .func (.param .b32 count) vprintf(.param .b64 format, .param .b64 values);
.global .b8 text[8] = {107, 101, 114, 110, 101, 108, 10, 0};
.visible .entry speak()
{
    .reg .b64 %rd<2>; .param .b32 count; .param .b64 format; .param .b64 values;
    mov.u64 %rd1, text;
    cvta.global.u64 %rd1, %rd1;
    st.param.b64 [format], %rd1;
    st.param.b64 [values], 0;
    call.uni (count), vprintf, (format, values);
    ret;
}
''', "speak")
stream = ask("cuStreamCreate", 1)
room = ctypes.create_string_buffer(struct.pack("<I4xi60x", 6, 1))
config = ctypes.create_string_buffer(struct.pack("<7I4xQQI4x", 1, 1, 1, 1, 1, 1, 0, stream, ctypes.addressof(room), 1))
library = ctypes.CDLL(None)
space = ctypes.create_string_buffer(4096)
library.setvbuf(ctypes.c_void_p.in_dll(library, "stdout"), space, 0, 4096)
library.printf(b"before\\n")
for _ in range(2):
    call("cuLaunchKernelEx", config, kernel, None, None)
library.printf(b"after\\n")
call("cuStreamSynchronize", stream)
library.fflush(None)
"""


@pytest.mark.parametrize("order", ["sync", "deferred"])
def test_output_of_kernels_follows_that_of_the_program_before_them(run_program: Run, order: str) -> None:
    process = run_program(START + PRINTING, order=order, count=2)
    words = ["kernel", "kernel", "after"] if order == "sync" else ["after", "kernel", "kernel"]
    assert (process.stdout.split(), process.stderr) == (["before", *words], "")
