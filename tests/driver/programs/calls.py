"""What the programs of the tests share: calls of the driver through `ctypes`, and through cuda-bindings."""

from __future__ import annotations

import ctypes
from typing import Any

CUDA = ctypes.CDLL("libcuda.so.1")
VECTOR_ADD = """\
.version 8.0
.target sm_80
.address_size 64
.global .f32 bias = 0f3F800000;
.visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)
{
    .reg .pred %p<2>;
    .reg .b32 %r<6>;
    .reg .f32 %f<5>;
    .reg .b64 %rd<9>;
    ld.param.u64 %rd1, [a];
    ld.param.u64 %rd2, [b];
    ld.param.u64 %rd3, [c];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.s32 %p1, %r5, %r1;
    @%p1 bra DONE;
    mul.wide.s32 %rd4, %r5, 4;
    add.s64 %rd5, %rd1, %rd4;
    add.s64 %rd6, %rd2, %rd4;
    add.s64 %rd7, %rd3, %rd4;
    ld.global.f32 %f1, [%rd5];
    ld.global.f32 %f2, [%rd6];
    add.f32 %f3, %f1, %f2;
    ld.global.f32 %f4, [bias];
    add.f32 %f3, %f3, %f4;
    st.global.f32 [%rd7], %f3;
DONE:
    ret;
}
"""
"""c[i] = a[i] + b[i] + bias."""


def call(name: str, *arguments: object) -> None:
    """Call a driver function that must succeed; integers are 64 bits wide."""
    code = try_call(name, *arguments)
    assert code == 0, f"{name} returned {code}"


def try_call(name: str, *arguments: object) -> int:
    """Call a driver function and return its code."""
    values = [ctypes.c_uint64(value & (1 << 64) - 1) if isinstance(value, int) else value for value in arguments]
    return getattr(CUDA, name)(*values)


def ask(name: str, *arguments: object) -> int:
    """Call a driver function and return the number that it writes to its first argument."""
    result = ctypes.c_uint64()
    call(name, ctypes.byref(result), *arguments)
    return result.value


def start() -> None:
    """Initialize the driver and make the primary context current."""
    call("cuInit", 0)
    call("cuCtxSetCurrent", ask("cuDevicePrimaryCtxRetain", 0))


def load(text: str, name: str) -> int:
    """Load PTX and return a kernel of it."""
    buffer = ctypes.create_string_buffer(text.encode())
    module = ask("cuModuleLoadData", buffer)
    return ask("cuModuleGetFunction", module, name.encode())


def launch(kernel: int, grid: int, block: int, *arguments: object, shared: int = 0, stream: int = 0) -> int:
    """Launch a kernel with one-dimensional grid and block, and return the code."""
    values: list[Any] = [ctypes.c_uint64(value) if isinstance(value, int) else value for value in arguments]
    pointers = (ctypes.c_void_p * max(1, len(values)))(*(ctypes.addressof(value) for value in values))
    return try_call("cuLaunchKernel", kernel, grid, 1, 1, block, 1, 1, shared, stream, pointers, None)
