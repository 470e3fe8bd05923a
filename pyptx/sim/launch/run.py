"""Runs an entry of a module over a grid: arguments in, batches of CTAs, results out. The public entry point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pyptx.diagnostics import Diagnostic, PtxError, Severity, hide_frames
from pyptx.ir import Module
from pyptx.sim.base.formats import Array
from pyptx.sim.execution.machine import Launch as LaunchFacts
from pyptx.sim.hazards import Finding
from pyptx.sim.launch.outputs import report_unwritten
from pyptx.sim.launch.prepared import BATCH_LANES, MAX_STEPS, Dim, Options, Prepared, prepared
from pyptx.sim.launch.progress import attach, interrupted, pace_of, progress
from pyptx.sim.launch.results import Coverage, Result, Stats
from pyptx.sim.observers import watching
from pyptx.sim.observers.checks import Checks, Selection, selection
from pyptx.sim.observers.checks.choice import Check
from pyptx.sim.observers.observer import Observer
from pyptx.sim.observers.statistics.report import statistics as statistics_of
from pyptx.sim.observers.statistics.tally import Tally
from pyptx.sim.observers.timeline import Timeline
from pyptx.sim.observers.timeline.recorder import Recorder, recording
from pyptx.sim.observers.watching import Watch
from pyptx.sim.program.linking import whole
from pyptx.sim.reports.findings import by_cause
from pyptx.sim.reports.graph import Hang
from pyptx.sim.reports.source_lines import source_lines, text_of
from pyptx.sim.rules import ADDRESS_OVERFLOW, DEADLOCK, NARROWED, NOT_A_BARRIER, PHASE_UNOBSERVED, faults
from pyptx.sim.rules.advice import COUNT
from pyptx.sim.scheduling.orders import SEEDED
from pyptx.sim.scheduling.scheduler import Scheduler

_WRAPPED = (ADDRESS_OVERFLOW, NARROWED)


@hide_frames
def run(
    module: Module | Sequence[Module],
    entry: str | None = None,
    *,
    grid: Dim = 1,
    block: Dim = 1,
    args: Sequence[Any] | Mapping[str, Any] = (),
    cluster: Dim = 1,
    shared: int = 0,
    schedule: str = "eager",
    seed: int = 0,
    max_steps: int = MAX_STEPS,
    cooperative: bool = False,
    batch_lanes: int = BATCH_LANES,
    precision: str = "float32",
    check: Check = "all",
    on_hazard: str = "raise",
    images: Mapping[str, Any] | None = None,
    timeline: bool | int = False,
    statistics: bool = False,
    watch: Sequence[str] = (),
    poison: bool = False,
    parts: Mapping[str, int] | None = None,
    outputs: Sequence[Array] | None = None,
    fresh: Sequence[Array] = (),
) -> Result:
    """Run a kernel and return what it did. Arrays among `args` are passed by address and written back when the whole
    launch succeeded. PtxError says what was wrong with the launch or the kernel. Several modules are linked.

    `check` is `all`, `none`, `strict` (warnings are errors) or classes of hazards: `races,proxies`. Errors among the
    findings end in a PtxError unless `on_hazard="report"`; all of them are the result's `hazards`. Only `all,numerics`
    looks at values, only `all,outputs` for parts of `outputs`, which are arrays among `args`, that were not written,
    only `all,unused` for copies and accumulators that nobody reads, only `all,dependents` for accesses before
    `griddepcontrol.wait`.
    Arrays of `args` that are also `fresh` are uninitialized: reading an element before the kernel writes it is an
    error, and an element that nobody writes is a warning.

    With `precision="hardware"` products
    of matrices are summed bit for bit as the tensor cores of the module's target do, else quickly in float32.
    `images` binds the module's textures, samplers and surfaces: `{"name": sim.Texture(array)}`.

    With `poison=True` registers, shared, local and tensor memory start as 0x7ffda5a5, a NaN, and a register that is
    read before it was written is reported. `watch` names registers; their changes are the result's `watched`.
    Control-C says where the threads were. `parts` names pieces of dynamic shared memory, by their offset."""
    selected, module = selection(check, on_hazard), whole(module)
    options = Options(
        grid=grid, block=block, args=args, cluster=cluster, shared=shared, schedule=schedule, seed=seed,
        max_steps=max_steps, cooperative=cooperative, batch_lanes=batch_lanes, precision=precision, images=images,
        poison=poison, parts=parts, fresh=fresh,
    )  # fmt: skip
    launch = prepared(module, entry, options, checked=selected is not None, single=bool(watch))
    observers = Observers.of(launch.launch, selected, schedule, timeline, statistics, watch)
    checks = observers.checks
    with attach([launch.printed]):
        try:
            _run(launch, observers)
        except PtxError as why:
            why = cited(module, with_findings(why, checks))
            raise observers.stopped(repeatable(why, schedule, seed)) from None
        if checks is not None:
            report_unwritten(checks, launch.buffers, outputs, [(checks, array) for array in fresh])
        try:
            hazards = [] if selected is None or checks is None else judged([module], selected, checks)
        except PtxError as why:
            raise observers.stopped(repeatable(why, schedule, seed)) from None
    launch.write_back()
    drawn = observers.draw(launch.stats, hazards)
    changes = [] if observers.watch is None else observers.watch.changes
    covered = Coverage.of(schedule, seed, selected, launch.stats, outputs, fresh)
    return Result(
        launch.outputs, launch.stats, str(launch.printed), hazards, drawn if timeline else None, changes, covered
    )


@dataclass(frozen=True, slots=True)
class Observers:
    """Who observes a run."""

    checks: Checks | None
    recorder: Recorder | None
    tally: Tally | None
    watch: Watch | None

    @classmethod
    def of(
        cls, launch: LaunchFacts, selected: Selection | None, schedule: str, timeline: bool | int, statistics: bool,
        watch: Sequence[str],
    ) -> Observers:  # fmt: skip
        """Return what somebody asked for."""
        watched = watching.watch(launch.program, watch) if watch else None
        checks = Checks(selected) if selected is not None else None
        findings = None if checks is None else checks.engine.findings
        recorder = recording(launch, schedule, timeline, findings) if timeline or statistics else None
        return cls(checks, recorder, Tally() if statistics else None, watched)

    def listeners(self) -> list[Observer]:
        """Return all that hear events."""
        return [one for one in (self.recorder, self.tally, self.checks) if one is not None]

    def stopped(self, why: PtxError) -> PtxError:
        """Return the error that ended the run, with the timeline up to there if one was asked for."""
        if self.recorder is None:
            return why
        checks = self.checks
        hazards = [] if checks is None else by_cause(checks.selected.chosen(checks.engine.findings))
        return self.recorder.stopped(why, hazards)

    def draw(self, stats: Stats, hazards: Sequence[Finding]) -> Timeline | None:
        """Return the timeline, and put what was counted into the run's statistics."""
        if self.recorder is None:
            return None
        recorded = self.recorder.finish()
        if self.tally is None:
            return Timeline(recorded, hazards)
        stats.statistics = statistics_of(self.recorder, self.tally)
        return Timeline(recorded, hazards, stats.statistics.marks())


