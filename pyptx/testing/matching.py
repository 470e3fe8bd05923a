"""Compares a kernel with a reference over shapes, schedules and seeds, and shrinks what fails."""

from __future__ import annotations

import inspect
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from pyptx.decorator import Kernel
from pyptx.diagnostics import format_count, hide_frames
from pyptx.runtime.agreement import check_tolerances
from pyptx.sim.launch.processes import call_in_order
from pyptx.sim.rules.faults import LAUNCH_SHAPE
from pyptx.sim.scheduling.schedules import SCHEDULES, SEEDS
from pyptx.testing.requests import Shapes, check_choice, check_keywords, check_steps, list_orders, list_shapes
from pyptx.testing.trials import Failure, Inputs, Reference, Subject, Trial, run_trial, save_timeline

_TIMELINES: ContextVar[Path | None] = ContextVar("timelines", default=None)


@dataclass(frozen=True, slots=True)
class Match:
    """What a comparison covered."""

    kernel: str
    shapes: int
    orders: int
    runs: int

    def __str__(self) -> str:
        shapes, orders = format_count("shape", self.shapes), format_count("order", self.orders)
        return f"{self.kernel}: equal to the reference at {shapes} in {orders}, {format_count('run', self.runs)}"


class MismatchError(AssertionError):
    """A kernel that differs from its reference, or whose run had an error; `trial` reproduces it."""

    def __init__(self, text: str, trial: Trial, failure: Failure) -> None:
        super().__init__(text)
        self.trial, self.failure = trial, failure


@hide_frames
def assert_matches(
    kernel: Kernel,
    reference: Reference,
    *,
    shapes: Shapes = ({},),
    schedules: str | Sequence[str] = SCHEDULES,
    seeds: int | Sequence[int] = SEEDS,
    inputs: Inputs | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    check: str = "all",
    multiple_of: Mapping[str, int] | None = None,
    data_seed: int = 0,
    executor: Executor | None = None,
    processes: int | None = None,
    **keywords: Any,
) -> Match:
    """Run a kernel on the simulator at every shape in every order, and compare its outputs with `reference(*inputs)`.
    Raise an AssertionError with the smallest failing shape and the simplest failing order.

    `shapes` are mappings of the shape variables, or one mapping of each variable to its values. `multiple_of` lets a
    failure shrink below these shapes: each named variable may take any multiple of its number.

    `inputs(generator, shape)` makes the inputs. By default they are normally distributed numbers, and integers from
    -100 to 100. Floating-point results may differ by `rtol` times the expected value plus `atol`, by default two units
    in the last place (one in types of less than 16 bits) and 0. All other types are compared exactly. `keywords` are
    template and raw parameters.

    A comparison that takes long continues in copies of this process, one per core, and in at most `processes` of them;
    `processes=1`, or a process with other threads, runs all of it here. An `executor` of `concurrent.futures` runs it
    in other processes or on other machines, where the kernel, the reference and `inputs` must be importable."""
    __tracebackhide__ = True  # for pytest
    subject = Subject(kernel, reference, inputs, keywords, check, rtol, atol)
    check_choice(check)
    check_tolerances(LAUNCH_SHAPE, rtol, atol)
    check_keywords(kernel, keywords, [*inspect.signature(assert_matches).parameters])
    cases = sorted(list_shapes(subject, shapes), key=lambda shape: prod(subject.list_extents(shape)))
    orders = list_orders(schedules, seeds)
    steps = multiple_of or {}
    check_steps(steps, cases)
    trials = [Trial(tuple(shape.items()), *order, data_seed) for shape, order in product(cases, orders)]
    first = _find_failure(subject, trials, executor, processes)
    if first is None:
        return Match(kernel.name, len(cases), len(orders), len(trials))
    trial, failure = _shrink(subject, *first, orders, steps)
    raise MismatchError(_explain(subject, trial, failure), trial, failure)


def _find_failure(
    subject: Subject, trials: Sequence[Trial], executor: Executor | None, processes: int | None
) -> tuple[Trial, Failure] | None:
    """Return the first trial that fails, in the order of the trials wherever they run."""
    with closing(call_in_order(partial(run_trial, subject), trials, executor, processes)) as failures:
        for trial, failure in zip(trials, failures, strict=True):
            if failure is not None:
                return trial, failure
    return None


def _shrink(
    subject: Subject, trial: Trial, failure: Failure, orders: Sequence[tuple[str, int]], steps: Mapping[str, int]
) -> tuple[Trial, Failure]:
    """Return the smallest failing shape that the steps allow, and the first order that fails there."""
    smallest = trial, failure

    def fails(candidate: Trial) -> bool:
        nonlocal smallest
        result = run_trial(subject, candidate)
        if result is None or not failure.resembles(result):
            return False
        smallest = candidate, result
        return True

    for name, step in steps.items():
        passing, failing = 0, -(-dict(smallest[0].shape)[name] // step)
        size = 1
        while size < failing:
            if fails(smallest[0].with_dim(name, size * step)):
                failing = size
            else:
                passing, size = size, 2 * size
        while failing - passing > 1:
            middle = (passing + failing) // 2
            if fails(smallest[0].with_dim(name, middle * step)):
                failing = middle
            else:
                passing = middle
    for schedule, seed in orders:
        candidate = replace(smallest[0], schedule=schedule, seed=seed)
        if candidate == smallest[0] or fails(candidate):
            break
    return smallest


def _explain(subject: Subject, trial: Trial, failure: Failure) -> str:
    name = subject.kernel.name
    shapes = "{" + ", ".join(f"{dim!r}: {extent}" for dim, extent in trial.shape) + "}"
    data = f", data_seed={trial.data_seed}" if trial.data_seed else ""
    lines = [
        f"{name} at {trial}:",
        failure.text,
        f"to repeat: assert_matches({name}, …, shapes=[{shapes}], schedules=[{trial.schedule!r}], "
        f"seeds=[{trial.seed}]{data})",
    ]
    folder = _TIMELINES.get()
    if folder is not None:
        parts = [name, *(f"{dim}{extent}" for dim, extent in trial.shape), trial.schedule, str(trial.seed)]
        file = folder / f"{'-'.join(parts)}.html"
        lines += [f"timeline: {file}"] if save_timeline(subject, trial, file) else []
    return "\n".join(lines)


@contextmanager
def keep_timelines(folder: Path) -> Generator[None]:
    """Write the timeline of what fails into a folder."""
    token = _TIMELINES.set(folder)
    try:
        yield
    finally:
        _TIMELINES.reset(token)
