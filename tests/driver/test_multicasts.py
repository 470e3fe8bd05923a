"""Programs whose kernels on several devices use multicast objects."""

from __future__ import annotations

import re

import pytest

from tests.driver.conftest import Run

START = """\
import ctypes, os, struct, threading
from calls import *
call("cuInit", 0)
UNIT = 2 << 20
contexts = [ask("cuDevicePrimaryCtxRetain", device) for device in range(COUNT)]
properties = [struct.pack("<IIiiQQ", 1, 0, 1, device, 0, 0) for device in range(COUNT)]

def describe(team, size=UNIT, handles=0, flags=0):
    return struct.pack("<I4xQQQ", team, size, handles, flags)

def map_at(handle, devices):
    base = ask("cuMemAddressReserve", UNIT, 0, 0, 0)
    call("cuMemMap", base, UNIT, 0, handle, 0)
    access = b"".join(struct.pack("<iiI", 1, device, 3) for device in devices)
    call("cuMemSetAccess", base, UNIT, access, len(devices))
    return base

def make_team(count):
    team = ask("cuMulticastCreate", describe(count))
    for device in range(count):
        call("cuMulticastAddDevice", team, device)
    return team

call("cuCtxSetCurrent", contexts[0])
"""
LAUNCHES = """\
text = '''
.version 8.4
.target sm_90
.address_size 64
.visible .entry reduce(.param .u64 mine, .param .u64 team, .param .u32 rank)
{
    .reg .b32 %r<6>;
    .reg .f32 %f<3>;
    .reg .b64 %rd<8>;
    .reg .pred %p<3>;
    ld.param.u64 %rd1, [mine];
    ld.param.u64 %rd2, [team];
    ld.param.u32 %r1, [rank];
    mov.u32 %r2, %tid.x;
    mul.wide.u32 %rd3, %r2, 4;
    add.u64 %rd4, %rd1, %rd3;
    mad.lo.u32 %r3, %r1, 100, %r2;
    cvt.rn.f32.u32 %f1, %r3;
    st.global.f32 [%rd4], %f1;
    setp.ne.u32 %p1, %r2, 0;
    bar.sync 0;
    @%p1 bra FIRST;
    multimem.red.FIRST.sys.global.add.u32 [%rd2 + 4096], 1;
POLL:
    ld.acquire.sys.global.u32 %r4, [%rd1 + 4096];
    setp.ne.u32 %p2, %r4, TEAM;
    @%p2 bra POLL;
FIRST:
    bar.sync 0;
    shr.u32 %r5, %r2, 5;
    setp.ne.u32 %p2, %r5, %r1;
    @%p2 bra DONE;
    add.u64 %rd5, %rd2, %rd3;
    multimem.ld_reduce.relaxed.sys.global.add.f32 %f2, [%rd5];
    multimem.st.relaxed.sys.global.f32 [%rd5], %f2;
DONE:
    ret;
}
'''
physical = [ask("cuMemCreate", UNIT, item, 0) for item in properties]
team = make_team(COUNT)
memory = [map_at(physical[device], [device]) for device in range(COUNT)]
for device in range(COUNT):
    if device % 2:
        call("cuMulticastBindAddr", team, 0, memory[device], UNIT, 0)
    else:
        call("cuMulticastBindMem", team, 0, physical[device], 0, UNIT, 0)
shared = map_at(team, ALLOWED)
for device, context in enumerate(contexts):
    call("cuCtxSetCurrent", context)
    kernel = load(text.replace("red.FIRST", "red." + FIRST).replace("TEAM", str(COUNT)), "reduce")
    number = ctypes.c_uint32(device)
    print(launch(kernel, 1, 32 * COUNT + 32, memory[device], shared, number, stream=ask("cuStreamCreate", 1)))
"""
RESULTS = """\
for device, context in enumerate(contexts):
    call("cuCtxSetCurrent", context)
    print(try_call("cuCtxSynchronize"))
result = (ctypes.c_float * (32 * COUNT))()
expected = [sum(100 * device + lane for device in range(COUNT)) for lane in range(32 * COUNT)]
for address in memory:
    if not try_call("cuMemcpyDtoH_v2", result, address, 128 * COUNT):
        print(list(result) == expected)
"""


def test_devices_sum_their_replicas(run_program: Run) -> None:
    program = "COUNT, ALLOWED, FIRST = 3, [0, 1, 2], 'release'\n" + START + LAUNCHES + RESULTS
    process = run_program(program, order="deferred", count=3)
    assert (process.stdout, process.stderr) == ("0\n" * 6 + "True\n" * 3, "")


