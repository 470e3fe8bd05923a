"""The plugin of pytest shows findings and keeps timelines of failing tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

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
