"""Runs the parts of checks in processes of their own: a kernel that faults or never ends loses no other result."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass

from tools.gpu.checks import Check, Machine

ENVIRONMENT = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "PYTHONFAULTHANDLER": "1"}
"""JAX would take most of the memory in the first process; a crash prints where it was."""
KEPT_LINES = 25


@dataclass(frozen=True)
class Ended:
    """A part of a check that has ended: its exit status, None if it took too long, and what it printed."""

    check: Check
    part: str
    status: int | None
    output: str
    seconds: float

    def __str__(self) -> str:
        title = f"{self.check.name}{f' {self.part}' if self.part else ''}"
        if self.status == 0:
            return self.output.strip().splitlines()[-1].replace(self.check.name, title, 1)
        lines = self.output.strip().splitlines()[-KEPT_LINES:]
        reason = f"exit status {self.status}" if self.status is not None else f"not ended after {self.seconds:.0f} s"
        return "\n".join([f"{title}: FAILED, {reason}", *(f"    {line}" for line in lines)])


def run_all(checks: Sequence[Check], machine: Machine, options: Sequence[str], jobs: int) -> Iterator[Ended]:
    """Run the parts of checks, up to `jobs` at a time, and then those of checks that need to be alone."""
    for alone in (False, True):
        parts = [
            (check, part)
            for check in checks
            if check.alone == alone
            for part in (check.parts(machine) if check.parts else [""])
        ]
        with ThreadPoolExecutor(1 if alone else jobs) as pool:
            for future in as_completed([pool.submit(run_part, *part, options) for part in parts]):
                yield future.result()


def run_part(check: Check, part: str, options: Sequence[str]) -> Ended:
    """Run one part of a check in a new process."""
    command = [sys.executable, "-m", "tools.gpu", check.name, "--part", part, *options]
    start = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ | ENVIRONMENT
    )
    try:
        output, _ = process.communicate(timeout=check.limit)
        status = process.returncode
    except subprocess.TimeoutExpired:
        process.kill()
        output, _ = process.communicate()
        status = None
    return Ended(check, part, status, output, time.perf_counter() - start)
