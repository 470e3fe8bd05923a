"""Programs that ask for devices, contexts and memory, and what the driver answers."""

from __future__ import annotations

from tests.driver.conftest import Run

START = """\
import ctypes, uuid
from calls import *

def get(name, *arguments, first=True):
    result = ctypes.c_uint64()
    places = [ctypes.byref(result), *arguments] if first else [*arguments, ctypes.byref(result)]
    return try_call(name, *places) or result.value

def pair(name, *arguments, first=False):
    values = [ctypes.c_uint64(), ctypes.c_uint64()]
    places = list(map(ctypes.byref, values))
    code = try_call(name, *places, *arguments) if first else try_call(name, *arguments, *places)
    return code or tuple(value.value for value in values)

def text(name, *arguments):
    buffer = ctypes.create_string_buffer(b"x" * 40)
    call(name, buffer, *arguments)
    return buffer.value.decode()
"""


def _run(run_program: Run, program: str, **options: object) -> list[str]:
    process = run_program(START + program, **options)
    assert (process.returncode, process.stderr) == (0, "")
    return process.stdout.splitlines()


def test_devices(run_program: Run) -> None:
    program = """\
call("cuInit", 0)
print(get("cuDeviceGetCount"), get("cuDeviceGet", 1), get("cuDeviceGet", 2), get("cuDeviceGet", -1 & 0xFFFFFFFF))
print(text("cuDeviceGetName", 40, 1), text("cuDeviceGetName", 10, 1))
print(text("cuDeviceGetPCIBusId", 40, 0), text("cuDeviceGetPCIBusId", 40, 1))
print(get("cuDeviceGetByPCIBusId", b"0000:02:00.0"), get("cuDeviceGetByPCIBusId", b"0000:03:00.0"))
print(get("cuDeviceTotalMem_v2", 0) >> 30, pair("cuDeviceComputeCapability", 0, first=True))
print([get("cuDeviceCanAccessPeer", *both) for both in ((0, 0), (0, 1), (1, 0), (1, 2), (2, 1))])
identities = [ctypes.create_string_buffer(16) for _ in range(2)]
for ordinal, identity in enumerate(identities):
    call("cuDeviceGetUuid", identity, ordinal)
print(len({identity.raw for identity in identities}), uuid.UUID(bytes=identities[0].raw).version)
print([get("cuDeviceGetAttribute", number, 0) for number in (1, 10, 16, 33, 75, 76, 0, 162, 161)])
print(get("cuDeviceGetAttribute", 33, 1), get("cuDeviceGetAttribute", 33, 2), get("cuDriverGetVersion"))
"""
    assert _run(run_program, program, device="b200", count=2) == [
        "2 1 101 101", "NVIDIA B200 NVIDIA B2", "0000:01:00.0 0000:02:00.0", "1 101", "180 (10, 0)",
        "[0, 1, 1, 101, 101]", "2 5", "[1024, 32, 148, 1, 10, 0, 1, 1, 0]", "2 101 13050",
    ]  # fmt: skip


