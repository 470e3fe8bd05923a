"""The audit of executors on short runs, in a process of its own, which can be copied."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_processes_and_dask_workers_find_what_this_process_finds() -> None:
    words = [sys.executable, "-m", "tools.audit_executors", "--small"]
    process = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    lines = process.stdout.splitlines()[1:]
    assert len(lines) == 6
    assert all(": findings equal; here " in line and ", Dask " in line for line in lines)
