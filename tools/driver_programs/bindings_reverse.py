"""Loads reverse.ptx with cuda-bindings, and reverses an array."""

from pathlib import Path
from typing import Any

from cuda.bindings import driver


def call(result: tuple[Any, ...]) -> Any:
    """Return what a function of the driver gave, if it succeeded."""
    code, *values = result
    assert code == driver.CUresult.CUDA_SUCCESS, code
    return values[0] if values else None


call(driver.cuInit(0))
call(driver.cuCtxSetCurrent(call(driver.cuDevicePrimaryCtxRetain(call(driver.cuDeviceGet(0))))))
text = Path(__file__).with_name("reverse.ptx").read_bytes() + b"\0"
kernel = call(driver.cuModuleGetFunction(call(driver.cuModuleLoadData(text)), b"reverse"))
x, out = (call(driver.cuMemAlloc(4 * 64)) for _ in range(2))
call(driver.cuMemsetD32(x, 7, 64))
arguments = (x, out), (None, None)
call(driver.cuLaunchKernel(kernel, 1, 1, 1, 64, 1, 1, 0, 0, arguments, 0))
call(driver.cuCtxSynchronize())
