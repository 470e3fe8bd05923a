"""`pyptx cache` shows and removes what is cached."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyptx.cache import Store
from pyptx.cli import OK, UNUSABLE, main


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the caches, with one file each for two parts and something else."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name in ("cubins", "code", "other"):
        store = Store.open(name, ".x", 1 << 20)
        assert store is not None
        store.write("file", b"x" * 2000)
    return tmp_path / "pyptx"


def test_it_shows_what_is_there(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache"]) == OK
    assert capsys.readouterr().out == (
        f"{home}\n"
        "cubins  1 file, 3 kB: machine code of kernels\n"
        "code    1 file, 3 kB: Python code of simulated kernels\n"
        "tuning  0 files, 0 kB: choices of Kernel.tune\n"
        "driver  0 files, 0 kB: the libraries of the simulated driver, built in this checkout\n"
    )
    assert main(["cache", "--json"]) == OK
    assert json.loads(capsys.readouterr().out) == {
        "folder": str(home), "cubins": {"files": 1, "bytes": 2032, "problem": ""},
        "code": {"files": 1, "bytes": 2032, "problem": ""}, "tuning": {"files": 0, "bytes": 0, "problem": ""},
        "driver": {"files": 0, "bytes": 0, "problem": ""},
    }  # fmt: skip


def explain(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the lines about what is not kept."""
    assert main(["cache"]) == OK
    return [line for line in capsys.readouterr().out.splitlines() if "nothing is kept" in line]


def keeps(part: str) -> bool:
    """Return whether a part of the cache keeps what is written."""
    store = Store.open(part, ".x", 1 << 20)
    if store is None:
        return False
    store.write("new", b"x" * 2000)
    return store.read("new") is not None


def test_it_says_why_nothing_is_kept(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    home.chmod(0o777)
    wrong = "belongs to another user or is writable by others: remove it, or set XDG_CACHE_HOME"
    assert explain(capsys) == [f"nothing is kept: {home} {wrong}"]
    assert not any(keeps(part) for part in ("cubins", "code", "tuning"))
    home.chmod(0o700)
    with monkeypatch.context() as patch:
        patch.setattr("os.open", _fail)
        assert explain(capsys) == [f"nothing is kept: {home}: No space left on device"]
        assert not keeps("cubins")
    monkeypatch.setenv("PYPTX_CACHE", "0")
    switched_off = "cubins, code, tuning: nothing is kept: the environment variable PYPTX_CACHE is 0"
    assert explain(capsys) == [switched_off]
    assert not keeps("cubins")
    monkeypatch.delenv("PYPTX_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/1/x")
    assert explain(capsys)[0].startswith("nothing is kept: /proc/1/x")
    assert not keeps("cubins")


def test_it_names_the_part_that_keeps_nothing(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "cubins").chmod(0o770)
    (home / "tuning").touch()
    assert explain(capsys) == [
        f"cubins: nothing is kept: {home}/cubins belongs to another user or is writable by others: remove it, or set "
        "XDG_CACHE_HOME",
        f"tuning: nothing is kept: {home}/tuning: Not a directory",
    ]
    assert [part for part in ("cubins", "code", "tuning") if keeps(part)] == ["code"]


def test_a_folder_that_the_group_can_write_is_repaired(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home.chmod(0o775)
    assert explain(capsys) == []
    assert home.stat().st_mode & 0o777 == 0o755
    assert keeps("cubins")


def test_without_a_home_nothing_is_kept(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", dict[int, object]().__getitem__)
    assert not keeps("cubins")
    assert main(["cache"]) == UNUSABLE
    assert capsys.readouterr().err == "pyptx: ~/.cache/pyptx: no home folder is known: set XDG_CACHE_HOME\n"


def _fail(path: str, *arguments: object) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)


def test_it_removes_a_part_or_all_parts(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "--clear", "code"]) == OK
    assert capsys.readouterr().out.splitlines()[1] == "code    removed 1 file, 3 kB: Python code of simulated kernels"
    assert sorted(path.name for path in home.iterdir()) == ["cubins", "other"]
    assert main(["cache", "--clear"]) == OK
    assert [path.name for path in home.iterdir()] == ["other"]


WRITER = """\
from itertools import count
from pyptx.cache import Store
for number in count():
    store = Store.open("cubins", ".x", 1 << 20)
    if store is not None:
        store.write(str(number % 200), bytes(1000))
    if number == 200:
        print(flush=True)
"""


def test_other_processes_may_write_meanwhile(home: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", WRITER], stdout=subprocess.PIPE) as writer:
        try:
            assert writer.stdout is not None
            writer.stdout.readline()
            statuses = [main(["cache", *options]) for _ in range(20) for options in ([], ["--clear", "cubins"])]
        finally:
            writer.kill()
    assert statuses == [OK] * 40
    assert not list(home.glob(".*"))


def test_what_a_killed_process_did_not_remove_goes(home: Path) -> None:
    (home / ".removed-1" / "code").mkdir(parents=True)
    assert main(["cache", "--clear", "code"]) == OK
    assert sorted(path.name for path in home.iterdir()) == ["cubins", "other"]


def test_a_link_is_not_followed(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "code").rename(tmp_path / "elsewhere")
    (home / "code").symlink_to(tmp_path / "elsewhere")
    assert main(["cache", "--clear"]) == OK
    assert (tmp_path / "elsewhere" / "file.x").exists()


def test_another_part_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "--clear", "other"]) == UNUSABLE
    assert capsys.readouterr().err == (
        "pyptx: --clear other: expected one of cubins, code, tuning, driver, or nothing for all\n"
    )


def test_an_empty_part_is_an_error(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "--clear="]) == UNUSABLE
    assert capsys.readouterr().err == (
        "pyptx: --clear '': expected one of cubins, code, tuning, driver, or nothing for all\n"
    )
    assert (home / "code" / "file.x").exists()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("clear", "clear; did you mean --clear?"),
        ("--size 3", "--size 3"),
        ("clear code", "clear code; did you mean --clear?"),
    ],
)
def test_an_unknown_argument_refers_to_the_commands_help(
    words: str, problem: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["cache", *words.split()])
    assert capsys.readouterr().err == f"pyptx: unrecognized arguments: {problem} (see `pyptx cache --help`)\n"
    assert (home / "code" / "file.x").exists()
