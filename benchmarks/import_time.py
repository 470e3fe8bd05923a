"""Print what `import pyptx` and the command line cost over the bare interpreter, as medians of fresh processes."""

from __future__ import annotations

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


def milliseconds(arguments: list[str]) -> float:
    """Return the median wall time of a fresh interpreter with these arguments."""
    times: list[float] = []
    for _ in range(RUNS):
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def main() -> None:
    print(f"Python {sys.version.split()[0]}, median of {RUNS} runs, ms in all and over the bare interpreter")
    bare = milliseconds(CASES["python -c pass"])
    for name, arguments in CASES.items():
        total = milliseconds(arguments)
        print(f"{name:<44}{total:8.1f}{total - bare:+9.1f}")


if __name__ == "__main__":
    main()
