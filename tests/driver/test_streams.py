"""Programs whose streams are not in order (with `programs/scenes.py`), in both orders of execution."""

from __future__ import annotations

import re

import pytest

from tests.driver.conftest import Run

SCENES = {
    "two streams": ("sum(a, c, first); sum(c, d, second)", "PTX1301"),
    "two writers": ("sum(a, c, first); sum(a, c, second)", "PTX1301"),
    "reader and writer": ("sum(a, c, first); sum(b, a, second)", "PTX1301"),
    "two readers": ("sum(a, c, first); sum(a, d, second)", ""),
    "two halves": ("sum(a, c, first); sum(a, c + 2000, second)", ""),
    "one stream": ("sum(a, c, first); sum(c, d, first)", ""),
    "joined by an event": ("sum(a, c, first); join(first, second); sum(c, d, second)", ""),
    "joined by two events": (
        "sum(a, c, first); join(first, blocking); join(blocking, second); sum(c, d, second)", ""
    ),
    "event too early": ("join(first, second); sum(a, c, first); sum(c, d, second)", "PTX1301"),
    "event in the wrong stream": ("sum(a, c, first); join(second, second); sum(c, d, second)", "PTX1301"),
    "waited by the host": ('sum(a, c, first); wait(first); sum(c, d, second)', ""),
    "waited for another stream": ('sum(a, c, first); wait(second); sum(c, d, second)', "PTX1301"),
    "event waited by the host": (
        'sum(a, c, first); join(first, first); call("cuEventSynchronize", event); sum(c, d, second)', ""
    ),
    "stream found to be idle": (
        'sum(a, c, first)\nwhile try_call("cuStreamQuery", first) == 600: pass\nsum(c, d, second)', ""
    ),
    "event never recorded": (
        'call("cuStreamWaitEvent", second, ask("cuEventCreate", 0), 0)', "PTX1303"
    ),
    "legacy and blocking": ("sum(a, c, 0); sum(c, d, blocking); sum(d, c, 0)", ""),
    "legacy and non-blocking": ("sum(a, c, 0); sum(c, d, first)", "PTX1301"),
    "per-thread stream": ("sum(a, c, 2); sum(c, d, 2)", ""),
    "blocking streams": ("sum(a, c, blocking); sum(c, d, 2)", "PTX1301"),
    "memset that the host does not wait for": ('call("cuMemsetD32_v2", a, 0, 9); sum(a, c, first)', "PTX1301"),
    "copy that the host waits for": ('call("cuMemcpyHtoD_v2", a, (ctypes.c_float * 9)(), 36); sum(a, c, first)', ""),
    "host memory that is registered after it was copied from": (
        'host = (ctypes.c_float * 9)(); call("cuMemcpyHtoDAsync_v2", a, host, 36, first)\n'
        'call("cuMemHostRegister_v2", host, 36, 0); call("cuMemcpyDtoHAsync_v2", host, d, 36, second)',
        "",
    ),
    "registered host memory": (
        'host = (ctypes.c_float * 9)(); call("cuMemHostRegister_v2", host, 36, 0)\n'
        'call("cuMemcpyHtoDAsync_v2", a, host, 36, first); call("cuMemcpyDtoHAsync_v2", host, d, 36, second)',
        "PTX1301",
    ),
    "copy on the device": ('call("cuMemcpyDtoD_v2", a, b, 36); sum(a, c, first)', "PTX1301"),
    "copies of rows that interleave": (
        "copy(a, first); copy(a + 100, second)", ""
    ),
    "copies of rows that overlap": ("copy(a, first); copy(a + 60, second)", "PTX1301"),
    "allocated in another stream": ('memory = ask("cuMemAllocAsync", size, first); fill(memory, second)', "PTX1302"),
    "allocated before": (
        'memory = ask("cuMemAllocAsync", size, first); join(first, second); fill(memory, second)', ""
    ),
    "allocated by a graph in another stream": (
        'memory = allocate_in_graph(first); fill(memory, second)', "PTX1302"
    ),
    "allocated by a graph before": ("memory = allocate_in_graph(first); join(first, second); fill(memory, second)", ""),
    "freed in another stream": (
        'memory = ask("cuMemAllocAsync", size, first); fill(memory, first); join(first, second)\n'
        'fill(memory, second); call("cuMemFreeAsync", memory, first)',
        "PTX1302",
    ),
    "freed memory that is allocated again": ("for _ in range(300): borrow(first)\nborrow(second)", ""),
    "more work than is remembered": ("sum(a, c, first)\nfor _ in range(4200): fill(d, second)\nsum(c, b, second)", ""),
    "graphs in two streams": ("run_graph(capture(first), first); run_graph(capture(second), second)", "PTX1301"),
    "one graph in two streams": ("graph = capture(first); run_graph(graph, first); run_graph(graph, second)", ""),
}  # fmt: skip
UNINITIALIZED = {
    "never written": ("sum(new(), c, first)", "PTX0913"),
    "written by a memset": ("memory = new(); fill(memory, first); sum(memory, c, first)", ""),
    "written by a copy": (
        'memory = new(); call("cuMemcpyDtoDAsync_v2", memory, a, 256, first); sum(memory, c, first)', ""
    ),
    "written except for the last element": (
        'memory = new(); call("cuMemsetD8Async", memory, 0, 252, first); sum(memory, c, first)', "PTX0913"
    ),
    "written except for one byte": (
        'memory = new(); call("cuMemsetD8Async", memory, 0, 99, first)\n'
        'call("cuMemsetD8Async", memory + 100, 0, 156, first); sum(memory, c, first)',
        "PTX0913",
    ),
    "written by a kernel": ("memory = new(); sum(a, memory, first); sum(memory, c, first)", ""),
    "written beyond": ("memory = new(); sum(a, memory + 256, first); sum(memory + 256, c, first)", ""),
    "written before": ("memory = new(); sum(a, memory, first); sum(memory + 256, c, first)", "PTX0913"),
    "counted up": ("launch(count, 1, 32, new(), stream=first)", "PTX0913"),
    "counted up from zero": ("memory = new(); fill(memory, first); launch(count, 1, 32, memory, stream=first)", ""),
    "read by a bulk copy": ("launch(bulk, 1, 32, new(), stream=first)", "PTX0913"),
    "written, then read by a bulk copy": (
        "memory = new(); sum(a, memory, first); launch(bulk, 1, 32, memory, stream=first)", ""
    ),
    "freed and allocated": (
        'memory = new(); fill(memory, first); call("cuMemFree_v2", memory); sum(new(), c, first)', "PTX0913"
    ),
    "managed": ('sum(ask("cuMemAllocManaged", size, 1), c, first)', ""),
}  # fmt: skip


