"""Where the library is built, and that nobody else can have written it."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pyptx.driver
from pyptx.cache import Untrusted, find_cache, make_private
from pyptx.driver import build
from pyptx.driver.build import find_compiler
from pyptx.driver.calls import ENTRIES
from pyptx.driver.connection import start
from pyptx.driver.library import find_audit, find_library
from pyptx.driver.settings import Settings
from pyptx.driver.sources import ENTRY, FOLDER, NAME, NoCompiler, compute_digest
from tests.driver.conftest import Run


def _find_nothing(name: str) -> None:
    """Stand for a machine without the program or package."""


def test_the_libraries_are_alone_in_a_private_folder_of_the_user(library: Path) -> None:
    assert find_cache() in library.parents
    names = ["libcuda.so.1", "libcudart.so.12", "libcudart.so.13"]
    assert sorted(file.name for file in library.parent.iterdir()) == names
    assert library.parent.stat().st_mode & 0o777 == 0o700
    assert find_library() == library


def test_a_cache_elsewhere_is_used(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    other = find_library()
    assert other.parts[-4:-2] == ("pyptx", "driver")
    assert (tmp_path / "cache") in other.parents
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert find_cache() == Path.home() / ".cache" / "pyptx"


def test_a_folder_that_others_can_write_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = make_private("driver", compute_digest())
    for path in (folder, folder.parent, folder.parent.parent):
        path.chmod(0o777)
        with pytest.raises(Untrusted, match="writable by others"):
            find_library()
        path.chmod(0o700)


@pytest.mark.parametrize("find", [find_library, find_audit])
def test_a_cache_that_cannot_be_written_is_explained(
    find: Callable[[], Path | None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(file))
    with pytest.raises(FileExistsError, match="set XDG_CACHE_HOME to a folder that can be written") as caught:
        find()
    assert caught.value.filename == str(file)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _change(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[1000] ^= 1
    path.write_bytes(data)


def _lend(path: Path) -> None:
    path.chmod(0o660)


def _link(path: Path) -> None:
    path.rename(path.parents[1] / "elsewhere")
    path.symlink_to(path.parents[1] / "elsewhere")


@pytest.mark.parametrize("damage", [_cut, _empty, _change, _lend, _link])
def test_a_library_that_is_damaged_or_that_others_can_write_is_built_again(
    damage: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = find_audit()
    assert path is not None
    expected = path.read_bytes()
    built = path.stat()
    assert find_audit() == path
    assert path.stat() == built
    damage(path)
    assert find_audit() == path
    assert path.read_bytes() == expected
    assert path.lstat().st_mode & 0o777 == 0o600


def test_the_libraries_are_built_again_if_one_is_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    library = find_library()
    others = [library.with_name(name) for name in ("libcudart.so.12", "libcudart.so.13")]
    expected = {path: path.read_bytes() for path in (library, *others)}
    # What the digest says depends on the name.
    others[0].write_bytes(expected[others[1]])
    assert find_library() == library
    assert {path: path.read_bytes() for path in expected} == expected


def test_zig_serves_without_another_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", _find_nothing)
    compiler = find_compiler()
    assert compiler[1:] == ["-m", "ziglang", "cc"]
    build.build(tmp_path / "libcuda.so.1", compiler)
    # In a process of its own: in this one, later tests would find it by its name.
    program = (
        f"import ctypes; print(ctypes.CDLL({str(tmp_path / 'libcuda.so.1')!r}).cuGetProcAddress(None, None, 0, 0))"
    )
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert process.stdout == "1\n"


STOPPED_BUILD = """
import sys, time
from pathlib import Path
from pyptx.driver import build
build.subprocess.run = lambda *words, **options: (print("building", flush=True), time.sleep(600))
build.build_audit(Path(sys.argv[1]) / "audit.so", ["cc"])
"""


def test_the_folder_of_a_killed_build_is_removed_by_the_next_one(tmp_path: Path) -> None:
    command = [sys.executable, "-c", STOPPED_BUILD, str(tmp_path)]
    with subprocess.Popen(command, stdout=-1, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "building\n"
            (abandoned,) = tmp_path.iterdir()
            (abandoned / "audit.so").touch()
            os.utime(abandoned, (0, 0))
            build.build_audit(tmp_path / "audit.so", find_compiler())
            assert abandoned.exists()  # its process lives
        finally:
            process.kill()
    build.build_audit(tmp_path / "audit.so", find_compiler())
    assert [path.name for path in tmp_path.iterdir()] == ["audit.so"]


def test_without_any_compiler_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", _find_nothing)
    monkeypatch.setattr("pyptx.driver.build.find_spec", _find_nothing)
    with pytest.raises(NoCompiler, match="install one, or the package `ziglang`"):
        find_compiler()


def test_libraries_in_the_package_need_no_compiler_unless_the_sources_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("pyptx.driver.library.PREBUILT", tmp_path)
    monkeypatch.setattr("shutil.which", _find_nothing)
    monkeypatch.setattr("pyptx.driver.build.find_spec", _find_nothing)
    digest = compute_digest()
    for folder, names in (
        (digest, ("libcuda.so.1", "libcudart.so.12", "libcudart.so.13")), (f"{digest}-audit", ("libpyptx_audit.so",)),
    ):  # fmt: skip
        (tmp_path / folder).mkdir()
        for name in names:
            (tmp_path / folder / name).touch()
    assert find_library() == tmp_path / digest / "libcuda.so.1"
    assert find_audit() == tmp_path / f"{digest}-audit" / "libpyptx_audit.so"
    monkeypatch.setattr("pyptx.driver.library.compute_digest", lambda: "another")
    with pytest.raises(NoCompiler):
        find_library()


def test_the_digest_covers_the_kinds_of_every_entry() -> None:
    """It reads them from the sources, without loading them."""
    found: dict[str, tuple[str, ...]] = {}
    for path in (FOLDER / "calls").glob("*.py"):
        for text in ENTRY.findall(path.read_text("utf-8")):
            call = ast.parse(f"f({text})", mode="eval").body
            assert isinstance(call, ast.Call)
            symbols, *kinds = (str(ast.literal_eval(argument)) for argument in call.args)
            found.update(dict.fromkeys(symbols.split(), tuple("".join(kinds).split())))
    assert found == {name: entry.kinds for name, entry in ENTRIES.items()}


def test_starting_a_program_loads_no_simulator(library: Path) -> None:
    assert find_audit()
    code = "import sys, pyptx.cli.simulate as s, pyptx.driver.library as l; l.find_library(); l.find_audit()\n"
    code += "print(*(name for name in sys.modules if name in ('numpy', 'pyptx.driver.calls', 'pyptx.parser')))"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout == "\n"


def test_the_manual_lists_the_variable_of_every_setting() -> None:
    text = (Path(__file__).parents[2] / "docs" / "driver.md").read_text("utf-8")
    listed = re.findall(r"^\| `(PYPTX_DRIVER_\w+)` \|.*\| (\S+) \|$", text, re.MULTILINE)
    defaults = Settings().to_environment()
    assert dict(listed) == {
        name: value if value.isdecimal() else f"`{value}`" if value else "none" for name, value in defaults.items()
    }


_PROGRAM = """
import os, sys
import pyptx.driver
pyptx.driver.activate("h100")
from pyptx.runtime.bindings import call, load_api
names = [call("cuDeviceGetName", 64, 0) for _ in [load_api()]]
os.environ["XDG_CACHE_HOME"] = sys.argv[1]
pyptx.driver.activate("b200")
print(*(name.rstrip(bytes(1)).decode() for name in (*names, call("cuDeviceGetName", 64, 0))), sep=", ")
"""


def test_a_second_driver_answers_the_library_that_is_loaded(library: Path, tmp_path: Path) -> None:
    """Also if the cache has moved, where another copy would be."""
    process = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(tmp_path)], capture_output=True, text=True, check=True
    )
    first, second = process.stdout.split(", ")
    assert "H100" in first
    assert "B200" in second


def test_another_driver_of_the_process_is_not_replaced(library: Path, tmp_path: Path) -> None:
    source, other = tmp_path / "other.c", tmp_path / "other.so"
    source.write_text("int cuInit(unsigned flags) { return 7; }", "ascii")
    subprocess.run([*find_compiler(), "-shared", "-fPIC", f"-Wl,-soname,{NAME}", "-o", other, source], check=True)
    program = f"""