def test_contexts(run_program: Run) -> None:
    program = """\
call("cuInit", 0)
state = lambda: pair("cuDevicePrimaryCtxGetState", 0)
print([value & 0xFFFFFFFF for value in state()])
call("cuDevicePrimaryCtxSetFlags_v2", 0, 4)
first, again = get("cuDevicePrimaryCtxRetain", 0), get("cuDevicePrimaryCtxRetain", 0)
print(first == again, state(), get("cuCtxGetCurrent"), get("cuCtxGetDevice"), get("cuCtxPopCurrent_v2"))
call("cuCtxSetCurrent", first)
print(get("cuCtxGetCurrent") == first, get("cuCtxGetDevice"), get("cuCtxGetFlags"),
      get("cuCtxGetId", 0, first=False) == get("cuCtxGetId", first, first=False) > 0)
memory = get("cuMemAlloc_v2", 100)
call("cuDevicePrimaryCtxRelease_v2", 0)
print(state(), pair("cuMemGetAddressRange_v2", memory, first=True) == (memory, 100))
call("cuDevicePrimaryCtxRelease_v2", 0)
print(state(), pair("cuMemGetAddressRange_v2", memory, first=True), try_call("cuDevicePrimaryCtxRelease_v2", 0))
own = get("cuCtxCreate_v2", 8, 1)
print(own == get("cuCtxGetCurrent"), get("cuCtxGetDevice"), get("cuCtxGetFlags"),
      get("cuCtxGetApiVersion", own, first=False))
call("cuCtxSetFlags", 2)
call("cuCtxPushCurrent_v2", first)
print(get("cuCtxGetDevice"), try_call("cuCtxEnablePeerAccess", own, 0), try_call("cuCtxEnablePeerAccess", first, 0),
      try_call("cuCtxEnablePeerAccess", own, 1), try_call("cuCtxDisablePeerAccess", own),
      try_call("cuCtxDisablePeerAccess", 7))
print(get("cuCtxPopCurrent_v2") == first, get("cuCtxGetFlags"), get("cuCtxGetDevice"))
print([get("cuCtxGetLimit", limit) for limit in range(8)], try_call("cuCtxSetLimit", 1, 4096),
      try_call("cuCtxSetLimit", 7, 1))
print(get("cuCtxGetLimit", 1), [value - (1 << 32) * (value >> 31) for value in pair("cuCtxGetStreamPriorityRange")])
print(get("cuCtxGetCacheConfig"), try_call("cuCtxDestroy_v2", first), try_call("cuCtxDestroy_v2", own))
print(try_call("cuCtxDestroy_v2", own), try_call("cuCtxSetCurrent", own), get("cuCtxGetCurrent") == first,
      try_call("cuCtxSynchronize"))
"""
    assert _run(run_program, program, count=2) == [
        "[0, 0]", "True (4, 1) 0 201 201", "True 0 4 True", "(4, 1) True", "(4, 0) 500 201", "True 1 8 4",
        "0 0 101 1 0 201", "True 2 1", "[1024, 1048576, 8388608, 2, 2048, 128, 0, 1] 0 1", "4096 [0, -5]", "0 201 0",
        "709 709 True 0",
    ]  # fmt: skip


def test_a_reset_frees_the_memory_of_its_device_only(run_program: Run) -> None:
    program = """\
call("cuInit", 0)
contexts, blocks = [get("cuDevicePrimaryCtxRetain", device) for device in (0, 1)], []
for context in contexts:
    call("cuCtxSetCurrent", context)
    blocks.append(get("cuMemAlloc_v2", 100))
for device in (0, 1):
    call("cuDevicePrimaryCtxReset_v2", device)
    print([try_call("cuMemGetAddressRange_v2", 0, 0, block) for block in blocks])
"""
    assert _run(run_program, program, count=2) == ["[500, 0]", "[500, 500]"]


