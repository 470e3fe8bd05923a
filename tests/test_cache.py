"""Stores in the user's cache: they give back what was written, and nothing that is wrong with them stops a program."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pyptx.cache import SWITCH, Store, Untrusted, make_private, probe

BODY = b"x" * 300


def open_store(folder: Path, limit: int = 1 << 20) -> Store:
    """Return a store in a folder."""
    return Store(folder, ".kept", limit)


def keep(folder: Path, name: str = "name", body: bytes = BODY) -> Path:
    """Write a file, and return its path."""
    open_store(folder).write(name, body)
    return folder / f"{name}.kept"


def test_what_is_written_is_read(tmp_path: Path) -> None:
    assert open_store(tmp_path).read("name") is None
    path = keep(tmp_path)
    assert open_store(tmp_path).read("name") == BODY
    assert path.stat().st_mode & 0o777 == 0o600
    keep(tmp_path, body=b"")
    assert open_store(tmp_path).read("name") == b""


@pytest.mark.parametrize(
    ("end", "change"), [(0, None), (10, None), (-1, None), (None, 0), (None, -1)],
    ids=["empty", "without a body", "without its last byte", "with another digest", "with another last byte"],
)  # fmt: skip
def test_a_damaged_file_is_not_read(tmp_path: Path, end: int | None, change: int | None) -> None:
    path = keep(tmp_path)
    data = bytearray(path.read_bytes()[:end])
    if change is not None:
        data[change] ^= 1
    path.write_bytes(data)
    assert open_store(tmp_path).read("name") is None
    keep(tmp_path)
    assert open_store(tmp_path).read("name") == BODY


def test_a_file_that_others_can_write_a_link_a_pipe_and_a_folder_are_not_read(tmp_path: Path) -> None:
    path, store = keep(tmp_path), open_store(tmp_path)
    path.chmod(0o620)
    assert store.read("name") is None
    path.chmod(0o600)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert store.read("name") is None
    path.unlink()
    os.mkfifo(path, 0o600)
    assert store.read("name") is None
    path.unlink()
    path.mkdir(0o700)
    assert store.read("name") is None


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder in which the user's caches are."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "pyptx"


def test_a_folder_that_others_can_write_is_not_used(home: Path) -> None:
    assert Store.open("code", ".kept", 10) == Store(home / "code", ".kept", 10)
    (home / "code").chmod(0o770)
    assert Store.open("code", ".kept", 10) is None


def test_folders_are_private_whatever_the_umask(home: Path) -> None:
    for mask in (0o002, 0o000, 0o277):
        previous = os.umask(mask)
        try:
            folder = make_private("driver", f"{mask:o}")
        finally:
            os.umask(previous)
        assert [path.stat().st_mode & 0o777 for path in (home, home / "driver", folder)] == [0o700] * 3


@pytest.mark.parametrize(("name", "mode"), [("", 0o702), ("", 0o720), ("driver", 0o777), ("driver", 0o775)])
def test_a_folder_above_is_repaired_if_only_the_group_could_write_it(home: Path, name: str, mode: int) -> None:
    folder = make_private("driver", "1")
    (home / name).chmod(mode)
    problem = probe("driver", "1")
    assert (problem == "") == (mode & 2 == 0)
    if problem:
        with pytest.raises(Untrusted) as caught:
            make_private("driver", "1")
        assert str(caught.value) == problem
    else:
        assert make_private("driver", "1") == folder
        assert (home / name).stat().st_mode & 0o777 == mode & ~0o020


def test_another_users_folder_is_not_used(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Store.open("code", ".kept", 10) is not None
    user = os.getuid()
    monkeypatch.setattr("os.getuid", lambda: user + 1)
    assert Store.open("code", ".kept", 10) is None
    assert probe("code").startswith(f"{home} belongs to another user")


def test_what_is_missing_is_not_created_to_explain_it(home: Path) -> None:
    assert probe("driver", "1") == ""
    assert list(home.iterdir()) == []


def test_entries_of_a_read_only_disk_are_read(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    home.mkdir()
    keep(home)
    monkeypatch.setattr("os.utime", fail)
    assert open_store(home).read("name") == BODY


def test_a_folder_that_cannot_be_created_is_not_used(home: Path) -> None:
    home.touch()
    assert Store.open("code", ".kept", 10) is None


def test_caches_are_switched_off(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "0")
    assert Store.open("code", ".kept", 10) is None
    assert not home.exists()


def test_a_file_that_does_not_fit_on_the_disk_is_left_out(tmp_path: Path) -> None:
    previous = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, previous[1]))
    try:
        keep(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, previous)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_gone_stops_nothing(tmp_path: Path) -> None:
    keep(tmp_path / "gone")
    assert list(tmp_path.iterdir()) == []


def test_the_files_that_were_not_used_for_the_longest_time_go_first(tmp_path: Path) -> None:
    paths = [keep(tmp_path, str(number)) for number in range(8)]
    for number, path in enumerate(paths):
        os.utime(path, (number, number))
    open_store(tmp_path).read("0")
    open_store(tmp_path, limit=6 * paths[0].stat().st_size).write("new", b"")
    assert {path.name for path in tmp_path.iterdir()} == {"new.kept", "0.kept", "7.kept"}


def test_a_store_that_stays_open_keeps_its_limit(tmp_path: Path) -> None:
    store = open_store(tmp_path, limit=1000)
    for number in range(20):
        store.write(str(number), BODY)
        assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 1000
    assert store.read("19") == BODY


def test_what_a_killed_process_left_goes(tmp_path: Path) -> None:
    old, recent = tmp_path / "old.new", tmp_path / "recent.new"
    for path in (old, recent):
        path.touch()
    os.utime(old, (0, 0))
    keep(tmp_path)
    assert not old.exists()
    assert recent.exists()


WRITER = """\
import sys
from pathlib import Path
from pyptx.cache import Store
store, body = Store(Path(sys.argv[1]), ".kept", 1 << 30), sys.argv[2].encode() * 500_000
while True:
    store.write("name", body)
    found = store.read("name")
    assert found is not None and len(found) == len(body) and len(set(found)) == 1
    print(flush=True)
"""


def test_processes_write_at_once_and_one_that_is_killed_breaks_nothing(tmp_path: Path) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), str(number)], stdout=subprocess.PIPE)
        for number in range(2)
    ]
    for writer in writers:
        assert writer.stdout is not None
        for _ in range(20):
            assert writer.stdout.readline() == b"\n"
    for writer in writers:
        writer.kill()
        assert writer.wait() == -signal.SIGKILL
        assert writer.stdout is not None
        writer.stdout.close()
    body = open_store(tmp_path).read("name")
    assert body in (b"0" * 500_000, b"1" * 500_000)
