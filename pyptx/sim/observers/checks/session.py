"""One checked run: the engine, the batch's lanes as the engine's threads, and every access to memory.

Lane `t * ctas + c` of a batch is thread `t` of the CTA in slot `c`. The `Group` of a lane set is created once and kept.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from pyptx.check.body import Step
from pyptx.ir import Instruction, opcode_span
from pyptx.isa.traits import Trait
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.execution.machine import Batch
from pyptx.sim.hazards import Access, Finding, Group, Hazards, Place
from pyptx.sim.hazards.barriers import BarKind
from pyptx.sim.hazards.dependents import Early
from pyptx.sim.hazards.state import Grid, Overlap
from pyptx.sim.hazards.unread import Unread
from pyptx.sim.observers.checks.accesses import StoredValues, describe_access
from pyptx.sim.observers.checks.choice import Selection
from pyptx.sim.observers.observer import Observer
from pyptx.sim.reports.findings import Cta
from pyptx.sim.state.effects import IN_ORDER
from pyptx.sim.state.memory import Site
from pyptx.sim.state.regions import Region
from pyptx.sim.state.sink import Landing, LandingOf

_MOST_GROUPS = 4096


def make_place(instruction: Instruction) -> Place:
    """Return the place of an instruction, in PTX and, if it has one, in Python."""
    return Place(opcode_span(instruction), instruction.full_opcode)


class Session(Observer):
    """One checked run. `engine` keeps the findings."""

    traces = True

    def __init__(self, selection: Selection, before: Session | None = None, overlap: Overlap = Overlap.NONE) -> None:
        """`before`: the checks of the previous grid, which this one may overlap."""
        self.selection = selection
        self.continues = not selection.raises
        self.compares_values = "numerics" in selection.optional
        # Checks for NaN compare accumulators before and after every product.
        self.hasty = IN_ORDER if self.compares_values else frozenset[str]()
        self.engine = Hazards(add_unknown=self._add_buffer) if before is None else before.engine
        self.overlap = overlap
        self.machine: Batch | None = None
        self.grid: Grid | None = None
        self.threads: Array
        self.last_store: StoredValues | None = None
        """The values of the latest store: lanes that write the same bytes may write the same values."""
        self.unread: Unread | None = None
        """Bytes of copies and products that have not been read, if selected."""
        self.early: Early | None = None
        """Accesses to global memory before a known wait for the previous grid, if selected."""
        self.arriving: dict[tuple[int, int], tuple[Array, Step, int | None, BarKind]] = {}
        """Lanes that arrived at a barrier of their CTA before the rest of their warp, by barrier and warp."""
        self.divergent_warps: set[int] = set()
        """Warps with lanes that cannot reach a barrier at which others wait."""
        self.explain_divergence: Callable[[Place, Lanes], list[Finding]] = lambda place, lanes: []
        """Return the findings of an aligned instruction in lanes that are not all of their warps."""
        self.site_places: dict[Site, Place] = {}
        self._landing: Landing | None = None
        """What to call when the next effect has landed."""
        self._landing_of: LandingOf | None = None
        """The same for the next effect that lands lane by lane."""
        self._accesses: dict[Any, Access | None] = {}
        self._places: dict[int, tuple[Step, Place]] = {}
        self._groups: dict[tuple[int, int, bytes], Group] = {}

    # The launch

    def attach(self, machine: Batch, slots: int) -> None:
        """Prepare for a machine that will run the next batches, of at most `slots` CTAs."""
        self.machine = machine
        if self.grid is None:
            self.grid = self._record_launch(machine, slots)
            waits = any(
                s.traits.get(Trait.MEETS) == "grid" and Trait.ARRIVES not in s.traits
                for b in machine.program.blocks for s in b.steps
            )  # fmt: skip
            if "dependents" in self.selection.optional and waits and self.overlap is Overlap.NONE:
                self.early = Early(self.engine.state, self.grid)
        shape = machine.shape
        self.threads = self.grid.first_thread + shape.cta * self.grid.stride + shape.thread
        self._groups.clear()
        self._accesses.clear()
        self.site_places.clear()

    def _record_launch(self, machine: Batch, slots: int) -> Grid:
        """Report the launch and its memory."""
        entry = machine.program.entry.function
        memory = machine.memory
        block = machine.launch.block
        tensor = any(Trait.TENSOR in s.traits for b in machine.program.blocks for s in b.steps)
        return self.engine.launch(
            Place(entry.origin, entry.name), block[0] * block[1] * block[2], slots=slots,
            cluster=machine.launch.cluster_size, shared_bytes=memory.shared_size, tensor=tensor,
            names=lambda offset: machine.launch.shared_names.format_address(offset + memory.shared_base),
            overlap=self.overlap, label=machine.launch.label,
        )  # fmt: skip

    def _add_buffer(self, address: int) -> bool:
        """Register the allocation that contains an address with the engine, if the kernel can write it."""
        assert self.machine is not None
        region = self.machine.memory.space.find_region(address)
        if region is None or not region.writable or region.space != "global" or address >= region.low + region.size:
            return False
        self.engine.state.add_buffer(region.low, region.size, region.name, region.fresh, region.initial)
        return True

    def on_begin(self, numbers: Array) -> None:
        assert self.grid is not None
        assert self.machine is not None
        machine = self.machine
        ctas = [Cta.from_ctaid(ctaid, machine.launch.grid) for ctaid in machine.ctaid.T.tolist()]
        if "unused" in self.selection.optional:
            self._end_unread()
            self.unread = Unread(self.engine.state, self.grid)
        self.engine.start(self.grid, range(machine.shape.ctas), ctas)
        self.arriving.clear()
        self.divergent_warps.clear()

    def on_finish(self) -> None:
        if self.grid is not None:
            self._end_unread()
            self.engine.finish(self.grid)

    def _end_unread(self) -> None:
        if self.unread is not None:
            self.unread.end()

    # Lanes and places

    def find_place(self, step: Step) -> Place:
        """Return the place of a step, always the same object."""
        entry = self._places.get(id(step))
        if entry is None:
            entry = self._places[id(step)] = step, make_place(step.instruction)
        return entry[1]

    def group_lanes(self, lanes: Lanes) -> Group:
        """Return the engine's group of these lanes."""
        return lanes.compute_once("hazards", lambda: self._make_group(lanes))

    def _make_group(self, lanes: Lanes) -> Group:
        if lanes.positions is None:
            return Group(self.threads[lanes.lo : lanes.hi])
        key = lanes.lo, lanes.hi, lanes.positions.tobytes()
        group = self._groups.get(key)
        if group is None:
            if len(self._groups) >= _MOST_GROUPS:
                self._groups.clear()
            group = self._groups[key] = Group(self.threads[lanes.positions])
        return group

    def select_active(self, lanes: Lanes, mask: Array | None) -> Lanes | None:
        """Return the lanes whose guard is true, None if there are none."""
        if mask is None:
            return lanes
        positions = np.flatnonzero(np.broadcast_to(mask, lanes.n))
        return (
            lanes
            if len(positions) == lanes.n
            else lanes.shape.select_index(lanes.index[positions])
            if len(positions)
            else None
        )

    def find_incomplete(self, group: Group) -> Array | None:
        """Return which warps of a group lack live lanes, None if all are whole."""
        version = self.engine.state.clocks.version
        if group.complete_at == version:
            return None
        warps = group.warps
        living = self.engine.state.live.reshape(-1, 32)[warps].sum(axis=1)
        part = np.bincount(group.warp_index, minlength=len(warps)) < living
        if part.any():
            return part
        group.complete_at = version
        return None

    def check_aligned(self, lanes: Lanes, place: Place) -> None:
        """Report an `.aligned` instruction that not all live lanes of each warp execute."""
        if self.find_incomplete(self.group_lanes(lanes)) is not None:
            for finding in self.explain_divergence(place, lanes):
                self.engine.findings.add(finding)

    def split_by_cta(self, lanes: Lanes) -> list[tuple[int, Group]]:
        """Return the lanes of each CTA, with its slot."""
        return lanes.compute_once("hazards by cta", lambda: self._split_lanes(lanes, lanes.cta))

    def split_by_cluster(self, lanes: Lanes) -> list[tuple[int, Group]]:
        """Return the lanes of each cluster."""
        assert self.grid is not None
        size = self.grid.cluster
        return lanes.compute_once("hazards by cluster", lambda: self._split_lanes(lanes, lanes.cta // size))

    def _split_lanes(self, lanes: Lanes, key: Array) -> list[tuple[int, Group]]:
        numbers = np.unique(key).tolist()
        if len(numbers) == 1:
            return [(numbers[0], self.group_lanes(lanes))]
        threads = self.threads[lanes.sel]
        return [(number, Group(threads[key == number])) for number in numbers]

    # Effects of engines

    def run_issue(self, report: Landing, run: Callable[[], None]) -> None:
        """Run an instruction that issues at most one effect. Call `report` when that has landed, at once without
        one."""
        self._landing = report
        run()
        if self._landing is not None:
            self._landing = None
            report()

    def run_issues(self, report: LandingOf, run: Callable[[], None]) -> None:
        """Run an instruction that issues an effect of several lanes. Call `report` when it has landed for some."""
        self._landing_of = report
        run()

    def wrap_effect(self, agent: str, lanes: Array, land: Landing, in_group: bool, size: int) -> Landing:
        report, self._landing = self._landing, None
        return land if report is None else partial(_run_both, land, report)

    def wrap_effects(self, land: LandingOf) -> LandingOf:
        report, self._landing_of = self._landing_of, None
        return land if report is None else partial(_run_both, land, report)

    # Accesses of lanes

    def on_access(self, site: Site, lanes: Lanes, region: Region, offsets: Array, size: int, kind: str) -> None:
        shared = region.space == "shared"
        if not shared and (region.space != "global" or not region.writable):
            return
        key = site, kind, shared, size
        access = self._accesses.get(key)
        if access is None:
            if key in self._accesses:
                return
            access = self._accesses[key] = describe_access(site.instruction, shared, size, kind)
            if access is None:
                return
        addresses = offsets if shared else offsets + region.low
        if shared and self.unread is not None:
            self.unread.record_access(offsets, size, kind)
        if not shared and self.early is not None and not access.readonly:
            self.early.access(access.place, self.group_lanes(lanes).threads, addresses, size, writes=access.writes)
        last_store = self.last_store
        if last_store is None or last_store.lanes is not lanes:
            self.engine.access(access, self.group_lanes(lanes), addresses)
            return
        self.engine.access(
            access, self.group_lanes(lanes), addresses, benign=lambda: last_store.compare_lanes(addresses),
            unchanged=lambda threads: ~np.isin(
                threads, self.threads[lanes.sel][last_store.compare_memory(region.data, offsets, size)]
            ),
        )  # fmt: skip


def _run_both(first: Callable[..., None], second: Callable[..., None], *args: Any) -> None:
    first(*args)
    second(*args)


def find_session(machine: Batch) -> Session:
    """Return the session of a machine's run."""
    assert machine.sink is not None
    return machine.sink.find_listener(Session)


def locate_session(site: Site) -> tuple[Session, Place]:
    """Return the session of a run and the place of the current instruction."""
    assert site.memory.sink is not None
    checks = site.memory.sink.find_listener(Session)
    entry = checks.site_places.get(site)
    if entry is None:
        entry = checks.site_places[site] = make_place(site.instruction)
    return checks, entry
