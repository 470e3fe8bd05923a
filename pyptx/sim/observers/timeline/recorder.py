"""Record a run: receive the machine's events and keep what warps run and wait for, and what engines have in flight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from linecache import getlines
from typing import Any

import numpy as np

from pyptx.check.body import Step
from pyptx.diagnostics import PtxError
from pyptx.ir import Label, visit
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.execution.machine import Batch, Launch
from pyptx.sim.observers.observer import Observer
from pyptx.sim.observers.timeline.barriers import ClusterBarrierRecord, CtaBarrierRecord, MBarrierRecord
from pyptx.sim.observers.timeline.engines import Engines
from pyptx.sim.observers.timeline.places import index_places
from pyptx.sim.observers.timeline.record import Now, Record
from pyptx.sim.observers.timeline.records import Line, Run, RunRecord, Wait
from pyptx.sim.observers.timeline.timeline import Stopped, StoppedHang, Timeline
from pyptx.sim.program.blocks import Block, Program
from pyptx.sim.reports.findings import Finding, Ledger
from pyptx.sim.reports.graph import Hang
from pyptx.sim.scheduling.state import State
from pyptx.sim.state.barriers import Waiter
from pyptx.sim.state.effects import IN_ORDER
from pyptx.sim.state.memory import Site
from pyptx.sim.state.sink import Landing, LandingOf

MOST_CTAS = 8


@dataclass(slots=True)
class Open:
    """A stretch of a warp's run that may still grow."""

    start: int
    end: int
    first: int
    last: int
    lanes: int
    steps: int


