"""The registers, memory and special registers of one batch of CTAs, and the functions that run its blocks.

The scheduler decides what runs when; `semantics` computes instructions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pyptx.check.body import Step
from pyptx.diagnostics import PtxError
from pyptx.ir import opcode_span
from pyptx.sim import rules
from pyptx.sim.base.events import Place
from pyptx.sim.base.formats import CLASSES, VIEWS, Array
from pyptx.sim.base.lanes import Lanes, Shape
from pyptx.sim.execution import accumulators
from pyptx.sim.execution.codegen import Instrument, Source, Sources, Writer
from pyptx.sim.execution.tracking import POISON, Tracker, poison_registers
from pyptx.sim.images.storage import Images
from pyptx.sim.program.blocks import Block, Program
from pyptx.sim.program.shared_names import SharedNames
from pyptx.sim.reports.findings import Agent, Cta, Finding
from pyptx.sim.state import special
from pyptx.sim.state.accumulators import settle_all
from pyptx.sim.state.address_space import AddressSpace
from pyptx.sim.state.effects import Choices, Effects
from pyptx.sim.state.flights import Flight
from pyptx.sim.state.meetings import Meeting
from pyptx.sim.state.memory import RANK_SHIFT, Memory, Site
from pyptx.sim.state.multicasts import Multicasts
from pyptx.sim.state.printing import Printed
from pyptx.sim.state.regions import Region
from pyptx.sim.state.sink import Sink
from pyptx.sim.state.unstarted import PendingClusters

Dim3 = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Launch:
    """The properties of a launch that do not change while it runs."""

    program: Program
    shared_names: SharedNames
    grid: Dim3
    block: Dim3
    cluster: Dim3
    dynamic: int
    max_steps: int
    workspace: int
    """The address of the memory through which a cooperative grid synchronizes, 0 for other grids."""
    schedule: str
    seed: int
    poison: bool
    tracker: Tracker | None
    images: Images
    label: str
    """The label of a grid in a stream, empty for one that runs alone."""
    number: int
    """The grid's place in its stream."""

    @property
    def cluster_size(self) -> int:
        return self.cluster[0] * self.cluster[1] * self.cluster[2]

    @property
    def explicit(self) -> bool:
        """Whether the launch or the entry asks for clusters."""
        is_required = any(d.name == "reqnctapercluster" for d in self.program.entry.function.directives)
        return is_required or self.cluster_size > 1


@dataclass(slots=True)
class Counts:
    """The counts of a run: instructions issued, once per group of lanes and once per lane."""

    instructions: int = 0
    lane_instructions: int = 0
    batches: int = 0
    lanes: int = 0
    printed: int = 0
    """Characters that the kernel printed."""
    approximate: set[str] = field(default_factory=set[str])


@dataclass(frozen=True, slots=True)
class Resources:
    """What the batches of a launch share: memory that outlives them, compiled blocks, counts, and the listener to
    events."""

    space: AddressSpace
    params: Region
    sources: Sources
    stats: Counts
    printed: Printed
    pending_clusters: PendingClusters
    multicasts: Multicasts
    exact: int
    """The target whose tensor core sums are reproduced bit for bit, 0 to sum quickly."""
    sink: Sink[Site] | None
    instrument: Instrument | None
    flight: Flight | None
    """The state of the grid in its stream, None if it runs alone."""


