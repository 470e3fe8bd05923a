"""The all-reduce over a multicast address, on several simulated devices, and with mistakes in its barrier."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from examples.parts.example import EXAMPLES
from pyptx.driver.launcher import make_environment
from pyptx.driver.settings import Settings

FILE = EXAMPLES / "patterns" / "multimem_all_reduce.py"
BARRIER = "        meet(counter, team_counter, thread, before + ranks{})\n"


def run(file: Path, devices: int, schedule: str = "eager", seed: int = 0) -> subprocess.CompletedProcess[str]:
    settings = Settings(order="deferred", count=devices, schedule=schedule, seed=seed)
    environment = make_environment(settings) | {"PYTHONPATH": str(EXAMPLES.parent)}
    words = [sys.executable, str(file)]
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.parametrize(("devices", "schedule", "seed"), [(2, "eager", 0), (3, "adversarial", 1), (3, "random", 2)])
def test_every_device_gets_all_sums(devices: int, schedule: str, seed: int) -> None:
    process = run(FILE, devices, schedule, seed)
    lines = [f"device {rank}: 20000 sums of {devices} vectors, 2 rounds, 0 wrong\n" for rank in range(devices)]
    assert (process.stdout, process.stderr) == ("".join(lines), "")


def test_one_device_is_not_enough() -> None:
    process = run(FILE, 1)
    assert (process.returncode, process.stdout) == (1, "")
    assert process.stderr.startswith("needs several GPUs, found 1; try `pyptx simulate")


def test_without_a_driver_the_file_says_how_to_simulate(tmp_path: Path) -> None:
    """A library that cannot be loaded hides the machine's own."""
    (tmp_path / "libcuda.so.1").touch()
    environment = os.environ | {"PYTHONPATH": str(EXAMPLES.parent), "LD_LIBRARY_PATH": str(tmp_path)}
    process = subprocess.run(
        [sys.executable, str(FILE)], env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    (line,) = process.stderr.splitlines()
    assert process.returncode == 1
    assert line.startswith("needs several GPUs, found 0; try `pyptx simulate")


MISTAKES = {
    "no barrier before": (BARRIER.format(""), "", ["PTX0991"], "ld.acquire.sys.global.u32"),
    "no barrier after": (BARRIER.format(" * 2"), "", ["PTX0991"], "ld.acquire.sys.global.u32"),
    "no release": ('sem="release"', 'sem="relaxed"', ["PTX1301"], "multimem.st.relaxed.sys.global.v4.bf16x2"),
    "no acquire": ("ld.acquire", "ld.relaxed", ["PTX1301"], "multimem.st.relaxed.sys.global.v4.bf16x2"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_found(mistake: str, tmp_path: Path) -> None:
    before, after, codes, instruction = MISTAKES[mistake]
    source = FILE.read_text("utf-8")
    assert source.count(before) == 1
    file = tmp_path / "broken.py"
    file.write_text(source.replace(before, after), "utf-8")
    stderr = run(file, 2).stderr
    assert sorted(set(re.findall(r"error\[(PTX\d+)\]", stderr))) == codes
    assert re.search(rf"`{re.escape(instruction)}` at <ptx>:\d+:\d+ \({re.escape(str(file))}:\d+", stderr), stderr
    if codes == ["PTX1301"]:
        assert "they are in the legacy default stream of device 0 and the legacy default stream of device 1" in stderr