def test_memory(run_program: Run) -> None:
    program = """\
start()
free, total = pair("cuMemGetInfo_v2")
memory = get("cuMemAlloc_v2", 1000)
print(total >> 30, free == total, total - pair("cuMemGetInfo_v2")[0])
print([pair("cuMemGetAddressRange_v2", memory + at, first=True) for at in (1000,)], [
    pair("cuMemGetAddressRange_v2", memory + at, first=True) == (memory, 1000) for at in (0, 999)])
print(try_call("cuMemFree_v2", memory + 4), try_call("cuMemFree_v2", 0), try_call("cuMemFreeHost", memory))
print(try_call("cuMemFree_v2", memory), try_call("cuMemFree_v2", memory), pair("cuMemGetInfo_v2") == (free, total))
pointer, pitch = pair("cuMemAllocPitch_v2", 100, 3, 4, first=True)
print(pitch, pair("cuMemGetAddressRange_v2", pointer, first=True) == (pointer, 3 * pitch))
print(get("cuMemAlloc_v2", 0), [get("cuMemAllocManaged", 8, flags) < 1000 for flags in (0, 1, 2, 3)])
host = get("cuMemHostAlloc", 64, 0)
print(get("cuMemHostGetFlags", host), get("cuMemHostGetFlags", 4096),
      get("cuMemHostGetDevicePointer_v2", host, 0) == host, get("cuMemHostGetDevicePointer_v2", host, 1),
      get("cuMemHostGetDevicePointer_v2", 4096, 0))
print(try_call("cuMemHostUnregister", host), try_call("cuMemFreeHost", host), try_call("cuMemFreeHost", host))
buffer = ctypes.create_string_buffer(64)
place = ctypes.addressof(buffer)
print(try_call("cuMemHostRegister_v2", place, 0, 0), try_call("cuMemHostRegister_v2", 0, 64, 0),
      try_call("cuMemHostRegister_v2", place, 64, 0),
      pair("cuMemGetAddressRange_v2", place + 9, first=True) == (place, 64),
      try_call("cuMemFreeHost", place), try_call("cuMemHostUnregister", place), try_call("cuMemHostUnregister", place))
"""
    assert _run(run_program, program) == [
        "80 True 1000", "[500] [True, True]", "1 0 1", "0 1 True", "512 True", "1 [True, False, False, True]",
        "0 1 True 1 1", "713 0 1", "1 1 0 True 1 0 713",
    ]  # fmt: skip


PAIR = """\
.version 8.0
.target sm_80
.address_size 64
.global .align 8 .b64 total[4];
.visible .entry first(.param .u32 n, .param .u64 out, .param .align 16 .b8 many[24])
.maxntid 128, 1, 1
{
.shared .b32 box[100];
.reg .b32 %r;
mov.u32 %r, box;
st.shared.u32 [%r], %r;
ret;
}
.visible .entry second() { ret; }
"""


def test_kernels_and_libraries(run_program: Run) -> None:
    program = f"""\
start()
TEXT = ctypes.create_string_buffer({PAIR.encode()!r})
open("pair.ptx", "wb").write(TEXT.value)
library = get("cuLibraryLoadData", TEXT, None, None, 0, None, None, 0)
other = get("cuLibraryLoadFromFile", b"pair.ptx", None, None, 0, None, None, 0)
print(library != other, get("cuLibraryLoadFromFile", b"none.ptx", None, None, 0, None, None, 0))
print(get("cuLibraryGetKernelCount", library), get("cuLibraryGetModule", library) == library)
first, second = (get("cuLibraryGetKernel", library, name) for name in (b"first", b"second"))
found = (ctypes.c_uint64 * 3)(1, 1, 1)
call("cuLibraryEnumerateKernels", found, 1, library)
print([value == first for value in found], found[1])
call("cuLibraryEnumerateKernels", found, 3, library)
print(list(found) == [first, second, 1], get("cuLibraryGetKernel", library, b"third"))
print(get("cuKernelGetFunction", first) == first, get("cuKernelGetLibrary", first) == library,
      get("cuModuleGetLoadingMode"))
for kernel in (first, second):
    print(ctypes.string_at(get("cuKernelGetName", kernel)).decode(), get("cuKernelGetParamCount", kernel, first=False),
          [pair("cuKernelGetParamInfo", kernel, index) for index in range(4)])
place, size = pair("cuLibraryGetGlobal", library, b"total", first=True)
print(place > 0, size, pair("cuLibraryGetGlobal", library, b"n", first=True))
print([get("cuFuncGetAttribute", number, first) for number in (0, 1, 2, 5, 8, 99)],
      get("cuFuncGetAttribute", 0, second))
most = 166912 - 400
print([try_call("cuFuncSetAttribute", first, 8, value) for value in (most, most + 1, 5000)],
      get("cuFuncGetAttribute", 8, first))
print(try_call("cuKernelSetAttribute", 8, 6000, first, 0), get("cuKernelGetAttribute", 8, first, 0),
      try_call("cuFuncSetAttribute", first, 0, 1))
print(try_call("cuFuncLoad", first), get("cuFuncIsLoaded", first),
      try_call("cuFuncSetCacheConfig", first, 1))
call("cuLibraryUnload", library)
print(get("cuKernelGetFunction", first), try_call("cuLibraryUnload", library), get("cuLibraryGetKernelCount", other))
"""
    assert _run(run_program, program, device="a100") == [
        "True 301", "2 True", "[True, False, False] 1", "True 500", "True True 1",
        "first 3 [(0, 4), (8, 8), (16, 24), 1]", "second 0 [1, 1, 1, 1]", "True 32 500",
        "[128, 400, 0, 80, 48752, 1] 1024", "[0, 1, 0] 5000", "0 6000 1", "0 1 0", "400 400 2",
    ]  # fmt: skip


