"""Programs that allocate from memory pools."""

from __future__ import annotations

from tests.driver.conftest import Run

START = """\
import ctypes, struct
from calls import *
start()
stream = ask("cuStreamCreate", 1)

def get(pool, *attributes):
    return [ask_after("cuMemPoolGetAttribute", pool, attribute) for attribute in attributes]

def ask_after(name, *arguments):
    result = ctypes.c_uint64()
    call(name, *arguments, ctypes.byref(result))
    return result.value

def create(kind=1, place=1, ordinal=0, limit=0, shareable=0):
    properties = struct.pack("<IIiiQQH54x", kind, shareable, place, ordinal, 0, limit, 0)
    result = ctypes.c_uint64()
    return try_call("cuMemPoolCreate", ctypes.byref(result), properties), result.value

def take(size, pool):
    result = ctypes.c_uint64()
    return try_call("cuMemAllocFromPoolAsync", ctypes.byref(result), size, pool, stream), result.value

RESERVED, RESERVED_HIGH, USED, USED_HIGH = 5, 6, 7, 8
MIB = 1 << 20
"""


def run(run_program: Run, program: str) -> str:
    process = run_program(START + program)
    assert (process.returncode, process.stderr) == (0, "")
    return process.stdout


def test_a_pool_counts_the_bytes_in_use_and_reserved(run_program: Run) -> None:
    program = """\
pool = ask("cuDeviceGetMemPool", 0)
print(pool == ask("cuDeviceGetDefaultMemPool", 0), get(pool, RESERVED, RESERVED_HIGH, USED, USED_HIGH))
a, b = ask("cuMemAllocAsync", 1000, stream), ask("cuMemAllocAsync", 3 * MIB, stream)
print([value / MIB for value in get(pool, RESERVED, RESERVED_HIGH)], get(pool, USED, USED_HIGH))
call("cuMemFreeAsync", b, stream)
print([value / MIB for value in get(pool, RESERVED, RESERVED_HIGH)], get(pool, USED, USED_HIGH))
call("cuMemPoolSetAttribute", pool, USED_HIGH, ctypes.byref(ctypes.c_uint64(0)))
call("cuStreamSynchronize", stream)
print([value / MIB for value in get(pool, RESERVED, RESERVED_HIGH)], get(pool, USED, USED_HIGH))
call("cuMemFree_v2", a)
print(get(pool, RESERVED, USED))
"""
    assert run(run_program, program).splitlines() == [
        "True [0, 0, 0, 0]",
        "[4.0, 4.0] [3146752, 3146752]",
        "[4.0, 4.0] [1024, 3146752]",
        "[2.0, 4.0] [1024, 1024]",
        "[2097152, 0]",
    ]


def test_a_threshold_keeps_memory_until_it_is_trimmed(run_program: Run) -> None:
    program = """\
_, pool = create()
call("cuMemPoolSetAttribute", pool, 4, ctypes.byref(ctypes.c_uint64(6 * MIB)))
_, block = take(9 * MIB, pool)
call("cuMemFreeAsync", block, stream)
call("cuCtxSynchronize")
print([value // MIB for value in get(pool, 4, RESERVED)])
call("cuMemPoolTrimTo", pool, 3 * MIB)
print(get(pool, RESERVED)[0] // MIB)
call("cuMemPoolTrimTo", pool, 0)
print(get(pool, RESERVED)[0] // MIB)
"""
    assert run(run_program, program) == "[6, 6]\n4\n0\n"


def test_a_limited_pool_runs_out_of_memory(run_program: Run) -> None:
    program = """\
_, pool = create(limit=1 * MIB)
print(take(MIB // 2, pool)[0], take(MIB, pool)[0], get(pool, USED, 13))
"""
    assert run(run_program, program) == f"0 2 [{1 << 19}, {1 << 20}]\n"


def test_pools_of_other_memory_are_the_hosts(run_program: Run) -> None:
    program = """\
def describe(address):
    managed, kind, pool = ctypes.c_uint8(), ctypes.c_uint32(), ctypes.c_uint64()
    for value, attribute in ((managed, 8), (kind, 2), (pool, 17)):
        call("cuPointerGetAttribute", ctypes.byref(value), attribute, address)
    ctypes.memset(address, 1, 100)
    return managed.value, kind.value, pool.value

for pool in create(kind=1, place=2)[1], create(kind=2, place=0)[1], ask("cuMemGetMemPool", struct.pack("<ii", 2, 0), 1):
    _, block = take(100, pool)
    managed, kind, owner = describe(block)
    print(managed, kind, owner == pool, get(pool, 9, 12))
    call("cuMemFreeAsync", block, stream)
    print(try_call("cuMemFreeAsync", block, stream), get(pool, USED))
print(describe(ask("cuMemAllocManaged", 100, 1))[2])
"""
    lines = ["0 1 True [1, 2]", "1 [0]", "1 2 True [2, 0]", "1 [0]", "0 1 True [1, 2]", "1 [0]", "0"]
    assert run(run_program, program).splitlines() == lines


