"""What the driver says about modules and kernels."""

from __future__ import annotations

import pytest

from pyptx.driver.calls import ENTRIES
from pyptx.driver.codes import Code, DriverError
from pyptx.driver.modules import load_text
from pyptx.driver.process import Driver, Thread
from pyptx.driver.settings import Settings

TEXT = """\
.version 8.0
.target sm_90
.address_size 64
.const .align 8 .b8 table[80], more[4];
.global .b32 counter;
.visible .entry first()
{
    .local .align 16 .b8 depot[4000];
    {
        .local .v2 .f64 inner[2];
    }
    ret;
}
.visible .entry second()
{
    ret;
}
"""
CONST, LOCAL = 2, 3
"""Attributes by their number in the enum `CUfunction_attribute`."""


def test_the_memory_of_a_kernel_is_that_of_its_variables() -> None:
    driver = Driver(Settings(), list(ENTRIES.values()))
    image = load_text(driver, TEXT)
    found = {
        name: [image.get_kernel(name).find_attribute(driver, number) for number in (CONST, LOCAL)]
        for name in ("first", "second")
    }
    assert found == {"first": [84, 4032], "second": [84, 0]}


@pytest.mark.parametrize(
    "name",
    [
        "cuLibraryLoadData", "cuModuleUnload", "cuModuleGetFunction", "cuModuleGetGlobal_v2", "cuLibraryGetModule",
        "cuModuleGetFunctionCount", "cuModuleEnumerateFunctions", "cuKernelGetFunction", "cuFuncGetModule",
        "cuMemAlloc_v2", "cuMemFree_v2", "cuMemAllocHost_v2", "cuMemHostAlloc", "cuMemFreeHost", "cuMemHostRegister_v2",
        "cuMemHostUnregister", "cuMemHostGetFlags", "cuMemGetInfo_v2", "cuMemGetAddressRange_v2", "cuMemcpyHtoD_v2",
        "cuMemcpyDtoH_v2", "cuMemcpyDtoD_v2", "cuMemcpy", "cuMemcpyPeer", "cuMemcpy2D_v2", "cuMemcpy3D_v2",
        "cuMemsetD8_v2", "cuMemsetD16_v2", "cuMemsetD32_v2", "cuMemsetD2D32_v2", "cuMemAllocAsync", "cuMemFreeAsync",
        "cuEventCreate", "cuEventRecord", "cuEventQuery", "cuStreamCreate", "cuStreamSynchronize", "cuStreamWaitEvent",
        "cuLaunchKernel", "cuFuncSetAttribute", "cuOccupancyMaxActiveBlocksPerMultiprocessor", "cuCtxSynchronize",
        "cuLinkCreate_v2", "cuTensorMapEncodeTiled", "cuIpcGetMemHandle",
    ],
)  # fmt: skip
def test_a_call_without_a_context_is_refused(name: str) -> None:
    entry = ENTRIES[name]
    with pytest.raises(DriverError) as excinfo:
        entry.answer(Driver(Settings(), list(ENTRIES.values())), Thread(0), *(0 for _ in entry.kinds))
    assert excinfo.value.code == Code.ERROR_INVALID_CONTEXT