def test_a_race_with_the_memory_of_a_replica_is_found(run_program: Run) -> None:
    program = "COUNT, ALLOWED, FIRST = 2, [0, 1], 'relaxed'\n" + START + LAUNCHES + RESULTS
    process = run_program(program, order="deferred", count=2)
    assert re.findall(r"<ptx>:(\d+):5: error\[(PTX\d+)\]", process.stderr) == [("34", "PTX0901")]
    assert "st.global.f32` at <ptx>:19:5" in process.stderr


WITHOUT_WAITING = """\
result = (ctypes.c_float * (32 * COUNT))()
stream, other = ask("cuStreamCreate", 1), ask("cuStreamCreate", 1)
call("cuMemFreeAsync", ask("cuMemAllocAsync", 4, other), other)
call("cuStreamSynchronize", other)
call("cuMemcpyDtoHAsync_v2", result, memory[0] + 128 * COUNT, 128, stream)
call("cuStreamSynchronize", stream)
"""
"""All kernels run before memory is freed, but the copy waits for none of them. It reads what the last warp of device 0
has stored, which only the kernel of device 1 has waited for."""


def test_what_a_kernel_has_observed_orders_only_work_after_that_kernel(run_program: Run) -> None:
    program = "COUNT, ALLOWED, FIRST = 2, [0, 1], 'release'\n" + START + LAUNCHES + WITHOUT_WAITING
    process = run_program(program, order="deferred", count=2)
    assert sorted(set(re.findall(r"error\[(PTX\d+)\]", process.stderr))) == ["PTX1301"]
    assert re.search(r"the copy of \d+ bytes .*reads .*, which the launch of `reduce` .*writes", process.stderr)


def test_a_device_needs_access_to_the_mapping(run_program: Run) -> None:
    program = "COUNT, ALLOWED, FIRST = 2, [0], 'release'\n" + START + LAUNCHES + RESULTS
    process = run_program(program, order="deferred", count=2)
    assert process.stdout.splitlines()[2:] == ["700", "700"]
    assert "error[PTX1110]: `multimem.red.release.sys.global.add.u32` at 0x" in process.stderr
    assert "device 1 may not access this mapping of the multicast object, see cuMemSetAccess" in process.stderr


STORE = """\
kernel = load('''
.version 8.4
.target sm_90
.address_size 64
.visible .entry store(.param .u64 team)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [team];
    mov.u32 %r1, 7;
    STORE [%rd1], %r1;
    ret;
}
'''.replace("STORE", INSTRUCTION), "store")
physical = [ask("cuMemCreate", UNIT, item, 0) for item in properties]
team = make_team(2)
"""


def test_memory_without_a_mapping_is_a_replica(run_program: Run) -> None:
    program = """\
call("cuMulticastBindMem_v2", team, 0, 0, physical[0], 0, UNIT, 0)
call("cuMulticastBindMem_v2", team, 1, 0, physical[1], 0, UNIT, 0)
print(launch(kernel, 1, 1, map_at(team, [0])))
for device in range(2):
    value = ctypes.c_uint32()
    call("cuMemcpyDtoH_v2", ctypes.byref(value), map_at(physical[device], [device]), 4)
    print(value.value)
"""
    process = run_program("COUNT, INSTRUCTION = 2, 'multimem.st.global.u32'\n" + START + STORE + program, count=2)
    assert (process.stdout, process.stderr) == ("0\n7\n7\n", "")


@pytest.mark.parametrize(
    ("instruction", "message"),
    [
        ("multimem.st.global.u32", "only 1 of 2 devices have memory bound to the multicast object here"),
        ("st.global.u32", "an address of a multicast object, which only `multimem` instructions access"),
    ],
)
def test_accesses_that_reach_no_replica_fail(run_program: Run, instruction: str, message: str) -> None:
    program = f"COUNT, INSTRUCTION = 2, {instruction!r}\n" + START + STORE
    program += "call('cuMulticastBindMem', team, 0, physical[0], 0, UNIT, 0)\n"
    program += "print(launch(kernel, 1, 1, map_at(team, [0])))\n"
    process = run_program(program, count=2)
    assert process.stdout == "700\n"
    assert re.findall(r"\[(PTX\d+)\]", process.stderr) == ["PTX1110"]
    assert message in process.stderr


