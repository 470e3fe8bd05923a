"""A pytest plugin that records the statements each test executes, or runs a list of tests in order.

It is copied next to the trees that it works on, and must import nothing of this project except the array of hits.
"""

from __future__ import annotations

import importlib
import json
import os
import pickle
import resource
import threading
import time
import zlib
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

RECORD, SELECT = "MUTATION_RECORD", "MUTATION_SELECT"
HUNG = 124
COLLECTION_SECONDS = 240.0
MEMORY = 12 << 30
"""Limit of a run's address space, in bytes: a mutated size must not exhaust the machine."""


class Recorder:
    """Writes, for each test of a session, its time in seconds, its outcome and the statements it executed."""

    def __init__(self, output: Path) -> None:
        # It exists only in instrumented copies.
        self.hits: Any = importlib.import_module("mutation_hits").memory
        self.output = output
        self.import_hits: bytes | None = None
        self.outcomes: dict[str, str] = {}
        self.tests: dict[str, tuple[float, bytes]] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        if self.import_hits is None:
            self.import_hits = zlib.compress(self.hits[:])
        self.hits[:] = bytes(len(self.hits))
        start = time.perf_counter()
        result = yield
        self.tests[item.nodeid] = (time.perf_counter() - start, zlib.compress(self.hits[:]))
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome != "passed":
            self.outcomes[report.nodeid] = report.outcome

    def pytest_sessionfinish(self) -> None:
        import_hits = self.import_hits or zlib.compress(self.hits[:])
        tests = {name: (*timings, self.outcomes.get(name, "passed")) for name, timings in self.tests.items()}
        self.output.write_bytes(pickle.dumps((import_hits, tests)))


class Selector:
    """Runs the tests of a list in order, then those not in the list, and writes which fail; a test that exceeds its
    time limit ends the process."""

    def __init__(self, path: Path) -> None:
        self.failures = path.with_suffix(".failed")
        self.failures.write_text("", "utf-8")
        selection = json.loads(path.read_text("utf-8"))
        self.limits: dict[str, float] = dict(selection["limits"])
        self.names: set[str] = set(selection["known"])
        self.longest = max(self.limits.values(), default=60.0)
        self.watchdog = _watchdog(COLLECTION_SECONDS)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        order = {name: place for place, name in enumerate(self.limits)}
        selection = [item for item in items if item.nodeid in order or item.nodeid not in self.names]
        items[:] = sorted(selection, key=lambda item: order.get(item.nodeid, len(order)))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        self.watchdog.cancel()
        self.watchdog = _watchdog(self.limits.get(item.nodeid, self.longest))
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._note(report)

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.failed:
            with self.failures.open("a", encoding="utf-8") as file:
                file.write(json.dumps(report.nodeid) + "\n")

    def pytest_sessionfinish(self) -> None:
        self.watchdog.cancel()


def _watchdog(seconds: float) -> threading.Timer:
    timer = threading.Timer(seconds, os._exit, [HUNG])
    timer.daemon = True
    timer.start()
    return timer


def pytest_configure(config: pytest.Config) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    if RECORD in os.environ:
        config.pluginmanager.register(Recorder(Path(os.environ[RECORD])), "mutation-recorder")
    if SELECT in os.environ:
        config.pluginmanager.register(Selector(Path(os.environ[SELECT])), "mutation-selector")
