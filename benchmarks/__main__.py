"""Measures the ratios of every benchmark and compares them with the baseline: `python -m benchmarks [NAME…]`.

Each benchmark is a process of its own, one after another. `--update` rewrites the baseline instead of judging. Exits 1
if a ratio is worse than the baseline allows.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec

from benchmarks import baseline
from benchmarks.baseline import Ratio
from benchmarks.catalog import NEEDS, benchmark_names, measure_pair, pair_names
from benchmarks.ratios import ONE_THREAD


def measure_all(benchmarks: Sequence[str]) -> Iterator[tuple[str, Ratio]]:
    """Yield every ratio by name, as it is measured."""
    os.environ |= ONE_THREAD
    for name in benchmarks:
        if missing := [package for package in NEEDS.get(name, ()) if find_spec(package) is None]:
            print(f"{name}: not measured; install {' and '.join(missing)}: pip install -e '.[bench]'")
            continue
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
            for pair in process.submit(pair_names, name).result():
                yield f"{name}: {pair}", process.submit(measure_pair, name, pair).result()


def main(arguments: Sequence[str]) -> int:
    """Print each ratio beside the committed one."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks", description="Compare ratios with benchmarks/baseline.json."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"benchmarks to run: {', '.join(benchmark_names())}")
    parser.add_argument("--update", action="store_true", help="rewrite the baseline with the ratios of this run")
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.names) - set(benchmark_names())):
        parser.error(f"expected names of benchmarks ({', '.join(benchmark_names())}), not {', '.join(unknown)}")
    if options.update and options.names:
        parser.error("--update measures every benchmark, so that the baseline has one date and commit: drop the names")
    committed = baseline.read()
    measured: dict[str, Ratio] = {}
    print(f"{'ratio of processor times':72} {'measured':>9} {'baseline':>9}   change")
    for name, ratio in measure_all(options.names or benchmark_names()):
        measured[name] = ratio
        print(baseline.row(name, committed.get(name), ratio), flush=True)
    if options.update:
        return update(committed, measured)
    return judge(committed, measured)


def update(committed: Mapping[str, Ratio], measured: Mapping[str, Ratio]) -> int:
    """Rewrite the baseline if nothing is missing, and return the exit status."""
    if skipped := [name for name in NEEDS if not any(key.startswith(f"{name}: ") for key in measured)]:
        print(f"the baseline is unchanged: {', '.join(skipped)} was not measured", file=sys.stderr)
        return 2
    baseline.write(measured)
    print(f"wrote {len(measured)} ratios to {baseline.PATH.name}; {len(committed)} before")
    return 0


def judge(committed: Mapping[str, Ratio], measured: Mapping[str, Ratio]) -> int:
    """Name the ratios that are worse, and return the exit status."""
    worse = baseline.worse(committed, measured)
    for name in worse:
        print(f"{name}: {baseline.explain(committed[name], measured[name])}", file=sys.stderr)
    counts = f"{len(measured)} ratios measured, {len(committed)} in the baseline"
    print(f"{counts}, {len(worse)} worse than {baseline.FACTOR} times theirs")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
