"""Several launches on one memory, one after the other or, by programmatic dependent launch, overlapping.

Grids that overlap run group by group in turns; `turns` chooses whose turn it is. What a grid computes is `machine`'s,
who waits for whom `flights`'.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import Any

import numpy as np

from pyptx.diagnostics import PtxError, hide_frames
from pyptx.ir import Module
from pyptx.sim.base.formats import Array
from pyptx.sim.hazards import Finding
from pyptx.sim.launch.outputs import report_unwritten
from pyptx.sim.launch.prepared import BATCH_LANES, MAX_STEPS, Dim, Options, Prepared, prepared_together
from pyptx.sim.launch.progress import Pace, attach, interrupted, pace_of
from pyptx.sim.launch.results import Coverage, Result
from pyptx.sim.launch.verdicts import add_findings, cite_lines, judge_findings, note_seed
from pyptx.sim.observers.checks import Checks, Selection, parse_choice
from pyptx.sim.observers.checks.choice import Check
from pyptx.sim.program.linking import combine_modules, distinguish_modules
from pyptx.sim.rules import faults
from pyptx.sim.scheduling.dependents import resume_waiting
from pyptx.sim.scheduling.grids import make_stream_deadlock
from pyptx.sim.scheduling.mbarrier_waits import time_out
from pyptx.sim.scheduling.places import describe_places
from pyptx.sim.scheduling.scheduler import Scheduler
from pyptx.sim.scheduling.turns import Turns, make_turns
from pyptx.sim.scheduling.waiting import retry
from pyptx.sim.state.flights import Flight


@dataclass(frozen=True, slots=True, eq=False)
class Launch:
    """A launch of a stream: a module, or several, the entry in it, and the keywords of `sim.run` that say how it is
    launched."""

    module: Module | Sequence[Module]
    entry: str | None = None
    _: KW_ONLY
    grid: Dim = 1
    block: Dim = 1
    args: Sequence[Any] | Mapping[str, Any] = ()
    cluster: Dim = 1
    shared: int = 0
    cooperative: bool = False
    images: Mapping[str, Any] | None = None
    parts: Mapping[str, int] | None = None
    fresh: Sequence[Array] = ()
    """Arrays of `args` that are uninitialized until a launch writes them."""
    programmatic: bool = False
    """Whether the grid may start before the one before it has ended, as with the launch attribute
    programmaticStreamSerialization."""
    label: str = ""
    """What findings call the grid; the entry's name if empty."""


@dataclass(slots=True, eq=False)
class _Grid:
    """A grid of a stream and how far it is. `batches` makes the CTAs that run next, `batch` are those that run now."""

    launch: Prepared
    flight: Flight
    checks: Checks | None
    pace: Pace
    batches: Iterator[Scheduler] | None = None
    batch: Scheduler | None = None

    @property
    def runs(self) -> bool:
        """Whether it has started and not ended."""
        return self.batch is not None

    def start(self) -> None:
        """Let the first CTAs run."""
        self.flight.describe_places = lambda: [] if self.batch is None else describe_places(self.batch)
        self.flight.count_unfinished = self.unfinished
        self.batches = self.launch.batches([] if self.checks is None else [self.checks], self.flight)
        self.batch = next(self.batches)

    def step(self) -> bool:
        """Run a group; say whether the grid has ended with it."""
        assert self.batch is not None
        assert self.batches is not None
        self.batch.step()
        while self.batch is not None and not self.batch.live and self.batch.choose_next() is None:
            self.batch = next(self.batches, None)
            self.pace.end_batch()
        self.flight.has_ended = self.batch is None
        return self.flight.has_ended

    def unfinished(self) -> int:
        """Count the CTAs that have not ended."""
        if self.batch is None:
            return 0 if self.flight.has_ended else self.flight.ctas
        return self.launch.unstarted.remaining * self.launch.unstarted.size + int(self._living().sum())

    def released(self) -> bool:
        """Say whether the grid behind it may start: every CTA has said so, or has ended."""
        if self.flight.has_ended:
            return True
        if self.batch is None or self.launch.unstarted.remaining:
            return False
        numbers = self.batch.machine.numbers[self._living()].tolist()
        return all(number in self.flight.trigger_ctas for number in numbers)

    def _living(self) -> Any:
        assert self.batch is not None
        return self.batch.alive.reshape(-1, self.batch.shape.ctas).any(axis=0)


