"""Impossible arguments of every entry point: an error code, never a crash."""

from __future__ import annotations

import ctypes
import re
import sys

from pyptx.driver.calls import ENTRIES
from pyptx.driver.captures import Status
from pyptx.driver.codes import Code, DriverError
from pyptx.driver.process import Thread
from tests.driver.conftest import PROGRAMS, Run
from tests.driver.direct import Direct, make_room
from tests.driver.test_lookup import SYMBOLS, read_parameters

PROGRAM = """\
import ctypes
from calls import *
from pyptx.driver.calls import ENTRIES
buffer = ctypes.create_string_buffer(1 << 16)
place = ctypes.addressof(buffer)
class Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 64)]
HANDLE = {"handle": Handle()}
for name, entry in ENTRIES.items():
    if name not in SKIPPED:
        start()
        print(name, try_call(name, *[VALUES[kind] for kind in entry.kinds]), flush=True)
"""
CALL_ANYTHING = ("cuLaunchHostFunc", "cuLaunchHostFunc_v2", "cuStreamAddCallback")
"""Functions that call what a number names, as they do on a GPU."""


def list_parameters(name: str) -> str:
    """Return the parameters of an entry in the header, nothing if it has none of this version."""
    return read_parameters().get((SYMBOLS[name].function, SYMBOLS[name].version), "")


def call_all(run_program: Run, values: str, skipped: tuple[str, ...] = ()) -> dict[str, Code]:
    """Call every entry with a value for each kind of argument; return the codes."""
    process = run_program(PROGRAM.replace("VALUES", values).replace("SKIPPED", repr(skipped)))
    assert process.returncode == 0, process.stderr
    lines = [line.split() for line in process.stdout.splitlines()]
    assert [name for name, _ in lines] == [name for name in ENTRIES if name not in skipped]
    return {name: Code(int(code)) for name, code in lines}


def test_null_results_and_handles_are_refused(run_program: Run) -> None:
    codes = call_all(run_program, "dict.fromkeys(entry.kinds, 0)")
    results = {name for name, entry in ENTRIES.items() if "result" in entry.kinds}
    assert {codes[name] for name in results} == {Code.ERROR_INVALID_VALUE}
    succeeded = {name for name in codes if codes[name] is Code.SUCCESS}
    # Stream 0, context 0, no bytes, no options: these arguments are possible.
    assert succeeded <= {name for name in ENTRIES if name.startswith(("cuMemcpy", "cuMemset"))} | {
        "cuInit", "cuProfilerStart", "cuProfilerStop", "cuCtxSetCurrent", "cuCtxSetFlags", "cuCtxSetLimit",
        "cuCtxSetCacheConfig", "cuCtxSetSharedMemConfig", "cuCtxSynchronize", "cuMemFree_v2", "cuStreamSynchronize",
        "cuStreamQuery", "cuMemGetInfo_v2", "cuPointerGetAttributes", "cuGetErrorName", "cuGetErrorString",
        "cuDevicePrimaryCtxSetFlags_v2", "cuDevicePrimaryCtxSetFlags", "cuDevicePrimaryCtxGetState",
        "cuDeviceComputeCapability", "cuCtxGetStreamPriorityRange", "cuDevicePrimaryCtxRelease_v2",
        "cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxReset_v2", "cuDevicePrimaryCtxReset", "cuCtxSynchronize_v2",
        "cuDeviceGraphMemTrim", "cuStreamCopyAttributes", "cuCtxResetPersistingL2Cache",
    }  # fmt: skip
    assert Code.ERROR_UNKNOWN not in codes.values()


def test_numbers_that_name_nothing_are_refused(run_program: Run) -> None:
    values = (
        "{'result': place, 'pointer': place, 'size': 1 << 62, 'int': -1, 'uint': 7, 'ushort': 7, 'byte': 7, **HANDLE}"
    )
    codes = call_all(run_program, values, CALL_ANYTHING)
    assert [name for name, code in codes.items() if code is Code.ERROR_UNKNOWN] == []
    handles = {name for name, code in codes.items() if code is Code.ERROR_INVALID_HANDLE}
    assert {"cuStreamSynchronize", "cuEventRecord", "cuLaunchKernel", "cuModuleUnload", "cuFuncGetAttribute"} <= handles


