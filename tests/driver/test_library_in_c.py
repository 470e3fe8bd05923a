"""The driver library in programs written in C, with Python and without, and in calls after the end of Python."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from pyptx.driver.build import find_compiler
from tests.driver.conftest import Run

DESTRUCTOR = r"""
#include <stdio.h>
int cuMemFree_v2(unsigned long long), cuCtxSynchronize(void);
__attribute__((destructor)) static void end(void) {
    printf("%d %d\n", cuMemFree_v2(1), cuCtxSynchronize());
}
"""


def test_calls_after_the_end_of_python_are_answered(run_program: Run, library: Path, tmp_path: Path) -> None:
    source = tmp_path / "end.c"
    source.write_text(DESTRUCTOR, "ascii")
    words = [*find_compiler(), "-shared", "-fPIC", "-o", tmp_path / "libend.so", source, library]
    subprocess.run(words, check=True)
    process = run_program("from calls import *\nstart()\nctypes.CDLL('./libend.so')")
    assert (process.returncode, process.stdout) == (0, "0 4\n")


C_PROGRAM = r"""
#include <stdio.h>
typedef int CUresult;
typedef unsigned long long CUdeviceptr;
typedef void *Handle;
typedef struct {
    int id;
    char pad[4];
    union { char bytes[64]; struct { unsigned x, y, z; } cluster; } value;
} Attribute;
typedef struct {
    unsigned grid[3], block[3], shared;
    Handle stream;
    Attribute *attributes;
    unsigned count;
} Config;
CUresult cuInit(unsigned), cuDevicePrimaryCtxRetain(Handle *, int), cuCtxSetCurrent(Handle);
CUresult cuMemAlloc_v2(CUdeviceptr *, size_t), cuMemcpyDtoH_v2(void *, CUdeviceptr, size_t);
CUresult cuModuleLoadData(Handle *, const void *), cuModuleGetFunction(Handle *, Handle, const char *);
CUresult cuLaunchKernelEx(const Config *, Handle, void **, void **), cuCtxSynchronize(void);

