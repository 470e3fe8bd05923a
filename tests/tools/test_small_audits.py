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
    _, *lines = run_small("launches")
    assert lines[:3] == [
        "20 kernels that are gone: 0 modules remain",
        *(f"8 threads: 8000 launches by {kind} calls, 0 with wrong parameters" for kind in ("repeated", "bound")),
    ]
    assert [line.rpartition(":")[0] for line in lines[3:]] == [
        f"a simulated launch, check={check}, with 5000 allocations" for check in ("none", "all")
    ]
