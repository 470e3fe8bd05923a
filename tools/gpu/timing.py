"""Times jobs, variants of examples, one after the other: `python -m tools.gpu.timing FILE --target TARGET NAME …`.

Adds a line of JSON per job to the file, so that a process that hangs or fails loses one of them; `--skip` goes on after
it. All jobs share a process, because it takes seconds until one can use the GPU, and a kernel's variants share inputs.
`--assemble I/N` only assembles every N-th job from I on, which other processes do ahead.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from examples.parts.bench import Case, Report, bench, prepare
from examples.parts.example import Example, Run, find_example
from examples.parts.torch_inputs import torch
from pyptx import PtxError
from pyptx.runtime.bindings import CallError
from tools.examples.times import identify_code
from tools.gpu.ceilings import measure_ceilings
from tools.gpu.clocks import Sampler
from tools.gpu.kernels import choose_target
from tools.gpu.variants import CEILINGS, Job, Variant, list_jobs

LIMIT, SIMULATED_LIMIT = 90, 200
"""Seconds for a job: its inputs, its reference, and the Triton code of its peers, which PyTorch compiles and tunes."""


def main() -> None:
    """Time what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="where to add the results")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these examples")
    parser.add_argument("--target", required=True, help="the target of the GPU")
    parser.add_argument("--simulated", metavar="DEVICE", help="run on the simulated driver, at the smallest shapes")
    parser.add_argument("--variants", action="store_true", help="time variants, not the examples as they are")
    parser.add_argument("--skip", type=int, default=0, metavar="N", help="leave out the first N jobs")
    parser.add_argument("--assemble", metavar="I/N", help="only assemble a part of the jobs")
    options = parser.parse_args()
    jobs = list_jobs(options.names, has_variants=options.variants)[options.skip :]
    if options.assemble:
        first, step = map(int, options.assemble.split("/"))
        for job in jobs[first::step]:
            assemble(job, options.target)
        return
    if options.simulated:
        import pyptx.driver

        pyptx.driver.activate(options.simulated)
    time_jobs(jobs, options, SIMULATED_LIMIT if options.simulated else LIMIT)


def time_jobs(jobs: list[Job], options: argparse.Namespace, limit: int) -> None:
    """Time jobs, and store the result of each."""
    cases = dict[str, Case]()
    for job in jobs:
        # Ends the process even if a kernel never does.
        faulthandler.dump_traceback_later(limit, exit=True)
        start = time.perf_counter()
        result = measure_ceilings() if job.name == CEILINGS else time_job(job, options, cases)
        result = {"name": job.name, "label": job.variant.label, **result}
        result["seconds"] = round(time.perf_counter() - start, 2)
        with options.file.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(result) + "\n")
        if result.get("is_fatal"):
            sys.stdout.flush()
            os._exit(1)
    faulthandler.cancel_dump_traceback_later()


def assemble(job: Job, target: str) -> None:
    """Assemble a kernel of real size, whose machine code is then found in the cache. What does not assemble fails again
    when it is timed."""
    if job.name == CEILINGS:
        return
    example = find_example(job.name)
    shape: dict[str, Any] = dict(job.variant.shape or example.large)
    with suppress(PtxError, ValueError):
        example.make(choose_target(example, target), **job.variant.parameters).cubin(**shape)


def time_job(job: Job, options: argparse.Namespace, cases: dict[str, Case]) -> dict[str, Any]:
    """Return the times of a variant, or why there are none. `cases` keeps the inputs for the next one."""
    example, variant = find_example(job.name), job.variant
    run = find_small_run(example, variant) if options.simulated else Run(variant.shape or example.large)
    try:
        key = f"{example.name} {run}"
        if key not in cases:
            cases.clear()
            torch.cuda.empty_cache()
            cases[key] = prepare(example, run)
        with Sampler() as sampler:
            report = bench(cases[key], example.make(choose_target(example, options.target), **variant.parameters))
    except (AssertionError, CallError, PtxError, RuntimeError, ValueError) as why:
        failure = f"{type(why).__name__}: {why}"
        # A fault ends the context: the rest needs a new process.
        return {"failure": failure[:600], "is_fatal": isinstance(why, CallError) or "CUDA" in failure}
    code = identify_code(example.make().ptx(**example.large))
    return {**describe(report), **sampler.summarize(), "code": code}


def find_small_run(example: Example, variant: Variant) -> Run:
    """Return the smallest run, for as many SMs as the variant is for."""
    run, sms = example.runs[0], (variant.shape or {}).get("sms")
    return run if sms is None else replace(run, shape={**run.shape, "sms": sms})


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


if __name__ == "__main__":
    main()
