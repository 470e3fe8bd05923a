"""The lines of launches by programs in C, as text and in reports."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pyptx.driver.build import find_compiler
from pyptx.driver.native_frames import find_native_caller
from tests.driver.conftest import PROGRAMS, Run

SOURCE = PROGRAMS / "launches.c"
SUMMARY = "pyptx: launch of `store`, grid (1, 1, 1), block (1, 1, 1) at "


def find_line(comment: str) -> int:
    """Return the number of the line with a comment."""
    return next(number for number, line in enumerate(SOURCE.read_text().splitlines(), 1) if f"/* {comment} */" in line)


def build(folder: Path, library: Path, *options: str) -> str:
    """Compile the program."""
    program = folder / "launches"
    subprocess.run([*find_compiler(), *options, "-o", program, SOURCE, library], check=True)
    return str(program)


@pytest.mark.parametrize("options", [["-O0"], ["-O2"], ["-O2", "-no-pie"]], ids=" ".join)
def test_a_launch_and_an_allocation_have_lines_with_debug_information(
    run_program: Run, library: Path, tmp_path: Path, options: list[str]
) -> None:
    process = run_program([build(tmp_path, library, "-g", *options)])
    assert process.stderr.startswith(f"{SUMMARY}{SOURCE}:{find_line('inlined')}\n")
    assert f"`allocation 1 from {SOURCE}:{find_line('allocation')}`, 400 bytes" in process.stderr
    assert process.returncode == 0


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_functions_of_nvcc_are_not_the_place_of_a_launch(
    run_program: Run, library: Path, tmp_path: Path, level: str
) -> None:
    program = build(tmp_path, library, "-g", level, "-fno-optimize-sibling-calls")
    for words, comment in ((["as nvcc"], "as nvcc"), (["of a", "stub"], "of a stub")):
        process = run_program([program, *words])
        assert process.stderr.startswith(f"{SUMMARY}{SOURCE}:{find_line(comment)}\n")


def test_a_program_without_debug_information_is_named_with_the_offset(
    run_program: Run, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = build(tmp_path, library, "-O2")
    text = re.escape(SUMMARY) + r"launches(\+0x[0-9a-f]+)"
    match = re.match(text + r" \(main\)\n", run_program([program]).stderr)
    assert match is not None
    monkeypatch.setenv("PATH", str(tmp_path))
    without_tool = re.match(text + "\n", run_program([program]).stderr)
    assert without_tool is not None
    assert without_tool[1] == match[1]


@pytest.mark.parametrize("suffix", ["json", "sarif"])
def test_reports_have_the_line_of_the_launch(library: Path, tmp_path: Path, suffix: str) -> None:
    report = tmp_path / f"report.{suffix}"
    command = [sys.executable, "-m", "pyptx", "simulate", "--report", str(report), "--", build(tmp_path, library, "-g")]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent.parent.parent)}
    process = subprocess.run(command, cwd=SOURCE.parent, env=environment, check=False, capture_output=True, text=True)
    assert process.stderr.startswith(f"{SUMMARY}launches.c:{find_line('inlined')}\n")
    document: Any = json.loads(report.read_text("utf-8"))
    if suffix == "json":
        assert document["launches"][0]["place"] == f"launches.c:{find_line('inlined')}"
        return
    location = document["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert location["artifactLocation"]["uri"] == "launches.c"
    assert location["region"] == {"startLine": find_line("inlined")}


def test_a_launch_by_a_text_of_python_has_no_place(run_program: Run) -> None:
    text = """\
from calls import *
start()
add = load(VECTOR_ADD, "add")
values = [ctypes.c_uint64(value) for value in (*(ask("cuMemAlloc_v2", 4000) for _ in range(3)), 1001)]
pointers = (ctypes.c_void_p * 4)(*map(ctypes.addressof, values))
CUDA.cuLaunchKernel(ctypes.c_void_p(add), 4, 1, 1, 256, 1, 1, 0, None, pointers, None)
"""
    process = run_program([sys.executable, "-c", text], check="none")
    assert process.stderr.startswith("pyptx: launch of `add`, grid (4, 1, 1), block (256, 1, 1)\n")


def test_a_c_library_without_backtrace_knows_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyptx.driver.native_frames._load_c", lambda: None)
    assert find_native_caller(str(SOURCE.parent)) == ""
