"""Print what `import pyptx` and the command line cost over the bare interpreter, in fresh processes.

Compiled bytecode is in place, as it is from the second run on.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
RUNS = 15
PTX = "examples/hopper_gemm.ptx"
CASES = {
    "python -c pass": ["-c", "pass"],
    "import pyptx": ["-c", "import pyptx"],
    "import pyptx.parser": ["-c", "import pyptx.parser"],
    "import pyptx.check": ["-c", "import pyptx.check"],
    "pyptx --version": ["-m", "pyptx", "--version"],
    f"pyptx check {PTX}": ["-m", "pyptx", "check", PTX],
}


def costs(arguments: list[str]) -> tuple[float, float, float]:
    """Return milliseconds of a fresh interpreter with these arguments: least processor time, least and median wall."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, *arguments]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, env=env)
    processor: list[float] = []
    wall: list[float] = []
    for _ in range(RUNS):
        start = time.perf_counter()
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, env=env)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall.append((time.perf_counter() - start) * 1e3)
        processor.append((usage.ru_utime + usage.ru_stime) * 1e3)
    return min(processor), min(wall), statistics.median(wall)


def main() -> None:
    print(f"Python {sys.version.split()[0]}, {RUNS} runs each, in ms; `over bare` compares processor times")
    print(f"{'':<44}{'processor':>10}{'over bare':>11}{'wall':>8}{'median':>8}")
    bare, _, _ = costs(CASES["python -c pass"])
    for name, arguments in CASES.items():
        processor, least, median = costs(arguments)
        print(f"{name:<44}{processor:10.1f}{processor - bare:+11.1f}{least:8.1f}{median:8.1f}")


if __name__ == "__main__":
    main()
