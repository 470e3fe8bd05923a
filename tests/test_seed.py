"""The seed of a run: its source, and that the command a failure prints repeats the failure."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parent / "conftest.py"
FAILING = """
import random
from hypothesis import Phase, given, settings, strategies as st

def test_sample(seed):
    number = random.Random(seed).random()
    assert number < 0

@settings(phases=[Phase.generate])
@given(st.integers(1 << 40, 1 << 60))
def test_property(number):
    assert number % 7 != 3
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a tree with this one's conftest and tests that fail."""
    (tmp_path / "tests").mkdir()
    shutil.copy(CONFTEST, tmp_path / "tests")
    (tmp_path / "tests" / "test_failing.py").write_text(FAILING)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def run(tree: Path, *arguments: str, seed: str | None = None) -> str:
    """Return pytest's output in the tree."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYPTX_", "PYTEST_"))}
    environment |= {} if seed is None else {"PYPTX_SEED": seed}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False).stdout


def commit(tree: Path, message: str) -> str:
    """Make an empty commit and return its hash."""
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com"]
    subprocess.run([*git, "init", "-q"], cwd=tree, check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", message], cwd=tree, check=True)
    return subprocess.run(["git", "rev-parse", "HEAD"], cwd=tree, check=True, capture_output=True, text=True).stdout


def seeds(output: str) -> set[str]:
    """Return every seed that was printed."""
    return set(re.findall(r"PYPTX_SEED=(\d+)", output))


def test_each_commit_has_its_seed_and_an_archive_a_fixed_one(tree: Path) -> None:
    assert seeds(run(tree, "--collect-only")) == {"20250703"}
    for message in ("first", "second"):
        of_commit = str(int(commit(tree, message)[:8], 16))
        assert seeds(run(tree, "--collect-only")) == {of_commit}
    assert seeds(run(tree, "--collect-only", seed="17")) == {"17"}


def test_the_line_of_a_failure_repeats_it(tree: Path) -> None:
    commit(tree, "first")
    output = run(tree, "-n", "2")
    lines = sorted(set(re.findall(r"PYPTX_SEED=\d+ python -m pytest .*", output)))
    assert len(lines) == 2
    for line in lines:
        assignment, _, _, _, *arguments = shlex.split(line)
        assert [argument for argument in arguments if "::" in argument], line
        commit(tree, "another")
        repetition = run(tree, *arguments, seed=assignment.removeprefix("PYPTX_SEED="))
        (failure,) = re.findall(r"^E +(assert .*)$", repetition, re.MULTILINE)
        assert failure in output
