"""Multiplies matrices with the CuTe DSL through the driver API: compiles for the current GPU, a Hopper or Blackwell
one, loads the cubin that CUTE_DSL_KEEP=cubin keeps, makes the tensor maps with the driver, and launches with
cuda-bindings."""

import ctypes
import math

import cutlass
import numpy as np
from cuda.bindings import driver
from cutlass import cute
from cutlass.cute.runtime import make_fake_compact_tensor

from tools.corpus.python_producers.cutedsl_kernels.hosts import gemm_tcgen05, gemm_wgmma

K, N = 128, 64
DEPTH = 64
"""The elements of a row of a tile, which is swizzled by 128 bytes."""


def call(result):
    """Return what a function of the driver gave, if it succeeded."""
    code, *values = result
    assert code == driver.CUresult.CUDA_SUCCESS, code
    return values[0] if values else None


def make_map(address, rows):
    """Return the tensor map of a matrix of halves, with tiles of all rows. cuda-bindings does not align the map."""
    half, swizzle_128b = 6, 3
    room = ctypes.create_string_buffer(128 + 64)
    start = -ctypes.addressof(room) % 64
    sizes, strides = (ctypes.c_uint64 * 2)(K, rows), (ctypes.c_uint64 * 1)(2 * K)
    box, steps = (ctypes.c_uint32 * 2)(DEPTH, rows), (ctypes.c_uint32 * 2)(1, 1)
    code = ctypes.CDLL("libcuda.so.1").cuTensorMapEncodeTiled(
        ctypes.byref(room, start), half, 2, ctypes.c_void_p(int(address)), sizes, strides, box, steps, 0, swizzle_128b,
        0, 0,
    )  # fmt: skip
    assert code == 0, code
    return room.raw[start : start + 128]


call(driver.cuInit(0))
device = call(driver.cuDeviceGet(0))
context = call(driver.cuDevicePrimaryCtxRetain(device))
call(driver.cuCtxSetCurrent(context))
major = call(driver.cuDeviceGetAttribute(
    driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device
))  # fmt: skip
host, m, target, state = (gemm_wgmma, 64, "sm_90a", 1) if major == 9 else (gemm_tcgen05, 128, "sm_100a", 32)

fakes = [
    make_fake_compact_tensor(kind, shape, stride_order=(1, 0), assumed_align=16)
    for kind, shape in ((cutlass.Float16, (m, K)), (cutlass.Float16, (N, K)), (cutlass.Float32, (m, N)))
]
compiled = cute.compile(host, *fakes, options=f"--gpu-arch={target} --generate-line-info")
module = call(driver.cuModuleLoadData(compiled.__cubin__))
(name,) = compiled.kernel_info
kernel = call(driver.cuModuleGetFunction(module, name.encode()))

random = np.random.default_rng(0)
a, b = (random.integers(-4, 5, (rows, K)).astype(np.float16) for rows in (m, N))
out = np.zeros((m, N), np.float32)
on_device = [call(driver.cuMemAlloc(array.nbytes)) for array in (a, b, out)]
for array, address in zip((a, b), on_device, strict=False):
    call(driver.cuMemcpyHtoD(address, array, array.nbytes))
# The host function, which is not called, would pass: two tensor maps, a pointer, and the product's state.
parts = make_map(on_device[0], m), make_map(on_device[1], N), int(on_device[2]).to_bytes(8, "little"), bytes(state)
buffers = [ctypes.create_string_buffer(part, len(part)) for part in parts]
parameters = (ctypes.c_void_p * len(buffers))(*map(ctypes.addressof, buffers))
shared = math.ceil((m + N) * 2 * DEPTH / 1024) * 1024 + 4096
call(driver.cuFuncSetAttribute(
    kernel, driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared
))  # fmt: skip
call(driver.cuLaunchKernel(kernel, 1, 1, 1, 128, 1, 1, shared, 0, ctypes.addressof(parameters), 0))
call(driver.cuMemcpyDtoH(out, on_device[2], out.nbytes))
np.testing.assert_array_equal(out, a.astype(np.float32) @ b.astype(np.float32).T)
