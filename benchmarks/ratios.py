"""Measure our code against peers: interleaved, equally often, in processor time. Knows no benchmark and no baseline."""

from __future__ import annotations

import gc
import io
import itertools
import math
import os
import resource
import statistics
import subprocess
import sys
import tokenize
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
Work = Callable[[], object]
Round = Callable[[], tuple[float, float]]
"""Runs ours and its peer equally often; returns the processor seconds of each."""
Pairs = dict[str, Callable[[], Round]]
"""Functions that prepare a round, by name: `ours / peer`. Ours comes first, so a growing ratio is a regression."""

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""The environment of a measurement: idle BLAS threads spin after a product, which would count for what runs next."""
FEWEST, MOST, BUDGET = 3, 15, 0.4
"""The number of rounds of a pair: at least `FEWEST`, then up to `MOST` within a budget of processor seconds."""
SHORTEST = 0.02
"""The processor seconds of a round; shorter work is repeated, ours and its peer equally often."""


@dataclass(frozen=True)
class Times:
    """The processor seconds of ours and its peer in each round."""

    ours: tuple[float, ...]
    peer: tuple[float, ...]

    @property
    def median(self) -> float:
        """Return the median of the rounds' ratios; a load that slows both does not change it."""
        return statistics.median([ours / peer for ours, peer in zip(self.ours, self.peer, strict=True)])

    @property
    def best(self) -> float:
        """Return the ratio of the shortest times."""
        return min(self.ours) / min(self.peer)


def read_processor_time() -> float:
    """Return the processor seconds of this process and of its children that have exited."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def measure_seconds(work: Work, repeats: int = 1) -> float:
    """Return the processor seconds per run, averaged over `repeats` runs."""
    gc.collect()
    start = read_processor_time()
    for _ in range(repeats):
        work()
    return (read_processor_time() - start) / repeats


def measure_best(work: Work, rounds: int = 3) -> float:
    """Return the fewest processor seconds of several runs."""
    return min(measure_seconds(work) for _ in range(rounds))


def interleave(ours: Work, peer: Work, *, confirm: Work | None = None) -> Round:
    """Return a round that runs both, each first every other time.

    First run each once to fill its caches; `confirm` checks the results of ours."""
    ours()
    if confirm:
        confirm()
    peer()
    once = measure_seconds(ours) + measure_seconds(peer)
    repeats = math.ceil(SHORTEST / max(once, SHORTEST / 1000))
    turns = itertools.cycle((False, True))

    def measure() -> tuple[float, float]:
        if next(turns):
            time = measure_seconds(peer, repeats)
            return measure_seconds(ours, repeats), time
        return measure_seconds(ours, repeats), measure_seconds(peer, repeats)

    return measure


def first_and_second(prepare: str, call: str) -> Round:
    """Return a round that measures the first and the second run of a call, in a new process after its imports."""
    source = (
        f"from benchmarks.ratios import measure_seconds\n{prepare}\n"
        f"def call():\n    {call}\n"
        "print(measure_seconds(call), measure_seconds(call))"
    )

    def measure() -> tuple[float, float]:
        command = [sys.executable, "-c", source]
        first, second = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.split()
        return float(first), float(second)

    measure()  # write the bytecode, as any earlier use would have
    return measure


def measure(rounds: Round) -> Times:
    """Measure a pair until it has used its budget."""
    times: list[tuple[float, float]] = []
    start = read_processor_time()
    while len(times) < FEWEST or (len(times) < MOST and read_processor_time() - start < BUDGET):
        times.append(rounds())
    ours, peer = zip(*times, strict=True)
    return Times(ours, peer)


def show(pairs: Pairs, words: Sequence[str] = ()) -> None:
    """Print the times and the ratio of each pair, or only of those whose name contains one of the words.

    Restart the program if NumPy may use more than one thread."""
    if not ONE_THREAD.items() <= os.environ.items():
        os.execve(sys.executable, sys.orig_argv, os.environ | ONE_THREAD)
    for name, prepare in pairs.items():
        if words and not any(word in name for word in words):
            continue
        times = measure(prepare())
        ours, peer = (min(side) * 1e3 for side in (times.ours, times.peer))
        print(f"{name:62} {ours:9.1f} ms {peer:9.1f} ms  ratio {times.median:8.2f}", flush=True)


YARDSTICK = "value = table[index + 1] * scale  # a comment\n"


def make_python_source(size: int) -> str:
    """Return at least `size` characters of Python for `tokenize`, the same in every version."""
    return YARDSTICK * math.ceil(size / len(YARDSTICK))


def tokenize_all(python: str) -> int:
    """Count tokens with the standard library: pure Python that does not change with our code."""
    return sum(1 for _ in tokenize.generate_tokens(io.StringIO(python).readline))
