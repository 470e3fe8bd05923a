"""Measure the ratios of every benchmark and compare them with the baseline: `python -m benchmarks [NAME…]`.

Each benchmark runs in its own process, one after another. `--update` rewrites the baseline instead of comparing. The
exit status is 1 if a ratio is worse than the baseline allows.
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
from benchmarks.catalog import NEEDS, list_benchmarks, list_pair_names, measure_pair
from benchmarks.ratios import ONE_THREAD


def measure_all(benchmarks: Sequence[str]) -> Iterator[tuple[str, Ratio]]:
    """Yield every ratio with its name as soon as it is measured."""
    os.environ |= ONE_THREAD
    for name in benchmarks:
        if missing := [package for package in NEEDS.get(name, ()) if find_spec(package) is None]:
            print(f"{name}: not measured; install {' and '.join(missing)}: pip install -e '.[bench]'")
            continue
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
            for pair in process.submit(list_pair_names, name).result():
                yield f"{name}: {pair}", process.submit(measure_pair, name, pair).result()


def main(arguments: Sequence[str]) -> int:
    """Print each ratio next to the committed one."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks", description="Compare ratios with benchmarks/baseline.json."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"benchmarks to run: {', '.join(list_benchmarks())}")
    parser.add_argument("--update", action="store_true", help="rewrite the baseline with the ratios of this run")
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.names) - set(list_benchmarks())):
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(list_benchmarks())}")
    if options.update and options.names:
        parser.error("--update takes no names: it measures every benchmark, so the baseline has one date and commit")
    committed = baseline.read()
    measured: dict[str, Ratio] = {}
    print(f"{'ratio of processor times':72} {'measured':>9} {'baseline':>9}   change")
    for name, ratio in measure_all(options.names or list_benchmarks()):
        measured[name] = ratio
        print(baseline.format_row(name, committed.get(name), ratio), flush=True)
    if options.update:
        return update(committed, measured)
    return judge(committed, measured)


def update(committed: Mapping[str, Ratio], measured: Mapping[str, Ratio]) -> int:
    """Rewrite the baseline if nothing is missing, and return the exit status."""
    if skipped := [name for name in NEEDS if not any(key.startswith(f"{name}: ") for key in measured)]:
        print(f"the baseline is unchanged: {', '.join(skipped)} was not measured", file=sys.stderr)
        return 2
    baseline.write(measured)
    print(f"wrote {len(measured)} ratios to {baseline.PATH.name}; it had {len(committed)}")
    return 0


def judge(committed: Mapping[str, Ratio], measured: Mapping[str, Ratio]) -> int:
    """Print the ratios that are worse, and return the exit status."""
    worse = baseline.find_worse(committed, measured)
    for name in worse:
        print(f"{name}: {baseline.explain(committed[name], measured[name])}", file=sys.stderr)
    counts = f"{len(measured)} ratios measured, {len(committed)} in the baseline"
    print(f"{counts}, {len(worse)} worse by more than a factor of {baseline.FACTOR}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