import ctypes, pyptx.driver
ctypes.CDLL({str(other)!r})
try:
    pyptx.driver.activate()
except RuntimeError as why:
    print(ctypes.CDLL({NAME!r}).cuInit(0), pyptx.driver.is_active(), why)
"""
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert process.stdout == "7 False this process has loaded another CUDA driver: activate the simulated one earlier\n"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("SEED", "luck", "PYPTX_DRIVER_SEED is 'luck'; expected a whole number\n"),
        ("STOP", "yes", "PYPTX_DRIVER_STOP is 'yes'; expected 0 or 1\n"),
        ("DEVICE", "h1000", "no device 'h1000'; the devices are a100, h100"),
        ("COUNT", "17", "17 devices; there can be 1 to 16\n"),
        ("SCHEDULE", "luck", "no schedule 'luck'; the schedules are eager, lazy"),
        ("CHECK", "luck", "check 'luck': expected one of all, strict"),
        ("RECORDS", "absent", "records: there is no folder absent\n"),
        ("DUMP", "absent", "dump: there is no folder absent\n"),
        ("BASELINE", "absent.json", "absent.json: No such file or directory\n"),
    ],
)
def test_impossible_settings_of_the_environment_are_explained(
    run_program: Run, name: str, text: str, message: str
) -> None:
    program = "import ctypes\ncuda = ctypes.CDLL('libcuda.so.1')\nprint(cuda.cuInit(0), cuda.cuInit(0))"
    process = run_program(["env", f"PYPTX_DRIVER_{name}={text}", sys.executable, "-c", program])
    assert process.stdout == "100 100\n"
    assert process.stderr.startswith(f"pyptx: the simulated CUDA driver cannot start: {message}")
    assert process.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"order": "luck"}, ValueError, "no order 'luck'; the orders are sync, deferred"),
        ({"check": "luck"}, ValueError, "check 'luck': expected one of all, strict"),
        ({"baseline": "absent.json"}, FileNotFoundError, "absent.json"),
        ({"checks": "all"}, TypeError, "no option 'checks'; the options are device, count, check"),
    ],
)
def test_options_that_do_not_exist_leave_the_driver(
    options: dict[str, Any], kind: type[Exception], message: str
) -> None:
    driver = start()
    with pytest.raises(kind, match=message):
        pyptx.driver.activate(**options)
    assert start() is driver
