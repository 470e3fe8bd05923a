"""Run several launches on one memory: in sequence, or overlapping by programmatic dependent launch.

Grids that overlap take turns, one group of lanes at a time, in the order that `turns` chooses. `machine` runs the
instructions of a grid; `flights` holds its state in the stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from enum import Enum
from typing import Any

import numpy as np

from pyptx.diagnostics import PtxError, hide_frames
from pyptx.ir import Module
from pyptx.sim.base.formats import Array
from pyptx.sim.hazards import Finding
from pyptx.sim.hazards.state import Overlap
from pyptx.sim.launch.outputs import report_unwritten
from pyptx.sim.launch.prepared import BATCH_LANES, MAX_STEPS, Dim, Options, Prepared, prepare_launches
from pyptx.sim.launch.progress import Pace, attach, make_interrupt, make_pace
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
    """A launch of a stream: one or several modules, the entry, and the launch options of `sim.run`."""

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
    """Arrays in `args` that are uninitialized until a launch writes them."""
    programmatic: bool = False
    """Whether the grid may start before the previous one has completed, as with the launch attribute
    programmaticStreamSerialization."""
    label: str = ""
    """The name of the grid in findings; the entry's name if empty."""


class Start(Enum):
    """When a grid may start."""

    AFTER = "when all previous ones have completed"
    PROGRAMMATIC = "when every CTA of the previous one has executed `launch_dependents` or completed"
    ANY_TIME = "when the run begins"


class _Grid:
    """A grid of a stream and its progress. `batch` is the running batch of CTAs."""

    def __init__(
        self, launch: Prepared, start_rule: Start, predecessor: Flight | None, count_instructions: Callable[[], int],
        checks: Checks | None, pace: Pace,
    ) -> None:  # fmt: skip
        """`predecessor` is the grid that it may overlap."""
        self.launch, self.start_rule, self.checks, self.pace = launch, start_rule, checks, pace
        self.flight = Flight(
            launch.launch.label, launch.ctas, predecessor, self._describe_places, self._count_unfinished,
            count_instructions,
        )  # fmt: skip
        self.batch: Scheduler | None = None
        self._batches = launch.batches([] if checks is None else [checks], self.flight)

    @property
    def runs(self) -> bool:
        """Whether it has started but not completed."""
        return self.batch is not None

    def start(self) -> None:
        """Start the first batch of CTAs."""
        self.batch = next(self._batches)

    def step(self, once: bool) -> bool:
        """Run a group of lanes, or with `once`, one block of it; return whether the grid has completed."""
        assert self.batch is not None
        self.batch.step(once)
        while self.batch is not None and not self.batch.live and self.batch.choose_next() is None:
            self.batch = next(self._batches, None)
            self.pace.end_batch()
        self.flight.has_ended = self.batch is None
        return self.flight.has_ended

    def _count_unfinished(self) -> int:
        """Count the CTAs that have not completed."""
        return self.launch.pending_clusters.remaining * self.launch.pending_clusters.size + int(self._find_live().sum())

    def lets_next_start(self) -> bool:
        """Return whether the next grid may start: every CTA has executed `launch_dependents` or has completed."""
        if self.flight.has_ended:
            return True
        if self.batch is None or self.launch.pending_clusters.remaining:
            return False
        numbers = self.batch.machine.numbers[self._find_live()].tolist()
        return all(number in self.flight.trigger_ctas for number in numbers)

    def _describe_places(self) -> list[str]:
        assert self.batch is not None
        return describe_places(self.batch)

    def _find_live(self) -> Any:
        assert self.batch is not None
        return self.batch.alive.reshape(-1, self.batch.shape.ctas).any(axis=0)


_OVERLAPS = {Start.AFTER: Overlap.NONE, Start.PROGRAMMATIC: Overlap.DEPENDENT, Start.ANY_TIME: Overlap.INDEPENDENT}


