"""Run a function in many orders: every schedule, with several seeds for those that take one."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyptx.diagnostics import Diagnostic, PtxError, Severity, hide_frames
from pyptx.sim.launch.processes import call_in_order
from pyptx.sim.scheduling.schedules import SEEDS, list_orders


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


@hide_frames
def sweep(
    run: Callable[..., Any], seeds: int = SEEDS, executor: Executor | None = None, *, processes: int | None = None
) -> list[Trial]:
    """Call a function with `schedule=` and `seed=` for every order: `eager`, `lazy`, and `seeds` seeds each of `random`
    and `adversarial`. The function makes its arrays, runs a kernel, and may assert results. PtxError and AssertionError
    are recorded in the trial; other exceptions end the sweep. `[trial for trial in sweep(run) if not trial.ok]` lists
    the orders that failed.

    A sweep that takes long continues in copies of this process, one per core, and in at most `processes` of them. What
    the function returns comes back and must be picklable; what else it changes in a copy is lost. `processes=1` runs
    all orders here. So does a process with other threads, which cannot be copied.

    An `executor` of `concurrent.futures` calls the function in other processes or on other machines, where it must be
    importable."""
    calls = call_in_order(partial(_attempt, run), list(list_orders(seeds)), executor, processes)
    with closing(calls):
        return list(calls)


def _attempt(run: Callable[..., Any], order: tuple[str, int]) -> Trial:
    """Return a trial that can be sent to another process if its result can."""
    schedule, seed = order
    try:
        return Trial(schedule, seed, run(schedule=schedule, seed=seed))
    except PtxError as why:
        return Trial(schedule, seed, error=why)
    except AssertionError as why:
        # Subclasses may not be picklable.
        return Trial(schedule, seed, error=AssertionError(str(why)).with_traceback(why.__traceback__))