static const char PTX[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".extern .func (.param .b32 count) vprintf(.param .b64 format, .param .b64 values);\n"
    ".global .b8 text[8] = {107, 101, 114, 110, 101, 108, 10, 0};\n"
    ".visible .entry ranks(.param .u64 out)\n{\n"
    ".reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %rd<5>; .param .b32 count; .param .b64 format; .param .b64 values;\n"
    "ld.param.u64 %rd1, [out];\nmov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %cluster_ctarank;\n"
    "mul.wide.u32 %rd2, %r1, 4;\nadd.u64 %rd3, %rd1, %rd2;\nst.global.u32 [%rd3], %r2;\n"
    "setp.ne.u32 %p1, %r1, 0;\n@%p1 bra DONE;\nmov.u64 %rd4, text;\ncvta.global.u64 %rd4, %rd4;\n"
    "st.param.b64 [format], %rd4;\nst.param.b64 [values], 0;\ncall.uni (count), vprintf, (format, values);\n"
    "DONE:\nret;\n}\n";

int main(void) {
    Handle context, module, kernel;
    CUdeviceptr out;
    int ranks[8];
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
        return 3;
    if (cuModuleLoadData(&module, PTX) || cuModuleGetFunction(&kernel, module, "ranks") || cuMemAlloc_v2(&out, 32))
        return 4;
    Attribute attribute = {.id = 4, .value.cluster = {4, 1, 1}};
    Config config = {{8, 1, 1}, {1, 1, 1}, 0, 0, &attribute, 1};
    void *parameters[] = {&out};
    puts("host");
    if (cuLaunchKernelEx(&config, kernel, parameters, 0) || cuCtxSynchronize() || cuMemcpyDtoH_v2(ranks, out, 32))
        return 5;
    for (int i = 0; i < 8; i++)
        printf("%d ", ranks[i]);
    return 0;
}
"""


def test_a_c_program_without_python_runs(run_program: Run, library: Path, tmp_path: Path) -> None:
    source, program = tmp_path / "main.c", tmp_path / "main"
    source.write_text(C_PROGRAM, "ascii")
    subprocess.run([*find_compiler(), "-o", program, source, library], check=True)
    process = run_program([str(program)], leaks=True)
    assert (process.returncode, process.stdout) == (0, "host\nkernel\n0 1 2 3 0 1 2 3 ")
    assert "PTX1305]: memory never freed: 32 bytes in 1 allocation of device memory" in process.stderr


@pytest.mark.parametrize("entry", ["", "spin"])
def test_an_interrupt_ends_a_c_program(run_program: Run, library: Path, tmp_path: Path, entry: str) -> None:
    """Waiting, and in a kernel: the program has no handler, so that the Python in it has none either."""
    source, program = tmp_path / "main.c", tmp_path / "main"
    text = f"""
#include <signal.h>
#include <unistd.h>
int cuInit(unsigned), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *);
int cuModuleLoadData(void **, const void *), cuModuleGetFunction(void **, void *, const char *);
typedef unsigned Size;
int cuLaunchKernel(void *, Size, Size, Size, Size, Size, Size, Size, void *, void **, void **);
static void interrupt(int number) {{ kill(getpid(), SIGINT); }}
int main(void) {{
    void *context, *module, *kernel;
    signal(SIGINT, SIG_DFL);
    signal(SIGALRM, interrupt);
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
        return 3;
    if (cuModuleLoadData(&module, ".version 8.0 .target sm_80 .address_size 64 .entry spin() {{"
                                   ".reg .b32 %r; $L: add.u32 %r, %r, 1; bra $L; }}"))
        return 4;
    alarm(1);
    if (*"{entry}" && !cuModuleGetFunction(&kernel, module, "spin"))
        cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0);
    sleep(20);
    return 5;
}}
"""
    source.write_text(text, "ascii")
    subprocess.run([*find_compiler(), "-o", program, source, library], check=True)
    process = run_program([str(program)])
    assert (process.returncode, process.stderr) == (-signal.SIGINT, "")


def test_of_the_memory_of_a_program_only_what_it_passes_is_read(
    run_program: Run, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, program = tmp_path / "main.c", tmp_path / "main"
    source.write_text(C_PROGRAM, "ascii")
    words = [*find_compiler(), "-o", program, source, library]
    # Not every compiler brings the address sanitizer, which ends a program at the first byte that is read beyond.
    if subprocess.run([*words, "-fsanitize=address"], capture_output=True, check=False).returncode:
        subprocess.run(words, check=True)
    monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=0")
    process = run_program([str(program)])
    assert (process.stderr, process.returncode) == ("", 0)
    assert process.stdout == "host\nkernel\n0 1 2 3 0 1 2 3 "


def test_a_c_program_without_any_python_library_says_so(
    run_program: Run, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, program = tmp_path / "main.c", tmp_path / "main"
    source.write_text(C_PROGRAM, "ascii")
    subprocess.run([*find_compiler(), "-o", program, source, library], check=True)
    monkeypatch.setattr("pyptx.driver.launcher.find_python_library", lambda: None)
    process = run_program([str(program)])
    reason = (
        "a program without Python needs the shared library of Python, and PYPTX_DRIVER_LIBPYTHON names none: "
        "run pyptx with a Python that was built with --enable-shared"
    )
    assert process.returncode == 3
    assert process.stderr == f"pyptx: the simulated CUDA driver cannot start: {reason}\n"


UNWINDING = r"""
extern void *PyExc_ValueError;
void PyErr_SetString(void *, const char *), PyErr_Clear(void);
int cuDriverGetVersion(int *), PyErr_ExceptionMatches(void *);

int call_while_unwinding(int *version) {
    PyErr_SetString(PyExc_ValueError, "pending");
    int code = cuDriverGetVersion(version);
    int is_pending = PyErr_ExceptionMatches(PyExc_ValueError);
    PyErr_Clear();
    return is_pending ? code : -1;
}
"""


def test_a_call_while_an_exception_is_pending_succeeds_and_keeps_it(
    run_program: Run, library: Path, tmp_path: Path
) -> None:
    source, extension = tmp_path / "unwinding.c", tmp_path / "unwinding.so"
    source.write_text(UNWINDING, "ascii")
    subprocess.run([*find_compiler(), "-shared", "-fPIC", "-o", extension, source, library], check=True)
    program = "from calls import *\nimport ctypes\nstart()\nversion = ctypes.c_int()\n"
    program += "print(ctypes.PyDLL('./unwinding.so').call_while_unwinding(ctypes.byref(version)), version.value)\n"
    process = run_program(program)
    assert (process.stdout, process.stderr) == ("0 13050\n", "")
