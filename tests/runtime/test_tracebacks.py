"""Tracebacks of Python and pytest show the user's frames, none of the package's, and the findings."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import Any

import numpy as np
import pytest

from pyptx import PtxError, Tile, kernel, ptx, reg
from pyptx.sim.launch.progress import Interrupted
from pyptx.types import u32

ROOT = Path(__file__).parents[2]
HEAD = """\
import numpy as np
from pyptx import Tile, kernel, ptx, reg
from pyptx.types import u32

X = np.zeros(64, np.uint32)


@kernel(in_specs=[Tile("n", u32)], out_specs=[Tile("n", u32)], grid=(1,), block=(64, 1, 1))
def adds(x, y):
    px, py = ptx.global_ptrs(x, y)
    {body}


def test_adds():
    adds(X)


if __name__ == "__main__":
    test_adds()
"""
BODIES = {
    "a hazard": ("ptx.red.add(u32, ptx.addr(py), 1)", "PTX0913", 0),
    "a mistake in the kernel": ("ptx.inst.add.u32(px, 1)", "PTX0", 1),
}


def run_file(tmp_path: Path, body: str, *words: str) -> str:
    (tmp_path / "adds.py").write_text(HEAD.replace("{body}", body))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200", "NO_COLOR": "1"}
    process = subprocess.run([sys.executable, *words, "adds.py"], cwd=tmp_path, env=environment, text=True,
                          capture_output=True, timeout=60, check=False)  # fmt: skip
    assert process.returncode == 1
    return process.stdout + process.stderr


@pytest.mark.parametrize(("body", "code", "inside"), list(BODIES.values()), ids=list(BODIES))
def test_a_traceback_of_python_has_the_frames_of_the_user(tmp_path: Path, body: str, code: str, inside: int) -> None:
    text = run_file(tmp_path, body)
    frames = [line for line in text.splitlines() if line.startswith("  File ")]
    assert [frame for frame in frames if "adds.py" not in frame and "diagnostics.py" not in frame] == []
    assert len(frames) == 3 + inside
    assert text.count(f"error[{code}") == 1
    assert len(text.splitlines()) < 22


@pytest.mark.parametrize(("body", "code", "inside"), list(BODIES.values()), ids=list(BODIES))
def test_pytest_shows_the_test_and_the_finding(tmp_path: Path, body: str, code: str, inside: int) -> None:
    text = run_file(tmp_path, body, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider")
    lines = text.partition("= FAILURES =")[2].partition("= short test summary")[0].splitlines()
    assert [line for line in lines if "pyptx/" in line] == []
    assert len([line for line in lines if f"error[{code}" in line]) == 1
    assert len(lines) < 24 + 10 * inside


ENDLESS = """count = reg.scalar(u32, 0)
    with ptx.while_(lambda: count >= 0):
        count += 1"""
ALARM = """
import signal
from pyptx import PtxError
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))


def test_adds():
    try:  # loads all that a run needs
        adds.simulate(X, max_steps=1000)
    except PtxError:
        pass
    signal.setitimer(signal.ITIMER_REAL, 0.5)
"""


def test_control_c_shows_the_frames_of_the_user(tmp_path: Path) -> None:
    head = HEAD.replace("\n\ndef test_adds():\n", ALARM)
    (tmp_path / "adds.py").write_text(head.replace("{body}", ENDLESS))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.run([sys.executable, "adds.py"], cwd=tmp_path, env=environment, text=True, capture_output=True,
                          timeout=60, check=False)  # fmt: skip
    assert process.returncode == 1
    frames = [line for line in process.stderr.splitlines() if line.startswith("  File ")]
    assert len(frames) == 3
    assert [frame for frame in frames[:-1] if "adds.py" not in frame] == []
    assert "diagnostics.py" in frames[-1]
    assert "instructions; arrays are unchanged" in process.stderr


@kernel(in_specs=[Tile("n", u32)], out_specs=[Tile("n", u32)], grid=(1,), block=(64, 1, 1))
def adds(x: Any, y: Any) -> None:
    _, py = ptx.global_ptrs(x, y)
    ptx.red.add(u32, ptx.addr(py), reg.scalar(u32, 1))


def _raise_error() -> PtxError:
    with pytest.raises(PtxError) as excinfo:
        adds(np.zeros(64, np.uint32))
    return excinfo.value


def test_a_notebook_shows_the_frames_of_the_user() -> None:
    text = "\n".join(_raise_error()._render_traceback_())  # pyright: ignore[reportPrivateUsage]
    assert "test_tracebacks.py" in text
    assert f"{ROOT / 'pyptx'}{os.sep}" not in text
    assert text.count("error[PTX0913]") == 1


def test_ipython_renders_the_frames_of_the_user_in_its_own_way(monkeypatch: pytest.MonkeyPatch) -> None:
    tracebacks: list[TracebackType] = []

    def render_structured(kind: type[BaseException], value: BaseException, frames: TracebackType) -> list[str]:
        tracebacks.append(frames)
        return [f"{kind.__name__} {value.args[0]}"]

    shell = SimpleNamespace(InteractiveTB=SimpleNamespace(structured_traceback=render_structured))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    error = _raise_error()
    lines = error._render_traceback_()  # pyright: ignore[reportPrivateUsage]
    assert lines == [f"PtxError {error.args[0]}"]
    assert {frame.filename for frame in traceback.extract_tb(tracebacks[0])} == {__file__}
    assert hasattr(Interrupted, "_render_traceback_")
