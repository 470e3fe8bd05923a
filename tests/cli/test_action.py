"""The GitHub action: its shell steps are run here as a runner runs them, with pip replaced."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.cli.test_simulate import RIGHT, ROOT, WRONG
from tests.driver.conftest import PROGRAMS

ACTION = (ROOT / ".github" / "actions" / "simulate" / "action.yml").read_text("utf-8")
STEP = textwrap.dedent(re.findall(r"run: \|\n(.*?)\n      env:", ACTION, re.DOTALL)[0])
(INSTALL,) = re.findall(r"name: Install\n +shell: bash\n +run: (.*)", ACTION)
DEFAULTS = dict(re.findall(r"^  (\w+):\n    description: .*\n    default: (.*)$", ACTION, re.MULTILINE))


def run_step(folder: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run the step that simulates, with the defaults of the other inputs."""
    values = {name: default.strip('"') for name, default in DEFAULTS.items()} | inputs
    environment = {**os.environ, **{name.upper(): value for name, value in values.items()}}
    environment |= {"PYTHONPATH": str(ROOT), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    if not (folder / "site-packages").exists():
        (folder / "site-packages").symlink_to(PROGRAMS)
    command = ["bash", "-e", "-c", STEP]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_the_first_step_installs_this_tree(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    folder.symlink_to(ROOT / ".github" / "actions" / "simulate")
    (tmp_path / "python").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n', "utf-8")
    (tmp_path / "python").chmod(0o700)
    environment = {"PATH": f"{tmp_path}:{os.defpath}", "ACTION_PATH": str(folder)}
    process = subprocess.run(["bash", "-e", "-c", INSTALL], env=environment, capture_output=True, text=True, check=True)
    *words, tree = process.stdout.splitlines()
    assert words == ["-m", "pip", "install"]
    assert Path(os.path.realpath(tree)) == ROOT
    assert (ROOT / "pyproject.toml").exists()
    assert "ACTION_PATH: ${{ github.action_path }}\n" in ACTION


def test_every_input_reaches_the_step() -> None:
    names = re.findall(r"\$\{\{ inputs\.(\w+) \}\}", ACTION)
    assert sorted(names) == sorted([*DEFAULTS, "program"])
    assert DEFAULTS == {"device": "h100", "options": '""', "baseline": '""', "report": "pyptx.sarif"}


@pytest.mark.parametrize(("text", "status"), [(RIGHT, 0), (WRONG, 1)], ids=["right", "wrong"])
def test_the_step_fails_for_an_error_and_reports_it(tmp_path: Path, text: str, status: int) -> None:
    (tmp_path / "program.py").write_text(text, "utf-8")
    process = run_step(tmp_path, program="program.py --small", device="a100", options="--seed 3")
    assert process.returncode == status, process.stderr
    results = json.loads((tmp_path / "pyptx.sarif").read_text("utf-8"))["runs"][0]["results"]
    assert [result["ruleId"] for result in results] == ["PTX1110"] * status


def test_known_findings_do_not_fail(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(WRONG, "utf-8")
    run_step(tmp_path, program="program.py", report="known.json")
    assert run_step(tmp_path, program="program.py", baseline="known.json").returncode == 0
