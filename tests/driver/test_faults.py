"""What a fault leaves: its code, which the context keeps until it is reset, and errors that leave nothing."""

from __future__ import annotations

from tests.driver.conftest import Run

MISALIGNED = "st.global.u32 [%rd1+2], 1;"
FAULTS = {
    "st.global.u32 [%rd1+4096], 1;": 700, MISALIGNED: 716, "trap;": 719, "ld.const.u32 %r1, [%rd1];": 717,
    "mov.u64 %rd1, 64; $to: .callprototype _ (); call %rd1, $to;": 718,
    "call __assertfail, (0, 0, 7, 0, 1);": 710,
    "mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0; @%p1 bar.sync 1, 128; bar.sync 0;": 702,
}  # fmt: skip
"""The code of each fault: out of bounds, misaligned, a trap, memory of another space, a call of what is no function, an
assertion, threads that nothing wakes."""
PROGRAM = '''\
import ctypes
from calls import *
TEXT = """
.version 8.0
.target sm_80
.address_size 64
.extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 s);
.visible .entry kernel(.param .u64 out)
{
    .reg .pred %p<2>;
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out];
    BODY
    ret;
}
"""
start()
result = ctypes.c_uint64()
out = ctypes.byref(result)
image = ctypes.create_string_buffer(TEXT.replace("BODY", "").encode())

def ask_all():
    """Return the codes of calls that have nothing wrong."""
    calls = (
        ("cuCtxSynchronize",), ("cuMemAlloc_v2", out, 4), ("cuStreamCreate", out, 0), ("cuEventCreate", out, 0),
        ("cuModuleLoadData", out, image), ("cuStreamSynchronize", 0), ("cuMemGetInfo_v2", out, None),
    )
    return {try_call(*words) for words in calls}

'''


def test_the_context_keeps_the_code_of_a_fault_until_it_is_reset(run_program: Run) -> None:
    program = f"""\
for body in {list(FAULTS)}:
    kernel, memory = load(TEXT.replace("BODY", body), "kernel"), ask("cuMemAlloc_v2", 64)
    print(launch(kernel, 1, 64, memory), ask_all(), launch(kernel, 1, 64, memory), end=" ")
    print(try_call("cuDeviceGetCount", out), try_call("cuCtxGetCurrent", out), end=" ")
    print(try_call("cuDevicePrimaryCtxReset_v2", 0), ask_all(), end=" ")
    print(try_call("cuMemFree_v2", memory), try_call("cuFuncLoad", kernel))
"""
    process = run_program(PROGRAM + program)
    expected = [f"{code} {{{code}}} {code} 0 0 0 {{0}} 1 400" for code in FAULTS.values()]
    assert process.stdout.splitlines() == expected, process.stderr


def test_errors_of_calls_leave_the_context_as_it_is(run_program: Run) -> None:
    program = """\
kernel, memory = load(TEXT, "kernel"), ask("cuMemAlloc_v2", 64)
broken = ctypes.create_string_buffer(TEXT.replace("ld.param", "ld.parm").encode())
print(launch(kernel, 1, 2048, memory), try_call("cuModuleLoadData", out, broken))
print(try_call("cuMemAlloc_v2", out, 1 << 50), try_call("cuStreamSynchronize", 12345))
print(try_call("cuMemcpyHtoD_v2", memory, image, 65), launch(kernel, 1, 1, 0))
cubin, pool = ctypes.create_string_buffer(b"\\x7fELF" + bytes(60)), ask("cuDeviceGetDefaultMemPool", 0)
print(try_call("cuModuleLoadData", out, cubin), try_call("cuMemPoolExportToShareableHandle", out, pool, 1, 0))
print(ask_all())
"""
    process = run_program(PROGRAM.replace("BODY", "") + program)
    assert process.stdout == "1 218\n2 400\n1 0\n209 801\n{0}\n", process.stderr


def test_the_fault_of_one_context_is_not_that_of_another(run_program: Run) -> None:
    program = """\
kernel, memory = load(TEXT, "kernel"), ask("cuMemAlloc_v2", 64)
print(launch(kernel, 1, 1, memory))
other = ask("cuCtxCreate_v2", 0, 0)
print(ask_all())
call("cuCtxDestroy_v2", other)
print(ask_all(), try_call("cuCtxSetCurrent", other), try_call("cuCtxPushCurrent_v2", other))
"""
    process = run_program(PROGRAM.replace("BODY", MISALIGNED) + program)
    assert process.stdout == "716\n{0}\n{716} 709 709\n", process.stderr


def test_a_kernel_reaches_no_memory_of_the_host_that_is_not_registered(run_program: Run) -> None:
    program = """\
arrays = [(ctypes.c_uint32 * 64)(*range(64)), ctypes.create_string_buffer(64), bytearray(64)]
addresses = [ctypes.addressof(item) for item in arrays[:2]]
addresses += [ctypes.addressof(ctypes.c_char.from_buffer(arrays[2])), id(arrays), ctypes.addressof(out._obj)]
before = [bytes(ctypes.string_at(address, 32)) for address in addresses]
for body in ("st.global.u32 [%rd1], 1;", "ld.global.u32 %r1, [%rd1];", "atom.global.add.u32 %r1, [%rd1], 1;"):
    for address in addresses:
        kernel = load(TEXT.replace("BODY", body), "kernel")
        print(launch(kernel, 1, 1, address), end=" ")
        call("cuDevicePrimaryCtxReset_v2", 0)
print(before == [bytes(ctypes.string_at(address, 32)) for address in addresses])
"""
    process = run_program(PROGRAM + program)
    assert process.stdout == "700 " * 15 + "True\n", process.stderr
