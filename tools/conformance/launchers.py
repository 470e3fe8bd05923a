"""Runs cases on a GPU: ptxas assembles batches in parallel, and child processes launch them. A case that faults, hangs
or is rejected by ptxas has no results; the others do."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, cast

from pyptx.diagnostics import PtxError
from pyptx.isa.targets import Target, Version
from pyptx.toolchain import assemble
from tools.conformance.device import Device, Load, NoGpuError, serve
from tools.conformance.forms import Array, Case
from tools.conformance.modules import batches, module

Outcomes = dict[Case, Array | str]
"""The results of each case, or the reason why it has none."""
LAUNCHERS = 2
"""Processes that launch at the same time."""
_SECONDS_TO_START = 120.0


@dataclass(frozen=True)
class Limits:
    """Seconds that launches may take, with some for each case, and the time after which nothing is launched."""

    launch: float = 10.0
    case: float = 0.2
    deadline: float = float("inf")


class Launcher:
    """A child process that launches cases; another one takes its place when it ends."""

    def __init__(self, simulated: str | None, seed: int) -> None:
        self.simulated, self.seed = simulated, seed
        self.device = self._start()

    def run(self, load: Load, limits: Limits) -> Outcomes:
        """Return the outcomes of the cases of a cubin. When they fail together, each is launched alone."""
        if time.monotonic() > limits.deadline:
            return {}
        cases = [case for _, case in load.cases]
        with suppress(OSError):
            self.connection.send(load)
        reply = self._receive(limits.launch + limits.case * len(cases))
        if isinstance(reply, list):
            return dict(zip(cases, cast("list[Array]", reply), strict=True))
        self.stop()
        self._start()
        if len(cases) == 1:
            return {cases[0]: str(reply)}
        outcomes: Outcomes = {}
        for entry in load.cases:
            outcomes |= self.run(Load(load.cubin, (entry,)), limits)
        return outcomes

    def stop(self) -> None:
        """End the process."""
        with suppress(OSError):
            self.connection.send(None)
        self.process.join(1)
        self.process.kill()
        self.process.join(30)
        self.connection.close()

    def _start(self) -> Device:
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        self.process = context.Process(target=serve, args=(other, self.simulated, self.seed), daemon=True)
        self.process.start()
        other.close()
        device = self._receive(_SECONDS_TO_START)
        if not isinstance(device, Device):
            self.stop()
            raise NoGpuError(device)
        return device

    def _receive(self, seconds: float) -> Any:  # noqa: ANN401
        """Return what the process sends, or the reason why it sends nothing."""
        try:
            return self.connection.recv() if self.connection.poll(seconds) else f"no answer within {seconds:g} s"
        except (EOFError, OSError):
            self.process.join(5)
            return f"its process ended with status {self.process.exitcode}"


@contextmanager
def open_launchers(simulated: str | None, seed: int) -> Generator[list[Launcher]]:
    """Start processes on the first GPU, or with a simulated driver, and end them. NoGpuError if there is no GPU."""
    count = min(LAUNCHERS, os.cpu_count() or 1)
    with ThreadPoolExecutor(count) as pool:
        launchers = list(pool.map(Launcher, [simulated] * count, [seed] * count))
    try:
        yield launchers
    finally:
        for launcher in launchers:
            launcher.stop()


def run(launchers: list[Launcher], cases: list[Case], limits: Limits) -> Outcomes:
    """Return the outcomes of the cases that are for the GPU of the launchers."""
    device, is_simulated = launchers[0].device, launchers[0].simulated is not None
    count_of = Counter(case.opcode for case in cases)
    eligible = [case for case in cases if case.target.arch == device.arch]
    # If time runs out, opcodes with many forms lack some.
    eligible.sort(key=lambda case: count_of[case.opcode])
    outcomes: Outcomes = {}
    with ThreadPoolExecutor(os.cpu_count()) as assemblers, ThreadPoolExecutor(len(launchers)) as pool:
        pending = iter([assemblers.submit(_assemble, *batch, lineinfo=is_simulated) for batch in batches(eligible)])
        for work in [pool.submit(_launch_pending, launcher, pending, limits, outcomes) for launcher in launchers]:
            work.result()
    return {case: outcomes.get(case, "not run: no time or no GPU was left") for case in eligible}


@dataclass(frozen=True)
class _Batch:
    """Cubins to load, and cases that ptxas rejects with its reasons."""

    loads: list[Load] = field(default_factory=list[Load])
    rejected: dict[Case, str] = field(default_factory=dict[Case, str])


def _launch_pending(launcher: Launcher, pending: Iterator[Future[_Batch]], limits: Limits, outcomes: Outcomes) -> None:
    """Launch batches that no other launcher has taken, until none is left or the GPU is lost."""
    with suppress(NoGpuError):
        for future in pending:
            batch = future.result()
            outcomes.update(batch.rejected)
            for load in batch.loads:
                outcomes.update(launcher.run(load, limits))


def _assemble(target: Target, version: Version, cases: list[Case], *, lineinfo: bool) -> _Batch:
    """Return a cubin of all cases; where ptxas rejects some, cubins of parts without them. `lineinfo` keeps the PTX."""
    try:
        cubin = assemble(module(target, version, cases), target.name, lineinfo=lineinfo).data
    except PtxError as why:
        if len(cases) == 1:
            return _Batch(rejected={cases[0]: f"not assembled: {str(why).splitlines()[0]}"})
        middle = len(cases) // 2
        parts = [_assemble(target, version, half, lineinfo=lineinfo) for half in (cases[:middle], cases[middle:])]
        return _Batch([*parts[0].loads, *parts[1].loads], parts[0].rejected | parts[1].rejected)
    return _Batch([Load(cubin, tuple((f"c{number}", case) for number, case in enumerate(cases)))])
