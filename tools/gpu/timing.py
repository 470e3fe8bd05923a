"""Times the variants of one example, as a process of its own: `python -m tools.gpu.timing EXAMPLE … FILE`.

Writes a line of JSON per variant to the file, so that a process that hangs or fails loses one variant. What needs no
GPU is done before the process waits for the lock of the GPU, which it then keeps: it times alone.
"""

from __future__ import annotations

import argparse
import faulthandler
import fcntl
import json
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from examples.parts.bench import Case, Report, bench, prepare
from examples.parts.example import Example, Run, find_example
from pyptx import PtxError
from pyptx.runtime.bindings import CallError
from tools.gpu.ceilings import measure_ceilings
from tools.gpu.clocks import Sampler
from tools.gpu.kernels import choose_target
from tools.gpu.variants import Variant, list_variants

CEILINGS = "ceilings"
"""In place of an example: what the GPU itself can do."""
LIMIT, SIMULATED_LIMIT = 25, 200
"""Seconds for a variant, its inputs and its reference."""


def main() -> None:
    """Time what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("example", help=f"the name of an example, or {CEILINGS}")
    parser.add_argument("file", type=Path, help="where to add the results")
    parser.add_argument("--lock", type=Path, required=True, help="the lock of the GPU")
    parser.add_argument("--target", required=True, help="the target of the GPU")
    parser.add_argument("--simulated", metavar="DEVICE", help="run on the simulated driver, at the smallest shapes")
    parser.add_argument("--variants", action="store_true", help="time all variants, not the example as it is")
    parser.add_argument("--skip", type=int, default=0, metavar="N", help="leave out the first N variants")
    options = parser.parse_args()
    if options.simulated:
        import pyptx.driver

        pyptx.driver.activate(options.simulated)
    jobs = [] if options.example == CEILINGS else make_jobs(options)
    with options.lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        limit = SIMULATED_LIMIT if options.simulated else LIMIT
        # Ends the process even if a kernel never does.
        faulthandler.dump_traceback_later(limit, exit=True)
        if not jobs:
            add(options.file, measure_ceilings())
        cases = dict[str, Case]()
        for example, target, variant in jobs:
            faulthandler.dump_traceback_later(limit, exit=True)
            run = find_small_run(example, variant) if options.simulated else Run(variant.shape or example.large)
            add(options.file, {"label": variant.label, **time_variant(example, target, variant, run, cases)})


def make_jobs(options: argparse.Namespace) -> list[tuple[Example, str, Variant]]:
    """Return the variants, and assemble those of real size: the machine code is found in the cache later."""
    example = find_example(options.example)
    target = choose_target(example, options.target)
    assert target is not None
    variants = list_variants(example.name) if options.variants else [Variant("default")]
    if not options.simulated:
        for variant in variants[options.skip :]:
            shape: dict[str, Any] = dict(variant.shape or example.large)
            # What does not assemble fails again when it is launched, as the result of that variant.
            with suppress(PtxError, ValueError):
                example.make(target, **variant.parameters).cubin(**shape)
    return [(example, target, variant) for variant in variants[options.skip :]]


def find_small_run(example: Example, variant: Variant) -> Run:
    """Return the smallest run, for as many SMs as the variant is for."""
    run, sms = example.runs[0], (variant.shape or {}).get("sms")
    return run if sms is None else replace(run, shape={**run.shape, "sms": sms})


def time_variant(
    example: Example, target: str, variant: Variant, run: Run, cases: dict[str, Case]
) -> dict[str, Any]:  # fmt: skip
    """Return the times of a variant, or why there are none."""
    start = time.perf_counter()
    try:
        case = cases.get(str(run)) or prepare(example, run)
        cases.clear()
        cases[str(run)] = case
        with Sampler() as sampler:
            report = bench(case, example.make(target, **variant.parameters))
    except (AssertionError, CallError, PtxError, RuntimeError, ValueError) as why:
        result: dict[str, Any] = {"failure": f"{type(why).__name__}: {why}"[:600]}
        if isinstance(why, CallError) or "CUDA" in str(why):
            # A fault ends the context: the rest needs a new process.
            result["is_fatal"] = True
    else:
        result = {**describe(report), **sampler.summarize()}
    return {**result, "seconds": round(time.perf_counter() - start, 2)}


def describe(report: Report) -> dict[str, Any]:
    """Return the times of a report in milliseconds, and its rates, as plain values."""
    case, times = report.case, report.comparison.times
    result: dict[str, Any] = {
        "shape": dict(case.run.shape),
        "error": report.error,
        "runs": len(times["pyptx"].runs),
        "milliseconds": {name: [item.median, *item.spread] for name, item in times.items()},
    }
    if not times["pyptx"].is_simulated:
        best = min((times[name].median for name in case.peers), default=None)
        if best is not None:
            result["ratio"] = best / times["pyptx"].median
        if case.bytes:
            result["share_of_copy"] = times["copy"].median / times["pyptx"].median
        if case.example.flops:
            result["tflops"] = times["pyptx"].teraflops(case.example.flops(case.run.shape))
        if case.example.traffic:
            result["gigabytes_per_second"] = times["pyptx"].gigabytes(case.example.traffic(case.run.shape))
    return result


def add(file: Path, result: dict[str, Any]) -> None:
    """Add a line to the results; after a fault, end the process."""
    with file.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(result) + "\n")
    if result.get("is_fatal"):
        sys.exit(1)


if __name__ == "__main__":
    main()