@dataclass(slots=True)
class _Stream:
    """The grids of a stream, in the order of their launches."""

    grids: list[_Grid]
    turns: Turns
    waiting: list[_Grid] = field(default_factory=list[_Grid])

    def run(self) -> None:
        """Run until every grid has ended."""
        self.waiting = list(self.grids)
        self.grids[0].pace.begin_batch()
        while self.waiting or any(grid.runs for grid in self.grids):
            running = [grid for grid in self.grids if grid.runs]
            able = [grid.batch is not None and bool(grid.batch.ready) for grid in running]
            if self._may_start() and self.turns.starts_next(any(able), bool(running)):
                self.waiting.pop(0).start()
            elif any(able):
                polling = [grid.batch is not None and bool(grid.batch.polling) for grid in running]
                self._turn(running[self.turns.pick(able, polling)])
            else:
                self._stir([grid.batch for grid in running if grid.batch is not None])

    def _may_start(self) -> bool:
        """Say whether the next grid may start now."""
        if not self.waiting:
            return False
        at = len(self.grids) - len(self.waiting)
        if self.waiting[0].flight.predecessor is None:
            return not any(grid.runs for grid in self.grids)
        return self.grids[at - 1].released()

    def _turn(self, grid: _Grid) -> None:
        assert grid.batch is not None
        grid.batch.once = self.turns.short
        if not grid.batch.ready:
            grid.batch.unpark()
        if grid.step():
            for other in self.grids:
                if other.batch is not None and other.flight.predecessor is grid.flight:
                    resume_waiting(other.batch)

    def _stir(self, batches: Sequence[Scheduler]) -> None:
        """Make lanes runnable when none is in any grid."""
        moved = [batch.rouse() for batch in batches]
        moved += [retry(batch) for batch in batches if not batch.polling]
        if any(moved) or any(batch.ready for batch in batches):
            for batch in batches:
                batch.stalls.reset()
        else:
            parked = [batch for batch in batches if batch.polling]
            stalled = [batch.stalls.count_round(batch) for batch in parked]
            timed_out = [time_out(batch) for batch in batches] if all(stalled) else []
            if all(stalled) and not any(timed_out):
                raise make_stream_deadlock(batches, [grid.flight.label for grid in self.waiting])
        for batch in batches:
            batch.unpark()


@hide_frames
def stream(
    launches: Sequence[Launch],
    *,
    schedule: str = "eager",
    seed: int = 0,
    max_steps: int = MAX_STEPS,
    batch_lanes: int = BATCH_LANES,
    precision: str = "float32",
    check: Check = "all",
    on_hazard: str = "raise",
    outputs: Sequence[Array] | None = None,
    poison: bool = False,
    **others: Any,
) -> list[Result]:
    """Run launches on one memory and return what each did. An array that several are given is the same memory for all;
    arrays are written back when the whole stream has succeeded.

    A launch starts when those before it have ended; with `programmatic=True` as soon as every CTA of the one before has
    executed `griddepcontrol.launch_dependents` or ended: `eager` then, `lazy` when that one has ended, the other
    schedules now so, now so. The other keywords are those of `sim.run`; hazards of two grids are among the `hazards` of
    both results."""
    if others:
        text = f"`{next(iter(others))}` is not there for a stream; run the launch alone, with sim.run or sim.Machine"
        raise faults.error(faults.LAUNCH_SHAPE, None, text)
    if not isinstance(launches, Sequence) or not all(isinstance(one, Launch) for one in launches):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise faults.error(faults.ARGUMENTS, None, "sim.stream takes a list of sim.Launch(module, entry, …)")
    if not launches:
        return []
    selected = parse_choice(check, on_hazard)
    common: dict[str, Any] = {
        "schedule": schedule, "seed": seed, "max_steps": max_steps, "batch_lanes": batch_lanes,
        "precision": precision, "poison": poison,
    }  # fmt: skip
    modules = distinguish_modules([combine_modules(one.module) for one in launches])
    wanted = [
        (module, one.entry, Options(**_shape(one), **common), one.label)
        for module, one in zip(modules, launches, strict=True)
    ]
    grids = _grids(launches, prepared_together(wanted, checked=selected is not None), selected)
    checks = grids[-1].checks
    with attach(grid.launch.printed for grid in grids):
        try:
            _run(_Stream(grids, make_turns(schedule, seed)))
            if checks is not None:
                report_unwritten(checks, grids[0].launch.buffers, outputs, _fresh(grids, launches))
            hazards = [] if selected is None or checks is None else judge_findings(_distinct(modules), selected, checks)
        except PtxError as why:
            raise note_seed(why, schedule, seed) from None
    grids[0].launch.write_back()
    fresh = [array for one in launches for array in one.fresh]
    return [
        _result(grid, hazards, Coverage.of(schedule, seed, selected, grid.launch.stats, outputs, fresh))
        for grid in grids
    ]


