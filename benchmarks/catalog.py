"""List the benchmarks and the pairs of each. Knows no measured ratio."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path

from benchmarks import ratios
from benchmarks.baseline import Ratio

NOT_BENCHMARKS = {"__main__", "baseline", "catalog", "ratios"}
NEEDS = {"launch": ("cuda.core", "triton"), "sim_peers": ("numba_cuda", "triton")}
"""The packages of the `bench` extra that a benchmark requires."""


def list_benchmarks() -> list[str]:
    """Return the names of all benchmarks, one per file."""
    return sorted({path.stem for path in Path(__file__).parent.glob("*.py")} - NOT_BENCHMARKS)


@cache
def load_pairs(name: str) -> ratios.Pairs:
    """Return the pairs of a benchmark."""
    return import_module(f"benchmarks.{name}").list_pairs()


def list_pair_names(name: str) -> list[str]:
    """Return the names of a benchmark's pairs."""
    return list(load_pairs(name))


def list_ratio_names() -> set[str]:
    """Return the names of all ratios."""
    return {f"{name}: {pair}" for name in list_benchmarks() for pair in list_pair_names(name)}


def measure_pair(name: str, pair: str) -> Ratio:
    """Measure one pair of a benchmark."""
    times = ratios.measure(load_pairs(name)[pair]())
    return Ratio(times.median, times.best)
