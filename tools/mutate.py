"""Breaks random lines of the package, one at a time, and counts how many of these mutants the tests detect.

python -m tools.mutate [--seed N] [--count N] [PATH ...]      for example: python -m tools.mutate --count 20 pyptx/check

Draws a line, then a change to it: an operator, a constant, a condition, a result, a statement. Runs the tests that
execute the statement on a copy of the tree, first those of the file named after the module; build/mutation caches
which tests these are, and the outcomes, until the package or a test changes. Prints each mutant that no test detects,
unless tools/mutation/equivalent.toml says why none can. A hang counts as detected.
"""

from __future__ import annotations

import argparse
import json
import queue
import random
import subprocess
import sys
import tempfile
import threading
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.mutation import coverage
from tools.mutation.coverage import Coverage, Measurement
from tools.mutation.mutants import Mutant, mutants
from tools.mutation.trees import HUNG, Tree, copy_tree
from tools.mutation.verdicts import Store, Verdict, digest_sources

ROOT = Path(__file__).parent.parent
LEAST = 0.95
FIRST_SECONDS, FIRST_FILES = 15.0, 5
"""Limits of the first run, before the many files that also execute a central line are collected."""
PATIENCE = 30.0
OUTCOMES = ("killed", "hung", "survived", "never run", "equivalent")
_UNNOTICED = ("survived", "never run")


@dataclass(frozen=True)
class Equivalent:
    """A change that no test can detect: its place and the reason. `before` and `after` are whole lines."""

    path: str
    function: str
    before: str
    after: str
    reason: str


def read_equivalents(path: Path) -> list[Equivalent]:
    """Return the list of equivalent mutants."""
    document = tomllib.loads(path.read_text("utf-8")) if path.exists() else {}
    return [Equivalent(**entry) for entry in document.get("equivalent", ())]


def draw(mutants: Iterable[Mutant], count: int, seed: int) -> list[Mutant]:
    """Return mutants of `count` lines, chosen evenly among the lines that can be changed."""
    lines: dict[tuple[str, int], list[Mutant]] = {}
    for mutant in mutants:
        lines.setdefault((mutant.path, mutant.line), []).append(mutant)
    chance = random.Random(seed)
    return [chance.choice(lines[place]) for place in chance.sample(sorted(lines), min(count, len(lines)))]


@dataclass(frozen=True)
class Limits:
    """Seconds of tests per mutant, then per survivor of these, and seconds beyond its usual time after which a test
    counts as hung."""

    budget: float = 100.0
    survivor_budget: float = 0.0
    patience: float = PATIENCE


def judge(tree: Tree, mutant: Mutant, test_coverage: Coverage, limits: Limits) -> Verdict:
    """Run the tests that may detect a mutant, as many as the budget allows, until one fails."""
    candidates = test_coverage.rank_tests(mutant.point)
    if not candidates:
        return Verdict(mutant, "never run")
    first = _within(candidates, FIRST_SECONDS, FIRST_FILES)
    remainder = _within([test for test in candidates if test not in set(first)], limits.budget, len(candidates))
    file = tree.root / mutant.path
    source = file.read_text("utf-8")
    file.write_text(mutant.apply(source), "utf-8")
    try:
        for tests in (first, remainder):
            status, failures = _run(tree, tests, test_coverage, limits.patience, ["-x"]) if tests else (0, [])
            if status:
                return Verdict(mutant, "hung" if status == HUNG else "killed", "".join(failures[:1]))
    finally:
        file.write_text(source, "utf-8")
    tests_run = f"{len(first) + len(remainder):,} of {len(candidates):,} tests"
    return Verdict(mutant, "survived", tests_run, limits.budget)


def _within(tests: Sequence[Measurement], seconds: float, files: int) -> list[Measurement]:
    selection: list[Measurement] = []
    names = set[str]()
    for test in tests:
        if test.seconds <= seconds and (test.file in names or len(names) < files):
            selection.append(test)
            names.add(test.file)
            seconds -= test.seconds
    return selection


def _run(
    tree: Tree, tests: Sequence[Measurement], test_coverage: Coverage, patience: float, arguments: Sequence[str]
) -> tuple[int, list[str]]:
    """Run tests in this order; return the exit status and the names of the failed ones."""
    limits = {test.name: patience + 5 * test.seconds for test in tests}
    selection = tree.folder / "selection.json"
    selection.write_text(json.dumps({"limits": limits, "known": test_coverage.all_names}), "utf-8")
    files = dict.fromkeys(test.file for test in tests)
    seconds = 300 + sum(limits.values())
    status = tree.run([*arguments, *files], {"MUTATION_SELECT": str(selection)}, seconds)
    failures = selection.with_suffix(".failed").read_text("utf-8").splitlines()
    return status, [str(json.loads(line)) for line in failures]


