"""The cache of compiled code: it is used, and it changes nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pyptx.cache import Store
from pyptx.driver.compiled import MOST_BYTES, SUFFIX, Cache, CodeFile
from tests.driver.conftest import Run
from tests.driver.test_programs import ADD, RACE

TEXT, NAME = "x = 1\n", "<block 0>"
OTHER = "x = 2\n"


def open_cache(folder: Path) -> Cache:
    """Return a cache in a folder."""
    return Cache(Store(folder, SUFFIX, MOST_BYTES))


def run_code(file: CodeFile, text: str = TEXT) -> int:
    """Return what a text assigns."""
    namespace: dict[str, int] = {}
    exec(file.compile(text, NAME), namespace)
    return namespace["x"]


def keep(folder: Path, ptx: str = "ptx", text: str = TEXT) -> Path:
    """Keep the code of a text, and return its file."""
    file = open_cache(folder).find(ptx)
    run_code(file, text)
    file.save()
    return folder / f"{file.name}.code"


def plant(folder: Path) -> Path:
    """Keep the code of another text in place of that of `TEXT`."""
    path = keep(folder)
    ((digest, _),) = open_cache(folder).read(path.stem).items()
    (other,) = open_cache(folder).read(keep(folder, "other", OTHER).stem).values()
    open_cache(folder).write(path.stem, {digest: other})
    return path


def test_code_of_an_earlier_process_is_used(tmp_path: Path) -> None:
    plant(tmp_path)
    assert run_code(open_cache(tmp_path).find("ptx")) == 2
    assert run_code(open_cache(tmp_path).find("another")) == 1


def test_the_same_text_under_another_name_is_other_code(tmp_path: Path) -> None:
    file, names = open_cache(tmp_path).find("ptx"), ["<block 0>", "<block 1>"]
    assert [file.compile(TEXT, name).co_filename for name in names] == names


def test_code_of_another_text_or_python_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(tmp_path)
    assert run_code(open_cache(tmp_path).find("ptx"), "x = 1 \n") == 1
    monkeypatch.setattr("pyptx.driver.compiled._VERSIONS", "another Python")
    assert run_code(open_cache(tmp_path).find("ptx")) == 1


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
