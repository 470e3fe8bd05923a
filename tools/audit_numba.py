"""Runs numba-cuda's own tests, from the installed package, on the simulated driver, one process for each file; tests
that did not pass run again alone, since an error of a kernel also ends what comes after it in the process. Those that
still do not pass must be listed with a reason in tools/driver_programs/numba_tests.toml, and no others may be. The
slowest are not run.

python -m tools.audit_numba [--cache build] [FILE …]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from tools.audit_driver import BINDINGS, SIMULATOR, list_versions
from tools.corpus.python_producers.build import PRODUCERS, install

ROOT = Path(__file__).parent.parent
PACKAGES = (
    *PRODUCERS["numba"].packages,
    "cffi==2.0.0",
    "filecheck==1.0.6",
    "psutil==7.1.3",
    "pytest==9.2.0",
    BINDINGS,
    *SIMULATOR,
)
SHOWN = "numba-cuda", "numba", "cuda-bindings"
LISTED = ROOT / "tools" / "driver_programs" / "numba_tests.toml"
SECONDS = 120
"""The limit of one test."""
PROCESSES = 2
LIST = """\
import importlib.util, pathlib
folder = pathlib.Path(importlib.util.find_spec("numba_cuda").origin).parent / "numba" / "cuda" / "tests"
print(*sorted(".".join(path.relative_to(folder).with_suffix("").parts) for path in folder.rglob("test_*.py")))
"""
RUN = """\
import sys, threading, unittest
class Result(unittest.TestResult):
    def startTest(self, test):
        super().startTest(test)
        self.outcome, self.timer = "passed", threading.Timer(SECONDS, self.end, [test])
        self.timer.start()
    def end(self, test):
        print(f"::{test.id()} slow", flush=True)
        import os; os._exit(0)
    def stopTest(self, test):
        self.timer.cancel()
        print(f"::{test.id()} {self.outcome}", flush=True)
    def addError(self, test, error):
        # Of pytest, where it lacks a package.
        self.outcome = "skipped" if error[0].__name__ == "Skipped" else "failed"
        super().addError(test, error)
        if not hasattr(test, "_testMethodName"):
            print(f"::{test.id()} failed", flush=True)
    def addFailure(self, test, error):
        self.outcome = "failed"
    def addSubTest(self, test, subtest, error):
        if error: self.outcome = "failed"
    def addSkip(self, test, reason): self.outcome = "skipped"
    def addExpectedFailure(self, test, error): self.outcome = "expected to fail"
    def addUnexpectedSuccess(self, test): self.outcome = "failed"
def flatten(tests):
    for test in tests:
        yield from flatten(test) if isinstance(test, unittest.TestSuite) else [test]
tests = flatten(unittest.defaultTestLoader.loadTestsFromNames(sys.argv[1:]))
unittest.TestSuite(test for test in tests if not test.id().endswith(OMITTED)).run(Result())
""".replace("SECONDS", str(SECONDS))
"""Runs the tests with these names but for those omitted, and prints the outcome of each."""
PREFIX = "numba.cuda.tests."


def run_tests(python: Path, names: Sequence[str]) -> dict[str, str]:
    """Return the outcomes of tests that run in one process, by their names."""
    program = RUN.replace("OMITTED", repr(tuple(read_omitted())))
    words = [python, "-m", "pyptx", "simulate", "--from-images", "--", python, "-c", program]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.run(
        [*map(str, words), *(PREFIX + name for name in names)], cwd=ROOT / "tools", env=environment,
        capture_output=True, text=True, errors="replace", check=False,
    )  # fmt: skip
    lines = [line.partition("::") for line in process.stdout.splitlines()]
    pairs = [rest.removeprefix(PREFIX).partition(" ") for _, mark, rest in lines if mark]
    return {name: outcome for name, _, outcome in pairs}


def run_file(python: Path, name: str) -> dict[str, str]:
    """Return the outcomes of a file's tests, those of tests that run alone where they did not pass."""
    outcomes = run_tests(python, [name])
    for test, outcome in outcomes.items():
        if outcome in ("failed", "slow") and test.startswith(name):
            outcomes |= run_tests(python, [test])
    return outcomes


def read_listed() -> dict[str, str]:
    """Return the reasons why tests do not pass."""
    return {test: entry["reason"] for entry in _read_entries() for test in entry["names"]}


def read_omitted() -> list[str]:
    """Return the tests that are not run."""
    return [test for entry in _read_entries() if entry.get("omitted") for test in entry["names"]]


def _read_entries() -> list[Any]:
    return tomllib.loads(LISTED.read_text("utf-8"))["tests"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tests of some files, or of all; print the counts, and each test with another outcome than expected."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--cache", type=Path, default=ROOT / "build", help="the folder of the environment")
    options.add_argument("files", nargs="*", metavar="FILE", help="such as cudapy.test_atomics")
    arguments = options.parse_args(argv)
    python = install(arguments.cache / "driver_numba", PACKAGES)
    print(list_versions(python, SHOWN))
    files: list[str] = arguments.files or subprocess.check_output([python, "-c", LIST], text=True).split()
    with ThreadPoolExecutor(PROCESSES) as pool:
        results = list(pool.map(partial(run_file, python), files))
    omitted = {test: "slow" for test in read_omitted() if test.rsplit(".", 2)[0] in files}
    outcomes = omitted | {test: outcome for result in results for test, outcome in result.items()}
    listed = read_listed()
    counts = Counter("listed" if test in listed else outcome for test, outcome in outcomes.items())
    print(f"{len(files)} files, {len(outcomes)} tests: {json.dumps(counts)[1:-1].replace(chr(34), '')}")
    for reason, count in Counter(listed[test] for test in outcomes if test in listed).items():
        print(f"{count} listed: {reason}")
    wrong = {test: outcome for test, outcome in outcomes.items() if (outcome in ("failed", "slow")) != (test in listed)}
    for test, outcome in sorted(wrong.items()):
        print(f"{test}: {outcome}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
