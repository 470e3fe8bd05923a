"""The cache of compiled code: it is used, it changes nothing, and nothing that is wrong with it stops a program."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pyptx.driver.compiled import Cache, CodeFile
from tests.driver.conftest import Run
from tests.driver.test_programs import ADD, RACE

TEXT, NAME = "x = 1\n", "<block 0>"
OTHER = "x = 2\n"


def run_code(file: CodeFile, text: str = TEXT) -> int:
    """Return what a text assigns."""
    namespace: dict[str, int] = {}
    exec(file.compile(text, NAME), namespace)
    return namespace["x"]


def keep(folder: Path, ptx: str = "ptx", text: str = TEXT) -> Path:
    """Keep the code of a text, and return its file."""
    file = Cache(folder).find(ptx)
    run_code(file, text)
    file.save()
    return folder / f"{file.name}.code"


def plant(folder: Path) -> Path:
    """Keep the code of another text in place of that of `TEXT`."""
    path = keep(folder)
    ((digest, _),) = Cache(folder).read(path.stem).items()
    (other,) = Cache(folder).read(keep(folder, "other", OTHER).stem).values()
    Cache(folder).write(path.stem, {digest: other})
    return path


def test_code_of_an_earlier_process_is_used(tmp_path: Path) -> None:
    plant(tmp_path)
    assert run_code(Cache(tmp_path).find("ptx")) == 2
    assert run_code(Cache(tmp_path).find("another")) == 1


def test_code_of_another_text_or_python_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(tmp_path)
    assert run_code(Cache(tmp_path).find("ptx"), "x = 1 \n") == 1
    monkeypatch.setattr("pyptx.driver.compiled._VERSIONS", "another Python")
    assert run_code(Cache(tmp_path).find("ptx")) == 1


@pytest.mark.parametrize(
    ("end", "change"), [(0, None), (10, None), (-1, None), (None, 0), (None, -1)],
    ids=["empty", "without code", "without its last byte", "with another digest", "with another last byte"],
)  # fmt: skip
def test_a_damaged_file_is_written_anew(tmp_path: Path, end: int | None, change: int | None) -> None:
    path = plant(tmp_path)
    data = bytearray(path.read_bytes()[:end])
    if change is not None:
        data[change] ^= 1
    path.write_bytes(data)
    keep(tmp_path)
    assert run_code(Cache(tmp_path).find("ptx")) == 1
    assert len(Cache(tmp_path).read(path.stem)) == 1


def test_a_file_that_others_can_write_a_link_a_pipe_and_a_folder_are_not_read(tmp_path: Path) -> None:
    path = plant(tmp_path)
    path.chmod(0o620)
    assert run_code(Cache(tmp_path).find("ptx")) == 1
    path.chmod(0o600)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert run_code(Cache(tmp_path).find("ptx")) == 1
    path.unlink()
    os.mkfifo(path, 0o600)
    assert run_code(Cache(tmp_path).find("ptx")) == 1
    path.unlink()
    path.mkdir(0o700)
    assert run_code(Cache(tmp_path).find("ptx")) == 1


def test_a_folder_that_others_can_write_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert Cache.open() == Cache(tmp_path / "pyptx" / "code")
    (tmp_path / "pyptx" / "code").chmod(0o770)
    assert Cache.open() is None


def test_a_folder_that_cannot_be_created_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyptx").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert Cache.open() is None


def test_a_file_that_does_not_fit_on_the_disk_is_left_out(tmp_path: Path) -> None:
    previous = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, previous[1]))
    try:
        path = keep(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, previous)
    assert list(tmp_path.iterdir()) == []
    assert keep(tmp_path) == path
    assert path.exists()


def test_a_folder_that_is_gone_stops_nothing(tmp_path: Path) -> None:
    keep(tmp_path / "gone")
    assert list(tmp_path.iterdir()) == []


def test_the_files_that_were_not_used_for_the_longest_time_go_first(tmp_path: Path) -> None:
    paths = [keep(tmp_path, str(number)) for number in range(8)]
    for number, path in enumerate(paths):
        os.utime(path, (number, number))
    size = paths[0].stat().st_size
    Cache(tmp_path).read(paths[0].stem)
    cache = Cache(tmp_path, limit=6 * size)
    cache.write("new", {})
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"new.code", paths[0].name, paths[7].name}


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
from pyptx.driver.compiled import Cache
while True:
    file = Cache(Path(sys.argv[1])).find("ptx")
    namespace = {}
    exec(file.compile(f"x = {sys.argv[2]}\\n" + "y = 0\\n" * 5000, "<block 0>"), namespace)
    assert namespace["x"] == int(sys.argv[2])
    file._is_changed = True
    file.save()
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
    (name,) = {path.stem for path in tmp_path.glob("*.code")}
    assert 1 <= len(Cache(tmp_path).read(name)) <= 2


def test_a_warm_cache_changes_neither_results_nor_findings(
    run_program: Run, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = ADD + f'reverse = load("""{RACE.replace("BARRIER", "")}""", "reverse")\n'
    program += """\
print(launch(reverse, 1, 64, a), launch(add, 4, 256, a, b, c, 999), launch(add, 4, 256, a, b, c, 1001))
call("cuDevicePrimaryCtxReset_v2", 0)
"""
    monkeypatch.setattr("pyptx.driver.library.PREBUILT", library.parent.parent)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    outcomes: list[str] = []
    for number, is_on in enumerate((False, True, True)):
        folder = tmp_path / str(number)
        folder.mkdir()
        process = run_program(program, cache=is_on, records=str(folder))
        (file,) = folder.iterdir()
        records = re.sub(r'"seconds": [^,]+', "", file.read_text("utf-8"))
        # Memory is elsewhere in each process.
        outcomes.append(re.sub("0x[0-9a-f]+", "0x", process.stdout + process.stderr + records))
        assert len(list(tmp_path.glob("cache/pyptx/code/*"))) == 2 * is_on
    assert {"PTX0901", "PTX1110"} <= set(re.findall(r"PTX\d+", outcomes[0]))
    assert outcomes[1] == outcomes[0]
    assert outcomes[2] == outcomes[0]
