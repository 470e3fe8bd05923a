"""Runs what `make gpu` runs on a GPU on the simulated driver, as one device of each kind, and prints per device and
check whether it passed, or what it needs that no simulator has. Without times, so that the page can be repeated.
Kernels run at the shapes of their tests, and what is timed on a GPU once, at the smallest one.

python -m tools.audit_gpu [CHECK ...] [--devices h100]
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path

from pyptx.driver.devices import DEVICES
from tools.gpu.__main__ import FILES
from tools.gpu.checks import CHECKS

ROOT = Path(__file__).parent.parent
KINDS = ("a100", "h100", "b200", "rtx5090")
"""A device for each directory of examples."""
ABSENT = {"a GPU", "PyTorch with CUDA", "JAX with CUDA", "CuPy", "compute-sanitizer"}
"""What the simulated driver does not replace. Everything else that checks need must be here."""
_RESULT = re.compile(r"([\w-]+): (?:ok, (.*), [\d.]+ s|not run, needs (.*)|FAILED)")
SHOWN = 20
"""Lines of a failure."""


@dataclass(frozen=True)
class Outcome:
    """What became of a check on a device: "passed", "not run" or "FAILED", and what was compared or why."""

    check: str
    status: str
    text: str

    def __str__(self) -> str:
        return f"{self.check:30}{self.status}{self.text and ', '}{self.text}"


def run_device(device: str, names: Sequence[str]) -> list[Outcome]:
    """Run checks on a simulated device, in a process of its own."""
    command = [sys.executable, "-m", "tools.gpu", "--simulated", device, *names]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return read_outcomes(process.stdout, process.stderr, names)


def read_outcomes(output: str, errors: str, names: Sequence[str]) -> list[Outcome]:
    """Return the outcomes of checks from what `tools.gpu` prints; a check without one has failed."""
    outcomes, lines = dict[str, Outcome](), output.splitlines()
    for position, line in enumerate(lines):
        match = _RESULT.fullmatch(line)
        if match is None:
            continue
        name, summary, needs = match.groups()
        if summary is not None:
            # A check may find nothing to do on a device, and says why.
            is_idle = summary.startswith("not run, ")
            outcomes[name] = Outcome(name, "not run" if is_idle else "passed", summary.removeprefix("not run, "))
        elif needs is not None:
            status = "not run" if ABSENT.issuperset(needs.split(", ")) else "FAILED"
            outcomes[name] = Outcome(name, status, f"needs {needs}")
        else:
            outcomes[name] = Outcome(name, "FAILED", "\n".join(lines[position + 1 :][:SHOWN]))
    reason = "\n".join(["no result", *errors.splitlines()[-SHOWN:]])
    return [outcomes.get(name, Outcome(name, "FAILED", reason)) for name in names]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the checks; print a line for each on each device."""
    for name in FILES:
        import_module(f"tools.gpu.{name}")
    known = [check.name for check in CHECKS]
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("names", nargs="*", choices=[*known, []], metavar="CHECK", help="only these checks")
    options.add_argument("--devices", nargs="+", choices=DEVICES, default=KINDS, help="other devices")
    options.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="devices at a time")
    arguments = options.parse_args(argv)
    names = [name for name in known if name in (arguments.names or known)]
    run, counts = partial(run_device, names=names), Counter[str]()
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for device, outcomes in zip(arguments.devices, pool.map(run, arguments.devices), strict=True):
            print(f"{DEVICES[device].name}, {DEVICES[device].target}")
            for outcome in outcomes:
                print(f"    {outcome}", flush=True)
                counts[outcome.status] += 1
    print(", ".join(f"{counts[status]} {status}" for status in ("passed", "not run", "FAILED")))
    return 1 if counts["FAILED"] else 0


if __name__ == "__main__":
    sys.exit(main())