@dataclass(slots=True)
class _Stream:
    """The grids of a stream in launch order."""

    grids: list[_Grid]
    turns: Turns
    queue: list[_Grid] = field(default_factory=list[_Grid])
    last: int = 0
    """The grid that ran last."""

    def run(self) -> None:
        """Run until every grid has completed."""
        self.queue = list(self.grids)
        self.grids[0].pace.begin_batch()
        while self.queue or any(grid.runs for grid in self.grids):
            running = [grid for grid in self.grids if grid.runs]
            able = [grid.batch is not None and bool(grid.batch.ready) for grid in running]
            if self._may_start() and self._starts_next(able):
                self.queue.pop(0).start()
            elif any(able):
                polling = [grid.batch is not None and bool(grid.batch.polling) for grid in running]
                self._turn(running[self.turns.pick(able, polling)])
            else:
                self._stir([grid.batch for grid in running if grid.batch is not None])

    def _may_start(self) -> bool:
        """Return whether the next grid may start now."""
        if not self.queue:
            return False
        index = len(self.grids) - len(self.queue)
        if self.queue[0].start_rule is Start.AFTER:
            return not any(grid.runs for grid in self.grids)
        return self.queue[0].start_rule is Start.ANY_TIME or not index or self.grids[index - 1].lets_next_start()

    def _starts_next(self, able: Sequence[bool]) -> bool:
        """Return whether the next grid, which may start, does. A grid for which others may wait does at last."""
        is_awaited = self.queue[0].start_rule is Start.ANY_TIME and not any(able)
        return self.turns.starts_next(any(able), bool(able)) or is_awaited

    def _turn(self, grid: _Grid) -> None:
        assert grid.batch is not None
        self.last = self.grids.index(grid)
        if not grid.batch.ready:
            grid.batch.unpark()
        if grid.step(self.turns.short):
            for dependent in self.grids:
                if dependent.batch is not None and dependent.flight.predecessor is grid.flight:
                    resume_waiting(dependent.batch)

    def _stir(self, batches: Sequence[Scheduler]) -> None:
        """Make lanes runnable when no grid has a runnable one."""
        progress = [batch.rouse() for batch in batches]
        progress += [retry(batch) for batch in batches if not batch.polling]
        has_progress = any(progress) or any(batch.ready for batch in batches)
        if not has_progress:
            repeats = [batch.stalls.count_round(batch) for batch in batches if batch.polling]
            timeouts = [time_out(batch) for batch in batches] if all(repeats) else []
            has_progress = any(timeouts)
            if all(repeats) and not has_progress:
                raise make_stream_deadlock(batches, [grid.flight.label for grid in self.queue])
        for batch in batches:
            if has_progress:
                batch.stalls.reset()
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
    **unknown_options: Any,
) -> list[Result]:
    """Run launches on one memory and return the result of each. Launches that take the same array share its memory;
    arrays are written back if the whole stream succeeds.

    A launch starts when all previous ones have completed. With `programmatic=True` it may start as soon as every CTA of
    the previous launch has executed `griddepcontrol.launch_dependents` or completed: schedule `eager` starts it then,
    `lazy` when the previous launch has completed, and the other schedules vary. The other keywords are those of
    `sim.run`. A hazard between two grids is in the `hazards` of both results."""
    if unknown_options:
        option = next(iter(unknown_options))
        text = f"sim.stream has no option `{option}`; run the launch alone, with sim.run or sim.Machine"
        raise faults.error(faults.LAUNCH_SHAPE, None, text)
    if not isinstance(launches, Sequence) or not all(isinstance(launch, Launch) for launch in launches):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise faults.error(faults.ARGUMENTS, None, "sim.stream takes a list of sim.Launch(module, entry, …)")
    if not launches:
        return []
    selection = parse_choice(check, on_hazard)
    common: dict[str, Any] = {
        "schedule": schedule, "seed": seed, "max_steps": max_steps, "batch_lanes": batch_lanes,
        "precision": precision, "poison": poison,
    }  # fmt: skip
    modules = distinguish_modules([combine_modules(launch.module) for launch in launches])
    requests = [
        (module, launch.entry, Options(**_get_options(launch), **common), launch.label)
        for module, launch in zip(modules, launches, strict=True)
    ]
    starts = [Start.PROGRAMMATIC if launch.programmatic else Start.AFTER for launch in launches]
    grids = _make_grids(prepare_launches(requests, is_checked=selection is not None), starts, selection)
    checks = grids[-1].checks
    with attach(grid.launch.printed for grid in grids):
        try:
            _run(_Stream(grids, make_turns(schedule, seed)))
            if checks is not None:
                report_unwritten(checks, grids[0].launch.buffers, outputs, _list_fresh(grids, launches))
            hazards = (
                []
                if selection is None or checks is None
                else judge_findings(_drop_duplicates(modules), selection, checks)
            )
        except PtxError as why:
            raise note_seed(why, schedule, seed) from None
    grids[0].launch.write_back()
    fresh = [array for launch in launches for array in launch.fresh]
    return [
        _make_result(grid, hazards, Coverage.from_run(schedule, seed, selection, grid.launch.stats, outputs, fresh))
        for grid in grids
    ]


