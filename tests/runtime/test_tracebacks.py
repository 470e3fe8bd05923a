"""What Python and pytest print of an error: the user's frames, none of the package's, and the findings."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAD = """\
import numpy as np
from pyptx import Tile, kernel, ptx
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


def printed(tmp_path: Path, body: str, *words: str) -> str:
    (tmp_path / "adds.py").write_text(HEAD.replace("{body}", body))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200", "NO_COLOR": "1"}
    done = subprocess.run([sys.executable, *words, "adds.py"], cwd=tmp_path, env=environment, text=True,
                          capture_output=True, timeout=60, check=False)  # fmt: skip
    assert done.returncode == 1
    return done.stdout + done.stderr


@pytest.mark.parametrize(("body", "code", "inside"), list(BODIES.values()), ids=list(BODIES))
def test_a_traceback_of_python_has_the_frames_of_the_user(tmp_path: Path, body: str, code: str, inside: int) -> None:
    text = printed(tmp_path, body)
    frames = [line for line in text.splitlines() if line.startswith("  File ")]
    assert [frame for frame in frames if "adds.py" not in frame and "diagnostics.py" not in frame] == []
    assert len(frames) == 3 + inside
    assert text.count(f"error[{code}") == 1
    assert len(text.splitlines()) < 22


@pytest.mark.parametrize(("body", "code", "inside"), list(BODIES.values()), ids=list(BODIES))
def test_pytest_shows_the_test_and_the_finding(tmp_path: Path, body: str, code: str, inside: int) -> None:
    text = printed(tmp_path, body, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider")
    shown = text.partition("= FAILURES =")[2].partition("= short test summary")[0].splitlines()
    assert [line for line in shown if "pyptx/" in line] == []
    assert len([line for line in shown if f"error[{code}" in line]) == 1
    assert len(shown) < 24 + 10 * inside
