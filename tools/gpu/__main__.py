"""Checks what only a GPU can show: `python -m tools.gpu [NAME …]`, part of `make gpu`.

`--list` says what each check compares. `--simulated h100` runs those that the simulated driver can run, at the same
sizes, so that a first run on a GPU does not fail on a mistake in a check. Prints a line per check, and exits 1 if one
failed.
"""

from __future__ import annotations

import argparse
import sys
import time
from importlib import import_module

from pyptx import PtxError, detect_arch
from tools.gpu.checks import CHECKS, Check, Machine

FILES = ("kernels", "launches", "jax_kernels", "torch_compilers", "benchmarks")
"""The modules of checks."""


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these checks")
    parser.add_argument("--list", action="store_true", help="list the checks")
    parser.add_argument("--simulated", metavar="DEVICE", help="run on the simulated driver, as this device")
    parser.add_argument("--sample", type=int, metavar="N", help="only N runs of the kernels, drawn by --seed")
    parser.add_argument("--seed", type=int, default=0, help="the seed of --sample")
    options = parser.parse_args(argv)
    for name in FILES:
        import_module(f"tools.gpu.{name}")
    unknown = sorted({*options.names} - {check.name for check in CHECKS})
    if unknown:
        parser.error(f"no check {', '.join(unknown)}; there are {', '.join(check.name for check in CHECKS)}")
    selection = [check for check in CHECKS if not options.names or check.name in options.names]
    if options.list:
        for check in selection:
            print(f"{check.name}: {check.about}{_describe_needs(check.needs)}")
        return 0
    if options.simulated:
        import pyptx.driver

        pyptx.driver.activate(options.simulated)
    try:
        machine = Machine(detect_arch(), bool(options.simulated), options.sample, options.seed)
    except PtxError as why:
        print(why, file=sys.stderr)
        return 1
    print(f"{machine.target}{', simulated' if machine.is_simulated else ''}")
    return 1 if [check for check in selection if not _run(check, machine)] else 0


def _describe_needs(needs: tuple[str, ...]) -> str:
    return f" (needs {', '.join(needs)})" if needs else ""


def _run(check: Check, machine: Machine) -> bool:
    """Run a check and print its outcome; False if it failed."""
    missing = check.find_missing(machine)
    if missing:
        print(f"{check.name}: not run, needs {', '.join(missing)}")
        return True
    start = time.perf_counter()
    try:
        summary = check.run(machine)
    except (AssertionError, PtxError) as why:
        print(f"{check.name}: FAILED\n{why}")
        return False
    print(f"{check.name}: ok, {summary}, {time.perf_counter() - start:.1f} s")
    return True


if __name__ == "__main__":
    sys.exit(main())