def judge_survivors(
    verdicts: Sequence[Verdict],
    trees: Sequence[Tree],
    test_coverage: Coverage,
    limits: Limits,
    store: Store | None = None,
) -> list[Verdict]:
    """Test survivors again with the larger budget, if tests are left."""
    open_verdicts = [
        verdict
        for verdict in verdicts
        if verdict.outcome == "survived"
        and sum(test.seconds for test in test_coverage.rank_tests(verdict.mutant.point)) > limits.budget
    ]
    if limits.survivor_budget <= limits.budget or not open_verdicts:
        return list(verdicts)
    mutants = [verdict.mutant for verdict in open_verdicts]
    final = judge_all(mutants, trees, test_coverage, Limits(limits.survivor_budget, patience=limits.patience), store)
    return [*(verdict for verdict in verdicts if verdict not in open_verdicts), *final]


def confirm(
    verdicts: Sequence[Verdict], trees: Sequence[Tree], test_coverage: Coverage, limits: Limits
) -> list[Verdict]:
    """Run the tests that killed mutants on the unmodified tree, and discount those that fail there."""
    killers = {verdict.detail for verdict in verdicts if verdict.outcome == "killed"}
    tests = [test for test in test_coverage.tests if test.name in killers]
    _, failures = _run(trees[0], tests, test_coverage, limits.patience, []) if tests else (0, [])
    if not set(failures) & killers:
        return list(verdicts)
    print(f"fail on the unmodified tree: {', '.join(failures)}", file=sys.stderr)
    test_coverage.failures |= set(failures)
    doubtful = [verdict for verdict in verdicts if verdict.detail in test_coverage.failures]
    corrections = judge_all([verdict.mutant for verdict in doubtful], trees, test_coverage, limits)
    return confirm(
        [*(verdict for verdict in verdicts if verdict not in doubtful), *corrections], trees, test_coverage, limits
    )


def judge_all(
    sample: Sequence[Mutant], trees: Sequence[Tree], test_coverage: Coverage, limits: Limits, store: Store | None = None
) -> list[Verdict]:
    """Test mutants, one at a time in each tree, except those whose verdicts are stored."""
    waiting = queue.SimpleQueue[Mutant]()
    for mutant in sample:
        waiting.put(mutant)
    verdicts: list[Verdict] = []

    def drain(tree: Tree) -> None:
        while True:
            try:
                mutant = waiting.get_nowait()
            except queue.Empty:
                return
            verdict = None if store is None else store.find(mutant, limits.budget)
            if verdict is None:
                verdict = judge(tree, mutant, test_coverage, limits)
                if store is not None:
                    store.add(verdict)
            verdicts.append(verdict)
            print(f"{len(verdicts)}/{len(sample)} {_describe_verdict(verdict)}", file=sys.stderr, flush=True)

    threads = [threading.Thread(target=drain, args=[tree]) for tree in trees]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(verdicts) != len(sample):
        raise SystemExit("a worker stopped before its last mutant: see above")
    return verdicts


def _describe_verdict(verdict: Verdict) -> str:
    mutant = verdict.mutant
    place = f"{mutant.path}:{mutant.line} {mutant.point.function or 'module'}, {mutant.change}"
    return f"{verdict.outcome}: {place} ({verdict.detail or 'no test'})\n    {mutant.before}\n    {mutant.after}"


def report(verdicts: Sequence[Verdict]) -> float:
    """Print the survivors and the counts of each package; return the share that was detected."""
    for verdict in sorted(verdicts, key=lambda verdict: (verdict.mutant.path, verdict.mutant.start)):
        if verdict.outcome in _UNNOTICED:
            print(_describe_verdict(verdict))
    counts: dict[str, Counter[str]] = {}
    for verdict in verdicts:
        for name in (_package(verdict.mutant.path), "all"):
            counts.setdefault(name, Counter())[verdict.outcome] += 1
    print(f"\n{'package':16}{'mutants':>9}" + "".join(f"{word:>12}" for word in OUTCOMES) + f"{'noticed':>10}")
    rate = 1.0
    for name in (*sorted(counts.keys() - {"all"}), "all"):
        total, row = sum(counts[name].values()), counts[name]
        decisive = total - row["equivalent"]
        rate = (row["killed"] + row["hung"]) / decisive if decisive else 1.0
        print(f"{name:16}{total:9}" + "".join(f"{row[word]:12}" for word in OUTCOMES) + f"{rate:10.1%}")
    return rate


