"""The observers that the options of a run request, and their results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyptx.diagnostics import PtxError
from pyptx.sim.execution.machine import Launch
from pyptx.sim.launch.results import Stats
from pyptx.sim.observers import watching
from pyptx.sim.observers.checks import Checks, Selection
from pyptx.sim.observers.observer import Observer
from pyptx.sim.observers.statistics.report import make_statistics as statistics_of
from pyptx.sim.observers.statistics.tally import Tally
from pyptx.sim.observers.timeline import Timeline
from pyptx.sim.observers.timeline.recorder import Recorder, make_recorder
from pyptx.sim.observers.watching import Watch
from pyptx.sim.reports.findings import Finding, group_by_cause


@dataclass(frozen=True, slots=True)
class Observers:
    """The observers of a run."""

    checks: Checks | None
    recorder: Recorder | None
    tally: Tally | None
    watch: Watch | None

    @classmethod
    def create(
        cls, launch: Launch, selection: Selection | None, schedule: str, timeline: bool | int, statistics: bool,
        watch: Sequence[str],
    ) -> Observers:  # fmt: skip
        """Return the requested observers."""
        register_watch = watching.watch(launch.program, watch) if watch else None
        checks = Checks(selection) if selection is not None else None
        findings = None if checks is None else checks.engine.findings
        recorder = make_recorder(launch, schedule, timeline, findings) if timeline or statistics else None
        return cls(checks, recorder, Tally() if statistics else None, register_watch)

    def list_listeners(self) -> list[Observer]:
        """Return the observers that receive events."""
        return [listener for listener in (self.recorder, self.tally, self.checks) if listener is not None]

    def make_stop(self, why: PtxError) -> PtxError:
        """Return the error that ended the run, with the timeline up to that point if one was requested."""
        if self.recorder is None:
            return why
        checks = self.checks
        hazards = [] if checks is None else group_by_cause(checks.selection.select(checks.engine.findings))
        return self.recorder.make_stop(why, hazards)

    def draw(self, stats: Stats, hazards: Sequence[Finding]) -> Timeline | None:
        """Return the timeline, and add the counts to the run's statistics."""
        if self.recorder is None:
            return None
        recording = self.recorder.finish()
        if self.tally is None:
            return Timeline(recording, hazards)
        stats.statistics = statistics_of(self.recorder, self.tally)
        return Timeline(recording, hazards, stats.statistics.marks())
