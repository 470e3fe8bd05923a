"""Times the example kernels against libraries, and stores the results of a GPU.

On the simulated driver the same program runs at the smallest shapes, and stores nothing.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from examples.parts.bench import Report, bench
from examples.parts.example import Example, load_examples
from pyptx.runtime.bindings import call, load_api
from tools.gpu.checks import Machine, check
from tools.gpu.kernels import choose_target

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


@check("the time of every example at a real size, in turns with a library's function, cold L2 cache", "PyTorch")
def example_times(machine: Machine) -> str:
    """Time the examples that the device can run; store the times, and the clocks that the driver states."""
    examples = [example for example in load_examples() if choose_target(example, machine.target)]
    chosen = machine.choose(examples)
    reports = {example.name: time_example(example, machine) for example in chosen}
    if machine.is_simulated:
        return f"{len(reports)} kernels ran on the simulated driver, which has no times"
    path = RESULTS / f"{read_name().lower().replace(' ', '_')}.json"
    path.parent.mkdir(exist_ok=True)
    results = {"clock_khz": read_clock(), "kernels": {name: describe(report) for name, report in reports.items()}}
    path.write_text(json.dumps(results, indent=2) + "\n", "utf-8")
    return f"{len(reports)} kernels, in {path.name}"


def time_example(example: Example, machine: Machine) -> Report:
    """Time an example; on the simulated driver, run it twice at its smallest shape."""
    target = choose_target(example, machine.target)
    assert target is not None
    if machine.is_simulated:
        return bench(example, target, example.runs[0], runs=1)
    return bench(example, target)


def describe(report: Report) -> dict[str, Any]:
    """Return the times of a report in milliseconds, and its rates, as plain values."""
    times = report.comparison.times
    result: dict[str, Any] = {
        "shape": dict(report.run.shape),
        "milliseconds": {name: [item.median, *item.spread] for name, item in times.items()},
    }
    if len(times) > 1:
        result["ratio"] = report.comparison.ratio("pyptx")
    if report.example.flops:
        result["tflops"] = times["pyptx"].teraflops(report.example.flops(report.run.shape))
    if report.example.traffic:
        result["gigabytes_per_second"] = times["pyptx"].gigabytes(report.example.traffic(report.run.shape))
    return result


def read_name() -> str:
    """Return the name of the device."""
    return bytes(call("cuDeviceGetName", 128, 0)).rstrip(b"\0").decode()


def read_clock() -> int:
    """Return the highest clock of the device's SMs in kHz, as its driver states it."""
    return int(call("cuDeviceGetAttribute", load_api().CUdevice_attribute.CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 0))
