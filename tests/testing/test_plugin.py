"""The plugin of pytest shows findings and keeps timelines of failing tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pyptx.testing import matching, plugin

_STORE = "    ptx.st(f32, ptx.addr(py, ptx.special.tid.x() * 4), 0.0)"
_TEST = f"""
import numpy as np
from pyptx import Tile, kernel, ptx
from pyptx.testing import assert_matches
from pyptx.types import f32

@kernel(in_specs=[Tile("n", f32)], out_specs=[Tile("n", f32)], grid=(1,), block=(32, 1, 1))
def beyond(x, y):
    px, py = ptx.global_ptrs(x, y)
{_STORE}

def test_a_call():
    beyond(np.zeros(4, np.float32))

def test_a_recorded_run():
    beyond.simulate(np.zeros(4, np.float32), timeline=True)

def test_a_comparison():
    assert_matches(beyond, np.zeros_like, shapes=[{{"n": 4}}])

def test_nothing():
    pass
"""


@pytest.mark.parametrize("workers", [["-p", "no:xdist"], ["-n2"]], ids=["alone", "xdist"])
def test_a_failing_run_leaves_its_timeline(workers: list[str], tmp_path: Path) -> None:
    file = tmp_path / "test_beyond.py"
    file.write_text(_TEST, "utf-8")
    plugins = ["-p", "no:cacheprovider", *workers, "--pyptx-timelines", "timelines"]
    words = [sys.executable, "-m", "pytest", "-q", "-rN", "--rootdir", str(tmp_path), *plugins, str(file)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    process = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert "3 failed, 1 passed" in process.stdout, process.stdout + process.stderr
    number = 1 + _TEST.splitlines().index(_STORE)
    finding = re.compile(
        rf"^E .*{re.escape(str(file))}:{number}: error\[PTX1110\]: `st\.global\.f32` accesses 4 bytes .*\n"
        rf"E +{number} \| {re.escape(_STORE)}\n"
        rf"E +\|     \^{{{len(_STORE.lstrip())}}}\n",
        re.MULTILINE,
    )
    assert len(finding.findall(process.stdout)) == 3, process.stdout
    assert "matching.py" not in process.stdout
    assert "pyptx timeline ---" in process.stdout
    names = {"test_beyond.py-test_a_recorded_run.html", "beyond-n4-eager-0.html"}
    assert {path.name for path in (tmp_path / "timelines").iterdir()} == names
    for name in names:
        assert f"timelines/{name}\n" in process.stdout
        assert "beyond" in (tmp_path / "timelines" / name).read_text("utf-8")


def make_item(option: Path | None) -> Any:
    """Return a test of a run with this option."""
    config = SimpleNamespace(getoption={"--pyptx-timelines": option and str(option)}.__getitem__)
    return SimpleNamespace(config=config, nodeid="tests/test_k.py::test_sum[n=4, 1.5-x]")


def finish(hook: Generator[None, Any, Any], result: object) -> object:
    """Return what a hook that has yielded returns, with the result of the others."""
    with pytest.raises(StopIteration) as stop:
        hook.send(result)
    return stop.value.value


def test_the_option_belongs_to_the_package() -> None:
    added: list[Any] = []

    def note(name: str, **details: str) -> None:
        added.append((name, details["metavar"]))

    parser: Any = SimpleNamespace(getgroup={"pyptx": SimpleNamespace(addoption=note)}.__getitem__)
    plugin.pytest_addoption(parser)
    assert added == [("--pyptx-timelines", "DIR")]


def test_timelines_have_a_place_while_a_test_runs(tmp_path: Path) -> None:
    place = matching._TIMELINES  # pyright: ignore[reportPrivateUsage]
    folder = tmp_path / "a" / "b"
    for _ in range(2):
        hook = plugin.pytest_runtest_call(make_item(folder))
        next(hook)
        assert folder.is_dir()
        assert place.get() == folder
        assert finish(hook, 7) == 7
        assert place.get() is None
    hook = plugin.pytest_runtest_call(make_item(None))
    next(hook)
    assert place.get() is None
    assert finish(hook, 7) == 7


def test_a_report_names_the_timeline_of_its_error(tmp_path: Path) -> None:
    saved: list[Path] = []
    timeline = SimpleNamespace(save=saved.append)
    error, other = SimpleNamespace(value=SimpleNamespace(timeline=timeline)), SimpleNamespace(value=ValueError("x"))
    for option, excinfo, name in (
        (tmp_path, error, "tests-test_k.py-test_sum-n=4-1.5-x-.html"),
        (None, error, None), (tmp_path, other, None), (tmp_path, None, None),
    ):  # fmt: skip
        saved.clear()
        call: Any = SimpleNamespace(excinfo=excinfo)
        hook, report = plugin.pytest_runtest_makereport(make_item(option), call), SimpleNamespace(sections=[])
        next(hook)
        assert finish(hook, report) is report
        assert saved == ([] if name is None else [tmp_path / name])
        assert report.sections == [("pyptx timeline", str(file)) for file in saved]
