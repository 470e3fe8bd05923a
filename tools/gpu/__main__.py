"""Checks what only a GPU can show: `python -m tools.gpu [NAME …]`, part of `make gpu`.

`--list` says what each check compares. On a GPU the parts of a check are processes, `--jobs` at a time. `--simulated
h100` runs in this process what the simulated driver can run, at the same sizes, so that a first run on a GPU does not
fail on a mistake in a check. `--keep FOLDER` stores the outputs and the times of the example kernels. `--recorded
FOLDER` compares the outputs with the simulator on a machine without a GPU. Prints a line per check or part, and exits 1
if one failed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from importlib import import_module
from pathlib import Path

from pyptx import PtxError, detect_arch
from tools.gpu.checks import CHECKS, Check, Machine
from tools.gpu.children import run_all

FILES = (
    "kernels", "launches", "several", "exports", "programs", "tuning", "jax_kernels", "torch_compilers", "models",
    "bugs", "costs", "benchmarks",
)  # fmt: skip
"""The modules of checks."""
RECORDED = "example-kernels-bit-for-bit"
"""The check that needs only stored outputs."""


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these checks")
    parser.add_argument("--list", action="store_true", help="list the checks")
    parser.add_argument("--simulated", metavar="DEVICE", help="run on the simulated driver, as this device")
    parser.add_argument("--sample", type=int, metavar="N", help="only N runs of the kernels, drawn by --seed")
    parser.add_argument("--seed", type=int, default=0, help="the seed of --sample")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes at a time")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="store outputs and times")
    parser.add_argument("--recorded", type=Path, metavar="FOLDER", help="compare stored outputs with the simulator")
    parser.add_argument("--part", help="only this part of one check, in this process")
    options = parser.parse_args(argv)
    for name in FILES:
        import_module(f"tools.gpu.{name}")
    unknown = sorted({*options.names} - {check.name for check in CHECKS})
    if unknown:
        parser.error(f"no check {', '.join(unknown)}; there are {', '.join(check.name for check in CHECKS)}")
    names = [RECORDED] if options.recorded else options.names
    selection = [check for check in CHECKS if not names or check.name in names]
    if options.list:
        for check in selection:
            print(f"{check.name}: {check.about}{_describe_needs(check.needs)}")
        return 0
    if options.simulated:
        import pyptx.driver

        pyptx.driver.activate(options.simulated, count=2)
    try:
        machine = _find_machine(options)
    except PtxError as why:
        print(why, file=sys.stderr)
        return 1
    if options.part is None:
        print(f"{machine.target}{', simulated' if machine.is_simulated else ''}", flush=True)
    if machine.is_simulated or options.part is not None:
        return 1 if [check for check in selection if not _run(check, machine)] else 0
    return _run_children(selection, machine, options)


def _find_machine(options: argparse.Namespace) -> Machine:
    """Return the machine that the options describe."""
    part, sample, seed = options.part or "", options.sample, options.seed
    if options.recorded:
        target = json.loads((options.recorded / "device.json").read_text("utf-8"))["target"]
        return Machine(target, False, sample, seed, part, options.recorded, is_recorded=True)
    device = options.simulated or ""
    machine = Machine(detect_arch(), bool(device), sample, seed, part, options.keep, device=device)
    if machine.folder:
        machine.folder.mkdir(parents=True, exist_ok=True)
        (machine.folder / "device.json").write_text(json.dumps({"target": machine.target}), "utf-8")
    return machine


def _run_children(selection: list[Check], machine: Machine, options: argparse.Namespace) -> int:
    """Run checks in processes, and print the outcome of each as it ends; 1 if one failed."""
    able = list[Check]()
    for check in selection:
        missing = check.find_missing(machine)
        if missing:
            print(f"{check.name}: not run, needs {', '.join(missing)}")
        else:
            able.append(check)
    named = (("--sample", options.sample), ("--seed", options.seed), ("--keep", options.keep),
             ("--recorded", options.recorded))  # fmt: skip
    passed_on = [word for name, value in named if value is not None for word in (name, str(value))]
    failures = 0
    for ended in run_all(able, machine, passed_on, options.jobs):
        print(ended, flush=True)
        failures += ended.status != 0
    return 1 if failures else 0


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
    status = main()
    # Without cleaning up, which would wait for a kernel that never ends.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
