"""Programs that ask for the attributes of addresses."""

from __future__ import annotations

from tests.driver.conftest import Run

START = """\
import struct
from calls import *
start()
context = ask("cuDevicePrimaryCtxRetain", 1)
call("cuCtxSetCurrent", context)
# The numbers of attributes and the sizes of their values in `cuda.h`.
SIZES = {1: 8, 2: 4, 3: 8, 4: 8, 6: 1, 7: 8, 8: 1, 9: 4, 10: 1, 11: 8, 12: 8, 13: 1, 14: 8, 15: 1, 16: 4, 17: 8}

def read(attribute, address):
    code, values = [], []
    for filler in (b"\\x11", b"\\xee"):
        buffer = ctypes.create_string_buffer(filler * 16, 16)
        code.append(try_call("cuPointerGetAttribute", buffer, attribute, address))
        values.append(buffer.raw)
    size = next(index for index in range(17) if index == 16 or values[0][index] != values[1][index])
    return (size, int.from_bytes(values[0][:size], "little")) if code == [0, 0] else code[0]

def read_all(attributes, address, filler):
    numbers = (ctypes.c_int * len(attributes))(*attributes)
    buffers = [ctypes.create_string_buffer(filler * 16, 16) for _ in attributes]
    places = (ctypes.c_uint64 * len(attributes))(*map(ctypes.addressof, buffers))
    code = try_call("cuPointerGetAttributes", len(attributes), numbers, places, address)
    return code or [buffer.raw for buffer in buffers]
"""


def _run(run_program: Run, program: str) -> str:
    process = run_program(START + program, count=2)
    assert (process.returncode, process.stderr) == (0, "")
    return process.stdout


def test_each_kind_of_memory_has_its_attributes(run_program: Run) -> None:
    program = """\
device, managed, host = ask("cuMemAlloc_v2", 640), ask("cuMemAllocManaged", 72, 1), ask("cuMemAllocHost_v2", 80)
buffer = ctypes.create_string_buffer(96)
registered = ctypes.addressof(buffer)
call("cuMemHostRegister_v2", registered, 96, 0)
unit = 2 << 20
mapped = ask("cuMemAddressReserve", unit, 0, 0, 0)
call("cuMemMap", mapped, unit, 0, ask("cuMemCreate", unit, struct.pack("<IIiiQQ", 1, 0, 1, 1, 0, 0), 0), 0)
call("cuMemSetAccess", mapped, unit, struct.pack("<iiI", 1, 1, 3), 1)
blocks = (device, 640), (managed, 72), (host, 80), (registered, 96), (mapped, unit)
for number, (base, size) in enumerate(blocks, 1):
    address, is_device = base + 5, base in (device, managed, mapped)
    values = {
        1: context, 2: 2 if is_device else 1, 3: address, 4: 0 if base in (device, mapped) else address, 6: 0,
        7: number, 8: int(base == managed), 9: 1, 10: 0, 11: base, 12: size, 13: 1, 14: 0, 15: 0, 16: 3, 17: 0,
    }
    found = {attribute: read(attribute, address) for attribute in range(22)}
    expected = {attribute: (SIZES[attribute], values[attribute]) if attribute in values else 1 for attribute in found}
    print({attribute: value for attribute, value in found.items() if value != expected[attribute]}, end=" ")
    together = read_all(list(SIZES), address, b"\\xee")
    print(together == [
        values[attribute].to_bytes(size, "little").ljust(16, b"\\xee") for attribute, size in SIZES.items()])
print(read_all([3, 5], device, b"\\0"), [read(3, address) for address in (device - 1, device + 640)])
"""
    assert _run(run_program, program).splitlines() == ["{} True"] * 5 + ["1 [1, 1]"]


def test_attributes_of_other_memory_are_zeros_of_their_sizes(run_program: Run) -> None:
    program = """\
address = ctypes.addressof(ctypes.create_string_buffer(64))
print(read_all(list(SIZES), address, b"\\xee") == [bytes(size).ljust(16, b"\\xee") for size in SIZES.values()])
print(read_all([2, 5], address, b"\\0"), [read(attribute, address) for attribute in SIZES] == [1] * len(SIZES))
"""
    assert _run(run_program, program) == "True\n1 True\n"