@pytest.mark.parametrize("order", ["sync", "deferred"])
def test_races_between_streams_are_found_in_every_order(run_program: Run, order: str) -> None:
    check_scenes(run_program, SCENES, order)


def test_a_use_of_memory_and_its_allocation_or_free_are_named_in_either_order(run_program: Run) -> None:
    program = """\
from scenes import *
begin("")
memory = ask("cuMemAllocAsync", size, first)
fill(memory, second)
begin("")
memory = ask("cuMemAllocAsync", size, first); join(first, second)
fill(memory, second)
call("cuMemFreeAsync", memory, first)
"""
    text = re.sub(r"0x[0-9a-f]{7,}", "0x…", run_program(program).stderr)
    assert [line.partition("frees it: ")[2] for line in text.splitlines() if line.startswith("error")] == [
        "the memset of 1 × 1000 × 4 bytes at 0x… to 0x0 at program.py:4 writes 4000 bytes of allocation 6 from "
        "program.py:3, from byte 0; nothing orders it and the allocation of 4000 bytes at 0x… at program.py:3",
        "the memset of 1 × 1000 × 4 bytes at 0x… to 0x0 at program.py:7 writes 4000 bytes of allocation 7 from "
        "program.py:6, from byte 0; nothing orders it and the free of 0x… at program.py:8",
    ]


def test_memory_that_nothing_has_written_is_found(run_program: Run) -> None:
    check_scenes(run_program, UNINITIALIZED, "deferred")


def check_scenes(run_program: Run, table: dict[str, tuple[str, str]], order: str) -> None:
    """Run scenes in one program and compare the codes of their findings."""
    scenes = [f"begin({name!r})\n{body}\n" for name, (body, _) in table.items()]
    process = run_program("".join(["from scenes import *\n", *scenes, "begin('end')\n"]), order=order)
    assert process.returncode == 0, process.stderr
    _, *parts = re.split(r"^## (.*)\n", process.stderr, flags=re.M)
    findings = {
        name: " ".join(re.findall(r"\[(PTX\d+)\]", text)) for name, text in zip(parts[::2], parts[1::2], strict=True)
    }
    assert findings == {**{name: code for name, (_, code) in table.items()}, "end": ""}


