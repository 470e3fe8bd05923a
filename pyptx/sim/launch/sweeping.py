"""Run a function in many orders: every schedule, with several seeds for those that take one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from pyptx.diagnostics import Diagnostic, PtxError, Severity
from pyptx.sim.scheduling.schedules import SCHEDULES, SEEDED

SEEDS = 5


@dataclass(frozen=True, slots=True)
class Trial:
    """A run of a sweep: its order, and its result or error."""

    schedule: str
    seed: int
    result: Any = None
    error: PtxError | AssertionError | None = None

    @property
    def ok(self) -> bool:
        """Whether the run raised nothing and reported no error."""
        return self.error is None and not self._errors()

    def list_hazards(self) -> list[Diagnostic]:
        """Return the hazards that the run reported."""
        return [finding.diagnostic() for finding in getattr(self.result, "hazards", ())]

    def _errors(self) -> list[str]:
        errors = [hazard for hazard in self.list_hazards() if hazard.severity is Severity.ERROR]
        return [f"{hazard.code}: {hazard.message}" for hazard in errors]

    def __str__(self) -> str:
        order = f"schedule={self.schedule!r}, seed={self.seed}"
        if isinstance(self.error, PtxError) and self.error.diagnostics:
            first = self.error.diagnostics[0]
            return f"{order}: {first.code}: {first.message}"
        if self.error is not None:
            return f"{order}: {(str(self.error) or type(self.error).__name__).splitlines()[0]}"
        return ": ".join([order, *(self._errors()[:1] or ["ok"])])


def list_orders(seeds: int, first: int = 0) -> Iterator[tuple[str, int]]:
    """Yield each schedule with its seeds; schedules that ignore the seed appear once."""
    for schedule in SCHEDULES:
        for seed in range(first, first + seeds) if schedule in SEEDED else (first,):
            yield schedule, seed


def sweep(run: Callable[..., Any], seeds: int = SEEDS, executor: Executor | None = None) -> list[Trial]:
    """Call a function with `schedule=` and `seed=` for every order: `eager`, `lazy`, and `seeds` seeds each of `random`
    and `adversarial`. The function makes its arrays, runs a kernel, and may assert results. PtxError and AssertionError
    are recorded in the trial; other exceptions end the sweep. `[trial for trial in sweep(run) if not trial.ok]` lists
    the orders that failed.

    An `executor` of `concurrent.futures` calls the function in other processes or on other machines, where it must be
    importable. Its results stay there: trials then have errors, those of `on_hazard="report"` included, but no
    `result`."""
    orders = list(list_orders(seeds))
    if executor is None:
        return [_attempt(run, schedule, seed) for schedule, seed in orders]
    futures = [executor.submit(_attempt_elsewhere, run, schedule, seed) for schedule, seed in orders]
    try:
        return [future.result() for future in futures]
    finally:
        for future in futures:
            future.cancel()


def _attempt(run: Callable[..., Any], schedule: str, seed: int) -> Trial:
    try:
        return Trial(schedule, seed, run(schedule=schedule, seed=seed))
    except (PtxError, AssertionError) as why:
        return Trial(schedule, seed, error=why)


def _attempt_elsewhere(run: Callable[..., Any], schedule: str, seed: int) -> Trial:
    """Return a trial that can be sent to another process."""
    trial = _attempt(run, schedule, seed)
    error: PtxError | AssertionError | None = trial.error
    if isinstance(error, PtxError):
        error = PtxError(error.diagnostics, error.source)
    elif error is not None:
        error = AssertionError(str(error))
    elif errors := [hazard for hazard in trial.list_hazards() if hazard.severity is Severity.ERROR]:
        error = PtxError(errors)
    return Trial(schedule, seed, error=error)
