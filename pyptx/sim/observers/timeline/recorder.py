"""Keeps the record of a run: the clock of every recorded warp, what it runs, and where it waits.

The machine tells of every block that ran. Barriers and engines tell through the classes of `barriers` and `engines`,
which stand in for the machine's own while a run is recorded. Knows no file format.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from linecache import getlines
from typing import TYPE_CHECKING, Any

import numpy as np

from pyptx.check.body import Step
from pyptx.diagnostics import PtxError
from pyptx.ir import Instruction, Label, visit
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.hazards import Finding
from pyptx.sim.hazards.findings import Ledger
from pyptx.sim.hazards.graph import Hang
from pyptx.sim.observers.statistics.report import statistics
from pyptx.sim.observers.statistics.tally import Tally
from pyptx.sim.observers.timeline.barriers import RecordedClusterBarriers, RecordedCtaBarriers, RecordedMBarriers
from pyptx.sim.observers.timeline.engines import Engines, RecordedEffects
from pyptx.sim.observers.timeline.names import Names
from pyptx.sim.observers.timeline.places import Places, places_of
from pyptx.sim.observers.timeline.records import Cause, Line, Recorded, Run, Track, Wait
from pyptx.sim.observers.timeline.timeline import Stopped, StoppedHang, Timeline
from pyptx.sim.program.blocks import Block, Program
from pyptx.sim.state.barriers import Waiting
from pyptx.sim.state.memory import Site

if TYPE_CHECKING:
    from pyptx.sim.execution.machine import Batch, Launch, Stats
    from pyptx.sim.scheduling.state import State

MOST_CTAS = 8
MOST_RECORDS = 200_000
"""Of runs, waits and transfers together; what comes later is counted, not kept."""


@dataclass(slots=True)
class Open:
    """A stretch of a warp's run that may still grow."""

    start: int
    end: int
    first: int
    last: int
    lanes: int
    steps: int


@dataclass(frozen=True, slots=True)
class Now:
    """The call of a block that runs: its instruction, where it stands in the block, and who executes it."""

    site: Site
    step: Step
    offset: int
    lanes: Lanes
    mask: Array | None

    @property
    def active(self) -> Array:
        """The lanes in which it is executed."""
        return self.lanes.index if self.mask is None else self.lanes.index[np.broadcast_to(self.mask, self.lanes.n)]


