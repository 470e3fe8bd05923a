"""`cuLink…`: several images of PTX become one module."""

from __future__ import annotations

import pytest

from tests.driver.conftest import Run

START = '''\
import ctypes
from calls import *
start()
HEAD = ".version 8.0\\n.target sm_80\\n.address_size 64\\n"
DOUBLE = HEAD + """.visible .global .u32 factor = 2;
.visible .func (.param .b32 out) twice(.param .b32 x)
{
    .reg .b32 %r<2>;
    ld.param.b32 %r1, [x];
    ld.global.u32 %r0, [factor];
    mul.lo.u32 %r1, %r1, %r0;
    st.param.b32 [out], %r1;
    ret;
}
"""
MAIN = HEAD + """.extern .global .u32 factor;
.extern .func (.param .b32 out) twice(.param .b32 x);
.visible .entry kernel(.param .u64 out)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, 21;
    ld.global.u32 %r1, [factor];
    add.u32 %r1, %r1, 19;
    call (%r2), twice, (%r1);
    st.global.u32 [%rd1], %r2;
    ret;
}
"""
log, out, size = ctypes.create_string_buffer(400), ctypes.c_uint64(), ctypes.c_uint64()

def create():
    names = (ctypes.c_int * 2)(5, 6)
    values = (ctypes.c_uint64 * 2)(ctypes.addressof(log), 400)
    call("cuLinkCreate_v2", 2, names, values, ctypes.byref(out))
    return out.value

def add(state, text, kind=1):
    return try_call("cuLinkAddData_v2", state, kind, text.encode(), len(text), b"name", 0, None, None)

def complete(state):
    return try_call("cuLinkComplete", state, ctypes.byref(out), ctypes.byref(size))

'''


@pytest.mark.parametrize("order", ["MAIN, DOUBLE", "DOUBLE, MAIN"])
def test_images_are_linked_into_one_module(run_program: Run, order: str) -> None:
    program = f"texts = {order}\n"
    program += """\
state, memory, result = create(), ask("cuMemAlloc_v2", 4), ctypes.c_uint32()
print(*(add(state, text) for text in texts), complete(state), end=" ")
image = ctypes.string_at(out.value, size.value)
call("cuLinkDestroy", state)
kernel = ask("cuModuleGetFunction", ask("cuModuleLoadData", image), b"kernel")
print(launch(kernel, 1, 1, memory), try_call("cuMemcpyDtoH_v2", ctypes.byref(result), memory, 4), result.value)
"""
    process = run_program(START + program)
    assert process.stdout == "0 0 0 0 0 42\n", process.stderr
    assert not process.stderr


def test_images_that_cannot_be_linked_are_explained_in_the_log(run_program: Run) -> None:
    program = """\
state = create()
print(complete(state), add(state, MAIN.replace("ld.param", "ld.parm")), b"ld.parm" in log.value, end=" ")
print(add(state, MAIN), complete(state), log.value.decode(), end=" ")
print(add(state, DOUBLE), add(state, MAIN), complete(state), log.value.decode(), flush=True)
print(add(state, MAIN, kind=4), try_call("cuLinkAddFile_v2", state, 1, b"none.ptx", 0, None, None), end=" ")
print(try_call("cuLinkDestroy", state), try_call("cuLinkDestroy", state), try_call("cuLinkComplete", state, None, None))
"""
    process = run_program(START + program)
    first, *_, last = process.stdout.splitlines()
    assert first.startswith("1 218 True 0 218 "), process.stderr
    assert "0 0 218 <module" in process.stdout
    assert "`kernel` is defined" in process.stdout
    assert last == "801 301 0 400 400"
    assert "cuLinkAddData_v2: only PTX is linked, and of libraries libcudadevrt.a: add PTX" in process.stderr


def test_files_are_linked_and_the_device_runtime_is_known(run_program: Run) -> None:
    program = """\
from pathlib import Path
Path("main.ptx").write_text(DOUBLE)
Path("libcudadevrt.a").write_text("!<arch>")
state = create()
print([try_call("cuLinkAddFile_v2", state, kind, name, 0, None, None) for kind, name in
       ((1, b"main.ptx"), (4, b"libcudadevrt.a"))], complete(state), size.value == len(DOUBLE) + 1)
"""
    process = run_program(START + program)
    assert process.stdout == "[0, 0] 0 True\n", process.stderr


def test_a_function_that_nobody_defines_is_refused_before_a_launch(run_program: Run) -> None:
    program = """\
print(try_call("cuModuleLoadData", ctypes.byref(out), MAIN.replace(".extern .global", ".global").encode()), end=" ")
state = create()
print(add(state, MAIN.replace(".extern .global", ".global")), complete(state), log.value.decode(), end=" ")
print(try_call("cuCtxSynchronize"), ask("cuMemAlloc_v2", 4) > 0)
"""
    process = run_program(START + program)
    text = "error[PTX1104]: the function `twice` is used, and neither this module nor the driver defines it"
    assert process.stdout.startswith("218 0 218 <ptx>:5:1: " + text), process.stderr
    assert process.stdout.endswith(" 0 True\n")
    assert "cuModuleLoadData: <ptx>:5:1: " + text in process.stderr


def test_functions_that_are_declared_for_others_do_not_keep_a_module_from_loading(run_program: Run) -> None:
    program = '''\
TEXT = HEAD + """.extern .func twice();
.extern .func free(.param .b64 x);
.visible .func again();
.visible .func once() { ret; }
.alias again, once;
.visible .entry kernel()
{
    .reg .b32 twice;
    .reg .b64 %rd;
    mov.u32 twice, 0;
    mov.u64 %rd, 0;
    call free, (%rd);
    call again;
    ret;
}
"""
kernel = ask("cuModuleGetFunction", ask("cuModuleLoadData", TEXT.encode()), b"kernel")
print(launch(kernel, 1, 1), try_call("cuCtxSynchronize"))
'''
    process = run_program(START + program)
    assert process.stdout == "0 0\n", process.stderr


def test_images_that_use_the_device_runtime_are_linked(run_program: Run) -> None:
    program = '''\
DECLARATION = ".extern .func (.param .b32 result) cudaCGSynchronize(.param .b64 handle, .param .b32 flags);\\n"
USE = """{
    .reg .b32 %r;
    .reg .b64 %rd;
    mov.u64 %rd, 1;
    mov.u32 %r, 0;
    call (%r), cudaCGSynchronize, (%rd, %r);
    CALL
    ret;
}
"""
state = create()
other = ".visible .func other()\\n"
print(add(state, HEAD + DECLARATION + other + USE.replace("CALL", "")), end=" ")
user = ".extern .func other();\\n.visible .entry kernel()\\n" + USE.replace("CALL", "call other;")
print(add(state, HEAD + DECLARATION + user), complete(state), end=" ")
image = ctypes.string_at(out.value, size.value)
kernel = ask("cuModuleGetFunction", ask("cuModuleLoadData", image), b"kernel")
print(try_call("cuLaunchCooperativeKernel", kernel, 2, 1, 1, 64, 1, 1, 0, None, None), try_call("cuCtxSynchronize"))
'''
    process = run_program(START + program)
    assert process.stdout == "0 0 0 0 0\n", process.stderr