def _fresh(grids: Sequence[_Grid], launches: Sequence[Launch]) -> Iterator[tuple[Checks, Array]]:
    """Yield the uninitialized arrays, each with the checks of the grid that is to write it."""
    for grid, launch in zip(grids, launches, strict=True):
        for array in launch.fresh:
            assert grid.checks is not None
            yield grid.checks, array


def _shape(launch: Launch) -> dict[str, Any]:
    """Return how a launch alone would be launched."""
    own = ("module", "entry", "programmatic", "label")
    return {item.name: getattr(launch, item.name) for item in fields(Launch) if item.name not in own}


def _grids(launches: Sequence[Launch], prepared: Sequence[Prepared], selected: Selection | None) -> list[_Grid]:
    """Return the grids of a stream: who may overlap whom."""
    grids: list[_Grid] = []
    pace = pace_of(prepared, selected is not None)
    for one, launch in zip(launches, prepared, strict=True):
        before = grids[-1] if grids and one.programmatic else None
        flight = Flight(launch.launch.label, launch.ctas, None if before is None else before.flight)
        checks = None
        if selected is not None:
            checks = Checks(selected, grids[-1].checks if grids else None, overlaps=before is not None)
        grids.append(_Grid(launch, flight, checks, pace))
        flight.count_instructions = lambda: sum(grid.launch.stats.instructions for grid in grids)
    return grids


def _run(stream: _Stream) -> None:
    """Run a stream; PtxError, Interrupted and their reasons as of a launch alone."""
    grids = stream.grids
    threads = sum(grid.launch.ctas * grid.launch.threads for grid in grids)
    try:
        with np.errstate(all="ignore"):
            stream.run()
    except PtxError as why:
        first, *others = _distinct([grid.launch.launch.program.module for grid in grids])
        raise cite_lines(first, add_findings(why, grids[-1].checks), *others) from None
    except MemoryError as why:
        text = f"no memory for grids of {threads} threads: {why}"
        raise faults.error(faults.OUT_OF_MEMORY, grids[0].launch.launch.program.entry.function.origin, text) from None
    except KeyboardInterrupt:
        running = [grid.batch for grid in grids if grid.batch is not None]
        raise interrupted(running, sum(grid.launch.stats.instructions for grid in grids)) from None


def _distinct(modules: Sequence[Module]) -> list[Module]:
    return list({id(module): module for module in modules}.values())


def _result(grid: _Grid, hazards: Sequence[Finding], coverage: Coverage) -> Result:
    """Return what one launch did, with the hazards that its threads have a part in."""
    launch, label = grid.launch, grid.flight.label
    agents = [(finding, [agent for agent in (finding.agent, finding.other_agent) if agent]) for finding in hazards]
    own = [finding for finding, who in agents if not who or any(agent.grid == label for agent in who)]
    return Result(launch.outputs, launch.stats, str(launch.printed), own, coverage=coverage)