def test_a_race_names_both_places_and_the_event_that_does_not_help(run_program: Run) -> None:
    program = """\
from scenes import *
begin("")
call("cuEventRecord", event, first)
sum(a, c, first)
call("cuStreamWaitEvent", second, event, 0)
sum(c, d, second)
begin("")
sum(a, c, blocking)
fill(a, second)
call("cuMemsetD8_v2", c, 0, 1)
call("cuMemcpyDtoDAsync_v2", d, c, 8, second)
launch(count, 1, 32, d, stream=first)
"""
    process = run_program(program)
    _, first, rest = re.sub(r"0x[0-9a-f]{7,}", "0x…", process.stderr).split("## \n")
    title, message, *notes, help = first.splitlines()
    assert title == "pyptx: the program's use of the device, at program.py:6"
    assert message == (
        "error[PTX1301]: work of two streams races: the launch of `add` at program.py:6 reads 256 bytes of allocation "
        "3 from program.py:1, from byte 0, which the launch of `add` at program.py:4 writes"
    )
    assert notes[:4] == [
        "  note: `ld.global.f32` at <ptx>:25:5, in the launch of `add` at program.py:6",
        "  note: `st.global.f32` at <ptx>:30:5, in the launch of `add` at program.py:4",
        "  note: they are in stream 0x… and stream 0x…",
        "  note: stream 0x… waited for the event recorded at program.py:3, which does not cover the launch of `add` at "
        "program.py:4",
    ]
    assert help.startswith("  help: record an event after the first")
    messages = [line for line in rest.splitlines() if line.startswith("error")]
    assert [line.partition("races: ")[2] for line in messages] == [
        "the memset of 1 × 1000 × 4 bytes at 0x… to 0x0 at program.py:9 writes 256 bytes of allocation 1 from "
        "program.py:1, from byte 0, which the launch of `add` at program.py:8 reads",
        "the copy of 8 bytes from 0x… to 0x… at program.py:11 reads 8 bytes of allocation 3 from program.py:1, from "
        "byte 0, which the launch of `add` at program.py:8 writes",
        "the copy of 8 bytes from 0x… to 0x… at program.py:11 reads 1 byte of allocation 3 from program.py:1, from "
        "byte 0, which the memset of 1 × 1 × 1 bytes at 0x… to 0x0 at program.py:10 writes",
        "the launch of `count` at program.py:12 writes 4 bytes of allocation 4 from program.py:1, from byte 0, which "
        "the copy of 8 bytes from 0x… to 0x… at program.py:11 writes",
    ]
    assert "`red.relaxed.gpu.global.add.u32` at <ptx>:11:5 (kernels.cu:7), in the launch of `count`" in rest
    assert rest.count("created with CU_STREAM_NON_BLOCKING, so it does not wait") == 1


def test_deferred_work_runs_when_the_host_waits(run_program: Run) -> None:
    program = """\
from scenes import *
begin("")
values[:] = range(1000)
call("cuMemcpyHtoDAsync_v2", a, pinned, size, first)
values[7] = -1.0
sum(a, c, first)
call("cuMemcpyDtoHAsync_v2", pinned, c, size, first)
print(values[8], try_call("cuEventQuery", event), try_call("cuStreamQuery", first))
call("cuEventRecord", event, first)
call("cuEventRecord", other, first)
time = ctypes.c_float()
print(try_call("cuEventElapsedTime", ctypes.byref(time), event, other), try_call("cuEventQuery", event))
wait(first)
print(values[7], values[8], try_call("cuEventQuery", event))
pageable = (ctypes.c_float * 2)(3.0, 4.0)
call("cuMemcpyHtoDAsync_v2", a, pageable, 8, first)
pageable[1] = 0
sum(a, c, first)
call("cuMemcpyDtoHAsync_v2", pageable, c, 8, first)
print(list(pageable))
call("cuMemcpyDtoHAsync_v2", pinned, c, 8, first)
call("cuMemcpyHtoDAsync_v2", d, pinned, 8, first)
wait(first)
sum(a, c, first)
sum(a, c, second)
"""
    process = run_program(program, order="deferred")
    assert process.stdout == "8.0 0 600\n600 600\n0.0 9.0 0\n[4.0, 5.0]\n"
    codes = re.findall(r"\[(PTX\d+)\]", process.stderr)
    assert codes == ["PTX1304", "PTX1301"]
    assert (
        "copy read it: 2 bytes of allocation 5 from program.py:1, from byte 30, the source of the copy"
        in process.stderr
    )


@pytest.mark.parametrize("free", ["cuMemFreeHost", "cuMemHostUnregister"])
def test_deferred_work_runs_before_its_memory_is_the_hosts_again(run_program: Run, free: str) -> None:
    program = f"""\
from scenes import *
begin("")
memory = pinned
if "{free}" == "cuMemHostUnregister":
    values = (ctypes.c_float * 1000)()
    memory = ctypes.addressof(values)
    call("cuMemHostRegister_v2", memory, size, 0)
values[7] = 5.0
call("cuMemcpyHtoDAsync_v2", a, memory, size, first)
call("{free}", memory)
result = (ctypes.c_float * 1000)()
call("cuMemcpyDtoH_v2", result, a, size)
print(result[7])
"""
    process = run_program(program, order="deferred")
    assert (process.stdout, process.stderr) == ("5.0\n", "## \n")


