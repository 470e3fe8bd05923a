"""Calls every entry of the simulated driver with mostly wrong arguments (tests/driver/programs/wrong_arguments.py).
No call may end the process, print a traceback, or return CUDA_ERROR_UNKNOWN.

python -m tools.audit_arguments [--calls 500] [--seed 1]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pyptx.driver.calls import ENTRIES
from pyptx.driver.codes import Code

ROOT = Path(__file__).parent.parent
PROGRAMS = ROOT / "tests" / "driver" / "programs"
ORDERS = ("sync", "deferred")


def find_codes(seed: int, calls: int, order: str) -> dict[str, set[int]]:
    """Return the codes of each entry. Raise RuntimeError if a call broke something, with the last calls."""
    command = [sys.executable, "-m", "pyptx", "simulate", "--order", order, str(PROGRAMS / "wrong_arguments.py")]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    # A function that writes a file may get any text for its name.
    with tempfile.TemporaryDirectory() as folder:
        command += [str(seed), str(calls)]
        process = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    codes = {name: set(map(int, words)) for name, *words in map(str.split, process.stdout.splitlines())}
    # Hazards of kernels and streams that happen to run are no failure, and have status 1.
    if process.returncode not in (0, 1) or "Traceback" in process.stderr or set(codes) != set(ENTRIES):
        raise RuntimeError(f"status {process.returncode}\n{process.stderr[-4000:]}")
    unknown = [name for name, values in codes.items() if Code.ERROR_UNKNOWN in values]
    if unknown:
        raise RuntimeError(f"CUDA_ERROR_UNKNOWN from {', '.join(unknown)}")
    return codes


def main(argv: Sequence[str] | None = None) -> int:
    """Run the calls in both orders; print how far they got."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--calls", type=int, default=500, help="calls of each entry (default: 500)")
    options.add_argument("--seed", type=int, default=1)
    arguments = options.parse_args(argv)
    for order in ORDERS:
        try:
            codes = find_codes(arguments.seed, arguments.calls, order)
        except RuntimeError as why:
            print(f"order {order}: {why}")
            return 1
        reached = sum(Code.SUCCESS in values for values in codes.values())
        different = len(set[int]().union(*codes.values()))
        total = arguments.calls * len(codes)
        print(
            f"order {order}: {total} calls of {len(codes)} entries, {different} codes, {reached} entries succeeded too"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