def _list_fresh(grids: Sequence[_Grid], launches: Sequence[Launch]) -> Iterator[tuple[Checks, Array]]:
    """Yield the uninitialized arrays, each with the checks of the grid that must write it."""
    for grid, launch in zip(grids, launches, strict=True):
        for array in launch.fresh:
            assert grid.checks is not None
            yield grid.checks, array


def _get_options(launch: Launch) -> dict[str, Any]:
    """Return the launch options of a launch, without those that only streams have."""
    own = ("module", "entry", "programmatic", "label")
    return {item.name: getattr(launch, item.name) for item in fields(Launch) if item.name not in own}


def run_grids(
    launches: Sequence[Prepared], starts: Sequence[Start], selection: Selection | None, schedule: str, seed: int
) -> tuple[list[Checks | None], PtxError | None, int]:
    """Run launches that are ready on one memory. Return the checks of each, the error that ended the run, and the
    number of the launch that ran last."""
    stream = _Stream(_make_grids(launches, starts, selection), make_turns(schedule, seed))
    error = None
    with attach(launch.printed for launch in launches):
        try:
            _run(stream)
        except PtxError as why:
            error = note_seed(why, schedule, seed)
    return [grid.checks for grid in stream.grids], error, stream.last


def _make_grids(
    ready_launches: Sequence[Prepared], starts: Sequence[Start], selection: Selection | None
) -> list[_Grid]:
    """Return the grids of a stream, each with the predecessor that it may overlap."""
    grids: list[_Grid] = []
    pace = make_pace(ready_launches, selection is not None)

    def count_instructions() -> int:
        return sum(launch.stats.instructions for launch in ready_launches)

    for start, launch in zip(starts, ready_launches, strict=True):
        before = grids[-1] if grids and start is Start.PROGRAMMATIC else None
        checks = None
        if selection is not None:
            overlap = _OVERLAPS[start] if grids or start is Start.ANY_TIME else Overlap.NONE
            checks = Checks(selection, grids[-1].checks if grids else None, overlap)
        predecessor = None if before is None else before.flight
        grids.append(_Grid(launch, start, predecessor, count_instructions, checks, pace))
    return grids


def _run(stream: _Stream) -> None:
    """Run a stream. Errors are reported as for a single launch."""
    grids = stream.grids
    threads = sum(grid.launch.ctas * grid.launch.threads for grid in grids)
    try:
        with np.errstate(all="ignore"):
            stream.run()
    except PtxError as why:
        first, *other_modules = _drop_duplicates([grid.launch.launch.program.module for grid in grids])
        raise cite_lines(first, add_findings(why, grids[-1].checks), *other_modules) from None
    except MemoryError as why:
        text = f"not enough memory for grids of {threads} threads: {why}"
        raise faults.error(faults.OUT_OF_MEMORY, grids[0].launch.launch.program.entry.function.origin, text) from None
    except KeyboardInterrupt:
        running = [grid.batch for grid in grids if grid.batch is not None]
        raise make_interrupt(running, sum(grid.launch.stats.instructions for grid in grids)) from None


def _drop_duplicates(modules: Sequence[Module]) -> list[Module]:
    return list({id(module): module for module in modules}.values())


def _make_result(grid: _Grid, hazards: Sequence[Finding], coverage: Coverage) -> Result:
    """Return the result of a launch, with the hazards that involve its threads."""
    launch, label = grid.launch, grid.flight.label
    agents = [(finding, [agent for agent in (finding.agent, finding.other_agent) if agent]) for finding in hazards]
    own = [
        finding
        for finding, finding_agents in agents
        if not finding_agents or any(agent.grid == label for agent in finding_agents)
    ]
    return Result(launch.outputs, launch.stats, str(launch.printed), own, coverage=coverage)
