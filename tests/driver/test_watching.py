"""The program's own accesses to managed and page-locked memory while the device may be using it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from pyptx.driver.build import find_compiler
from tests.driver.conftest import PROGRAMS, Run

SOURCE = PROGRAMS / "host_accesses.c"
START = """\
import os, signal
from calls import *
start()
kernel = load(VECTOR_ADD, "add")

def allocate(size):
    return ask("cuMemAllocManaged", size, 1)

def view(address):
    return (ctypes.c_float * 2048).from_address(address)

def run(stream=0, count=1000):
    assert launch(kernel, 4, 256, *arrays, ctypes.c_uint32(count), stream=stream) == 0

arrays = [allocate(8192) for _ in range(3)]
ctypes.memset(arrays[2], 0, 8192)
a, b, c = map(view, arrays)
for number in range(1000):
    a[number], b[number] = number, 2
"""
ORDERS = pytest.mark.parametrize("order", ["sync", "deferred"])


def list_findings(output: str) -> list[tuple[str, ...]]:
    """Return the line of each access, what it does, from which byte, and what the device does."""
    pattern = r"at program\.py:(\d+)\nerror\[PTX1307\].*: the host (\w+) .*, from byte (\d+), which the .* (\w+)\n"
    return re.findall(pattern, output)


@ORDERS
def test_accesses_before_the_host_has_waited_are_found(run_program: Run, order: str) -> None:
    lines = START.count("\n")
    program = f"{START}run()\nfirst = c[3]\nrun()\na[5] = 1\ncall('cuCtxSynchronize')\nprint(c[3], c[5])\n"
    process = run_program(program, order=order, watch_host=True)
    assert process.stdout == ("6.0 8.0\n" if order == "sync" else "6.0 4.0\n")
    assert list_findings(process.stderr) == [
        (str(lines + 2), "reads", "12", "writes"), (str(lines + 4), "writes", "20", "reads"),
    ]  # fmt: skip


@ORDERS
@pytest.mark.parametrize(
    "wait",
    [
        "call('cuCtxSynchronize')", "call('cuStreamSynchronize', stream)", "call('cuEventSynchronize', event)",
        "call('cuMemcpyDtoH_v2', ctypes.create_string_buffer(4), arrays[0], 4)",
        "assert [try_call('cuStreamQuery', stream) for _ in range(2)][-1] == 0",
    ],
)  # fmt: skip
def test_nothing_is_wrong_once_the_host_has_waited(run_program: Run, order: str, wait: str) -> None:
    program = f"""{START}
stream, event = ask("cuStreamCreate", 0), ask("cuEventCreate", 0)
run(stream)
call("cuEventRecord", event, stream)
{wait}
print(c[3])
a[5] = 1
"""
    process = run_program(program, order=order, watch_host=True)
    assert (process.stdout, process.stderr) == ("6.0\n", "")


@ORDERS
def test_other_bytes_and_other_memory_are_free(run_program: Run, order: str) -> None:
    """Also of the same page, of page-locked memory, and of reads on both sides."""
    program = f"""{START}
pinned = ask("cuMemHostAlloc", 4096, 0)
other = view(pinned)
run(count=500)
print(c[700], a[3])
a[1500], other[1] = 3, 4
print(a[1500], other[1])
"""
    process = run_program(program, order=order, watch_host=True)
    assert (process.stdout, process.stderr) == ("0.0 3.0\n3.0 4.0\n", "")


@ORDERS
def test_copies_from_page_locked_memory_are_compared(run_program: Run, order: str) -> None:
    program = f"""{START}
pinned, device = ask("cuMemHostAlloc", 4096, 0), ask("cuMemAlloc_v2", 4096)
values = view(pinned)
values[1] = 1
stream = ask("cuStreamCreate", 0)
call("cuMemcpyHtoDAsync_v2", device, pinned, 4096, stream)
values[1] = 2
call("cuStreamSynchronize", stream)
"""
    process = run_program(program, order=order, watch_host=True)
    assert list_findings(process.stderr) == [(str(START.count("\n") + 7), "writes", "4", "reads")]


@ORDERS
def test_a_flag_that_a_kernel_writes_strongly_may_be_polled(run_program: Run, order: str) -> None:
    program = f'''{START}
flag = allocate(4)
store = load(""".version 8.0
.target sm_80
.address_size 64
.visible .entry store(.param .u64 flag) {{
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [flag];
    st.release.sys.global.u32 [%rd1], 1;
    ret;
}}""", "store")
assert launch(store, 1, 1, flag) == 0
ctypes.c_uint32.from_address(flag).value
call("cuCtxSynchronize")
print(ctypes.c_uint32.from_address(flag).value)
'''
    process = run_program(program, order=order, watch_host=True)
    assert (process.stdout, process.stderr) == ("1\n", "")


@ORDERS
def test_work_that_nobody_waits_for_runs_at_the_end_without_a_finding(run_program: Run, order: str) -> None:
    process = run_program(f"{START}run()\n", order=order, watch_host=True)
    assert (process.returncode, process.stderr) == (0, "")


def test_nothing_is_observed_unless_it_is_asked_for(run_program: Run) -> None:
    process = run_program(f"{START}run()\nprint(c[3])\n")
    assert (process.stdout, process.stderr) == ("6.0\n", "")


def test_other_faults_end_the_program_as_ever(run_program: Run) -> None:
    process = run_program(f"{START}run()\nctypes.string_at(8)\n", watch_host=True)
    assert process.returncode == -11


def test_a_child_process_reads_what_its_parent_may_not(run_program: Run) -> None:
    program = f"{START}run()\nif os.fork():\n    os.wait()\nelse:\n    print(c[3], flush=True)\n    os._exit(0)\n"
    process = run_program(program, watch_host=True)
    assert (process.returncode, process.stdout, process.stderr) == (0, "6.0\n", "")


def test_a_thread_reads_while_another_is_in_the_driver(run_program: Run) -> None:
    """Nothing is lost or stuck, whether or not the accesses are observed."""
    program = f"""import threading
{START}
is_over = threading.Event()

def read():
    while not is_over.is_set():
        a[7], b[1999]

threads = [threading.Thread(target=read) for _ in range(2)]
for thread in threads:
    thread.start()
for _ in range(20):
    run()
    call("cuCtxSynchronize")
is_over.set()
for thread in threads:
    thread.join()
print(c[7])
"""
    process = run_program(program, watch_host=True)
    assert (process.stdout, process.stderr) == ("10.0\n", "")


@ORDERS
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_programs_in_c_are_observed(run_program: Run, library: Path, tmp_path: Path, order: str, level: str) -> None:
    """Their lines are those of the accesses, also where the C library makes one."""
    program = tmp_path / "accesses"
    subprocess.run([*find_compiler(), "-g", level, "-o", program, SOURCE, library], check=True)
    process = run_program([str(program)], order=order, watch_host=True)
    lines = SOURCE.read_text().splitlines()
    expected = [
        next(number for number, line in enumerate(lines, 1) if f"/* {comment} */" in line)
        for comment in ("read", "written", "copied by the C library")
    ]
    found = re.findall(rf"at {re.escape(str(SOURCE))}:(\d+)\nerror\[PTX1307\]", process.stderr)
    assert [int(line) for line in found] == expected
    assert process.stdout == ("-1 -1 -1\n" if order == "sync" else "1 1 -1\n")
