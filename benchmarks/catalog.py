"""Which benchmarks there are, and the pairs of each. Knows no measured ratio."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path

from benchmarks import ratios
from benchmarks.baseline import Ratio

NOT_BENCHMARKS = {"__main__", "baseline", "catalog", "ratios"}
NEEDS = {"sim_peers": ("numba_cuda", "triton")}
"""What the `bench` extra installs and a benchmark cannot run without."""


def benchmark_names() -> list[str]:
    """Return the names of all benchmarks, one per file."""
    return sorted({path.stem for path in Path(__file__).parent.glob("*.py")} - NOT_BENCHMARKS)


@cache
def load(name: str) -> ratios.Pairs:
    """Return the pairs of a benchmark."""
    return import_module(f"benchmarks.{name}").pairs()


def pair_names(name: str) -> list[str]:
    """Return the names of a benchmark's pairs."""
    return list(load(name))


def ratio_names() -> set[str]:
    """Return the names of all ratios."""
    return {f"{name}: {pair}" for name in benchmark_names() for pair in pair_names(name)}


def measure_pair(name: str, pair: str) -> Ratio:
    """Measure one pair of a benchmark."""
    times = ratios.measure(load(name)[pair]())
    return Ratio(times.median, times.best)
