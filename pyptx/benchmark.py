"""Times work on a GPU by events: cold L2 cache, in turns with what it is compared with, alone or inside a CUDA graph.

The host's time is left out: the GPU is kept busy until a run has been submitted.

Knows functions that submit work to a stream, not what they submit.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from pyptx.diagnostics import format_count
from pyptx.driver import is_active
from pyptx.runtime.bindings import CallError, call, in_context, load_api
from pyptx.runtime.streams import read_stream

__all__ = ["Comparison", "Times", "compare", "measure"]

Work = Callable[[], object]
"""Submits work to the stream that is measured."""
_L2_FACTOR = 2
_LEAST_FLUSH = 1 << 20
_PAUSES, _MOST_PAUSES, _RESERVE, _EVENTS = 5, 200, 1.5, 0.02
"""How often the time of overwriting memory is measured, how often it is done at most, how many times longer than the
host needs, and the milliseconds that the host needs for two events."""


@dataclass(frozen=True, slots=True)
class Times:
    """The time of each run in milliseconds. On the simulated driver it is a count of instructions."""

    runs: tuple[float, ...]
    is_simulated: bool = False

    @property
    def median(self) -> float:
        """The median."""
        return statistics.median(self.runs)

    @property
    def spread(self) -> tuple[float, float]:
        """The 10th and the 90th percentile."""
        if len(self.runs) == 1:
            return self.runs[0], self.runs[0]
        cuts = statistics.quantiles(self.runs, n=10, method="inclusive")
        return cuts[0], cuts[-1]

    def gigabytes(self, count: float) -> float:
        """Return the gigabytes per second of runs that move so many bytes."""
        return count / self.median / 1e6

    def teraflops(self, count: float) -> float:
        """Return the TFLOP/s of runs that make so many floating-point operations."""
        return count / self.median / 1e9

    def __str__(self) -> str:
        low, high = self.spread
        count = format_count("run", len(self.runs))
        if self.is_simulated:
            return f"{self.median:.6g} (simulated: not a time), {low:.6g} to {high:.6g} in {count}"
        return f"{self.median * 1e3:.2f} µs, {low * 1e3:.2f} to {high * 1e3:.2f} in {count}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Times by name; the last one is what the others are compared with."""

    times: Mapping[str, Times]

    @property
    def reference(self) -> str:
        """The name of what the others are compared with."""
        return [*self.times][-1]

    def ratio(self, name: str) -> float:
        """Return how many times faster a function is than the reference, by medians."""
        return self.times[self.reference].median / self.times[name].median

    def __str__(self) -> str:
        width = max(map(len, self.times))
        lines = [f"{name:{width}}  {self.ratio(name):6.3f}x  {times}" for name, times in self.times.items()]
        return "\n".join(lines)


def measure(
    work: Work, *, runs: int = 30, warmup: int = 3, flush: bool = True, graph: bool = False, stream: Any = 0,
    device: int = 0,
) -> Times:  # fmt: skip
    """Time a function that submits work to a stream. With `flush`, the L2 cache is overwritten before each run. With
    `graph`, the work is captured once and then launched as a graph, which leaves out what the host needs to submit
    it; the default stream cannot be captured."""
    comparison = compare(
        {"work": work}, runs=runs, warmup=warmup, flush=flush, graph=graph, stream=stream, device=device
    )
    return comparison.times["work"]


def compare(
    works: Mapping[str, Work], *, runs: int = 30, warmup: int = 3, flush: bool = True, graph: bool = False,
    stream: Any = 0, device: int = 0,
) -> Comparison:  # fmt: skip
    """Time several functions in turns, so that changes of the clock meet all of them. The last is the reference."""
    if not works or runs < 1 or warmup < 0:
        raise ValueError("expected at least one function, at least one run, and no negative warm-up")
    handle = read_stream(stream)
    if graph and handle in (0, 1, 2):
        raise ValueError("a default stream cannot be captured: pass stream=, another one")
    times: dict[str, list[float]] = {name: [] for name in works}
    captured = _make_graphs(works, handle) if graph else _keep(works)
    with in_context(device), captured as submit, _overwriting(flush, device, handle) as overwrite:
        host: dict[str, list[float]] = {name: [] for name in submit}
        for name, work in [*submit.items()] * warmup:
            host[name].append(_time_host(work))
        pause = 0.0 if is_active() else min(_time(overwrite, handle) for _ in range(_PAUSES))
        for _ in range(runs):
            for name, work in submit.items():
                for _ in range(count_pauses(min(host[name], default=0.0), pause, flush=flush)):
                    overwrite()
                times[name].append(_time(work, handle))
    return Comparison({name: Times(tuple(values), is_active()) for name, values in times.items()})


def _time_host(work: Work) -> float:
    """Return the milliseconds that the host needs to submit some work."""
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1e3


def count_pauses(host: float, pause: float, *, flush: bool) -> int:
    """Return how often to overwrite memory before a run, so that the GPU is busy until the host has submitted the run:
    else it would wait for the host between the events."""
    count = math.ceil(_RESERVE * (host + _EVENTS) / pause) if pause else 0
    return min(max(count, int(flush)), _MOST_PAUSES)


def _time(work: Work, stream: int) -> float:
    """Return the milliseconds between two events around some work."""
    flags = load_api().CUevent_flags.CU_EVENT_DEFAULT
    start, end = call("cuEventCreate", flags), call("cuEventCreate", flags)
    try:
        call("cuEventRecord", start, stream)
        work()
        call("cuEventRecord", end, stream)
        call("cuEventSynchronize", end)
        return float(call("cuEventElapsedTime", start, end))
    finally:
        call("cuEventDestroy", start)
        call("cuEventDestroy", end)


@contextmanager
def _keep(works: Mapping[str, Work]) -> Generator[Mapping[str, Work]]:
    yield works


@contextmanager
def _make_graphs(works: Mapping[str, Work], stream: int) -> Generator[Mapping[str, Work]]:
    """Capture each function's work; yield functions that launch the graphs."""
    mode = load_api().CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
    executables: dict[str, Any] = {}
    try:
        for name, work in works.items():
            work()  # loads modules and creates what a capture forbids
            call("cuStreamBeginCapture", stream, mode)
            with ExitStack() as stack:
                stack.callback(_drop_capture, stream)
                work()
                stack.pop_all()
                graph = call("cuStreamEndCapture", stream)
                stack.callback(call, "cuGraphDestroy", graph)
                executables[name] = call("cuGraphInstantiate", graph, 0)
        yield {name: _make_launch(executable, stream) for name, executable in executables.items()}
    finally:
        for executable in executables.values():
            call("cuGraphExecDestroy", executable)


def _drop_capture(stream: int) -> None:
    """End a capture in which something failed, which may have made it invalid."""
    with suppress(CallError):
        call("cuGraphDestroy", call("cuStreamEndCapture", stream))


def _make_launch(executable: Any, stream: int) -> Work:
    return lambda: call("cuGraphLaunch", executable, stream)


@contextmanager
def _overwriting(flush: bool, device: int, stream: int) -> Generator[Callable[[], object]]:
    """Yield a function that overwrites memory: with `flush` more than the L2 cache holds."""
    attribute = load_api().CUdevice_attribute.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE
    size = max(_LEAST_FLUSH, _L2_FACTOR * int(call("cuDeviceGetAttribute", attribute, device))) if flush else 1
    address = call("cuMemAlloc", size)
    try:
        yield lambda: call("cuMemsetD8Async", address, 0, size, stream)
    finally:
        call("cuMemFree", address)
