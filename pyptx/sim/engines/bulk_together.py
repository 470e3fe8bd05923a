"""Equal tensor copies of many lanes, run as one copy: as most kernels issue them, once per CTA.

Only if no observer needs single copies, as in recorded and counted runs. Sinks receive each copy. Copies that differ
are left to `bulk`, which also reports errors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from pyptx.isa.swizzle import period
from pyptx.sim.base.events import Bytes, Runs, Space
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.engines import extents
from pyptx.sim.engines.copies.boxes import plan_together
from pyptx.sim.engines.issuing import act_on_mbarriers, find_signaled, locate_objects
from pyptx.sim.state.effects import BULK
from pyptx.sim.state.memory import Mixed, Site
from pyptx.sim.state.regions import Region
from pyptx.sim.state.sink import SILENT, Sink
from pyptx.tensormap import TensorMap

_ALIGNED = 128


@dataclass(frozen=True, slots=True)
class Copies:
    """Copies of equal boxes: units of each in shared memory, counted from its destination, and in a region, by lane."""

    region: Region
    inside: Array
    outside: Array
    unit: int
    runs: Runs

    def find_source(self, lane: int) -> Bytes:
        """Return the bytes of the region that one lane copies."""
        return Bytes(Space.GLOBAL, self.region.low + self.outside[lane] * self.unit, self.unit)


def may_combine(site: Site) -> bool:
    """Tell whether copies may land together."""
    sink = site.memory.sink
    return sink is None or not sink.detailed


def load(
    site: Site, lanes: Lanes, space: str, target_addresses: Array, tensor: TensorMap, bars: Array, corner: Any,
    ctas: Array | None, size: int, maps: Array,
) -> bool:  # fmt: skip
    """Copy a box for every lane and signal the mbarriers; tell whether that was possible."""
    memory, sink = site.memory, site.memory.sink or SILENT
    offsets, plan = _plan_copies(site, lanes, space, target_addresses, tensor, corner)
    if plan is None:
        return False
    if ctas is not None and not ((ctas == ctas[0]).all() and 0 < int(ctas[0]) < 1 << memory.cluster):
        return False
    ends = _locate_in_ctas(site, lanes, offsets, ctas)
    objects = locate_objects(site, lanes, "shared", bars)
    barriers = [find_signaled(site, objects, part) for part in _locate_in_ctas(site, lanes, objects, ctas)]
    report_landing = _report_loads(site, sink, lanes, plan, np.array(ends), np.array(barriers), size, maps)
    sink.on_box(site, lanes, tensor, corner, None)
    sink.on_fill(site, [end for part in ends for end in part.tolist()], size, tensor)
    sink.on_bring_boxes(site, lanes, plan.inside, plan.unit, ends, size)
    barrier_rows = np.stack(
        [act_on_mbarriers(site, lanes, lambda m, part=part: m.find_rows(part)) for part in barriers], axis=1
    )

    def land(positions: Array) -> None:
        data = plan.region.data.view(f"V{plan.unit}").take(plan.outside[positions])
        shared = memory.shared.data.view(f"V{plan.unit}")
        for end in ends:
            shared[(end[positions] // plan.unit)[:, None] + plan.inside] = data
        report_landing(positions)
        for part in barriers:
            rows = act_on_mbarriers(site, lanes, lambda m, part=part: m.find_rows(part[positions]))
            for row in _split_duplicates(rows, lanes.cta[positions], memory.cluster):
                act_on_mbarriers(site, lanes, lambda m, row=row: m.transfer(row, np.full(len(row), -size)))

    memory.effects.issue_each(BULK, lanes.index, lanes.shape.lanes, land, mbarrier_rows=barrier_rows)
    return True


def _report_loads(
    site: Site, sink: Sink[Site], lanes: Lanes, plan: Copies, ends: Array, barriers: Array, size: int, maps: Array
) -> Callable[[Array], None]:  # fmt: skip
    """Report each lane's copy, with the bytes that it reads and writes and its mbarriers; return a function that
    reports completion by position."""
    shared, shape = site.memory.shared, lanes.shape
    report_together = sink.on_loads(site, lanes, plan.runs, ends.T, barriers.T, size, maps[0])
    if report_together is not None:
        return report_together
    landings: list[Callable[[], None]] = []
    for position, lane in enumerate(lanes.index.tolist()):
        source = plan.find_source(position)
        targets = [extents.make_bytes(shared, int(end), size) for end in ends[:, position]]
        signals = list(zip(targets, barriers[:, position].tolist(), strict=True))
        landings.append(sink.on_load(site, shape.select_range(lane, lane + 1), source, signals, maps[position]))

    def report_landings(positions: Array) -> None:
        for position in positions.tolist():
            landings[position]()

    return report_landings


def store(
    site: Site, lanes: Lanes, space: str, source_addresses: Array, tensor: TensorMap, corner: Any, size: int,
    maps: Array,
) -> bool:  # fmt: skip
    """Copy a box of every lane from shared memory; tell whether that was possible."""
    offsets, plan = _plan_copies(site, lanes, space, source_addresses, tensor, corner)
    if plan is None or not plan.region.writable:
        return False
    if plan.region.lent:
        plan.region.copy_data()
    sink = site.memory.sink or SILENT
    sink.on_box(site, lanes, tensor, corner, None)
    if not sink.on_write_backs(site, lanes, offsets, size, plan.runs, maps[0]):
        earlier_copies = set[bytes]()
        for lane, begin in enumerate(offsets.tolist()):
            issuer = lanes.shape.select_range(int(lanes.index[lane]), int(lanes.index[lane]) + 1)
            source_bytes = extents.make_bytes(site.memory.shared, begin, size)
            sink.on_write_back(site, issuer, source_bytes, plan.find_source(lane), 0, earlier_copies, maps[lane])

    def land(positions: Array) -> None:
        shared = site.memory.shared.data.view(f"V{plan.unit}")
        inside = (offsets[positions] // plan.unit)[:, None] + plan.inside
        plan.region.data.view(f"V{plan.unit}")[plan.outside[positions]] = shared[inside]

    site.memory.effects.issue_each(BULK, lanes.index, lanes.shape.lanes, land)
    return True


def _plan_copies(
    site: Site, lanes: Lanes, space: str, addresses: Array, tensor: TensorMap, corner: Any
) -> tuple[Array, Copies | None]:
    """Return the place of each lane's box in the batch's shared memory, and the copies; None if they differ."""
    memory = site.memory
    try:
        region, offsets = memory.resolve(site, space, lanes, addresses, 16, "w")
    except Mixed:
        return addresses, None
    if region is not memory.shared or len(corner) != tensor.rank:
        return offsets, None
    stride = memory.shape.shared_stride
    places = offsets % stride + memory.shared.low
    first, pattern = int(places[0]), max(_ALIGNED, period(tensor.swizzle))
    if first % _ALIGNED or not (places % pattern == first % pattern).all():
        return offsets, None
    plan = plan_together(tensor, cast("tuple[Array, ...]", corner), first)
    tensor_region = memory.space.find_region(tensor.address)
    if (
        plan is None
        or tensor_region is None
        or (memory.shared.low | stride) % plan.unit
        or len(tensor_region.data) % plan.unit
    ):
        return offsets, None
    low, high = (
        int(plan.start.min()) + plan.low - tensor_region.low,
        int(plan.start.max()) + plan.high - tensor_region.low,
    )
    above = int(places.max()) + plan.reach - memory.shared.low - memory.shared.size
    if low < 0 or high > tensor_region.size or above > 0 or tensor_region.low % plan.unit:
        return offsets, None
    outside = ((plan.start - tensor_region.low) // plan.unit)[:, None] + plan.outside
    runs = Runs(plan.start[:, None] + plan.runs, plan.run, tensor_region.low + low, tensor_region.low + high)
    return offsets, Copies(tensor_region, plan.inside, outside, plan.unit, runs)


def _locate_in_ctas(site: Site, lanes: Lanes, offsets: Array, ctas: Array | None) -> list[Array]:
    """Return the offsets in every CTA of the clusters that a mask names, CTA by CTA."""
    if ctas is None:
        return [offsets]
    memory = site.memory
    stride, size = memory.shape.shared_stride, memory.cluster
    first = lanes.cta // size * size
    return [(first + rank) * stride + offsets % stride for rank in range(size) if int(ctas[0]) >> rank & 1]


def _split_duplicates(rows: Array, ctas: Array, cluster: int) -> list[Array]:
    """Split rows into parts without duplicates, so that each copy's bytes count separately."""
    if len(rows) == 1 or len(np.unique(rows)) == len(rows):
        return [rows]
    rank = ctas % cluster
    parts = [rows[rank == number] for number in np.unique(rank)]
    are_distinct = all(len(np.unique(part)) == len(part) for part in parts)
    return parts if are_distinct else [row[None] for row in rows]
