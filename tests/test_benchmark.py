"""Benchmarks on the simulated driver, whose times are counts of instructions: what is timed, and in which order."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

import pyptx.driver
from pyptx.benchmark import Comparison, Times, compare, count_pauses, measure
from pyptx.runtime.bindings import CallError, call, in_context
from pyptx.runtime.launching import launch
from tests.runtime.device_memory import DeviceMemory
from tests.runtime.test_calls import A, add_scaled
from tests.runtime.test_launching import plan_call


@pytest.fixture(autouse=True)
def driver() -> Generator[None]:
    """Make the simulated driver that of this process."""
    pyptx.driver.activate(check="none")
    yield
    pyptx.driver.deactivate()


class Add:
    """Submits additions of vectors, and counts them."""

    def __init__(self, size: int, stream: int = 0) -> None:
        memory = DeviceMemory()
        self.arrays = {name: memory.put(A[:size]) for name in "abc"}
        self.plan, self.stream, self.count = plan_call(add_scaled, (size,), (size,), scale=2.0), stream, 0

    def __call__(self) -> None:
        self.count += 1
        launch(self.plan, self.arrays, stream=self.stream)


def make_stream() -> int:
    """Return a new stream."""
    with in_context(0):
        return int(call("cuStreamCreate", 1))


@pytest.mark.parametrize("flush", [False, True])
def test_a_function_runs_and_is_timed(flush: bool) -> None:
    work = Add(1000)
    times = measure(work, runs=5, warmup=2, flush=flush)
    assert work.count == 7
    assert len(times.runs) == 5
    assert len({*times.runs}) == 1
    assert times.median > 0
    assert times.is_simulated


def test_functions_are_timed_in_turns() -> None:
    order: list[str] = []

    def note(name: str) -> None:
        order.append(name)

    comparison = compare({"a": lambda: note("a"), "b": lambda: note("b")}, runs=2, warmup=1)
    assert order == ["a", "b"] * 3
    assert comparison.reference == "b"


def test_a_gpu_is_busy_for_longer_than_the_host_needs() -> None:
    assert count_pauses(0.4, 0.04, flush=True) == 16  # 1.5 * (0.4 + 0.02) / 0.04
    assert count_pauses(0.0, 1.0, flush=True) == count_pauses(0.0, 1.0, flush=False) == 1
    assert count_pauses(1000.0, 0.03, flush=True) == 200
    assert [count_pauses(0.4, 0.0, flush=flush) for flush in (True, False)] == [1, 0]  # the simulated driver


def test_more_work_takes_longer() -> None:
    comparison = compare({"small": Add(128), "large": Add(1000)}, runs=2)
    assert comparison.ratio("large") == 1
    assert comparison.ratio("small") > 2


def test_a_graph_runs_the_captured_work() -> None:
    stream = make_stream()
    work = Add(1000, stream)
    alone = measure(work, runs=1, warmup=0, stream=stream)
    captured = measure(work, runs=3, warmup=1, graph=True, stream=stream)
    assert work.count == 3  # the run alone, and two for the capture
    assert captured.runs == alone.runs * 3


def test_memory_and_graphs_are_freed() -> None:
    stream = make_stream()
    work = Add(128, stream)
    with in_context(0):
        before = call("cuMemGetInfo")
        measure(work, runs=1, graph=True, stream=stream)
        assert call("cuMemGetInfo") == before


def test_a_failing_function_ends_the_capture() -> None:
    stream = make_stream()
    calls = iter([None, ValueError("mine")])

    def fail() -> None:
        error = next(calls)
        if error is not None:
            raise error

    with pytest.raises(ValueError, match="mine"):
        measure(fail, graph=True, stream=stream)
    assert not call("cuStreamIsCapturing", stream)


def test_a_function_that_cannot_be_captured_has_its_own_error() -> None:
    stream = make_stream()
    with pytest.raises(CallError, match="cuStreamSynchronize returned CUDA_ERROR_STREAM_CAPTURE"):
        measure(lambda: call("cuStreamSynchronize", stream), graph=True, stream=stream)
    assert not call("cuStreamIsCapturing", stream)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"runs": 0}, "at least one run"),
    ({"warmup": -1}, "no negative warm-up"),
    ({"graph": True}, "a default stream cannot be captured"),
]


@pytest.mark.parametrize(("options", "message"), WRONG, ids=[message for _, message in WRONG])
def test_what_cannot_be_measured_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        measure(lambda: None, **options)
    with pytest.raises(ValueError, match="at least one function"):
        compare({})


def test_times_are_shown_with_their_spread() -> None:
    times = Times(tuple(range(1, 12)))
    assert (times.median, times.spread) == (6, (2, 10))
    assert str(times) == "6000.00 µs, 2000.00 to 10000.00 in 11 runs"
    assert Times((3.0,)).spread == (3.0, 3.0)
    assert str(Times((3.0,), is_simulated=True)) == "3 (simulated: not a time), 3 to 3 in 1 run"
    assert (times.gigabytes(6e9), times.teraflops(12e12)) == (1000, 2000)
    comparison = Comparison({"mine": Times((1.0,)), "theirs": Times((2.0,))})
    assert str(comparison) == (
        "mine     2.000x  1000.00 µs, 1000.00 to 1000.00 in 1 run\n"
        "theirs   1.000x  2000.00 µs, 2000.00 to 2000.00 in 1 run"
    )
