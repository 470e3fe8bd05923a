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


def milliseconds(arguments: list[str]) -> tuple[float, float]:
    """Return the least and the median wall time of a fresh interpreter with these arguments."""
    times: list[float] = []
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([sys.executable, *arguments], cwd=ROOT, check=True, stdout=subprocess.DEVNULL, env=env)
    for _ in range(RUNS):
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments], cwd=ROOT, check=True, stdout=subprocess.DEVNULL, env=env)
        times.append((time.perf_counter() - start) * 1e3)
    return min(times), statistics.median(times)


def main() -> None:
    print(
        f"Python {sys.version.split()[0]}, {RUNS} runs each, ms; the least is what it costs, the median what one sees"
    )
    print(f"{'':<44}{'least':>8}{'median':>8}{'over bare':>11}")
    bare, _ = milliseconds(CASES["python -c pass"])
    for name, arguments in CASES.items():
        least, median = milliseconds(arguments)
        print(f"{name:<44}{least:8.1f}{median:8.1f}{least - bare:+11.1f}")


if __name__ == "__main__":
    main()
