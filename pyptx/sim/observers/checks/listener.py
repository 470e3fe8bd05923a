"""Receive the events of a checked run and pass each to the module that knows its meaning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyptx.check.body import Step
from pyptx.sim.base.events import Bytes, Runs
from pyptx.sim.base.formats import Array, Value
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.observers.checks import barriers, boxes, bulk, layouts, numerics, tensor, unread
from pyptx.sim.observers.checks.accesses import StoredValues
from pyptx.sim.observers.checks.divergence import Divergence
from pyptx.sim.observers.checks.instrument import Instrument
from pyptx.sim.observers.checks.session import Session
from pyptx.sim.observers.checks.wgmma import is_sum
from pyptx.sim.program.blocks import Block, Program
from pyptx.sim.rules import advice
from pyptx.sim.scheduling.state import State
from pyptx.sim.state.memory import Site
from pyptx.sim.state.sink import Landing, LandingOf
from pyptx.sim.state.tracing import Trace
from pyptx.tensormap import TensorMap


class Checks(Session):
    """The hazard checks of one grid."""

    _divergence: Divergence

    def follow(self, state: State) -> None:
        self._divergence = Divergence(self, state)
        self.explain_divergence = self._divergence.explain

    def instrument(self, program: Program) -> Instrument:
        return Instrument(program, self.compares_values)

    def on_store(self, lanes: Lanes, values: tuple[Value | None, ...]) -> None:
        self.last_store = StoredValues(lanes, values)

    def on_unwritten_register(self, step: Step, lanes: Lanes, name: str) -> bool:
        help = advice.OVERWRITE if is_sum(step, name) else ""
        self.engine.warps.report_uninitialized(self.group_lanes(lanes), self.find_place(step), [name], help)
        return True

    # Warps, barriers, grids

    def on_come(self, block: Block, depth: int, lanes: Lanes) -> None:
        self._divergence.check_barrier(block, depth, lanes)

    def on_stuck(self) -> None:
        self._divergence.check_waiting()

    def on_split(self, step: Step, lanes: Lanes, passing_lanes: Lanes) -> None:
        barriers.check_guard(self, step, lanes, passing_lanes)

    def on_exit(self, step: Step, lanes: Lanes) -> None:
        barriers.end_lanes(self, step, lanes)

    def on_warp_barrier(self, step: Step, lanes: Lanes, masks: Array) -> None:
        barriers.synchronize_warps(self, step, lanes, masks)

    def on_warp_barriers(self, parts: list[tuple[Step, Lanes, Array]]) -> None:
        barriers.synchronize_parts(self, parts)

    def on_barrier_arrive(self, step: Step, lanes: Lanes, number: int, count: int | None) -> None:
        barriers.arrive_at_cta_barrier(self, step, lanes, number, count)

    def on_barrier_numbers(self, step: Step, lanes: Lanes, numbers: Array) -> None:
        barriers.check_numbers(self, step, lanes, numbers)

    def on_cluster_arrive(self, step: Step, lanes: Lanes, phases: Array) -> None:
        barriers.arrive_at_cluster_barrier(self, step, lanes)

    def on_cluster_wait(self, step: Step, lanes: Lanes, phases: Array) -> None:
        barriers.pass_cluster_barrier(self, step, lanes)

    def on_grid_wait(self, lanes: Lanes) -> None:
        self.engine.sync.grid_wait(self.group_lanes(lanes))

    def on_grid_launch(self, lanes: Lanes, first: Sequence[bool]) -> None:
        barriers.launch_dependents(self, lanes, first)

    # Engines

    def on_tensor_operation(self, site: Site, lanes: Lanes, trace: Trace) -> None:
        tensor.report_operation(self, site, lanes, trace)

    def on_peer_copy(self, site: Site, lane: Lanes, target: int) -> None:
        bulk.report_peer_copy(site, lane, target)

    def on_load(
        self, site: Site, lane: Lanes, source: Bytes, targets: list[tuple[Bytes, int]], tensor_map: Any
    ) -> Landing:
        return bulk.report_load(site, lane, source, targets, tensor_map)

    def on_loads(
        self, site: Site, lanes: Lanes, source: Runs, targets: Array, barriers: Array, size: int, tensor_map: Any
    ) -> LandingOf | None:
        return bulk.report_loads(site, lanes, source, targets, barriers, size, tensor_map)

    def on_write_back(
        self,
        site: Site,
        lane: Lanes,
        source: Bytes,
        target: Bytes,
        reduces: int,
        earlier_copies: set[bytes],
        tensor_map: Any,
    ) -> None:
        bulk.report_store(site, lane, source, target, reduces, earlier_copies, tensor_map)

    def on_write_backs(
        self, site: Site, lanes: Lanes, sources: Array, size: int, target: Runs, tensor_map: Any
    ) -> bool:
        return bulk.report_stores(site, lanes, sources, size, target, tensor_map)

    def on_box(self, site: Site, lanes: Lanes, tensor: TensorMap, start: Sequence[Any], inside: Array | None) -> None:
        boxes.record_boxes(site, lanes, tensor, start, inside)

    def on_fill(self, site: Site, starts: list[int], size: int, tensor: TensorMap) -> None:
        layouts.record_fill(site, starts, size, tensor)

    def on_bring(self, site: Site, lane: Lanes, cells: Array, size: int) -> None:
        unread.record_bytes(site, lane, cells, size)

    def on_bring_box(self, site: Site, lane: Lanes, units: Array, unit: int, ends: list[int], size: int) -> None:
        unread.record_box(site, lane, units, unit, ends, size)

    def on_bring_boxes(self, site: Site, lanes: Lanes, units: Array, unit: int, ends: list[Array], size: int) -> None:
        unread.record_boxes(site, lanes, units, unit, ends, size)

    def on_sum(self, site: Site, lane: Lanes, kind: str, old: Array, new: Array, total: Array) -> None:
        numerics.check_copy(site, lane, kind, old, new, total)
