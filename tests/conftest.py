"""One seed for all random tests: from the commit, or from `PYPTX_SEED`; a failing test prints how to repeat it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

VARIABLE = "PYPTX_SEED"
DEFAULT_SEED = 20250703
"""For a tree that is not a git checkout."""
ROOT = Path(__file__).parent.parent

settings.register_profile("pyptx", deadline=None, print_blob=True)
settings.load_profile("pyptx")


def _seed_of_commit() -> int:
    """Return a number derived from the commit, so that each commit draws different samples."""
    if not (ROOT / ".git").exists():
        return DEFAULT_SEED
    command = ["git", "-C", str(ROOT), "rev-parse", "--short=8", "HEAD"]
    try:
        process = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return DEFAULT_SEED
    return int(process.stdout.strip()[:8], 16)


def _seed_of_run() -> int:
    return int(os.environ[VARIABLE])


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    # The environment passes the seed to the workers of pytest-xdist, even if a commit is made meanwhile.
    os.environ.setdefault(VARIABLE, str(_seed_of_commit()))
    if config.getoption("hypothesis_seed", None) is None:
        config.option.hypothesis_seed = str(_seed_of_run())


def pytest_report_header() -> str:
    return f"{VARIABLE}={_seed_of_run()} (of the commit; set it to draw other samples)"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        report.sections.append(("to repeat", f"{VARIABLE}={_seed_of_run()} python -m pytest -n 0 '{item.nodeid}'"))
    return report


@pytest.fixture(scope="session")
def seed() -> int:
    """The seed of this run: `random.Random(seed)` makes a sample that the header's line repeats."""
    return _seed_of_run()