class Recorder(Observer):
    """The record of a launch: blocks are recorded here, barriers and engines in modules of their own."""

    detailed = True

    def __init__(self, record: Record, most_ctas: int, findings: Ledger | None) -> None:
        """`findings` are those of a checked run."""
        self.record, self.run_record, self.most_ctas = record, record.run_record, most_ctas
        self.program, self.places = record.program, record.places
        blocks = self.program.blocks
        self.steps = {
            id(step.instruction): (offset, step) for block in blocks for offset, step in enumerate(block.steps)
        }
        self.labels = _label_blocks(self.program)
        self.warp_runs, self.lane_runs = np.zeros(len(blocks), np.int64), np.zeros(len(blocks), np.int64)
        self.open: dict[int, Open] = {}
        self.asleep: dict[int, tuple[int, int]] = {}
        """The last mbarrier wait that refused each warp, and since when."""
        self.engines = Engines(record)
        self._barriers, self._clusters = CtaBarrierRecord(record), ClusterBarrierRecord(record)
        self._mbarriers = MBarrierRecord(record, self.engines)
        self._findings = findings
        self._located = 0
        self._state: State | None = None

    # Events of the machine

    def attach(self, machine: Batch, slots: int) -> None:
        self.record.attach(machine)

    def follow(self, state: State) -> None:
        self._state = state

    def on_begin(self, numbers: Array) -> None:
        self._close_all()
        self.engines.close()
        first = len(self.run_record.ctas)
        self.record.begin(numbers, self.most_ctas)
        self.engines.begin(self.record.batch.shape.ctas, first)
        for part in (self._barriers, self._clusters, self._mbarriers):
            part.reset()

    def on_barrier_arrive(self, step: Step, lanes: Lanes, number: int, count: int | None) -> None:
        self._barriers.arrive(lanes, number)

    def on_barrier_wait(self, step: Step, lanes: Lanes, number: int) -> None:
        self._barriers.wait(step, lanes, number)

    def on_barrier_complete(self, number: int, ctas: Array) -> None:
        self._barriers.complete(number, ctas)

    def on_cluster_arrive(self, step: Step, lanes: Lanes, phases: Array) -> None:
        self._clusters.arrive(lanes, phases)

    def on_cluster_wait(self, step: Step, lanes: Lanes, phases: Array) -> None:
        self._clusters.wait(step, lanes, phases)

    def on_mbarrier_init(self, rows: Array) -> None:
        self._mbarriers.init(rows)

    def on_mbarrier_arrive(self, rows: Array, amounts: Array | None) -> None:
        self._mbarriers.arrive(rows)

    def on_mbarrier_phase(self, rows: Array, phases: Array) -> None:
        self._mbarriers.end_phase(rows, phases)

    def on_mbarrier_test(self, rows: Array, tokens: Array, parity: bool, is_complete: Array) -> None:
        self._mbarriers.test(rows, tokens, parity, is_complete)

    def wrap_effect(self, agent: str, lanes: Array, land: Landing, in_group: bool, size: int) -> Landing:
        return land if agent in IN_ORDER else self.engines.wrap_effect(agent, lanes, land, in_group, size)

    def wrap_effects(self, land: LandingOf) -> LandingOf:
        return self.engines.wrap_arrival(land)

    def on_commit(self, agent: str, lanes: Array) -> None:
        if agent not in IN_ORDER:
            self.engines.commit(agent, lanes)

    def on_wait(self, agent: str, lanes: Array, newest: int | None) -> None:
        if agent not in IN_ORDER:
            self.engines.wait(agent, lanes, newest)

    def wrap_calls(self, constants: dict[str, Any]) -> dict[str, Any]:
        """Wrap every function to record which instruction calls it."""
        return {name: self._wrap_note(value) if _is_body(value) else value for name, value in constants.items()}

    def _wrap_note(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            if not args or type(args[0]) is not Site:
                return inner(*args)
            site, lanes, mask = args[0], args[1], args[2]
            offset, step = self.steps[id(site.instruction)]
            record = self.record
            record.now, record.reached = Now(site, step, offset, lanes, mask), offset + 1
            try:
                self.engines.begin_instruction(record.now, args)
                return inner(*args)
            finally:
                record.now = None
                self.engines.end_instruction()

        return call

    def on_block(self, block: Block, lanes: Lanes) -> None:
        """Record a block. Lanes that must wait for an mbarrier or for tensor memory have not run it."""
        record, memory = self.record, self.record.batch.memory
        waiters = memory.mbarriers.refusal
        if block.suspends and waiters is not None:
            self._record_sleep(block.pc, np.unique(lanes.shape.warp[waiters.lanes]).tolist())
            runners = lanes.subset(~np.isin(lanes.index, waiters.lanes))
            if runners is None:
                return
            lanes = runners
        if memory.tensor.refused_lanes:
            runners = lanes.subset(~np.isin(lanes.index, np.concatenate(memory.tensor.refused_lanes)))
            if runners is None:
                return
            lanes = runners
        warps, _ = record.count_warps(lanes)
        record.reached = 0
        self.warp_runs[block.pc] += len(warps)
        self.lane_runs[block.pc] += lanes.n
        steps = len(block.steps)
        for warp, count in zip(*record.find_recorded_warps(lanes), strict=True):
            self._extend(warp, block.pc, steps, count)
            self.engines.record_block(block, warp, int(record.clock[warp]))
        record.clock[warps] += steps
        if self._findings is not None and len(self._findings) > self._located:
            self._locate_findings(self._findings)

    def _record_sleep(self, pc: int, warps: list[int]) -> None:
        """Record that warps wait for an mbarrier. A warp that waited there, timed out and returned immediately
        continues the same wait: remove those steps."""
        for warp in warps:
            if not self.record.is_recorded[warp]:
                continue
            pc_asleep, since = self.asleep.get(warp, (-1, 0))
            run = self.open.get(warp)
            if pc_asleep == pc and run is not None and (run.start, run.end) == (since, int(self.record.clock[warp])):
                self.record.clock[warp] = since
                del self.open[warp]
            self.asleep[warp] = pc, int(self.record.clock[warp])

    def _locate_findings(self, findings: Ledger) -> None:
        """Record where the warps of new findings are."""
        record = self.record
        for finding in islice(findings, self._located, None):
            row = None if finding.agent is None else record.numbers.get((finding.agent.cta, finding.agent.warp))
            if row is not None:
                self.run_record.moments[id(finding)] = record.make_cause(row, int(record.clock[row]))
        self._located = len(findings)

    # The end

    def finish(self) -> RunRecord:
        """Return the record, including open runs and waits."""
        self._close_all()
        self._draw_open_waits()
        self.engines.close()
        self.run_record.lines = self._collect_lines()
        self.run_record.texts = {name: getlines(name) for name in sorted(self.places.files)}
        return self.run_record

    def make_stop(self, why: PtxError, hazards: Sequence[Finding]) -> PtxError:
        """Return the error that ended the run, with the timeline up to it."""
        hazard_messages = {(d.code, d.message) for d in (finding.diagnostic() for finding in hazards)}
        errors = [d for d in why.diagnostics if (d.code, d.message) not in hazard_messages]
        timeline = Timeline(self.finish(), hazards, errors=errors)
        return StoppedHang(why, timeline) if isinstance(why, Hang) else Stopped(why, timeline)

    def _draw_open_waits(self) -> None:
        """Draw the waits of a stopped run; in a completed one no warp waits."""
        if self._state is None:
            return
        state, mbarriers = self._state, self.record.batch.memory.mbarriers
        asleep: list[tuple[Waiter, str, int]] = []
        for number, items in state.barriers.waiters.items():
            asleep += [(item, f"bar {number}", 0) for item in items]
        asleep += [(item, "cluster barrier", 0) for item in state.clusters.waiters]
        for item in state.mbarrier_waits:
            row = int(item.rows[0])
            asleep.append((item.waiter, self._mbarriers.find_name(row), int(mbarriers.phase[row])))
        last = max(self.run_record.end, int(self.record.clock.max(initial=0))) + 1
        for item, name, phase in asleep:
            line = self.places.find_line(self.program.blocks[item.block].steps[-1].instruction)
            for warp in self.record.find_recorded_warps(item.lanes)[0]:
                start = int(self.record.clock[warp])
                if self.record.has_room():
                    self.run_record.waits.append(
                        Wait(self.record.rows[warp], start, last, name, phase, line, None, False)
                    )
        self._state = None

    def _extend(self, warp: int, pc: int, steps: int, lanes: int) -> None:
        start = int(self.record.clock[warp])
        run = self.open.get(warp)
        goes_on = run is not None and run.end == start and run.last < pc and self._shares_function(run.last, pc)
        if run is not None and goes_on and self.asleep.get(warp) != (pc - 1, start):
            run.end, run.last, run.lanes = start + steps, pc, max(run.lanes, lanes)
            run.steps += steps
            return
        if run is not None:
            self._close(warp, run)
        self.open[warp] = Open(start, start + steps, pc, pc, lanes, steps)

    def _shares_function(self, first: int, second: int) -> bool:
        blocks = self.program.blocks
        return blocks[first].code is blocks[second].code

    def _close(self, warp: int, run: Open) -> None:
        if run.end == run.start or not self.record.has_room():
            return
        first, last = self._find_block_line(run.first, False), self._find_block_line(run.last, True)
        self.run_record.runs.append(
            Run(self.record.rows[warp], run.start, run.end, self.labels[run.first], (first, last), run.lanes,
                run.steps)
        )  # fmt: skip

    def _close_all(self) -> None:
        for warp, run in self.open.items():
            self._close(warp, run)
        self.open = {}

    def _find_block_line(self, pc: int, last: bool) -> int:
        lines = [self.places.find_line(step.instruction) for step in self.program.blocks[pc].steps]
        numbers = [line for line in lines if line]
        return (numbers[-1] if last else numbers[0]) if numbers else 0

    def _collect_lines(self) -> list[Line]:
        warps: dict[int, int] = {}
        lanes: dict[int, int] = {}
        source: dict[int, tuple[str, int] | None] = {}
        for block in self.program.blocks:
            for step in block.steps:
                line = self.places.find_line(step.instruction)
                if not line:
                    continue
                warps[line] = warps.get(line, 0) + int(self.warp_runs[block.pc])
                lanes[line] = lanes.get(line, 0) + int(self.lane_runs[block.pc])
                source[line] = self.places.find_source(step.instruction)
        return [
            Line(line, warps[line], lanes[line], self.record.wait_steps.get(line, 0), source[line])
            for line in sorted(warps)
        ]


def make_recorder(launch: Launch, schedule: str, timeline: bool | int, findings: Ledger | None) -> Recorder:
    """Return the recorder of a launch; `timeline` True records a readable number of CTAs."""
    program = launch.program
    places = index_places(program.module)
    name = program.entry.function.name
    run_record = RunRecord(name, launch.grid, launch.block, launch.cluster, schedule, places.text)
    most_ctas = int(timeline) if timeline is not True and timeline else MOST_CTAS
    return Recorder(Record(program, places, run_record), most_ctas, findings)


def _is_body(value: object) -> bool:
    return callable(value) and not isinstance(value, np.ufunc | type)


def _label_blocks(program: Program) -> list[str]:
    """Return the name of each block: the last label before it, or its function."""
    names: dict[int, str] = {}
    for code in program.codes:
        current = code.function.name
        before: dict[int, str] = {}
        for node in visit(code.function):
            if isinstance(node, Label):
                current = node.name
            else:
                before[id(node)] = current
        for block in program.blocks:
            if block.code is code and block.steps:
                names[block.pc] = before.get(id(block.steps[0].instruction), code.function.name)
    return [names.get(pc, "") for pc in range(len(program.blocks))]
