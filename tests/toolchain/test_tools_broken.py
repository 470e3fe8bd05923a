"""Tools that do not run, give wrong output, crash or run out of space: each is one finding with a remedy. The stand-ins
are real executable files, found through the real search order."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from pyptx.cli import main
from pyptx.diagnostics import PtxError
from pyptx.toolchain import assemble_with_ptxas, disassemble, resources, supported_targets, validate
from pyptx.toolchain.process import create_private_folder, run
from tests.toolchain.modules import SMALL

StandIn = Callable[[str, str], Path]


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> StandIn:
    """Hide the wheels, and return a function that puts a program with a given text on PATH."""

    def write_tool(name: str, text: str) -> Path:
        monkeypatch.setattr(sys, "path", [p for p in sys.path if "site-packages" not in p])
        monkeypatch.delitem(sys.modules, "nvidia", raising=False)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        path = tmp_path / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    return write_tool


OLD = "ptxas input.ptx, line 1; fatal   : Unsupported .version 8.0; current version is '7.8'"
BROKEN: dict[str, tuple[str, str, str]] = {
    "of another machine": ("\x7fELF and nothing", "PTX0706", "cannot be run: Exec format error"),
    "of an interpreter that is missing": ("#!/nonexistent/sh\n", "PTX0706", "cannot be run: No such file"),
    "silent": ("#!/bin/sh\n", "PTX0708", "ended with exit status 0 but wrote no machine code"),
    "writing something else": ("#!/bin/sh\n[ $1 = -arch ] && echo text > out.cubin\n", "PTX0708", "wrote no machine"),
    "failing silently": ("#!/bin/sh\nexit 3\n", "PTX0702", "failed: exit status 3"),
    "failing loudly": ("#!/bin/sh\nprintf 'gar\\033[31mbage' >&2; exit 1\n", "PTX0702", "gar\ufffd[31mbage"),
    "out of memory": ("#!/bin/sh\nkill -KILL $$\n", "PTX0702", "probably killed because the system ran out of memory"),
    "crashing": ("#!/bin/sh\nkill -SEGV $$\n", "PTX0702", "killed by SIGSEGV"),
    "for ever": ("#!/bin/sh\nsleep 60\n", "PTX0703", "did not finish within 0.3 s"),
    "too old": (f"#!/bin/sh\necho \"{OLD}\" >&2; echo V11.8.89; exit 255\n", "PTX0712", "ptxas 11.8.89, from PATH"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "code", "words"), list(BROKEN.values()), ids=list(BROKEN))
def test_a_ptxas_that_does_not_work_is_a_finding(stand_in: StandIn, text: str, code: str, words: str) -> None:
    stand_in("ptxas", text)
    with pytest.raises(PtxError) as excinfo:
        assemble_with_ptxas(SMALL, timeout=0.3 if "sleep" in text else 60)
    assert [d.code for d in excinfo.value.diagnostics] == [code]
    assert words in str(excinfo.value)
    assert ("out of memory" in str(excinfo.value)) == ("KILL" in text)


@pytest.mark.parametrize("text", [text for name, (text, _, _) in BROKEN.items() if name not in ("for ever", "too old")])
def test_the_command_line_says_it_and_ends_with_status_2(
    stand_in: StandIn, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in("ptxas", text)
    stand_in("nvdisasm", "#!/bin/sh\n")
    (tmp_path / "k.ptx").write_text(SMALL)
    assert main(["sass", str(tmp_path / "k.ptx")]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("error[PTX07")
    assert main(["info", str(tmp_path / "k.ptx")]) == 0
    assert "no resources: ptxas " in capsys.readouterr().out.replace(f"{tmp_path}/", "")


def test_an_old_ptxas_that_only_validates_names_itself(stand_in: StandIn) -> None:
    stand_in("ptxas", BROKEN["too old"][0])
    (finding,) = validate(SMALL)
    assert finding.help is not None
    assert "from PATH" in finding.help


def test_tools_that_print_nothing_are_told_from_empty_answers(stand_in: StandIn) -> None:
    cubin = assemble_with_ptxas(SMALL)
    stand_in("nvdisasm", "#!/bin/sh\n")
    stand_in("ptxas", "#!/bin/sh\n")
    for ask in (lambda: disassemble(cubin), supported_targets):
        with pytest.raises(PtxError, match="PTX0708"):
            ask()


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"\x7fELF\x02\x01" + b"\xff" * 100])
def test_a_damaged_cubin_is_a_finding(data: bytes) -> None:
    with pytest.raises(PtxError, match="cubin"):
        resources(data)


def test_a_missing_temporary_folder_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nonexistent")
    for use in (lambda: run(["/bin/true"]), lambda: assemble_with_ptxas(SMALL)):
        with pytest.raises(PtxError, match=r"PTX0707.*No such file.*\n.*set TMPDIR.*now /nonexistent"):
            use()


def test_a_full_disk_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = list(os.statvfs("/"))
    limits[2], limits[3], limits[4] = 100, 0, 0
    monkeypatch.setattr(os, "fstatvfs", lambda descriptor: os.statvfs_result(limits))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    with pytest.raises(PtxError, match=r"PTX0707.*No space left"):
        run(["/bin/true"])


def test_a_file_that_cannot_be_written_is_a_finding() -> None:
    with pytest.raises(PtxError, match="PTX0707"), create_private_folder() as folder:
        (folder / "missing" / "input.ptx").write_text("")


def test_a_machine_without_home_locale_or_input_assembles(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "LANG", "LC_ALL", "TMPDIR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LC_ALL", "tr_TR.ISO-8859-9")
    assert assemble_with_ptxas(SMALL + "// ş\n").data