def test_streams(run_program: Run) -> None:
    program = """\
start()
current = get("cuCtxGetCurrent")
plain, urgent = get("cuStreamCreate", 1), get("cuStreamCreateWithPriority", 0, -3)
signed = lambda value: value - (1 << 32) * (value >> 31)
for stream in (0, plain, urgent):
    print(*(get(f"cuStreamGet{name}", stream, first=False) for name in ("Flags", "Device")),
          signed(get("cuStreamGetPriority", stream, first=False)),
          get("cuStreamGetCtx", stream, first=False) == current,
          pair("cuStreamGetCtx_v2", stream) == (current, 0))
names = [get("cuStreamGetId", stream, first=False) for stream in (0, plain, urgent)]
print(len(set(names)), get("cuStreamGetId", 77, first=False), try_call("cuStreamDestroy_v2", plain))
print(try_call("cuStreamDestroy_v2", plain), try_call("cuStreamQuery", plain), try_call("cuStreamQuery", urgent))
event, plain = get("cuEventCreate", 0), get("cuEventCreate", 2)
print(try_call("cuEventDestroy_v2", event), try_call("cuEventDestroy_v2", event),
      try_call("cuEventQuery", plain))
"""
    assert _run(run_program, program) == [
        "0 0 0 True True", "1 0 0 True True", "0 0 -3 True True", "3 400 0", "400 400 0", "0 400 0"
    ]  # fmt: skip


def test_every_memset_and_copy_moves_its_bytes(run_program: Run) -> None:
    program = """\
start()
stream, context = get("cuStreamCreate", 0), get("cuCtxGetCurrent")
one, two = get("cuMemAlloc_v2", 64), get("cuMemAlloc_v2", 64)
start_bytes = bytes(range(64))

def read(address):
    call("cuStreamSynchronize", stream)
    result = ctypes.create_string_buffer(64)
    call("cuMemcpyDtoH_v2", result, address, 64)
    return result.raw

def fill(name, size, rows):
    value = 0x87654321 & (1 << 8 * size) - 1
    for suffix, extra in (("_v2", ()), ("Async", (stream,))):
        call("cuMemcpyHtoD_v2", one, start_bytes, 64)
        place = (one + 8, 16) if rows else (one + 8,)
        call(f"cuMemset{name}{suffix}", *place, value, 3, *([2] if rows else []), *extra)
        expected = bytearray(start_bytes)
        for row in range(2 if rows else 1):
            expected[8 + 16 * row : 8 + 16 * row + 3 * size] = value.to_bytes(size, "little") * 3
        yield read(one) == bytes(expected)

for rows in (False, True):
    print([flag for size in (1, 2, 4) for flag in fill(f"{'D2D' if rows else 'D'}{8 * size}", size, rows)])
COPIES = {
    "cuMemcpy": (two + 4, one, 9), "cuMemcpyAsync": (two + 4, one, 9, stream), "cuMemcpyDtoD_v2": (two + 4, one, 9),
    "cuMemcpyDtoDAsync_v2": (two + 4, one, 9, stream), "cuMemcpyPeer": (two + 4, context, one, context, 9),
    "cuMemcpyPeerAsync": (two + 4, context, one, context, 9, stream),
}
for name, arguments in COPIES.items():
    call("cuMemcpyHtoD_v2", one, start_bytes, 64)
    call("cuMemsetD8_v2", two, 0, 64)
    call(name, *arguments)
    print(read(two) == bytes(4) + start_bytes[:9] + bytes(51), end=" ")
"""
    assert _run(run_program, program) == [f"{[True] * 6}"] * 2 + ["True " * 6]