def test_a_fault_of_deferred_work_is_reported_by_the_wait(run_program: Run) -> None:
    program = """\
from scenes import *
begin("")
print(launch(add, 4, 256, a, b, c, 1001, stream=first), launch(add, 4, 256, a, b, d, 64, stream=first))
calls = []
notice = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(calls.append)
call("cuLaunchHostFunc", first, notice, 5)
print(try_call("cuStreamSynchronize", first), try_call("cuStreamSynchronize", first))
call("cuDevicePrimaryCtxReset_v2", 0)
call("cuCtxSynchronize")
call("cuLaunchHostFunc", second, notice, 6)
print(calls)
call("cuStreamSynchronize", second)
print(calls)
"""
    process = run_program(program, order="deferred")
    assert process.stdout == "0 0\n700 700\n[]\n[6]\n"
    assert process.stderr.count("pyptx: launch of `add`") == 1


def test_deferred_work_runs_before_its_context_is_reset(run_program: Run) -> None:
    program = """\
from scenes import *
begin("")
calls = []
notice = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(calls.append)
call("cuLaunchHostFunc", first, notice, 5)
print(calls)
call("cuDevicePrimaryCtxReset_v2", 0)
print(calls)
"""
    assert run_program(program, order="deferred").stdout == "[]\n[5]\n"


@pytest.mark.parametrize(("order", "early"), [("sync", 6.0), ("deferred", -1.0)])
def test_the_host_reads_managed_memory_early_without_a_finding(run_program: Run, order: str, early: float) -> None:
    """A limit that docs/driver.md states: only work of the device is observed."""
    program = """\
from calls import *
start()
add = load(VECTOR_ADD, "add")
managed = [ask("cuMemAllocManaged", 4000, 1) for _ in range(3)]
a, b, c = ((ctypes.c_float * 1000).from_address(address) for address in managed)
a[:], b[:], c[:] = [2] * 1000, [3] * 1000, [-1] * 1000
launch(add, 4, 256, *managed, 1000)
print(c[5])
call("cuCtxSynchronize")
print(c[5])
"""
    process = run_program("import ctypes\n" + program, order=order)
    assert (process.stdout, process.stderr) == (f"{early}\n6.0\n", "")


def test_attributes_of_streams_are_kept(run_program: Run) -> None:
    program = """\
import ctypes, struct
from calls import *
start()
stream, other, value = ask("cuStreamCreate", 0), ask("cuStreamCreate", 0), ctypes.create_string_buffer(64)
def get(handle, attribute):
    code = try_call("cuStreamGetAttribute", handle, attribute, value)
    return code or value.raw[:4].hex()
print([get(stream, attribute) for attribute in (1, 2, 3, 8, 9, 10)])
for attribute in (1, 3, 8):
    call("cuStreamSetAttribute", stream, attribute, struct.pack("<i60x", -attribute))
print([get(stream, attribute) for attribute in (1, 3, 8)], try_call("cuStreamSetAttribute", stream, 2, value))
call("cuStreamCopyAttributes", other, stream)
print([get(other, attribute) for attribute in (1, 3, 8)], try_call("cuCtxResetPersistingL2Cache"))
"""
    process = run_program(program)
    assert process.stdout.splitlines() == [
        "['00000000', 1, '00000000', '00000000', '00010000', '00000000']",
        "['ffffffff', 'fdffffff', 'fbffffff'] 1", "['ffffffff', 'fdffffff', 'fbffffff'] 0",
    ], process.stderr  # fmt: skip


def test_a_wrong_memset_is_refused_by_its_call_and_hides_no_event(run_program: Run) -> None:
    program = """\
import ctypes
from calls import *
start()
memory, stream = ask("cuMemAlloc_v2", 64), ask("cuStreamCreate", 0)
time = ctypes.c_float()
print([try_call("cuMemsetD32Async", memory + at, 0, count, stream) for at, count in ((1, 1), (0, 17), (0, 16), (0, 0))])
page = ctypes.CDLL(None).mmap
page.restype = ctypes.c_uint64
page = page(None, ctypes.c_size_t(4096), 3, 0x22, -1, 0)
call("cuMemHostRegister_v2", page, 4096, 0)
events = [ask("cuEventCreate", 0), ask("cuEventCreate", 0)]
call("cuMemcpyDtoHAsync_v2", page, memory, 64, stream)
ctypes.CDLL(None).mprotect(ctypes.c_uint64(page), ctypes.c_size_t(4096), 1)
for event in events:
    call("cuEventRecord", event, stream)
print(try_call("cuStreamSynchronize", stream), try_call("cuEventElapsedTime", ctypes.byref(time), *events))
"""
    process = run_program(program, order="deferred")
    assert process.stdout == "[1, 1, 0, 0]\n1 600\n", process.stderr
    assert "Traceback" not in process.stderr
