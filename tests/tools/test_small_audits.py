"""Audits that need a process of their own, on short runs: of executors, which copy it, and of launches, which load a
stub as the driver."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run_small(name: str) -> list[str]:
    """Return the lines that an audit prints."""
    words = [sys.executable, "-m", f"tools.audit_{name}", "--small"]
    process = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout.splitlines()


def test_processes_and_dask_workers_find_what_this_process_finds() -> None:
    lines = run_small("executors")[1:]
    assert len(lines) == 6
    assert all(": findings equal; here " in line and ", Dask " in line for line in lines)


def test_launches_leave_nothing_behind() -> None:
    _, kernels, *threads = run_small("launches")
    assert kernels == "20 kernels that are gone: 0 modules remain"
    assert threads == [
        f"8 threads: 8000 launches by {kind} calls, 0 with wrong parameters" for kind in ("repeated", "bound")
    ]
