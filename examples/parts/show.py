"""The command line of an example file: simulate, assemble, print the PTX, write a timeline, or time on a GPU."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from examples.parts.example import Example, Outcome, Run, widen
from pyptx.diagnostics import PtxError, format_count


def main(example: Example) -> None:
    """Run the command line of an example file."""
    parser = argparse.ArgumentParser(description=example.summary)
    parser.add_argument("--schedule", default="eager", help="eager, lazy, random or adversarial order")
    parser.add_argument("--seed", type=int, default=0, help="seed of the schedule")
    parser.add_argument("--arch", default=example.targets[0], choices=example.targets, help="target")
    parser.add_argument("--ptx", action="store_true", help="print the PTX of the large shape and stop")
    parser.add_argument("--timeline", type=Path, metavar="FILE.html", help="write the timeline of the first run")
    parser.add_argument("--bench", action="store_true", help="time the large shape on a GPU")
    options = parser.parse_args()
    if options.ptx:
        print(example.make(options.arch).ptx(**example.large))
        return
    print(example.summary)
    if options.bench:
        from examples.parts.bench import bench, prepare

        print(bench(prepare(example, Run(example.large)), example.make(options.arch)))
        return
    for run in example.runs:
        print_run(example, run, options.arch, options.schedule, options.seed)
    if options.timeline:
        report = example.simulate(example.runs[0], options.arch, timeline=True).report
        assert report.timeline is not None
        options.timeline.write_text(report.timeline.html(), "utf-8")
        print(f"{options.timeline}: timeline of the first run")
    print_machine_code(example, options.arch)


def print_run(example: Example, run: Run, arch: str, schedule: str, seed: int) -> None:
    """Simulate a run with all checks, and print how far its results are from the reference."""
    start = time.perf_counter()
    outcome = example.simulate(run, arch, schedule=schedule, seed=seed, statistics=True)
    elapsed = time.perf_counter() - start
    outcome.verify()
    statistics = outcome.report.stats.statistics
    assert statistics is not None
    conflicts = format_count("bank conflict", len(statistics.conflicts))
    print(f"  {run}: correct, {measure_error(outcome)}; {schedule} order, no hazards, {conflicts}; {elapsed:.2f} s")


def measure_error(outcome: Outcome) -> str:
    """Return the largest difference from the reference, in words."""
    differences = [
        np.abs(widen(actual)[is_finite] - widen(desired)[is_finite]).max(initial=0)
        for actual, desired in zip(outcome.outputs, outcome.expected, strict=True)
        if desired is not None
        for is_finite in [np.isfinite(widen(desired))]
    ]
    return f"largest error {max(differences):.2g}"


def print_machine_code(example: Example, arch: str) -> None:
    """Assemble the large shape, and print its resources."""
    kernel = example.make(arch)
    try:
        needs = kernel.resources(**example.large)
    except PtxError as error:
        print(f"  not assembled: {error}")
        return
    spills, lines = (needs.spill_stores or 0) + (needs.spill_loads or 0), len(kernel.ptx(**example.large).splitlines())
    print(
        f"  {arch}, {Run(example.large)}: {needs.registers} registers, {spills} bytes of spills, {needs.shared} bytes"
        f" of shared memory, {lines} lines of PTX"
    )
