"""What a GPU does with the gallery of bugs: nothing is compared, since a bug may do anything, also nothing wrong.

`python -m tools.gpu.bugs NAME [fixed]` runs a bug once.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections import Counter

import numpy as np

from examples.parts.bug import Bug, load_bugs
from examples.parts.example import Array, find_dtype
from pyptx import Kernel
from pyptx.decorator import RESERVED
from pyptx.isa.targets import find_target
from pyptx.runtime.arrays import Described
from pyptx.runtime.bindings import CallError, call, in_context
from pyptx.runtime.launching import launch
from pyptx.runtime.planning import make_plan
from tools.gpu.checks import Machine, check

RUNS = 500
PATIENCE = 3.0
"""Seconds after which a launch of a microsecond is taken for one that never ends."""
NOT_READY = 600
TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")


def list_bugs(machine: Machine) -> list[str]:
    """Return the names of the bugs whose instructions the machine's target has."""
    own = find_target(machine.target)
    return [name for name, bug in load_bugs().items() if own.provides(find_target(bug.kernel.arch))]


@check("what 500 runs of each bug of the gallery give, next to its fixed version: nothing is compared", "a GPU",
       parts=list_bugs)  # fmt: skip
def bugs(machine: Machine) -> str:
    """Count how often the results of a kernel with a bug are those of the fixed one."""
    bug = load_bugs()[machine.part]
    (expected, _), outcomes = run_bug(bug, fixed=True), Counter[str]()
    for _ in range(RUNS):
        outputs, outcome = run_bug(bug, fixed=False)
        if not outcome:
            outcome = "right" if outputs == expected else "wrong"
        outcomes[outcome] += 1
        if outcome not in ("right", "wrong"):
            break
    return ", ".join(f"{outcome} {count} times" for outcome, count in outcomes.most_common())


def list_tools(machine: Machine) -> list[str]:
    """Return each bug with each tool of compute-sanitizer."""
    return [f"{name}:{tool}" for name in list_bugs(machine) for tool in TOOLS]


@check("what the tools of NVIDIA's compute-sanitizer report for each bug: nothing is compared", "a GPU",
       "compute-sanitizer", parts=list_tools)  # fmt: skip
def bugs_sanitized(machine: Machine) -> str:
    """Count the errors that a tool reports for a bug, and for its fixed version."""
    name, tool = machine.part.split(":")
    return ", ".join(
        f"{count_errors(tool, [name, *words])} errors{' if fixed' if words else ''}" for words in ([], ["fixed"])
    )


def count_errors(tool: str, words: list[str]) -> str:
    """Return how many errors a tool reports, or the last line that it prints."""
    command = ["compute-sanitizer", "--tool", tool, sys.executable, "-m", "tools.gpu.bugs", *words]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    summary = re.search(r"(?:ERROR|RACECHECK) SUMMARY: (?:(\d+) error|(\d+) hazard)", run.stdout)
    return (summary[1] or summary[2]) if summary else repr([*run.stdout.splitlines(), ""][-1])


def run_bug(bug: Bug, *, fixed: bool) -> tuple[list[bytes], str]:
    """Return the outputs of a launch, or what happened instead of its end. Memory is kept: to free it would wait."""
    kernel: Kernel = bug.kernel
    inputs: list[Array] = [np.asarray(array) for array in bug.inputs]
    descriptions = [Described(array.shape, array.dtype.name) for array in inputs]
    plan = make_plan(kernel, descriptions, [], grid=None, positional=None, keywords={**bug.keywords, "fixed": fixed},
                     options=RESERVED)  # fmt: skip
    outputs = [np.zeros(tile.resolve_shape(plan.dims), find_dtype(tile)) for tile in kernel.out_specs]
    arrays = [*inputs, *outputs]
    with in_context(0):
        try:
            addresses = [int(call("cuMemAlloc", array.nbytes)) for array in arrays]
            for address, array in zip(addresses, arrays, strict=True):
                call("cuMemcpyHtoD", address, np.ascontiguousarray(array).ctypes.data, array.nbytes)
            launch(plan, dict(zip((name for name, _ in plan.definition.tensors), addresses, strict=True)))
            if not wait():
                return [], "never ended"
            for address, array in zip(addresses[len(inputs) :], outputs, strict=True):
                call("cuMemcpyDtoH", array.ctypes.data, address, array.nbytes)
            for address in addresses:
                call("cuMemFree", address)
        except CallError as error:
            return [], error.name
    return [array.tobytes() for array in outputs], ""


def wait() -> bool:
    """Wait for the default stream; False if it does not end in time."""
    end = time.perf_counter() + PATIENCE
    while time.perf_counter() < end:
        try:
            call("cuStreamQuery", 0)
        except CallError as error:
            if error.code != NOT_READY:
                raise
        else:
            return True
    return False


def main(name: str, *words: str) -> None:
    """Run a bug once."""
    _, outcome = run_bug(load_bugs()[name], fixed="fixed" in words)
    print(outcome or "ended", flush=True)
    if outcome:  # cleaning up would wait
        os._exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