def test_a_device_that_does_not_exist_is_refused(run_program: Run) -> None:
    values = "{'result': place, 'pointer': place, 'size': 64, 'int': 77, 'uint': 0, 'ushort': 0, 'byte': 0, **HANDLE}"
    codes = call_all(run_program, values, CALL_ANYTHING)
    names = {name for name in ENTRIES if re.search(r"\bCUdevice(_v1)? (?!\*)", list_parameters(name))}
    assert len(names) > 20
    # These refuse the handle or the address first.
    handles = {name for name in names if name.startswith(("cuKernel", "cuMulticast", "cuMemPrefetch", "cuMemAdvise"))}
    assert {codes[name] for name in names - handles} == {Code.ERROR_INVALID_DEVICE}
    assert Code.SUCCESS not in {codes[name] for name in handles}


def test_mostly_wrong_arguments_end_in_codes(run_program: Run, seed: int) -> None:
    """`python -m tools.audit_arguments` makes many more calls."""
    process = run_program([sys.executable, str(PROGRAMS / "wrong_arguments.py"), str(seed), "6"])
    assert process.returncode == 0, process.stderr[-2000:]
    assert "Traceback" not in process.stderr
    codes = {name: set(map(int, words)) for name, *words in map(str.split, process.stdout.splitlines())}
    assert set(codes) == set(ENTRIES)
    assert [name for name, found in codes.items() if Code.ERROR_UNKNOWN in found] == []


def answer_zeros(direct: Direct, name: str, thread: Thread) -> Code:
    """Call an entry with room for its results and 0 for all else; return the code."""
    entry, room = ENTRIES[name], make_room(64)
    values = [ctypes.addressof(room) if kind == "result" else 0 for kind in entry.kinds]
    try:
        entry.answer(direct.driver, thread, *values)
    except DriverError as why:
        return why.code
    return Code.SUCCESS


WITHOUT_CONTEXT = re.compile(
    r"cu(Graph(?!Launch$)|Device|CtxCreate|CtxSetCurrent$|CtxGetCurrent$|CtxGetApiVersion$|MemPool|Multicast"
    r"|UserObject|ThreadExchange|Profiler|Init$|DriverGetVersion|GetError|GetExportTable|ModuleGetLoadingMode|Link(?!Create)"
    r"|(Func|Kernel)(GetName|GetParam|IsLoaded)|KernelSetCacheConfig|TensorMap(Replace|SetAllocation))"
)
"""Functions that need no context, or whose objects a program has only with one."""
WRONG_FIRST = {
    "cuLaunchKernelEx", "cuModuleLoad", "cuLibraryLoadFromFile", "cuMemAllocPitch_v2", "cuMemAllocManaged",
    "cuMemGetAllocationGranularity", "cuMemAddressReserve", "cuMemAddressFree", "cuMemCreate", "cuMemRelease",
    "cuMemRetainAllocationHandle", "cuMemGetAllocationPropertiesFromHandle", "cuMemMap", "cuMemUnmap", "cuMemSetAccess",
    "cuMemGetAccess", "cuMemGetDefaultMemPool", "cuMemGetMemPool", "cuMemSetMemPool",
}  # fmt: skip
"""Functions that refuse the other arguments first, or need no context either."""


def test_every_other_function_needs_a_context() -> None:
    names = [name for name in ENTRIES if not WITHOUT_CONTEXT.match(name) and name not in WRONG_FIRST]
    assert len(names) > 100
    codes = {name: answer_zeros(Direct(), name, Thread(0)) for name in names}
    assert {name: code for name, code in codes.items() if code != Code.ERROR_INVALID_CONTEXT} == {}


def test_a_capture_is_invalidated_by_calls_that_wait_or_allocate_and_by_no_others() -> None:
    found: dict[str, Status] = {}
    for name in ENTRIES:
        direct = Direct()
        direct.call("cuStreamBeginCapture_v2", direct.ask("cuStreamCreate", 1), 0)
        (capture,) = direct.driver.captures
        answer_zeros(direct, name, direct.driver.threads[1])
        found[name] = capture.status
    assert {name for name, status in found.items() if status is Status.INVALIDATED} == {
        "cuModuleLoad", "cuModuleLoadData", "cuModuleLoadFatBinary", "cuModuleLoadDataEx", "cuMemAlloc_v2",
        "cuMemAllocHost_v2", "cuMemHostAlloc", "cuMemFreeHost", "cuCtxSynchronize", "cuCtxSynchronize_v2",
    }  # fmt: skip
    assert {name for name, status in found.items() if status is Status.NONE} == {
        "cuDevicePrimaryCtxRelease_v2", "cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxReset_v2",
        "cuDevicePrimaryCtxReset",
    }  # fmt: skip
