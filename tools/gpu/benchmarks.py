"""Times the example kernels against libraries, and stores the results of a GPU as they come.

On the simulated driver the same program runs at the smallest shapes, and stores nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from examples.parts.example import load_examples
from pyptx.diagnostics import format_count
from pyptx.runtime.bindings import call, load_api
from tools.gpu.checks import Machine, check
from tools.gpu.kernels import choose_target
from tools.gpu.variants import CEILINGS, VARIANTS, list_jobs

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
TIMING = (sys.executable, "-m", "tools.gpu.timing")
MOST_ASSEMBLERS = 12
LIMIT = 600
"""Seconds for a process."""


@check(
    "the time of every example at a real size, in turns with a library's function, cold L2 cache", "PyTorch",
    limit=300, alone=True,
)  # fmt: skip
def example_times(machine: Machine) -> str:
    """Verify and time the examples that the device can run; store the times, and the clocks."""
    names = [example.name for example in load_examples() if choose_target(example, machine.target)]
    return time_examples(machine, machine.choose(names), has_variants=False)


@check(
    "the time of variants of the kernels: other tiles, stages, orders and widths", "PyTorch", limit=300, alone=True
)  # fmt: skip
def kernel_variants(machine: Machine) -> str:
    """Verify and time variants of the examples."""
    examples = [example for example in load_examples() if choose_target(example, machine.target)]
    names = [example.name for example in examples if example.name in VARIANTS]
    return time_examples(machine, machine.choose(names), has_variants=True)


def time_examples(machine: Machine, names: Sequence[str], *, has_variants: bool) -> str:
    """Time examples in a process that uses the GPU alone, and print and store each result."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) if machine.is_simulated else machine.folder or RESULTS
        place.mkdir(parents=True, exist_ok=True)
        file = place / f"{find_stem(machine)}{'_variants' if has_variants else ''}.jsonl"
        file.unlink(missing_ok=True)
        lines = run_jobs(machine, names, file, has_variants=has_variants)
    if not machine.is_simulated and not has_variants:
        kernels = {name: [line for line in lines if line["name"] == name] for name in (CEILINGS, *names)}
        header = {"device": read_name(), "clock_khz": read_clock()}
        file.with_suffix(".json").write_text(json.dumps({**header, "kernels": kernels}, indent=1) + "\n", "utf-8")
    timed = [line for line in lines if line["name"] != CEILINGS]
    failures = [f"{line['name']} {line['label']}: {line['failure']}" for line in timed if "failure" in line]
    if failures:
        raise AssertionError("\n".join(failures))
    count = format_count("kernel", len(timed))
    return f"{count} ran on the simulated driver, which has no times" if machine.is_simulated else f"{count}, in {file}"


def run_jobs(machine: Machine, names: Sequence[str], file: Path, *, has_variants: bool) -> list[dict[str, Any]]:
    """Run a process for the jobs of examples, and another one for the rest after a job that ends the process."""
    jobs = list_jobs(names, has_variants=has_variants)
    options = [str(file), *names, "--target", machine.target, *(["--variants"] if has_variants else [])]
    options += ["--simulated", machine.device] if machine.is_simulated else []
    parts = 0 if machine.is_simulated else min(os.cpu_count() or 1, MOST_ASSEMBLERS)
    for part in range(parts):
        subprocess.Popen([*TIMING, *options, "--assemble", f"{part}/{parts}"], cwd=ROOT, stdout=subprocess.DEVNULL)
    while (count := len(read_lines(file))) < len(jobs):
        why = run_process([*TIMING, *options, "--skip", str(count)], file)
        lines = read_lines(file)
        if len(lines) < len(jobs) and (len(lines) == count or not lines[-1].get("is_fatal")):
            job = jobs[len(lines)]
            failure = {"name": job.name, "label": job.variant.label, "failure": f"the process ended: {why}"}
            print(f"  {summarize(failure)}", flush=True)
            with file.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(failure) + "\n")
    return read_lines(file)


def run_process(command: list[str], file: Path) -> str:
    """Run a process, print the results that it adds to the file, and return the end of what it wrote as errors."""
    ended = threading.Event()
    watcher = threading.Thread(target=print_results, args=(file, len(read_lines(file)), ended))
    watcher.start()
    try:
        outcome = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT, check=False)
        return outcome.stderr[-600:] or outcome.stdout[-200:]
    except subprocess.TimeoutExpired:
        return f"no result within {LIMIT} s"
    finally:
        ended.set()
        watcher.join()


def print_results(file: Path, count: int, ended: threading.Event) -> None:
    """Print results from number `count` on as they are added to a file."""
    is_last = False
    while not is_last:
        is_last = ended.wait(0.2)
        for line in (lines := read_lines(file))[count:]:
            print(f"  {summarize(line)}", flush=True)
        count = len(lines)


def read_lines(file: Path) -> list[dict[str, Any]]:
    """Return the results that a process has written; a last line that is not complete yet is none."""
    text = file.read_text("utf-8") if file.exists() else ""
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def summarize(line: dict[str, Any]) -> str:
    """Return a result in one line."""
    title = f"{line['name']} {line['label']}"
    if "failure" in line:
        return f"{title}: FAILED {line['failure'].splitlines()[-1][:160]}"
    names = ("tflops", "gigabytes_per_second", "ratio", "share_of_copy", "error", "mhz", "watts", "seconds")
    values = (f"{name} {format_value(line[name])}" for name in names if name in line)
    rest = (f"{name} {format_value(value)}" for name, value in line.items() if name.startswith(("copy_", "cublas_")))
    return f"{title}: {', '.join([*values, *rest])}"


def format_value(value: Any) -> str:  # noqa: ANN401
    """Return a number with few digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def find_stem(machine: Machine) -> str:
    """Return the name of this device's file."""
    return machine.device if machine.is_simulated else read_name().lower().replace(" ", "_")


def read_name() -> str:
    """Return the name of the device."""
    return bytes(call("cuDeviceGetName", 128, 0)).split(b"\0")[0].decode()


def read_clock() -> int:
    """Return the highest clock of the device's SMs in kHz, as its driver states it."""
    return int(call("cuDeviceGetAttribute", load_api().CUdevice_attribute.CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 0))
