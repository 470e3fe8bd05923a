"""Measures ours against peers: interleaved, equally often, in processor time. Knows no benchmark and no baseline."""

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
"""Measures ours and its peer, as often; returns processor seconds."""
Pairs = dict[str, Callable[[], Round]]
"""By name, `ours / peer`, what prepares the works. Only a ratio that grows can be a regression, so ours comes first."""

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""The environment of a measurement: idle threads of BLAS spin after a product, which would count for what runs next."""
FEWEST, MOST, BUDGET = 3, 15, 0.4
"""Rounds of a pair: more than the fewest only while they take less than the budget, in processor seconds."""
SHORTEST = 0.02
"""Processor seconds of a round; works that take less are repeated, ours and its peer as often."""


@dataclass(frozen=True)
class Times:
    """Processor seconds of ours and its peer, by round."""

    ours: tuple[float, ...]
    peer: tuple[float, ...]

    @property
    def median(self) -> float:
        """Return the median of the rounds' ratios, which a load that slows both leaves alone."""
        return statistics.median([ours / peer for ours, peer in zip(self.ours, self.peer, strict=True)])

    @property
    def best(self) -> float:
        """Return the ratio of the shortest times."""
        return min(self.ours) / min(self.peer)


def processor() -> float:
    """Return the processor seconds of this process and of its children that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def seconds(work: Work, repeats: int = 1) -> float:
    """Return the processor seconds of one of so many runs."""
    gc.collect()
    start = processor()
    for _ in range(repeats):
        work()
    return (processor() - start) / repeats


def best(work: Work, rounds: int = 3) -> float:
    """Return the least processor seconds of several runs."""
    return min(seconds(work) for _ in range(rounds))


def interleave(ours: Work, peer: Work, *, confirm: Work | None = None) -> Round:
    """Return what runs both by turns, each first every other time.

    Both have run once before, which fills their caches; then `confirm` checks the results of ours."""
    ours()
    if confirm:
        confirm()
    peer()
    once = seconds(ours) + seconds(peer)
    repeats = math.ceil(SHORTEST / max(once, SHORTEST / 1000))
    turns = itertools.cycle((False, True))

    def measure() -> tuple[float, float]:
        if next(turns):
            time = seconds(peer, repeats)
            return seconds(ours, repeats), time
        return seconds(ours, repeats), seconds(peer, repeats)

    return measure


def first_and_second(prepare: str, call: str) -> Round:
    """Return what measures the first and the second time of a call, in a fresh process after its imports."""
    source = (
        f"from benchmarks.ratios import seconds\n{prepare}\n"
        f"def call():\n    {call}\n"
        "print(seconds(call), seconds(call))"
    )

    def measure() -> tuple[float, float]:
        command = [sys.executable, "-c", source]
        first, second = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.split()
        return float(first), float(second)

    measure()  # writes the bytecode, as any earlier use would have
    return measure


def measure(rounds: Round) -> Times:
    """Measure a pair until it has used its budget."""
    times: list[tuple[float, float]] = []
    start = processor()
    while len(times) < FEWEST or (len(times) < MOST and processor() - start < BUDGET):
        times.append(rounds())
    ours, peer = zip(*times, strict=True)
    return Times(ours, peer)


def show(pairs: Pairs, words: Sequence[str] = ()) -> None:
    """Print the times and the ratio of each pair, or only of those whose name contains one of the words.

    Starts the program again if NumPy, once loaded, has taken more than one thread."""
    if not ONE_THREAD.items() <= os.environ.items():
        os.execve(sys.executable, sys.orig_argv, os.environ | ONE_THREAD)
    for name, prepare in pairs.items():
        if words and not any(word in name for word in words):
            continue
        times = measure(prepare())
        ours, peer = (min(side) * 1e3 for side in (times.ours, times.peer))
        print(f"{name:62} {ours:9.1f} ms {peer:9.1f} ms  ratio {times.median:8.2f}", flush=True)


YARDSTICK = "value = table[index + 1] * scale  # a comment\n"


def python_source(size: int) -> str:
    """Return at least so many characters of Python, the same in every version: what `tokenize` reads as a yardstick."""
    return YARDSTICK * math.ceil(size / len(YARDSTICK))


def tokenize_all(python: str) -> int:
    """Return the number of tokens that the standard library reads: pure Python that does not change with us."""
    return sum(1 for _ in tokenize.generate_tokens(io.StringIO(python).readline))
