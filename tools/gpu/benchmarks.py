"""Times the example kernels against libraries, and stores the results of a GPU after each.

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
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from examples.parts.example import load_examples
from pyptx.diagnostics import format_count
from pyptx.runtime.bindings import call, load_api
from tools.gpu.checks import Machine, check
from tools.gpu.kernels import choose_target
from tools.gpu.timing import CEILINGS
from tools.gpu.variants import list_variants

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
LIMIT = 600
"""Seconds for a process, most of which it may wait for the others."""
MOST_PROCESSES = 12


@check(
    "the time of every example at a real size, in turns with a library's function, cold L2 cache", "PyTorch",
    limit=300, alone=True,
)  # fmt: skip
def example_times(machine: Machine) -> str:
    """Verify and time the examples that the device can run; store the times, and the clocks."""
    names = [example.name for example in load_examples() if choose_target(example, machine.target)]
    return run_jobs(machine, sort_names(machine.choose(names)), has_variants=False)


@check(
    "the time of variants of the kernels: other tiles, stages, orders and widths", "PyTorch", limit=300, alone=True
)  # fmt: skip
def kernel_variants(machine: Machine) -> str:
    """Verify and time variants of the examples."""
    examples = [example for example in load_examples() if choose_target(example, machine.target)]
    names = [example.name for example in examples if list_variants(example.name)]
    return run_jobs(machine, sort_names(machine.choose(names)), has_variants=True)


def sort_names(names: Sequence[str]) -> list[str]:
    """Return names with those of the fastest kernels first, for a run that is cut off."""
    return sorted(names, key=lambda name: not name.startswith(("hopper/", "blackwell/")))


@dataclass
class Results:
    """The lines of all processes by example, in a file that is written anew after each."""

    path: Path | None
    header: dict[str, Any]
    lines: dict[str, list[dict[str, Any]]] = field(default_factory=dict[str, list[dict[str, Any]]])
    lock: threading.Lock = field(default_factory=threading.Lock)

    def store(self, name: str, lines: list[dict[str, Any]]) -> None:
        """Store what is known of an example, and print it."""
        with self.lock:
            for line in lines[len(self.lines.get(name, [])) :]:
                print(f"  {name} {summarize(line)}", flush=True)
            self.lines[name] = lines
            if self.path is not None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self.path.write_text(json.dumps({**self.header, "kernels": self.lines}, indent=1) + "\n", "utf-8")


def run_jobs(machine: Machine, names: Sequence[str], *, has_variants: bool) -> str:
    """Time examples in processes of their own: they start side by side, and use the GPU one at a time."""
    header = {} if machine.is_simulated else {"device": read_name(), "clock_khz": read_clock()}
    results = Results(None if machine.is_simulated else find_path(machine, has_variants), header)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(min(os.cpu_count() or 1, MOST_PROCESSES)) as pool:
        work = [
            pool.submit(run_job, machine, name, Path(folder), results, has_variants=has_variants)
            for name in (CEILINGS, *names)
        ]
        for job in as_completed(work):
            job.result()
    lines = [(name, line) for name, rows in results.lines.items() for line in rows if name != CEILINGS]
    failures = [f"{name} {line['label']}: {line['failure']}" for name, line in lines if "failure" in line]
    if failures:
        raise AssertionError("\n".join(failures))
    if machine.is_simulated:
        return f"{format_count('kernel', len(lines))} ran on the simulated driver, which has no times"
    return f"{format_count('kernel', len(lines))}, in {results.path}"


def run_job(machine: Machine, name: str, folder: Path, results: Results, *, has_variants: bool) -> None:
    """Run the process of an example, and another one for the variants after one that ends the process."""
    file = folder / f"{name.replace('/', '_')}.jsonl"
    labels = [variant.label for variant in list_variants(name)] if has_variants and name != CEILINGS else ["default"]
    while len(lines := read_lines(file)) < len(labels):
        command = [sys.executable, "-m", "tools.gpu.timing", name, str(file), "--target", machine.target]
        command += ["--lock", str(folder / "lock"), "--skip", str(len(lines))]
        command += ["--variants"] if has_variants and name != CEILINGS else []
        command += ["--simulated", machine.device] if machine.is_simulated else []
        try:
            outcome = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT, check=False)
            why = outcome.stderr[-600:] or outcome.stdout[-200:]
        except subprocess.TimeoutExpired:
            why = f"no result within {LIMIT} s"
        found = read_lines(file)
        if len(found) == len(lines) or ("failure" not in found[-1] and len(found) < len(labels)):
            with file.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps({"label": labels[len(found)], "failure": f"the process ended: {why}"}) + "\n")
        results.store(name, read_lines(file))


def read_lines(file: Path) -> list[dict[str, Any]]:
    """Return the results that a process has written."""
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []


def summarize(line: dict[str, Any]) -> str:
    """Return a result in one line."""
    if "failure" in line:
        return f"{line['label']}: FAILED {line['failure'].splitlines()[-1][:160]}"
    names = ("tflops", "gigabytes_per_second", "ratio", "share_of_copy", "error", "mhz", "watts", "seconds")
    values = (f"{name} {format_value(line[name])}" for name in names if name in line)
    rest = (f"{name} {value}" for name, value in line.items() if name.startswith(("copy_", "cublas_")))
    return f"{line['label']}: {', '.join([*values, *rest])}"


def format_value(value: Any) -> str:  # noqa: ANN401
    """Return a number with few digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def find_path(machine: Machine, has_variants: bool) -> Path:
    """Return the file of this device's results."""
    name = read_name().lower().replace(" ", "_")
    return (machine.folder or RESULTS) / f"{name}{'_variants' if has_variants else ''}.json"


def read_name() -> str:
    """Return the name of the device."""
    return bytes(call("cuDeviceGetName", 128, 0)).rstrip(b"\0").decode()


def read_clock() -> int:
    """Return the highest clock of the device's SMs in kHz, as its driver states it."""
    return int(call("cuDeviceGetAttribute", load_api().CUdevice_attribute.CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 0))
