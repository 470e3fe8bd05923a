"""Launches a kernel that Warp compiled ahead of time to PTX, with cuda-bindings: `warp_saxpy.py N` changes N of 1,000
elements. Warp's own launches go through NVIDIA's runtime library."""

import ctypes
import sys
import tempfile
from pathlib import Path

import numpy as np
import warp as wp
from cuda.bindings import driver
from warp._src.types import launch_bounds_t

SIZE = 1000


@wp.kernel
def saxpy(a: float, x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = a * x[i] + y[i]


def call(result):
    """Return what a function of the driver gave, if it succeeded."""
    code, *values = result
    assert code == driver.CUresult.CUDA_SUCCESS, code
    return values[0] if values else None


def describe(address):
    """Return Warp's structure of an array in memory of the device."""
    return wp.array(ptr=int(address), shape=(SIZE,), dtype=float, device="cpu").__ctype__()


call(driver.cuInit(0))
call(driver.cuCtxSetCurrent(call(driver.cuDevicePrimaryCtxRetain(call(driver.cuDeviceGet(0))))))
with tempfile.TemporaryDirectory() as folder:
    wp.compile_aot_module(saxpy.module, arch=90, module_dir=folder, use_ptx=True)
    (path,) = Path(folder).glob("*.ptx")
    module = call(driver.cuModuleLoadData(path.read_bytes() + b"\0"))
kernel = call(driver.cuModuleGetFunction(module, f"{saxpy.get_mangled_name()}_cuda_kernel_forward".encode()))
x, y = np.arange(SIZE, dtype=np.float32), np.ones(SIZE, np.float32)
on_device = [call(driver.cuMemAlloc(array.nbytes)) for array in (x, y)]
for array, address in zip((x, y), on_device, strict=True):
    call(driver.cuMemcpyHtoD(address, array, array.nbytes))
values = launch_bounds_t((int(sys.argv[1]),)), ctypes.c_float(2), *map(describe, on_device)
parameters = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
call(driver.cuLaunchKernel(kernel, 4, 1, 1, 256, 1, 1, 0, 0, ctypes.addressof(parameters), 0))
call(driver.cuMemcpyDtoH(y, on_device[1], y.nbytes))
np.testing.assert_array_equal(y, 2 * x + 1)