def _run(launch: Prepared, observers: Observers) -> None:
    """Run all batches of a launch."""
    batch: Scheduler | None = None
    pace = pace_of([launch], observers.checks is not None)
    try:
        with np.errstate(all="ignore"), progress(launch.ctas * launch.threads, pace) as tell:
            for batch in launch.batches(observers.listeners()):
                pace.begin_batch()
                if observers.watch is not None:
                    _run_watched(batch, observers.watch)
                else:
                    batch.run(tell)
                pace.end_batch()
    except MemoryError as why:
        text = f"no memory for a grid of {launch.ctas * launch.threads} threads: {why}"
        raise faults.error(faults.OUT_OF_MEMORY, launch.launch.program.entry.function.origin, text) from None
    except KeyboardInterrupt:
        raise interrupted([] if batch is None else [batch], launch.stats.instructions) from None


def _run_watched(batch: Scheduler, watch: Watch) -> None:
    """Run a batch instruction by instruction."""
    batch.once = True
    watch.follow(batch)
    while batch.step():
        watch.look()


def repeatable(why: PtxError, schedule: str, seed: int) -> PtxError:
    """Return an error that says how to run the schedule again that led to it."""
    if schedule not in SEEDED or not why.diagnostics:
        return why
    first = why.diagnostics[0]
    note = f"schedule={schedule!r}, seed={seed} repeats this run"
    return _again(why, [replace(first, notes=(*first.notes, note)), *why.diagnostics[1:]])


