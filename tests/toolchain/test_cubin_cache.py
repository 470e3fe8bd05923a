"""Machine code is assembled once: what comes from the cache equals what the assembler returns."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pyptx.cache import SWITCH, Store
from pyptx.toolchain import AssemblyError, Cubin, assemble, assemble_cached, find_tool
from pyptx.toolchain.tools import Tool

TEXT = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n    ret;\n}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(SWITCH, raising=False)
    return tmp_path / "pyptx" / "cubins"


def plant(folder: Path) -> Cubin:
    """Assemble a module, and put another module's code in the place of its code; return the other's."""
    assemble_cached(TEXT)
    (path,) = folder.glob("*.cubin")
    other = assemble_cached(TEXT.replace(" k(", " other("))
    (other_path,) = {*folder.glob("*.cubin")} - {path}
    other_path.replace(path)
    return other


def test_machine_code_of_an_earlier_process_is_used(folder: Path) -> None:
    expected = assemble(TEXT)
    assert assemble_cached(TEXT) == expected
    assert assemble_cached(TEXT) == expected
    assert assemble_cached(TEXT).log == assemble_cached(TEXT).log
    other = plant(folder)
    assert assemble_cached(TEXT) == other


CHANGES: list[Callable[[], Cubin]] = [
    lambda: assemble_cached(TEXT + "\n"),
    lambda: assemble_cached(TEXT, "sm_90"),
    lambda: assemble_cached(TEXT, lineinfo=True),
]


@pytest.mark.parametrize("run", CHANGES, ids=["other text", "other target", "line information"])
def test_other_input_has_other_code(run: Callable[[], Cubin], folder: Path) -> None:
    other = plant(folder)
    assert run() != other
    assert len(list(folder.glob("*.cubin"))) == 2


def test_line_information_is_kept(folder: Path) -> None:
    text = TEXT.replace("    ret", "    .loc 1 5 0\n    ret") + '.file 1 "k.py"\n'
    for _ in range(2):
        assert assemble_cached(text, lineinfo=True) == assemble(text, lineinfo=True) != assemble(text)


def test_the_target_of_the_module_is_the_default(folder: Path) -> None:
    other = plant(folder)
    assert assemble_cached(TEXT, "sm_80") == other


def test_another_assembler_has_other_code(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = plant(folder)
    copy = tmp_path / "ptxas"
    copy.symlink_to(find_tool("ptxas").path)
    tool = Tool("ptxas", str(copy), "PATH")
    monkeypatch.setattr("pyptx.toolchain.cubin_cache.find_tool", {"ptxas": tool}.__getitem__)
    assert assemble_cached(TEXT) != other


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bytearray:
    """Return the text of a script that runs ptxas, which takes its place once it is written."""
    tool = Tool("ptxas", str(tmp_path / "ptxas"), "PATH")
    lines = ["#!/bin/sh", "# " + "1" * 300_000, f'exec "{find_tool("ptxas").path}" "$@"', "# " + "1" * 300_000]
    monkeypatch.setattr("pyptx.toolchain.cubin_cache.find_tool", {"ptxas": tool}.__getitem__)
    return bytearray("\n".join(lines).encode())


def write(path: Path, text: bytearray) -> None:
    """Write a program with the time that files of an image may have."""
    path.write_bytes(text)
    path.chmod(0o755)
    os.utime(path, (0, 0))


@pytest.mark.parametrize("place", [100, 300_000, -100], ids=["in its beginning", "in its middle", "in its end"])
def test_an_assembler_of_the_same_size_and_time_has_other_code(
    place: int, folder: Path, tmp_path: Path, script: bytearray
) -> None:
    write(tmp_path / "ptxas", script)
    other = plant(folder)
    assert assemble_cached(TEXT) == other
    script[place] += 1
    write(tmp_path / "new", script)
    (tmp_path / "new").replace(tmp_path / "ptxas")
    assert assemble_cached(TEXT) != other


def test_an_assembler_that_is_written_in_place_has_other_code(folder: Path, tmp_path: Path, script: bytearray) -> None:
    write(tmp_path / "ptxas", script)
    other = plant(folder)
    script[300_000] += 1
    write(tmp_path / "ptxas", script)
    assert assemble_cached(TEXT) != other


def test_the_digest_of_an_assembler_is_kept(folder: Path, tmp_path: Path, script: bytearray) -> None:
    write(tmp_path / "ptxas", script)
    other = plant(folder)
    (path,) = folder.glob("*.digest")
    Store(folder, path.suffix, 1 << 20).write(path.stem, b"another")
    assert assemble_cached(TEXT) != other


def test_code_of_an_assembler_that_cannot_be_read_is_not_kept(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = Tool("ptxas", str(tmp_path / "gone"), "PATH")
    monkeypatch.setattr("pyptx.toolchain.cubin_cache.find_tool", {"ptxas": tool}.__getitem__)
    assert assemble_cached(TEXT) == assemble(TEXT)
    assert list(folder.glob("*.cubin")) == []


def test_code_with_messages_is_not_kept(folder: Path) -> None:
    text = TEXT.replace("k()", "k() .maxntid 1024 .minnctapersm 8")
    for _ in range(2):
        assert [finding.code for finding in assemble_cached(text).diagnostics] == ["PTX0713"]
    with pytest.raises(AssemblyError):
        assemble_cached(TEXT.replace("ret", "rte"))
    assert list(folder.glob("*.cubin")) == []


def test_a_damaged_file_is_assembled_again(folder: Path) -> None:
    plant(folder)
    (path,) = folder.glob("*.cubin")
    path.write_bytes(path.read_bytes()[:-1])
    assert assemble_cached(TEXT) == assemble(TEXT)
    assert assemble_cached(TEXT) == assemble(TEXT)


def test_without_a_cache_everything_is_assembled(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = plant(folder)
    monkeypatch.setenv(SWITCH, "0")
    assert assemble_cached(TEXT) != other
    monkeypatch.delenv(SWITCH)
    os.chmod(folder, 0o777)
    assert assemble_cached(TEXT) != other
