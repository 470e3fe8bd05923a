"""Compare the start of `import pyptx` and the command line with that of the bare interpreter, in new processes.

The bytecode is already compiled, as in every run after the first. No process looks into site-packages (`-S`), where
other packages' .pth files run code at every start.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial

from benchmarks.ratios import ROOT, Pairs, Round, interleave, show

PTX = "examples/hopper_gemm.ptx"
CASES = {
    "import pyptx": ["-c", "import pyptx"],
    "import pyptx.parser": ["-c", "import pyptx.parser"],
    "import pyptx.check": ["-c", "import pyptx.check"],
    "pyptx --version": ["-m", "pyptx", "--version"],
    f"pyptx check {PTX}": ["-m", "pyptx", "check", PTX],
}


def list_pairs() -> Pairs:
    """Compare new interpreters that run each case with one that does nothing."""
    return {f"{name} / bare Python": partial(compare, arguments) for name, arguments in CASES.items()}


def compare(arguments: list[str]) -> Round:
    """Compare an interpreter with these arguments with a bare one."""
    return interleave(partial(start, arguments), partial(start, ["-c", "pass"]))


def start(arguments: list[str]) -> None:
    """Run a new interpreter, which may write bytecode."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([sys.executable, "-S", *arguments], cwd=ROOT, check=True, stdout=subprocess.DEVNULL, env=env)


if __name__ == "__main__":
    show(list_pairs(), sys.argv[1:])