def _again(why: PtxError, diagnostics: list[Diagnostic]) -> PtxError:
    """Return an error of the same kind with other diagnostics."""
    made = Hang(diagnostics, why.report) if isinstance(why, Hang) else PtxError(diagnostics)
    made.source = why.source
    return made


def judged(modules: Sequence[Module], selected: Selection, checks: Checks) -> list[Finding]:
    """Return what was found; PtxError when something of it is an error."""
    found = selected.chosen(checks.engine.findings)
    text = None
    if found:
        lines = source_lines(*modules)
        for finding in found:
            lines.cite(finding)
        text = text_of(
            modules, [place.origin for finding in found for place in (finding.place, finding.other) if place]
        )
        for finding in found:
            finding.source = text
    fatal = selected.fatal(found)
    if fatal:
        # Phases that ended early lead to errors of all kinds; the finding says which count is too low.
        known = {id(finding) for finding in fatal}
        shown = [finding for finding in found if id(finding) in known or finding.rule is PHASE_UNOBSERVED]
        raise PtxError((finding.diagnostic() for finding in by_cause(shown)), text)
    return found


def cited(module: Module, why: PtxError, *others: Module) -> PtxError:
    """Return an error that says which lines of the kernel's source its places come from."""
    lines = source_lines(module, *others)
    made = _again(why, [lines.cited(diagnostic) for diagnostic in why.diagnostics])
    made.source = text_of([module, *others], [d.origin for d in made.diagnostics])
    return made


def with_findings(why: PtxError, checks: Checks | None) -> PtxError:
    """Return the error that ended a run, behind the hazards that may have caused it, wrapped addresses among them;
    behind a hang stand the phases that nobody observed, which often are its beginning."""
    found = [] if checks is None else by_cause(checks.selected.chosen(checks.engine.findings))
    causes = [finding for finding in found if finding.severity is Severity.ERROR or finding.rule in _WRAPPED]
    errors = [finding.diagnostic() for finding in causes]
    missed = [finding for finding in found if finding.rule is PHASE_UNOBSERVED and isinstance(why, Hang)]
    if isinstance(why, Hang):
        why = _accused(why, missed)
    elif any(d.code == NOT_A_BARRIER.code and d.origin == why.diagnostics[0].origin for d in errors):
        # The machine stops at the instruction for what the finding says of it.
        why = _again(why, [d for d in why.diagnostics if d.code != faults.MBARRIER.code])
    lost = [finding.diagnostic() for finding in missed]
    return _again(why, [*errors, *why.diagnostics, *lost]) if errors or lost else why


def _accused(why: Hang, missed: Sequence[Finding]) -> Hang:
    """Return a deadlock that names the barrier whose phases ended early, if it is one of those that are waited for."""
    inits = {finding.other for finding in missed}
    node = next((node for node in why.report.ordered() if node.place is not None and node.place in inits), None)
    if node is None or why.diagnostics[0].code != DEADLOCK.code:
        return why
    why.report.accuse(node, COUNT)
    finding = why.report.finding()
    assert finding is not None
    return Hang([finding.diagnostic(), *why.diagnostics[1:]], why.report)