class Batch:
    """The state of one batch of CTAs."""

    def __init__(self, launch: Launch, ctas: int, resources: Resources) -> None:
        self.launch, self.program, self.resources = launch, launch.program, resources
        self.stats, self.printed, self.flight = resources.stats, resources.printed, resources.flight
        self.sink = resources.sink
        variables = launch.program.variables
        shared = variables.find_dynamic_base() + launch.dynamic - variables.shared_base
        pairs = launch.program.pairs and launch.cluster_size > 1
        self.shape = Shape(launch.block, ctas, shared, launch.cluster_size, 1 << RANK_SHIFT if pairs else 0)
        lanes = self.shape.lanes
        totals = launch.program.entry.rows.used
        self._registers: dict[str, Array] = {
            letter: np.zeros((max(1, totals[letter]), lanes), dtype) for letter, dtype in CLASSES.items()
        }
        self._views = {name: self._registers[name[0]].view(dtype) for name, dtype in VIEWS.items()}
        flag_rows = 0 if launch.tracker is None else len(launch.tracker.rows)
        self._views["w"] = np.zeros((flag_rows, lanes), np.uint8)
        """Which bytes of a tracked register a lane has written."""
        self.ctaid = np.zeros((3, ctas), np.int64)
        self.sp, self.dynamic = np.zeros(lanes, np.int64), np.zeros(lanes, np.int64)
        self.dynamic_base = launch.program.dynamic or 0
        self.memory = Memory(
            self.shape, resources.space, resources.params, shared, self.ctaid, shared_base=variables.shared_base,
            cluster=launch.cluster_size, pairs=pairs, sink=resources.sink,
            effects=Effects(launch.schedule == "eager", sink=resources.sink), names=launch.shared_names.format_address,
            grid=launch.label, grid_shape=launch.grid, fresh=POISON if launch.poison else 0, images=launch.images,
            words=self._registers["r"], dynamic=self.dynamic, dynamic_base=self.dynamic_base,
            pending_clusters=resources.pending_clusters, multicasts=resources.multicasts, exact=resources.exact,
        )  # fmt: skip
        self.effects = self.memory.effects
        self._binds: dict[int, Callable[[Lanes], Callable[[], int]]] = {}
        self._spreads: dict[int, Callable[[Lanes], int]] = {}
        self._named: dict[int, tuple[Source, dict[str, Any]]] = {}
        """The blocks that run here, with the values that their text names."""
        self._equal = special.compute_launch_values(
            launch.grid, launch.block, launch.cluster, launch.explicit, shared, launch.dynamic, launch.program.target
        )
        self._equal |= dict(zip(special.WORKSPACE, divmod(launch.workspace, 1 << 32), strict=True))
        self._equal["%gridid"] = launch.number
        self._own = special.compute_thread_values(self.shape)
        self.numbers: Array = np.zeros(ctas, np.int64)
        """The number of each CTA in the grid."""
        self.meetings: list[Meeting] = []
        """Warp-wide instructions that lanes execute together from several places, some of which have yet to run."""
        self.accumulators = accumulators.number_accumulators(launch.program)

    @property
    def registers(self) -> dict[str, Array]:
        """All registers by class, for code that does not run as part of a block."""
        settle_all(self.memory.accumulators)
        return self._registers

    @property
    def views(self) -> dict[str, Array]:
        """All registers by class and type, for code that does not run as part of a block."""
        settle_all(self.memory.accumulators)
        return self._views

    def read_row(self, letter: str, index: int) -> Array:
        """Return one register of all lanes."""
        if letter == "r" and index in self.accumulators:
            settle_all(self.memory.accumulators)
        return self._registers[letter][index]

    def begin(self, numbers: Array, choices: Choices) -> None:
        """Reset the state for a batch of CTAs with these numbers. `choices` are those of its schedule."""
        for matrix in self._registers.values():
            matrix.fill(0)
        if self.launch.poison:
            poison_registers(self._registers)
        self._views["w"].fill(0)
        self.memory.begin(choices)
        self.memory.ensure_local(self.program.entry.frame.size, None)
        self.sp.fill(0)
        self.dynamic.fill(0)
        self.numbers[...] = numbers
        ctaid, inside = special.compute_coordinates(numbers, self.launch.grid, self.launch.cluster)
        self.ctaid[...] = ctaid
        cluster = np.array(self.launch.cluster)
        rank = inside[0] + cluster[0] * (inside[1] + cluster[1] * inside[2])
        values = {"%cluster_ctarank": rank}
        for dimension, axis in enumerate("xyz"):
            values[f"%ctaid.{axis}"] = ctaid[dimension]
            values[f"%cluster_ctaid.{axis}"] = inside[dimension]
            values[f"%clusterid.{axis}"] = ctaid[dimension] // cluster[dimension]
        for name, per_cta in values.items():
            values_by_lane = self._own.setdefault(name, np.zeros(self.shape.lanes, np.uint32))
            values_by_lane[...] = per_cta[self.shape.cta]
        if self.sink is not None:
            self.sink.on_begin(numbers)

    def report_unwritten(self, step: Step, name: str, lanes: Lanes, mask: Array | None, unwritten: Array) -> None:
        """Report lanes that read a register that they have not written. Raise PtxError if no listener takes the
        report."""
        readers = lanes.subset(unwritten if mask is None else mask & unwritten)
        if readers is None or (self.sink is not None and self.sink.on_unwritten_register(step, readers, name)):
            return
        lane, shape = int(readers.index[0]), self.shape
        cta = Cta.from_ctaid(self.ctaid[:, int(readers.cta[0])], self.launch.grid)
        agent = Agent(cta, int(shape.thread[lane]) // 32, int(shape.lane[lane]))
        place = Place(opcode_span(step.instruction), step.instruction.full_opcode)
        text = f"{agent} reads {name}, which it has not written, as {readers.n} threads do"
        raise PtxError([Finding(rules.UNINITIALISED_REGISTER, place, agent, text).diagnostic()])

    def read_special(self, name: str, lanes: Lanes) -> Array:
        """Return the value of a special register in some lanes."""
        own = self._own.get(name)
        return np.array(self._equal[name], np.uint64) if own is None else own[lanes.sel]

    def read_clock(self, name: str, position: int) -> Array:
        """Return the value of a clock for the instruction at a position of the running block."""
        instructions = self.stats.instructions if self.flight is None else self.flight.count_instructions()
        return np.array(special.read_clock(name, instructions + position), np.uint64)

    def find_runner(self, pc: int, lanes: Lanes) -> Callable[[], int]:
        """Return the function that runs a block in some lanes."""
        if lanes.positions is not None:
            run_spread = self._spreads.get(pc)
            if run_spread is None:
                run_spread = self._spreads[pc] = self._make(pc, spreads=True)
            return lambda: run_spread(lanes)
        bind = self._binds.get(pc)
        if bind is None:
            bind = self._binds[pc] = self._make(pc, spreads=False)
        run = lanes.closures[pc] = bind(lanes)
        return run

    def _writer(self, block: Block) -> Writer:
        return Writer(self.program, block, self.resources.instrument, self.launch.tracker, self.accumulators)

    def _make(self, pc: int, *, spreads: bool) -> Callable[..., Any]:
        """Return one of the two functions of a block."""
        source, values = self._named.get(pc) or self._name_values(pc)
        return source.find_maker(self.resources.sources.compile, spreads=spreads)(self, self._views, values)

    def _name_values(self, pc: int) -> tuple[Source, dict[str, Any]]:
        block = self.program.blocks[pc]
        instrument, sources = self.resources.instrument, self.resources.sources.blocks
        # Code that checks values is compiled and cached separately.
        key = -1 - pc if instrument is not None and instrument.numerics else pc
        source = sources.get(key)
        if source is None:
            source = sources[key] = self._writer(block).write_block()
        self.stats.approximate |= source.approximate
        name = block.code.function.name
        sites = {
            key: Site(
                self.memory, step, name, source.numbers.get(key, -1),
                accumulators.find_product_registers(self.program, block, step),
            )
            for key, step in source.sites.items()
        }  # fmt: skip
        constants = source.constants
        if self.sink is not None:
            constants = self.sink.wrap_calls(constants)
        self._named[pc] = source, {**constants, **sites}
        return self._named[pc]
