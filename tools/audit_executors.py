"""Runs sweeps and comparisons of kernels in this process, in copies of it, in a pool of processes and on workers of
Dask, and compares all findings: `python -m tools.audit_executors [--small]`. Planted bugs must be found at the smallest
shape that shows them. Times are the best of several runs."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from multiprocessing import get_context
from typing import Any

from pyptx import Kernel, sim
from pyptx.testing import assert_matches
from tools import executor_kernels as kernels
from tools.planted_bugs import PLANTED, Planted

WORKERS = 2
ROUNDS, BLOCKS, RUNS = 30, 16, 2
Place = dict[str, Any]
"""Keywords that choose where runs happen."""


@contextmanager
def open_here() -> Generator[Place]:
    """Run in this process alone."""
    yield {"processes": 1}


@contextmanager
def open_copies() -> Generator[Place]:
    """Run in copies of this process."""
    yield {"processes": WORKERS}


@contextmanager
def open_dask() -> Generator[Place]:
    """Start two local workers of Dask."""
    # Dask's functions have incomplete types.
    distributed: Any = import_module("distributed")
    options: dict[str, Any] = {"threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(n_workers=WORKERS, **options) as cluster, distributed.Client(cluster) as client:
        # By default, Dask remembers the results of functions.
        yield {"executor": client.get_executor(pure=False)}


@contextmanager
def open_pool() -> Generator[Place]:
    """Start two processes that import what they run."""
    with ProcessPoolExecutor(WORKERS, get_context("spawn")) as pool:
        yield {"executor": pool}


def describe_sweep(run: Callable[..., Any], place: Place) -> list[str]:
    """Return everything that the trials of a sweep report."""
    trials = sim.sweep(run, **place)
    return [f"{trial}\n{type(trial.error).__name__}\n{trial.error}\n{trial.result}" for trial in trials]


def describe_match(size: int, rounds: int, kernel: Kernel, place: Place) -> list[str]:
    """Return the result or the error of a comparison."""
    options: dict[str, Any] = {"shapes": {"n": [64, size]}, "seeds": 2, "rounds": rounds}
    try:
        return [str(assert_matches(kernel, partial(kernels.add_partners, rounds), **options, **place))]
    except AssertionError as why:
        return [str(why)]


def describe_bug(bug: Planted, place: Place) -> list[str]:
    """Return the message of the smallest failure of a planted bug. RuntimeError if it is another one, or none."""
    expected = f"{bug.kernel.name} at n={bug.smallest}, schedule='{bug.schedule}', "
    message = "no failure"
    try:
        bug.match(**place)
    except AssertionError as why:
        message = str(why)
    if not message.startswith(expected):
        raise RuntimeError(f"expected {expected}found {message}")
    return [message]


def list_subjects(blocks: int, rounds: int, bugs: Sequence[Planted]) -> dict[str, Callable[[Place], list[str]]]:
    """Return what is compared."""
    size = 64 * blocks
    return {
        "sweep, no findings": partial(describe_sweep, partial(kernels.sweep_right, size, rounds)),
        "sweep, a race": partial(describe_sweep, partial(kernels.sweep_race, size)),
        "sweep, a hang": partial(describe_sweep, partial(kernels.sweep_hang, 64)),
        "assert_matches, equal": partial(describe_match, size, rounds, kernels.right),
        "assert_matches, a race": partial(describe_match, size, 2, kernels.racing),
        **{
            f"planted {bug.kernel.name} at n={bug.smallest}, {bug.schedule}": partial(describe_bug, bug) for bug in bugs
        },
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Print a line for each subject: the times, and whether the findings are equal."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--small", action="store_true", help="short runs, each once")
    small = options.parse_args(argv).small
    subjects = list_subjects(4, 2, PLANTED[:1]) if small else list_subjects(BLOCKS, ROUNDS, PLANTED)
    places = {"here": open_here, "copies": open_copies, "pool": open_pool, "Dask": open_dask}
    findings, seconds = dict[tuple[str, str], list[str]](), dict[tuple[str, str], float]()
    # Copies come before what starts threads.
    for label, open_place in places.items():
        with open_place() as place:
            for name, describe in subjects.items():
                for _ in range(1 if small else RUNS):
                    start = time.monotonic()
                    findings[label, name] = describe(place)
                    elapsed = time.monotonic() - start
                    seconds[label, name] = min(seconds.get((label, name), elapsed), elapsed)
    load = f"{os.cpu_count()} cores with a load of {os.getloadavg()[2]:.0f}"
    print(f"{load}, {WORKERS} processes; pools and workers start before the time is taken")
    different = 0
    for name in subjects:
        wrong = [label for label in places if findings[label, name] != findings["here", name]]
        different += len(wrong)
        times = ", ".join(f"{label} {seconds[label, name]:.2f} s" for label in places)
        verdict = f"differ in {', '.join(wrong)}" if wrong else "equal"
        print(f"{name}: findings {verdict}; {times}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
