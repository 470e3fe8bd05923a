"""Running programs: limits, privacy, clean-up, bytes that are not text."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from pyptx.toolchain import ToolFailed, ToolMissing, assemble_with_ptxas, sass, validate
from pyptx.toolchain.process import create_private_folder, make_printable, run
from tests.toolchain.modules import SMALL


def test_a_run_past_its_time_is_killed_with_its_children() -> None:
    start = time.monotonic()
    with pytest.raises(ToolFailed, match="PTX0703"):
        run(["/bin/sh", "-c", "sleep 60 & sleep 60"], timeout=0.2)
    assert time.monotonic() - start < 10


def test_a_grandchild_that_keeps_the_output_open_does_not_hold_us() -> None:
    start = time.monotonic()
    assert run(["/bin/sh", "-c", "sleep 5 & echo done"], timeout=60).output == "done\n"
    assert time.monotonic() - start < 4


def test_nothing_is_read_from_standard_input() -> None:
    code = "from pyptx.toolchain.process import run; print(repr(run(['/bin/cat'], timeout=10).output))"
    out = subprocess.run([sys.executable, "-c", code], input="ours", capture_output=True, text=True, check=True).stdout
    assert out == "''\n"


def test_arguments_reach_no_shell(tmp_path: Path) -> None:
    run(["/bin/echo", "$(touch here)", "; touch here"], cwd=tmp_path, timeout=10)
    assert list(tmp_path.iterdir()) == []


def test_output_of_any_size_and_any_bytes_is_taken() -> None:
    script = "import sys; sys.stdout.buffer.write(b'\\xff' * 3_000_000); sys.stderr.buffer.write(b'x' * 3_000_000)"
    result = run([sys.executable, "-c", script], timeout=60)
    assert (len(result.output), len(result.messages), result.output[0]) == (3_000_000, 3_000_000, "\ufffd")


def test_a_crash_is_told_from_a_failure() -> None:
    assert run(["/bin/sh", "-c", "kill -SEGV $$"], timeout=10).ending == "killed by SIGSEGV"
    assert run(["/bin/sh", "-c", "exit 3"], timeout=10).ending == "exit status 3"


def test_the_folder_is_private_and_goes_away_even_on_errors() -> None:
    records: list[Path] = []

    def fail() -> None:
        with create_private_folder() as folder:
            (folder / "file").write_text("x")
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
            records.append(folder)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert not records[0].exists()


def test_no_call_leaves_anything_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    files = set(os.listdir())
    assemble_with_ptxas(SMALL)
    sass(SMALL)
    assert validate(SMALL.replace("add.s32", "add")) != ()
    with pytest.raises(ToolFailed):
        validate(SMALL, timeout=0)
    assert list(tmp_path.iterdir()) == []
    assert set(os.listdir()) == files


@pytest.mark.usefixtures("tmp_path")
def test_a_tool_that_fails_silently_is_reported_with_its_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [p for p in sys.path if "site-packages" not in p])
    monkeypatch.delitem(sys.modules, "nvidia", raising=False)
    program = tmp_path / "ptxas"
    program.write_text("#!/bin/sh\necho 'strange \x1b[31mwords' >&2\nkill -ABRT $$\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolFailed) as excinfo:
        validate(SMALL)
    assert "SIGABRT" in str(excinfo.value)
    assert "strange \ufffd[31mwords" in str(excinfo.value)
    assert not isinstance(excinfo.value, ToolMissing)


def test_terminal_escapes_are_not_passed_on() -> None:
    assert make_printable("a\x1b[2Jb\nc\x07") == "a\ufffd[2Jb\nc\ufffd"
