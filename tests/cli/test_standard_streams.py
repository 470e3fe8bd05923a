"""Standard streams that are full, closed or not read: one line, the correct status, no traceback."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from pyptx.cli import main

KERNEL = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k()
{
    .reg .b32 %r<3>;
    add.s32 %r1, %r2, 1;
    ret;
}
"""
FULL = "pyptx: the output cannot be written: No space left on device\n"
SHELL = shutil.which("bash") or "/bin/bash"


def run(folder: Path, words: str, streams: str) -> tuple[int, str]:
    """Run a command with its streams redirected; return its status and its error output."""
    (folder / "k.ptx").write_text(KERNEL)
    command = [SHELL, "-c", f"{sys.executable} -m pyptx {words} {streams}"]
    process = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return process.returncode, process.stderr


@pytest.mark.parametrize("words", ["check k.ptx", "fmt k.ptx", "info k.ptx", "sass k.ptx", "explain PTX0501"])
def test_a_full_disk_is_said_and_is_status_2(tmp_path: Path, words: str) -> None:
    assert run(tmp_path, words, "> /dev/full") == (2, FULL)


def test_a_full_disk_of_a_simulated_run(tmp_path: Path) -> None:
    assert run(tmp_path, "sim k.ptx --check none", "> /dev/full") == (2, FULL)


def test_standard_error_that_cannot_be_written_is_status_2(tmp_path: Path) -> None:
    assert run(tmp_path, "check missing.ptx", "2> /dev/full") == (2, "")


@pytest.mark.parametrize("words", ["check", "sim"])
def test_a_reader_that_has_seen_enough_ends_the_command(tmp_path: Path, words: str) -> None:
    (tmp_path / "k.ptx").write_text(KERNEL)
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "pyptx", words, str(tmp_path / "k.ptx")]
    process = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert process.returncode == 141
    assert "Traceback" not in process.stderr


@pytest.mark.parametrize(
    ("words", "streams", "status", "error"),
    [
        ("fmt k.ptx", ">&-", 0, ""),
        ("check missing.ptx", "2>&-", 2, ""),
        ("check -", "<&-", 2, "pyptx: <stdin>: standard input is closed; name a file instead of -\n"),
    ],
)
def test_a_closed_stream_is_no_traceback(tmp_path: Path, words: str, streams: str, status: int, error: str) -> None:
    assert run(tmp_path, words, streams) == (status, error)


def test_a_folder_that_cannot_be_written_is_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(**options: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "/folder")

    (tmp_path / "k.ptx").write_text(KERNEL.replace("    ", "  "))
    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    assert main(["fmt", "--write", str(tmp_path / "k.ptx")]) == 2
    assert capsys.readouterr().err == "pyptx: /folder: Permission denied\n"
