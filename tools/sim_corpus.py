"""Runs the corpus on the simulator: `python -m tools.sim_corpus [PRODUCER…]` prints the results by producer.

Launches every entry with a `run`, with the arguments of its manifest, and compares it with its NumPy reference.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from pyptx import sim, tensormap
from pyptx.diagnostics import PtxError
from pyptx.ir import Module
from pyptx.isa.swizzle import find_swizzle
from pyptx.numbers import FORMATS
from pyptx.parser import parse
from pyptx.sim.hazards import RULES, Finding
from pyptx.sim.rules.faults import UNSUPPORTED
from pyptx.types import from_name
from tools.corpus import inputs, manifest
from tools.corpus.manifest import Array, Entry, File, Run, Scalar, TensorMap


@dataclass(frozen=True)
class Outcome:
    """The result of one entry: `pass`, `fail`, `unsupported` or `error`, and why."""

    producer: str
    file: str
    entry: str
    verdict: str
    why: str
    seconds: float
    lane_instructions: int = 0
    hazards: tuple[Finding, ...] = ()


@cache
def module_of(path: Path) -> Module:
    """Parse a corpus file."""
    return parse(path.read_bytes().rstrip(b"\0").decode("utf-8", "surrogateescape"))


def list_arguments(run: Run, values: dict[str, Any]) -> list[Any]:
    """Return the arguments of a launch."""
    launch_arguments: list[Any] = []
    for argument in run.arguments:
        if isinstance(argument, TensorMap):
            launch_arguments.append(sim.Tensor(values[argument.array], tensor_map(argument)))
        elif isinstance(argument, Array) and argument.hidden:
            continue
        elif isinstance(argument, Scalar | Array):
            launch_arguments.append(values[argument.name])
        else:
            fields = [(field.offset, values[field.argument.name]) for field in argument.fields]
            launch_arguments.append(sim.Struct(argument.size, fields))
    return launch_arguments


def tensor_map(argument: TensorMap) -> tensormap.TensorMap:
    """Return the tensor map of a contiguous array."""
    name = next(form.name for form in FORMATS.values() if argument.dtype in form.arrays)
    kind = tensormap.element_type(from_name(name))
    strides = tuple(prod(argument.dims[:axis]) * kind.bits // 8 for axis in range(1, len(argument.dims)))
    mode = find_swizzle("NONE" if argument.swizzle == "none" else argument.swizzle)
    return tensormap.TensorMap(kind, 0, argument.dims, strides, argument.box, swizzle=mode)


def launch(
    module: Module, entry: Entry, check: str = "none", schedule: str = "eager", seed: int = 0
) -> tuple[sim.Result, list[str]]:
    """Run one entry; return the result and the differences from the reference."""
    run = entry.run
    assert run is not None
    values, before = inputs.arguments(run), inputs.arguments(run)
    result = sim.run(
        module, entry.name, grid=run.grid, block=run.block, args=list_arguments(run, values), cluster=run.cluster,
        shared=run.smem, cooperative=run.cooperative, max_steps=3_000_000, check=check, on_hazard="report",
        schedule=schedule, seed=seed,
    )  # fmt: skip
    place, _, name = run.reference.rpartition(".")
    with np.errstate(all="ignore"):
        expectation = getattr(import_module(f"tools.corpus.{place}"), name)(before)
    return result, [text for output in run.outputs for text in _differences(output, values, expectation)]


def _differences(output: manifest.Output, values: dict[str, Any], expectation: dict[str, Any]) -> Iterator[str]:
    got, want = values[output.argument], np.asarray(expectation[output.argument])
    if output.rtol == output.atol == 0 and got.tobytes() == want.astype(got.dtype).tobytes():
        return
    with np.errstate(all="ignore"):
        wide = np.complex128 if got.dtype.kind == "c" else np.float64
        x, y = got.astype(wide), want.astype(wide).reshape(got.shape)
        close = (np.abs(x - y) <= output.atol + output.rtol * np.abs(y)) | (x == y) | (np.isnan(x) & np.isnan(y))
    if not close.all():
        index = np.argwhere(~close)[0]
        first = f"first at {index}: {x[tuple(index)]} for {y[tuple(index)]}"
        yield f"{output.argument}: {(~close).sum()} of {close.size} differ, {first}"


def outcome(producer: str, directory: Path, item: File, entry: Entry, check: str = "none") -> Outcome:
    """Run one entry and return its outcome."""
    start = time.perf_counter()
    lanes, hazards = 0, ()
    try:
        result, wrong = launch(module_of(directory / item.path), entry, check)
        hazards = tuple(result.hazards)
        lanes = result.stats.lane_instructions
        verdict, why = ("fail", "; ".join(wrong)) if wrong else ("pass", "")
    except PtxError as error:
        is_unsupported = any(d.code == UNSUPPORTED.code for d in error.diagnostics)
        verdict, why = ("unsupported" if is_unsupported else "error"), str(error).replace("\n", " ")
    except NotImplementedError as error:
        verdict, why = "unsupported", str(error)
    return Outcome(producer, item.path, entry.name, verdict, why, time.perf_counter() - start, lanes, hazards)


def outcomes(producers: list[str], check: str = "none", stride: int = 1) -> Iterator[Outcome]:
    """Run every n-th runnable entry of the named producers, or of all."""
    number = 0
    for directory in manifest.producers():
        corpus = manifest.load(directory)
        if producers and corpus.producer not in producers:
            continue
        for item in corpus.files:
            for entry in item.entries:
                if entry.run is not None:
                    number += 1
                    if number % stride == 0:
                        yield outcome(corpus.producer, directory, item, entry, check)


def describe_finding(hazard: Finding) -> str:
    """Return a finding with both places on one line."""
    place_text = f"; the other place: {hazard.other}" if hazard.other is not None else ""
    return f"{hazard}{place_text}"


def tabulate(hazards: dict[str, Counter[str]]) -> Iterator[str]:
    """Yield the table of kernels with a finding, by producer and code."""
    codes = sorted({code for counter in hazards.values() for code in counter})
    severity = {rule.code: rule.severity.value[0].upper() for rule in RULES}
    yield "kernels with findings (E error, W warning)"
    yield f"{'producer':10}" + "".join(f"{severity[code]} {code}".rjust(12) for code in codes)
    for producer, counter in sorted(hazards.items()):
        yield f"{producer:10}" + "".join(f"{counter[code]:12}" for code in codes)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("producers", nargs="*")
    parser.add_argument("--why", action="store_true", help="print the entries that did not pass")
    parser.add_argument("--slow", type=float, default=0, help="print entries that took more than this many seconds")
    parser.add_argument("--check", action="store_true", help="check for hazards, and count them by producer")
    parser.add_argument("--every", type=int, default=1, help="run only every n-th entry")
    options = parser.parse_args()
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    start = time.perf_counter()
    hazards: dict[str, Counter[str]] = defaultdict(Counter)
    for result in outcomes(options.producers, "all" if options.check else "none", options.every):
        counts[result.producer][result.verdict] += 1
        hazards[result.producer] += Counter({f.rule.code for f in result.hazards})
        if options.why:
            for hazard in result.hazards:
                print(f"{result.producer}/{result.file} {result.entry}: {describe_finding(hazard)}", flush=True)
        if options.why and result.verdict != "pass":
            print(f"{result.verdict:11} {result.producer}/{result.file} {result.entry}: {result.why[:300]}", flush=True)
        if options.slow and result.seconds > options.slow:
            print(f"{result.seconds:6.2f} s {result.producer}/{result.file} {result.entry} {result.lane_instructions}")
    verdicts = ("pass", "fail", "error", "unsupported")
    print(f"{'producer':10}" + "".join(f"{v:>12}" for v in verdicts))
    for producer, counter in sorted(counts.items()):
        print(f"{producer:10}" + "".join(f"{counter[v]:12}" for v in verdicts))
    total = sum(counts.values(), Counter[str]())
    if options.check:
        for line in tabulate(hazards):
            print(line)
    print(f"{'all':10}" + "".join(f"{total[v]:12}" for v in verdicts) + f"   {time.perf_counter() - start:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