def test_objects_live_until_nothing_uses_them(run_program: Run) -> None:
    program = """\
def count_free():
    free, total = ctypes.c_uint64(), ctypes.c_uint64()
    call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    return (total.value - free.value) // UNIT

team = make_team(1)
base, memory = map_at(team, [0]), ask("cuMemCreate", UNIT, properties[0], 0)
print(ask("cuMulticastGetGranularity", describe(1), 1), ask("cuMemRetainAllocationHandle", base) == team)
call("cuMulticastBindMem", team, 0, memory, 0, UNIT, 0)
for handle in (memory, team, team):
    call("cuMemRelease", handle)
print(count_free(), try_call("cuMulticastUnbind", team, 0, 0, UNIT))
call("cuMemUnmap", base, UNIT)
print(count_free())
memory, team = ask("cuMemCreate", UNIT, properties[0], 0), make_team(1)
call("cuMulticastBindMem", team, 0, memory, 0, UNIT, 0)
call("cuMemRelease", memory)
print(count_free(), *(try_call("cuMulticastUnbind", team, 0, 0, size) for size in (2 * UNIT, UNIT)))
print(count_free(), try_call("cuMulticastUnbind", team, 0, 0, UNIT))
"""
    process = run_program("COUNT = 1\n" + START + program)
    assert process.stdout.splitlines() == ["2097152 True", "1 1", "0", "1 1 0", "0 1"]
    assert process.stderr == ""


WAITING = {
    "binding": 'try_call("cuMulticastBindMem", team, 0, memory, 0, UNIT, 0)',
    "mapping": 'try_call("cuMemMap", ask("cuMemAddressReserve", UNIT, 0, 0, 0), UNIT, 0, team, 0)',
}


@pytest.mark.parametrize("use", WAITING)
def test_a_use_waits_for_the_team(run_program: Run, use: str) -> None:
    program = """\
team, memory = ask("cuMulticastCreate", describe(2)), ask("cuMemCreate", UNIT, properties[0], 0)
call("cuMulticastAddDevice", team, 0)
reading, writing = os.pipe()
os.dup2(writing, 2)
def add():
    said.append(os.read(reading, 1000))
    call("cuMulticastAddDevice", team, 1)
said, other = [], threading.Thread(target=add)
other.start()
code = USE
other.join()
print(code, said)
"""
    process = run_program("COUNT = 2\n" + START + program.replace("USE", WAITING[use]), count=2)
    text = "pyptx: the call waits for cuMulticastAddDevice, as the team of the object has 1 of 2 devices\\n"
    assert process.stdout == f"0 [b'{text}']\n"


def test_impossible_objects_are_refused(run_program: Run) -> None:
    program = """\
out = ctypes.byref(ctypes.c_uint64())
print([try_call("cuMulticastCreate", out, words) for words in (
    describe(0), describe(3), describe(1, 5), describe(1, flags=1), describe(1, handles=1))])
team = ask("cuMulticastCreate", describe(1))
print([try_call("cuMulticastAddDevice", team, device) for device in (2, 1, 1, 0)])
memory = [ask("cuMemCreate", UNIT, item, 0) for item in properties]
print([try_call("cuMulticastBindMem", *words) for words in (
    (7, 0, memory[1], 0, UNIT, 0), (team, 0, 7, 0, UNIT, 0), (team, UNIT, memory[1], 0, UNIT, 0),
    (team, 0, memory[1], UNIT, UNIT, 0), (team, 0, memory[1], 0, 5, 0), (team, 0, memory[1], 0, UNIT, 1),
    (team, 0, memory[0], 0, UNIT, 0), (team, 0, memory[1], 0, UNIT, 0), (team, 0, memory[1], 0, UNIT, 0))])
print(try_call("cuMulticastBindMem_v2", team, 0, 0, memory[1], 0, UNIT, 0))
print(try_call("cuMulticastBindAddr", team, 0, map_at(team, [1]), UNIT, 0))
print(try_call("cuMulticastGetGranularity", out, describe(1), 2))
print(try_call("cuMemGetAllocationPropertiesFromHandle", out, team))
"""
    process = run_program("COUNT = 2\n" + START + program, count=2)
    assert process.stdout.splitlines() == [
        "[1, 1, 1, 1, 801]", "[101, 0, 1, 1]", "[1, 1, 1, 1, 1, 1, 101, 0, 1]", "1", "1", "1", "1",
    ]  # fmt: skip
    assert process.stderr == "pyptx: cuMulticastCreate: multicast objects cannot be shared with other processes\n"


def test_other_devices_have_no_multicast(run_program: Run) -> None:
    program = "call('cuInit', 0)\nprint(ask('cuDeviceGetAttribute', 132, 0))\n"
    program += "print(try_call('cuMulticastCreate', ctypes.byref(ctypes.c_uint64()), describe(1)))\n"
    process = run_program("COUNT = 1\n" + START + program, device="a100")
    assert process.stdout == "0\n801\n"
    assert process.stderr == "pyptx: cuMulticastCreate: NVIDIA A100-SXM4-80GB has no multicast\n"
