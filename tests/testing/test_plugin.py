"""The plugin of pytest shows findings and keeps timelines of failing tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_TEST = """
import numpy as np
from pyptx import PtxError, Tile, kernel, ptx
from pyptx.types import f32

@kernel(in_specs=[Tile("n", f32)], out_specs=[Tile("n", f32)], grid=(1,), block=(32, 1, 1))
def beyond(x, y):
    px, py = ptx.global_ptrs(x, y)
    ptx.st(f32, ptx.addr(py, ptx.special.tid.x() * 4), 0.0)

def test_a_call():
    beyond(np.zeros(4, np.float32))

def test_a_recorded_run():
    beyond.simulate(np.zeros(4, np.float32), timeline=True)

def test_nothing():
    pass
"""


def test_a_failing_run_leaves_its_timeline(tmp_path: Path) -> None:
    file = tmp_path / "test_beyond.py"
    file.write_text(_TEST, "utf-8")
    plugins = ["-p", "no:cacheprovider", "-p", "no:xdist", "--pyptx-timelines", "timelines"]
    words = [sys.executable, "-m", "pytest", "-q", "-rN", "--rootdir", str(tmp_path), *plugins, str(file)]
    process = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "2 failed, 1 passed" in process.stdout, process.stdout + process.stderr
    assert process.stdout.count("error[PTX1110]: `st.global.f32` accesses 4 bytes") == 2
    assert [path.name for path in (tmp_path / "timelines").iterdir()] == ["test_beyond.py-test_a_recorded_run.html"]
    assert "pyptx timeline ---" in process.stdout
    assert "timelines/test_beyond.py-test_a_recorded_run.html" in process.stdout