def test_the_pool_of_a_device_can_be_replaced(run_program: Run) -> None:
    program = """\
default = ask("cuDeviceGetDefaultMemPool", 0)
_, pool = create()
call("cuDeviceSetMemPool", 0, pool)
ask("cuMemAllocAsync", 512, stream)
print(ask("cuDeviceGetMemPool", 0) == pool, get(pool, USED), get(default, USED))
call("cuMemPoolDestroy", pool)
print(ask("cuDeviceGetMemPool", 0) == default, [try_call("cuMemPoolDestroy", other) for other in (default, pool)])
print(try_call("cuDeviceSetMemPool", 0, create(place=2)[1]))
"""
    assert run(run_program, program) == "True [512] [0]\nTrue [1, 1]\n1\n"


def test_access_is_a_setting_of_each_device(run_program: Run) -> None:
    program = """\
_, pool = create()

def read_access(ordinal):
    result = ctypes.c_int()
    call("cuMemPoolGetAccess", ctypes.byref(result), pool, struct.pack("<ii", 1, ordinal))
    return result.value

print(read_access(0), read_access(1))
call("cuMemPoolSetAccess", pool, struct.pack("<iiI", 1, 1, 3), 1)
print(read_access(0), read_access(1), try_call("cuMemPoolSetAccess", pool, struct.pack("<iiI", 1, 0, 0), 1))
print(try_call("cuMemPoolSetAccess", pool, struct.pack("<iiI", 1, 7, 3), 1))
"""
    process = run_program(START + program, count=2)
    assert process.stdout == "3 0\n3 3 1\n101\n"


def test_sharing_with_other_processes_is_refused(run_program: Run) -> None:
    process = run_program(START + "print(create(shareable=1)[0])")
    assert process.stdout == "801\n"
    assert process.stderr == (
        "pyptx: cuMemPoolCreate: memory pools of the simulated driver cannot be shared with other processes\n"
    )


def test_wrong_properties_are_refused(run_program: Run) -> None:
    program = """\
print([create(**options)[0] for options in (dict(kind=3), dict(place=0), dict(place=9), dict(kind=2, limit=MIB))])
print(create(ordinal=5)[0])
"""
    assert run(run_program, program) == "[1, 1, 1, 1]\n101\n"


def test_every_attribute_of_a_pool_has_its_size(run_program: Run) -> None:
    program = """\
def read(attribute):
    buffer = ctypes.create_string_buffer(b"\\xee" * 16, 16)
    code = try_call("cuMemPoolGetAttribute", pool, attribute, buffer)
    size = 16 - len(buffer.raw) + len(buffer.raw.rstrip(b"\\xee"))
    return code or (size, int.from_bytes(buffer.raw[:size], "little"))

def set_value(attribute, value):
    return try_call("cuMemPoolSetAttribute", pool, attribute, struct.pack("<Q", value))

pool = create(kind=1, place=1, ordinal=1, limit=9 * MIB)[1]
take(3 * MIB, pool)
print([read(attribute) for attribute in range(14)])
print([set_value(attribute, value) for attribute, value in ((1, 0), (2, 0), (3, 0), (4, 5 * MIB))])
print([read(attribute) for attribute in (1, 2, 3, 4)])
print([set_value(attribute, 0) for attribute in (0, 5, 6, 7, 8, 9, 13)], [set_value(high, 1) for high in (6, 8)])
"""
    mib = 1 << 20
    process = run_program(START + program, count=2)
    assert process.stdout.splitlines() == [
        str([
            1, (4, 1), (4, 1), (4, 1), (8, 0), (8, 4 * mib), (8, 4 * mib), (8, 3 * mib), (8, 3 * mib), (4, 1), (4, 0),
            (4, 1), (4, 1), (8, 9 * mib),
        ]),
        "[0, 0, 0, 0]", str([(4, 0), (4, 0), (4, 0), (8, 5 * mib)]), "[1, 1, 0, 1, 0, 1, 1] [1, 1]",
    ]  # fmt: skip


def test_the_pool_of_a_location_can_be_replaced(run_program: Run) -> None:
    program = """\
def choose(place, ordinal, kind, pool):
    return try_call("cuMemSetMemPool", struct.pack("<ii", place, ordinal), kind, pool)

def ask_pool(name, place, ordinal, kind):
    return ask(f"cuMemGet{name}", struct.pack("<ii", place, ordinal), kind)

for place, ordinal, kind in ((1, 0, 1), (2, 0, 1), (1, 0, 2), (0, 0, 2)):
    default, pool = ask_pool("DefaultMemPool", place, ordinal, kind), create(kind=kind, place=place, ordinal=ordinal)[1]
    print(ask_pool("MemPool", place, ordinal, kind) == default != pool, choose(place, ordinal, 3 - kind, pool), end=" ")
    print(choose(place, ordinal, kind, pool), ask_pool("MemPool", place, ordinal, kind) == pool, end=" ")
    print(ask_pool("DefaultMemPool", place, ordinal, kind) == default, get(pool, 9, 11, 12) == [kind, ordinal, place])
print(ask_pool("DefaultMemPool", 1, 0, 1) == ask("cuDeviceGetDefaultMemPool", 0))
print(ask_pool("MemPool", 1, 0, 1) == ask("cuDeviceGetMemPool", 0), choose(1, 1, 1, ask("cuDeviceGetMemPool", 0)))
"""
    assert run(run_program, program).splitlines() == ["True 1 0 True True True"] * 4 + ["True", "True 1"]
