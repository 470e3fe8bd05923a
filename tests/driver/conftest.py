"""The driver library, and programs that run on it (with `programs/calls.py`), each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from pyptx.driver.launcher import make_environment
from pyptx.driver.library import find_library
from pyptx.driver.settings import Settings

Run = Callable[..., subprocess.CompletedProcess[str]]
PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library, built by this test run or an earlier one from the same sources."""
    return find_library()


@pytest.fixture
def run_program(library: Path, tmp_path: Path) -> Run:
    """Return a function that runs a Python text, or a command, with the driver library in place."""

    def run(program: str | Sequence[str], **options: object) -> subprocess.CompletedProcess[str]:
        environment = make_environment(Settings(**options))  # pyright: ignore[reportArgumentType]
        # Places in installed packages are not the user's, so the program's own line is reported.
        packages = tmp_path / "site-packages"
        if not packages.exists():
            packages.symlink_to(PROGRAMS)
        environment["PYTHONPATH"] = os.pathsep.join([str(packages), str(Path(__file__).parent.parent.parent)])
        words = program
        if isinstance(program, str):
            file = tmp_path / "program.py"
            file.write_text(program, "utf-8")
            words = [sys.executable, str(file)]
        return subprocess.run(
            list(words), env=environment, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300
        )

    return run