class Recorder:
    """The record of a launch. A warp is known by its row in the batch, as `Shape.warp` counts."""

    def __init__(
        self, program: Program, places: Places, recorded: Recorded, most_ctas: int, tally: Tally | None
    ) -> None:
        self.program, self.places, self.made = program, places, recorded
        self.most_ctas, self.tally = most_ctas, tally
        self.names = Names(program)
        blocks = program.blocks
        self.steps = {id(step.instruction): (at, step) for block in blocks for at, step in enumerate(block.steps)}
        self.labels = _label_blocks(program)
        self.warp_runs, self.lane_runs = np.zeros(len(blocks), np.int64), np.zeros(len(blocks), np.int64)
        self.waited: dict[int, int] = {}
        self.now: Now | None = None
        self.reached = 0
        """How far the block that runs has come, as far as its calls tell."""
        self.clock = np.zeros(0, np.int64)
        self.kept = np.zeros(0, np.bool_)
        self.rows: dict[int, int] = {}
        self.numbers: dict[tuple[int, int], int] = {}
        """The rows of recorded warps by the number of their CTA in the grid and their own."""
        self.found = 0
        self.open: dict[int, Open] = {}
        self.asleep: dict[int, tuple[int, int]] = {}
        """The last mbarrier wait that refused each warp, and since when."""
        self.engines = Engines(self)
        self.batch: Batch | None = None
        self.state: State | None = None

    # What the machine tells

    def begin(self, batch: Batch, numbers: Array) -> None:
        """A batch begins: take as many of its first CTAs, whole clusters, as are still wanted."""
        self._close_all()
        self.engines.close()
        self.batch = batch
        shape, size = batch.shape, batch.launch.cluster_size
        left = max(0, self.most_ctas - len(self.made.ctas)) // size * size
        if not self.made.ctas and not left:
            left = size
        count = min(left, shape.ctas)
        self.made.left_out += shape.ctas - count
        self.clock = np.zeros(shape.warps * shape.ctas, np.int64)
        self.kept = np.arange(len(self.clock)) % shape.ctas < count
        self.rows, self.numbers = {}, {}
        for cta in range(count):
            at = len(self.made.ctas)
            self.made.ctas.append((int(batch.ctaid[0, cta]), int(batch.ctaid[1, cta]), int(batch.ctaid[2, cta])))
            for warp in range(shape.warps):
                self.numbers[int(numbers[cta]), warp] = warp * shape.ctas + cta
                self.rows[warp * shape.ctas + cta] = len(self.made.tracks)
                self.made.tracks.append(Track(at, f"warp {warp}", False))
        self.engines.begin(shape.ctas, len(self.made.ctas) - count)
        memory = batch.memory
        memory.mbarriers = RecordedMBarriers(self, len(memory.shared.data))
        memory.effects = batch.effects = RecordedEffects(memory.effects, self.engines)
        memory.tally = self.tally.access if self.tally is not None else None

    def schedule(self, state: State) -> None:
        """The scheduling of the batch begins."""
        self.state = state
        state.barriers = RecordedCtaBarriers(self, state.shape)
        state.clusters = RecordedClusterBarriers(self, state.shape, state.clusters.size)

    def observed(self, block: Block, constants: dict[str, Any]) -> dict[str, Any]:
        """Return the constants with every function put behind one that notes which instruction calls it."""
        return {name: self._wrap_note(value) if _is_body(value) else value for name, value in constants.items()}

    def _wrap_note(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            if not args or type(args[0]) is not Site:
                return inner(*args)
            site, lanes, mask = args[0], args[1], args[2]
            offset, step = self.steps[id(site.instruction)]
            self.now, self.reached = Now(site, step, offset, lanes, mask), offset + 1
            try:
                self.engines.before(self.now, args)
                return inner(*args)
            finally:
                self.now = None
                self.engines.after()

        return call

    def ran(self, block: Block, lanes: Lanes) -> None:
        """Some lanes have run a block; those that an mbarrier refused have not."""
        assert self.batch is not None
        refused = self.batch.memory.mbarriers.refused
        if block.suspends and refused is not None:
            self._sleep(block.pc, np.unique(lanes.shape.warp[refused.lanes]).tolist())
            passed = lanes.subset(~np.isin(lanes.index, refused.lanes))
            if passed is None:
                return
            lanes = passed
        if self.batch.memory.tensor.refused:
            passed = lanes.subset(~np.isin(lanes.index, np.concatenate(self.batch.memory.tensor.refused)))
            if passed is None:
                return
            lanes = passed
        warps, _ = self.warps(lanes)
        self.reached = 0
        self.warp_runs[block.pc] += len(warps)
        self.lane_runs[block.pc] += lanes.n
        steps = len(block.steps)
        for warp, count in zip(*self.kept_warps(lanes), strict=True):
            self._extend(warp, block.pc, steps, count)
            self.engines.ran(block, warp, int(self.clock[warp]))
        self.clock[warps] += steps
        if self.batch.checks is not None:
            self._locate_findings(self.batch.checks.engine.findings)

    def _sleep(self, pc: int, warps: list[int]) -> None:
        """Warps wait for an mbarrier. One that has waited there before, timed out and come straight back has only gone
        on waiting: those steps are taken back."""
        for warp in warps:
            if not self.kept[warp]:
                continue
            at, since = self.asleep.get(warp, (-1, 0))
            run = self.open.get(warp)
            if at == pc and run is not None and (run.start, run.end) == (since, int(self.clock[warp])):
                self.clock[warp] = since
                del self.open[warp]
            self.asleep[warp] = pc, int(self.clock[warp])

    def _locate_findings(self, findings: Ledger) -> None:
        """Note where the warps of new findings are."""
        if len(findings) == self.found:
            return
        for finding in islice(findings, self.found, None):
            row = None if finding.agent is None else self.numbers.get((finding.agent.cta, finding.agent.warp))
            if row is not None:
                self.made.moments[id(finding)] = self.cause(row, int(self.clock[row]))
        self.found = len(findings)

    # What barriers and engines ask and tell

    def warps(self, lanes: Lanes) -> tuple[Array, Array]:
        """Return the warps of some lanes, and how many lanes of each there are."""
        return lanes.remembered("timeline warps", lambda: np.unique(lanes.shape.warp[lanes.sel], return_counts=True))

    def kept_warps(self, lanes: Lanes) -> tuple[list[int], list[int]]:
        """Return those warps that are recorded, and how many lanes of each there are."""
        warps, counts = self.warps(lanes)
        kept = self.kept[warps]
        return warps[kept].tolist(), counts[kept].tolist()

    def warp_of(self, lane: int) -> int:
        """Return the warp of a lane."""
        assert self.batch is not None
        return int(self.batch.shape.warp[lane])

    def time(self, warp: int) -> int:
        """Return the time of the instruction that a warp executes now."""
        return int(self.clock[warp]) + (self.now.offset if self.now is not None else self.reached)

    def cause(self, warp: int, time: int) -> Cause:
        """Return what a warp did as the cause of something."""
        return Cause(self.rows[warp], max(0, time - 1))

    def waits(self, warp: int, until: int, barrier: str, phase: int, instruction: Instruction, cause: Cause | None,
              offset: int = 0) -> None:  # fmt: skip
        """A warp waited until a time, the instruction that waits standing so far behind where its clock is."""
        start = int(self.clock[warp]) + offset
        if until <= start:
            return
        line = self.places.line_of(instruction)
        self.waited[line] = self.waited.get(line, 0) + until - start
        if self.room():
            self.made.waits.append(Wait(self.rows[warp], start, until, barrier, phase, line, cause))
        self.clock[warp] = until - offset

    def room(self) -> bool:
        """Tell whether there is room for another record."""
        recorded = self.made
        recorded.truncated = (
            recorded.truncated or len(recorded.runs) + len(recorded.waits) + len(recorded.transfers) >= MOST_RECORDS
        )
        return not recorded.truncated

    # The end

    def finish(self) -> Recorded:
        """Return the record, with everything in it that was under way."""
        self._close_all()
        self._draw_open_waits()
        self.engines.close()
        self.made.lines = self._collect_lines()
        self.made.texts = {name: getlines(name) for name in sorted(self.places.files)}
        return self.made

    def stopped(self, why: PtxError, hazards: Sequence[Finding]) -> PtxError:
        """Return the error that ended the run, with the timeline up to there."""
        known = {(d.code, d.message) for d in (finding.diagnostic() for finding in hazards)}
        errors = [d for d in why.diagnostics if (d.code, d.message) not in known]
        drawn = Timeline(self.finish(), hazards, errors=errors)
        return StoppedHang(why, drawn) if isinstance(why, Hang) else Stopped(why, drawn)

    def _draw_open_waits(self) -> None:
        """Draw the waits of a run that stopped; in one that ended nobody waits."""
        if self.state is None or self.batch is None:
            return
        state, barriers = self.state, self.batch.memory.mbarriers
        assert isinstance(barriers, RecordedMBarriers)
        asleep: list[tuple[Waiting, str, int]] = []
        for number, items in state.barriers.waiting.items():
            asleep += [(item, f"bar {number}", 0) for item in items]
        asleep += [(item, "cluster barrier", 0) for item in state.clusters.waiting]
        for item in state.suspended:
            row = int(item.rows[0])
            asleep.append((item.waiting, barriers.name(row), int(barriers.phase[row])))
        last = max(self.made.end, int(self.clock.max(initial=0))) + 1
        for item, name, phase in asleep:
            line = self.places.line_of(self.program.blocks[item.at].steps[-1].instruction)
            for warp in self.kept_warps(item.lanes)[0]:
                start = int(self.clock[warp])
                if self.room():
                    self.made.waits.append(Wait(self.rows[warp], start, last, name, phase, line, None, False))
        self.state = None

    def drawn(self, stats: Stats, hazards: Sequence[Finding]) -> Timeline:
        """Return the timeline, and put what was counted into the run's statistics."""
        recorded = self.finish()
        if self.tally is None:
            return Timeline(recorded, hazards)
        stats.statistics = statistics(self, self.tally)
        return Timeline(recorded, hazards, stats.statistics.marks())

    def _extend(self, warp: int, pc: int, steps: int, lanes: int) -> None:
        start = int(self.clock[warp])
        run = self.open.get(warp)
        goes_on = run is not None and run.end == start and run.last < pc and self._shares_function(run.last, pc)
        if run is not None and goes_on and self.asleep.get(warp) != (pc - 1, start):
            run.end, run.last, run.lanes = start + steps, pc, max(run.lanes, lanes)
            run.steps += steps
            return
        if run is not None:
            self._close(warp, run)
        self.open[warp] = Open(start, start + steps, pc, pc, lanes, steps)

    def _shares_function(self, one: int, other: int) -> bool:
        blocks = self.program.blocks
        return blocks[one].code is blocks[other].code

    def _close(self, warp: int, run: Open) -> None:
        if run.end == run.start or not self.room():
            return
        first, last = self._line_of_block(run.first, False), self._line_of_block(run.last, True)
        self.made.runs.append(
            Run(self.rows[warp], run.start, run.end, self.labels[run.first], (first, last), run.lanes,
                run.steps)
        )  # fmt: skip

    def _close_all(self) -> None:
        for warp, run in self.open.items():
            self._close(warp, run)
        self.open = {}

    def _line_of_block(self, pc: int, last: bool) -> int:
        lines = [self.places.line_of(step.instruction) for step in self.program.blocks[pc].steps]
        known = [line for line in lines if line]
        return (known[-1] if last else known[0]) if known else 0

    def _collect_lines(self) -> list[Line]:
        warps: dict[int, int] = {}
        lanes: dict[int, int] = {}
        source: dict[int, tuple[str, int]] = {}
        for block in self.program.blocks:
            for step in block.steps:
                line = self.places.line_of(step.instruction)
                if not line:
                    continue
                warps[line] = warps.get(line, 0) + int(self.warp_runs[block.pc])
                lanes[line] = lanes.get(line, 0) + int(self.lane_runs[block.pc])
                origin = self.places.source_of(step.instruction)
                if origin is not None:
                    source[line] = origin
        return [
            Line(line, warps[line], lanes[line], self.waited.get(line, 0), source.get(line)) for line in sorted(warps)
        ]


def recording(launch: Launch, schedule: str, timeline: bool | int, statistics: bool) -> Recorder:
    """Return the recorder of a launch; `timeline` True: of as many CTAs as a person looks at."""
    program = launch.program
    places = places_of(program.module)
    name = program.entry.function.name
    recorded = Recorded(name, launch.grid, launch.block, launch.cluster, schedule, places.text)
    most = int(timeline) if timeline is not True and timeline else MOST_CTAS
    return Recorder(program, places, recorded, most, Tally() if statistics else None)


def _is_body(value: object) -> bool:
    return callable(value) and not isinstance(value, np.ufunc | type)


def _label_blocks(program: Program) -> list[str]:
    """Return what each block is called: after the last label before it, or its function."""
    names: dict[int, str] = {}
    for code in program.codes:
        current = code.function.name
        before: dict[int, str] = {}
        for node in visit(code.function):
            if isinstance(node, Label):
                current = node.name
            elif isinstance(node, Instruction):
                before[id(node)] = current
        for block in program.blocks:
            if block.code is code and block.steps:
                names[block.pc] = before.get(id(block.steps[0].instruction), code.function.name)
    return [names.get(pc, "") for pc in range(len(program.blocks))]
