"""The auditor of the dynamic linker: which searches it redirects, and which options compilers get."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from pyptx.driver.build import find_compiler
from pyptx.driver.launcher import make_environment
from pyptx.driver.library import find_audit, find_library
from pyptx.driver.settings import Settings
from tests.driver.conftest import Run

LOAD = """\
import ctypes
for name in ("/absent/libcuda.so.1", "libcuda.so", "libcuda.so.1", "/absent/libcuda.so.2"):
    try:
        print(ctypes.CDLL(name).cuGetProcAddress(None, None, 0, 0))
    except OSError:
        print("absent")
"""
LINK = """\
from pyptx.toolchain import assemble
for _ in range(2):
    cubin = assemble(".version 8.0\\n.target sm_90\\n.entry f() { ret; }", engine="nvjitlink", lineinfo=LINE_INFO)
    print(b".nv_debug_ptx_txt" in cubin.data)
"""
COMPILER = r"""
#include <stdio.h>
int FUNCTION(void *object, int count, const char *const *options) {
    printf(NAME);
    for (int i = 0; i < count; i++)
        printf(" %s", options[i]);
    puts("");
    return 7;
}
"""
"""Stands for a compiler: prints its options."""
LINKED = r"""
int FUNCTION(void *object, int count, const char *const *options);
int main(int count, char **options) {
    return FUNCTION(0, count - 1, (const char *const *)options + 1);
}
"""
"""A program that is linked with a compiler, and passes it its arguments."""
NOTE = "pyptx: {} gets the option {}, which stores PTX in the cubin; --no-line-info leaves it out\n"


def build_compiler(library: Path, function: str = "nvrtcCompileProgram", name: str = "options:") -> None:
    """Build a library that stands for a compiler."""
    source = library.with_suffix(".c")
    source.write_text(COMPILER, "ascii")
    macros = [f"-DFUNCTION={function}", f'-DNAME="{name}"']
    subprocess.run([*find_compiler(), "-shared", "-fPIC", *macros, "-o", library, source], check=True)


def test_searches_for_the_driver_are_redirected_wherever_they_go(run_program: Run) -> None:
    assert run_program(LOAD).stdout == "1\n1\n1\nabsent\n"


def test_without_an_auditor_programs_find_the_driver_by_its_folder(run_program: Run) -> None:
    process = run_program(LOAD.replace('"libcuda.so", ', ""), audit=False)
    assert process.stdout == "absent\n1\nabsent\n"


def test_an_auditor_that_cannot_be_loaded_changes_nothing(
    run_program: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.so"
    broken.write_bytes(b"")
    monkeypatch.setattr("pyptx.driver.launcher.find_audit", lambda: broken)
    assert run_program(LOAD).stdout.endswith("1\nabsent\n")


def test_nvjitlink_gets_the_option_that_stores_ptx(run_program: Run) -> None:
    process = run_program(LINK.replace("LINE_INFO", "False"), from_images=True)
    assert process.stdout == "True\nTrue\n"
    assert process.stderr == NOTE.format("nvJitLinkCreate", "-lineinfo")


@pytest.mark.parametrize(
    ("options", "asks", "stored"),
    [
        ({"from_images": True}, True, True),
        ({"from_images": True, "line_info": False}, False, False),
        ({"from_images": True, "audit": False}, False, False),
        ({}, False, False),
    ],
    ids=["the program passes it", "options are left alone", "nothing is audited", "images are not used"],
)
def test_nvjitlink_keeps_its_options(run_program: Run, options: Mapping[str, object], asks: bool, stored: bool) -> None:
    process = run_program(LINK.replace("LINE_INFO", str(asks)), **options)
    assert (process.stdout, process.stderr) == (f"{stored}\n" * 2, "")


@pytest.mark.parametrize(
    ("file", "function", "name", "option"),
    [
        ("libnvrtc.so.13", "nvrtcCompileProgram", "nvrtcCompileProgram", "--generate-line-info"),
        ("libnvJitLink.so.13", "__nvJitLinkCreate_13_0", "nvJitLinkCreate", "-lineinfo"),
    ],
)
def test_a_linked_compiler_gets_the_option(
    run_program: Run, tmp_path: Path, file: str, function: str, name: str, option: str
) -> None:
    library, source, program = tmp_path / file, tmp_path / "main.c", tmp_path / "main"
    build_compiler(library, function)
    source.write_text(LINKED, "ascii")
    options = [f"-DFUNCTION={function}", f"-Wl,-rpath,{tmp_path}"]
    subprocess.run([*find_compiler(), "-o", program, source, library, *options], check=True)
    process = run_program([str(program), "-a", "b"], from_images=True)
    assert (process.returncode, process.stdout) == (7, f"options: -a b {option}\n")
    assert process.stderr == NOTE.format(name, option)


@pytest.mark.parametrize("option", ["--generate-line-info", "-lineinfo", "--device-debug", "-G"])
def test_nvrtc_gets_no_option_that_it_has(run_program: Run, tmp_path: Path, option: str) -> None:
    build_compiler(tmp_path / "libnvrtc.so.13")
    program = f"""\
import ctypes
options = (ctypes.c_char_p * 2)(b"-x", b"{option}")
ctypes.CDLL("./libnvrtc.so.13").nvrtcCompileProgram(None, 2, options)
"""
    process = run_program(program, from_images=True)
    assert (process.stdout, process.stderr) == (f"options: -x {option}\n", "")


def test_a_second_nvrtc_keeps_its_options(run_program: Run, tmp_path: Path) -> None:
    program = """\
import ctypes
for version in (12, 13):
    ctypes.CDLL(f"./libnvrtc.so.{version}").nvrtcCompileProgram(None, 0, None)
"""
    build_compiler(tmp_path / "libnvrtc.so.12", name="12:")
    build_compiler(tmp_path / "libnvrtc.so.13", name="13:")
    assert run_program(program, from_images=True).stdout == "12: --generate-line-info\n13:\n"


def test_the_auditor_is_alone_in_a_private_folder_beside_the_driver(library: Path) -> None:
    audit = find_audit()
    assert audit is not None
    assert [file.name for file in audit.parent.iterdir()] == [audit.name]
    assert audit.parent.parent == library.parent.parent
    assert audit.parent.stat().st_mode & 0o777 == 0o700


def test_a_c_library_without_auditors_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = find_library()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("CC", "false")
    monkeypatch.setattr("pyptx.driver.launcher.find_library", lambda: library)
    assert find_audit() is None
    assert "LD_AUDIT" not in make_environment(Settings(), {})


def test_auditors_of_the_user_stay(library: Path) -> None:
    audit = find_audit()
    assert make_environment(Settings(), {"LD_AUDIT": "/own.so"})["LD_AUDIT"] == f"{audit}:/own.so"
    assert make_environment(Settings(audit=False), {"LD_AUDIT": "/own.so"})["LD_AUDIT"] == "/own.so"
