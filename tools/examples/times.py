"""The tables of times in examples/README.md, from the stored results of `python -m tools.gpu example-times`."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from examples.parts.example import EXAMPLES, find_example

RESULTS = Path("benchmarks/results")
GOLDENS = Path("tests/examples/goldens")
OURS, COPY = "pyptx", "copy"
UNITS = {"tflops": "TFLOP/s", "gigabytes_per_second": "GB/s"}


def list_times(folder: Path = RESULTS) -> str:
    """Return a table for each GPU that has results."""
    return "\n".join(make_table(json.loads(path.read_text("utf-8"))) for path in sorted(folder.glob("*.json")))


def make_table(results: Mapping[str, Any]) -> str:
    """Return the table of a GPU."""
    kernels: Mapping[str, list[dict[str, Any]]] = results["kernels"]
    timed = [(name, line) for name, lines in kernels.items() for line in lines if OURS in line.get("milliseconds", {})]
    current = [(name, line) for name, line in timed if is_current(name, line)]
    rows = sorted((find_example(name).path, describe(line)) for name, line in current)
    changed = sorted({name for name, line in timed if not is_current(name, line)})
    commit = f", commit {results['commit']}" if "commit" in results else ""
    lines = [f"{results['device']}{commit}{describe_ceilings(kernels.get('ceilings', []))}:", ""]
    lines += ["| kernel | shape | time | rate | compared with |", "|---|---|---|---|---|"]
    lines += [f"| [{path.stem}]({path.relative_to(EXAMPLES)}) | {row} |" for path, row in rows]
    notes = [results["note"]] if "note" in results else []
    notes += [f"Not shown, because the code has changed since: {', '.join(changed)}."] if changed else []
    return "\n".join([*lines, *(["", *notes] if notes else [])]) + "\n"


def is_current(name: str, line: Mapping[str, Any]) -> bool:
    """Return whether an example's code is what was timed."""
    return line["code"] == identify_example(name)


def identify_example(name: str) -> str:
    """Return a digest of the PTX of an example for its first target."""
    path = find_example(name).path
    golden = GOLDENS / path.parent.name / f"{path.stem}.ptx"
    return identify_code(golden.read_text("utf-8"))


def identify_code(ptx: str) -> str:
    """Return a digest of a kernel's PTX without comments."""
    text = re.sub(r"[ \t]*//.*", "", ptx)
    return hashlib.sha256("\n".join(filter(None, text.splitlines())).encode()).hexdigest()[:16]


def find_rates(name: str, folder: Path = RESULTS) -> str:
    """Return the rate of an example on each GPU that has timed its code."""
    rates = [f"{describe_rate(line)} on {device}" for device, line in list_current(name, folder)]
    return ", ".join(rates) or "not measured"


def list_rates(name: str, folder: Path = RESULTS) -> dict[str, float]:
    """Return the rates of an example on GPUs that have timed its code, by unit, shape and GPU."""
    rates = dict[str, float]()
    for device, line in list_current(name, folder):
        key = next((key for key in UNITS if key in line), None)
        if key is not None:
            rates[f"{UNITS[key]} at {describe_shape(line)} on {device}"] = line[key]
    return rates


def list_current(name: str, folder: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the results of an example whose code is what was timed, and their GPUs."""
    for path in sorted(folder.glob("*.json")):
        results = json.loads(path.read_text("utf-8"))
        for line in results["kernels"].get(name, []):
            if OURS in line.get("milliseconds", {}) and is_current(name, line):
                yield results["device"], line


def describe_ceilings(lines: list[dict[str, Any]]) -> str:
    """Return what the GPU itself did in the same run."""
    for line in lines:
        if "copy_gigabytes_per_second" in line:
            copy, product = line["copy_gigabytes_per_second"], line["cublas_bf16_8192_tflops"]
            return f", whose copies reached {copy:.0f} GB/s and cuBLAS {product:.0f} TFLOP/s at 8192³"
    return ""


def describe(line: Mapping[str, Any]) -> str:
    """Return the cells of a result: shape, time, rate, and how many times as fast as each peer."""
    times: Mapping[str, list[float]] = line["milliseconds"]
    ours = times[OURS][0]
    peers = [f"{peer[0] / ours:.2f}× {name}" for name, peer in times.items() if name not in (OURS, COPY)]
    if "share_of_copy" in line:
        peers.append(f"{line['share_of_copy']:.0%} of a copy")
    return f"{describe_shape(line)} | {ours * 1e3:.1f} µs | {describe_rate(line)} | {', '.join(peers)}"


def describe_shape(line: Mapping[str, Any]) -> str:
    """Return the shape of a result."""
    return ", ".join(f"{name} {value}" for name, value in line["shape"].items())


def describe_rate(line: Mapping[str, Any]) -> str:
    """Return the rate of a result with its unit."""
    return next((f"{line[name]:.0f} {unit}" for name, unit in UNITS.items() if name in line), "")