def test_hints_about_memory_are_accepted_for_known_memory(run_program: Run) -> None:
    program = """\
start()
memory = ask("cuMemAllocManaged", 400, 1)
location = 1
for address, size in ((memory, 400), (memory, 401), (5, 1), (memory, 0)):
    print(
        try_call("cuMemAdvise", address, size, 1, 0), try_call("cuMemAdvise_v2", address, size, 1, location),
        try_call("cuMemPrefetchAsync", address, size, 0, 0), try_call("cuMemPrefetchAsync_v2", address, size, 1, 0, 0),
        try_call("cuStreamAttachMemAsync", 0, address, size, 1),
    )
print(try_call("cuMemPrefetchAsync", memory, 4, 0, 7))
flag = ctypes.c_uint(1)
choices = (6, memory), (7, memory), (6, 5)
print([try_call("cuPointerSetAttribute", ctypes.byref(flag), *choice) for choice in choices])
"""
    assert _run(run_program, program) == ["0 0 0 0 0", "1 1 1 1 1", "1 1 1 1 1", "1 1 1 1 0", "400", "[0, 1, 1]"]


def test_a_cooperative_launch(run_program: Run) -> None:
    program = """\
start()
text = '''.version 8.0
.target sm_80
.address_size 64
.visible .entry size(.param .u64 out)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %envreg1;
    mov.u32 %r1, %nctaid.x;
    st.global.u32 [%rd1], %r1;
    ret;
}
'''
kernel, memory = load(text, "size"), ask("cuMemAlloc_v2", 4)
value = ctypes.c_uint64(memory)
parameters = (ctypes.c_void_p * 1)(ctypes.addressof(value))
print(try_call("cuLaunchCooperativeKernel", kernel, 1, 1, 1, 32, 1, 1, 0, 0, parameters))
result = ctypes.c_uint32()
call("cuMemcpyDtoH_v2", ctypes.byref(result), memory, 4)
print(result.value, try_call("cuLaunchCooperativeKernel", kernel, 0, 1, 1, 32, 1, 1, 0, 0, parameters))
"""
    assert _run(run_program, program) == ["0", "1 1"]


def test_attributes_of_two_devices_say_that_they_are_peers(run_program: Run) -> None:
    program = """\
import ctypes
from calls import *
start()
value = ctypes.c_int()
def get(attribute, device, peer):
    return try_call("cuDeviceGetP2PAttribute", ctypes.byref(value), attribute, device, peer) or f"={value.value}"
print([get(attribute, 0, 1) for attribute in range(6)], get(2, 0, 0), get(2, 0, 2))
"""
    process = run_program(program, count=2)
    assert process.stdout == "[1, '=0', '=1', '=1', '=0', 1] 101 101\n", process.stderr


def test_attributes_of_addresses_need_a_context(run_program: Run) -> None:
    program = """\
from calls import *
call("cuInit", 0)
out = ctypes.byref(ctypes.c_uint64())
print([try_call(name, *words) for name, *words in (
    ("cuPointerGetAttribute", out, 2, 4096), ("cuPointerGetAttributes", 0, None, None, 4096),
    ("cuPointerSetAttribute", out, 6, 4096))])
"""
    assert run_program(program).stdout == "[201, 201, 201]\n"
