"""Compile every case ahead of time through JAX, for devices described in `devices.py`; XLA's dumps hold the PTX.

Run by `tools.corpus.python_producers.build`, inside JAX's own environment, with the dump directories set.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import topologies
from jax.sharding import SingleDeviceSharding

from tools.corpus.manifest import Entry, File, Manifest, Run, save
from tools.corpus.python_producers import record
from tools.corpus.python_producers.jax_kernels.cases import CASES, PARTIAL, Case
from tools.corpus.python_producers.jax_kernels.devices import DEVICES

DUMPS = Path("dumps")
MOSAIC = Path("mosaic")


@dataclass(frozen=True)
class Thunk:
    """One kernel launch in XLA's plan."""

    name: str
    grid: tuple[int, ...]
    threads: tuple[int, ...]
    smem: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--producer", choices=sorted(CASES), required=True)
    arguments = parser.parse_args()
    recipe = f"tools.corpus.python_producers.build {arguments.producer}"
    jobs = [(arguments.producer, index, arguments.out) for index in range(len(CASES[arguments.producer]()))]
    # Mosaic GPU keeps the first target it saw, so every case has a process of its own.
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        files = [file for files_of_case in pool.starmap(compile_case, jobs, chunksize=1) for file in files_of_case]
    save(Manifest(arguments.producer, recipe, tuple(files)), arguments.out)


def compile_case(producer: str, index: int, out: Path) -> list[File]:
    """Compile one case and write each of its PTX texts that has an entry."""
    case = CASES[producer]()[index]
    for directory in (DUMPS, MOSAIC):
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
    jax.config.update("jax_enable_x64", any(argument.dtype == "float64" for argument in case.arguments))
    config = DEVICES[case.device].text()
    topology = topologies.get_topology_desc("", platform="cuda", target_config=config, topology="1x1x1")
    sharding = SingleDeviceSharding(topology.devices[0])
    shapes = [_shape(argument, sharding) for argument in case.arguments if _is_input(case, argument.name)]
    jax.jit(case.function).trace(*shapes).lower(lowering_platforms=("cuda",)).compile()
    dumps = sorted(DUMPS.glob("*"))
    mosaic = sorted(MOSAIC.glob("*.ptx"))
    texts = [path.read_bytes() for path in (mosaic or [path for path in dumps if path.suffix == ".ptx"])]
    # XLA compiles a function's kernels in parallel and numbers them as they come; their names are always the same.
    texts = sorted((text for text in texts if b".entry" in text), key=lambda text: re.findall(rb"\.entry (\w+)", text))
    return [_write(case, text, dumps, len(texts), k, out) for k, text in enumerate(texts)]


def _is_input(case: Case, name: str) -> bool:
    return name != case.arguments[-1].name


def _shape(argument: Any, sharding: Any) -> Any:
    return jax.ShapeDtypeStruct(argument.shape, jnp.dtype(argument.dtype), sharding=sharding)


def _write(case: Case, text: bytes, dumps: list[Path], count: int, index: int, out: Path) -> File:
    name = case.function.__name__
    stem = name if count == 1 else f"{name}.{index}"
    entries = len(re.findall(rb"\.entry", text))
    run = _run(case, dumps) if case.reason is None and count == entries == 1 else None
    row = Entry("", case.algorithm, run, None if run is not None else case.reason or PARTIAL)
    source = case.function.__code__.co_filename
    flags = [f"target_config={case.device}", os.environ["XLA_FLAGS"].split()[-1]]
    return record.write(out, stem, text, {"": row}, version=record.installed("jax"), flags=flags, source=source)


def _run(case: Case, dumps: list[Path]) -> Run | None:
    """The launch, if XLA's plan is one kernel whose operands are the function's arguments."""
    plan = next(path.read_text() for path in dumps if path.name.endswith("thunk_sequence.txt"))
    thunks = [_thunk(line) for line in plan.splitlines() if "grid:" in line]
    text = next(path.read_text() for path in dumps if path.name.endswith("gpu_after_optimizations.txt"))
    if len(thunks) != 1 or len(plan.strip().splitlines()) != 1:
        return None
    order = _operands(text, thunks[0].name)
    if order is None:
        return None
    arguments = [*(case.arguments[index] for index in order), case.arguments[-1]]
    thunk = thunks[0]
    return record.launch(thunk.grid, thunk.threads, arguments, case.outputs, case.reference, smem=thunk.smem)


def _thunk(line: str) -> Thunk:
    match = re.search(r"\]\s+(\S+) grid: \[(.*?)\] threads: \[(.*?)\]\s+shared_memory: (\d+)", line)
    if match is None:
        raise ValueError(f"unknown plan line {line!r}")
    grid, threads = (tuple(int(part) for part in match[k].split(",")) for k in (2, 3))
    return Thunk(match[1], grid, threads, int(match[4]))


def _operands(text: str, name: str) -> list[int] | None:
    """Which arguments of the function the kernel takes, in its order; None if it takes anything else."""
    entry = text[text.index("\nENTRY") :]
    pattern = r"%[\w.\-]+ = \S+ (?:fusion|sort|custom-call|reduce|transpose|copy)\(([^)]*)\)"
    calls = list(re.finditer(pattern, entry))
    if len(calls) != 1:
        return None
    numbers = dict(re.findall(r"(%[\w.\-]+) = \S+ parameter\((\d+)\)", entry))
    operands = [operand.strip() for operand in calls[0][1].split(",")]
    return [int(numbers[operand]) for operand in operands] if all(o in numbers for o in operands) else None


if __name__ == "__main__":
    main()