def _package(path: str) -> str:
    """Return the part of the package that a file belongs to; each package of the simulator is a part."""
    parts = path.split("/")[1:]
    return "/".join(parts[:2]) if parts[0] == "sim" and len(parts) > 2 else parts[0].removesuffix(".py")


def _commit(root: Path) -> str:
    words = ["git", "-C", str(root), "rev-parse", "HEAD"]
    process = subprocess.run(words, capture_output=True, text=True, check=False)
    return process.stdout.strip()


def main(argv: list[str] | None = None) -> int:
    """Draw mutants, test them, print the report; exit 1 below 95% or if an entry of the list is out of date."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", metavar="PATH", help="only files below these")
    parser.add_argument("--seed", type=int, help="seed for the draw (default: from the package and the tests)")
    parser.add_argument("--count", type=int, default=200, help="number of mutants (default: 200)")
    parser.add_argument("--jobs", type=int, default=2, help="copies of the tree to run tests in (default: 2)")
    parser.add_argument("--budget", type=float, default=100, help="seconds of tests per mutant (default: 100)")
    parser.add_argument(
        "--survivor-budget", type=float, default=0, help="seconds of tests per survivor, in a second round"
    )
    parser.add_argument("--measure", action="store_true", help="measure again which tests run which statements")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    parser.add_argument("--package", default="pyptx", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    root: Path = options.root
    commit = _commit(root)
    digest = digest_sources(root, options.package)
    store = Store(root / "build" / "mutation" / "verdicts.pickle", digest)
    seed: int = int(digest[:8], 16) if options.seed is None else options.seed
    sources = {
        path.relative_to(root).as_posix(): path.read_text("utf-8") for path in (root / options.package).rglob("*.py")
    }
    population = [mutant for path in sorted(sources) for mutant in mutants(path, sources[path])]
    equivalents = read_equivalents(root / "tools" / "mutation" / "equivalent.toml")
    prefixes = tuple(path.rstrip("/") for path in options.paths)
    candidates = [
        m
        for m in population
        if not prefixes or any(m.path == path or m.path.startswith(f"{path}/") for path in prefixes)
    ]
    sample = draw(candidates, options.count, seed)
    print(f"commit {commit or 'none'}, seed {seed}, {len(sample)} of {len(candidates):,} mutants")
    identities = {(item.path, item.function, item.before, item.after) for item in equivalents}
    equivalent_sample = [mutant for mutant in sample if _identity(mutant) in identities]
    limits = Limits(options.budget, options.survivor_budget)
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        trees = [copy_tree(root, Path(folder) / str(job), options.package) for job in range(options.jobs)]
        test_coverage = _load_coverage(root, trees, afresh=options.measure)
        open_sample = [mutant for mutant in sample if mutant not in set(equivalent_sample)]
        verdicts = judge_all(open_sample, trees, test_coverage, limits, store)
        verdicts = judge_survivors(verdicts, trees, test_coverage, limits, store)
        verdicts = confirm(verdicts, trees, test_coverage, limits)
    rate = report([*verdicts, *(Verdict(mutant, "equivalent") for mutant in equivalent_sample)])
    obsolete = sorted(identities - {_identity(mutant) for mutant in population})
    for path, function, before, after in obsolete:
        print(f"no longer a mutant, remove it from the list: {path} {function}\n    {before}\n    {after}")
    return 1 if rate < LEAST or obsolete else 0


def _identity(mutant: Mutant) -> tuple[str, str, str, str]:
    return mutant.path, mutant.point.function, mutant.before, mutant.after


def _load_coverage(root: Path, trees: Sequence[Tree], *, afresh: bool) -> Coverage:
    store = root / "build" / "mutation" / "map.pickle"
    test_map = coverage.TestMap() if afresh else coverage.load(store)
    while files := coverage.stale(test_map, root):
        coverage.measure(test_map, files, trees, store)
    test_coverage = Coverage(test_map)
    exclude_failures(trees[0], test_coverage)
    return test_coverage


def exclude_failures(tree: Tree, test_coverage: Coverage) -> None:
    """Run the tests that did not pass while they were measured, and exclude those that fail without measuring."""
    doubtful = [test for test in test_coverage.tests if not test.has_passed]
    if doubtful:
        status, failures = _run(tree, doubtful, test_coverage, PATIENCE, [])
        test_coverage.failures |= {test.name for test in doubtful} if status == HUNG else set(failures)


if __name__ == "__main__":
    sys.exit(main())
