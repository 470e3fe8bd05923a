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
from pyptx.sim.engines.issuing import act_on_mbarriers, locate_objects
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

    def source(self, lane: int) -> Bytes:
        """Return the bytes of the region that one lane copies."""
        return Bytes(Space.GLOBAL, self.region.low + self.outside[lane] * self.unit, self.unit)


def may_combine(site: Site) -> bool:
    """Tell whether copies may land together."""
    sink = site.memory.sink
    return (sink is None or not sink.detailed) and site.memory.effects.on_landed is None


def load(
    site: Site, lanes: Lanes, space: str, there: Array, tensor: TensorMap, bars: Array, at: Any, ctas: Array | None,
    size: int, maps: Array,
) -> bool:  # fmt: skip
    """Copy a box for every lane and signal the mbarriers; tell whether that was possible."""
    memory, sink = site.memory, site.memory.sink or SILENT
    offsets, plan = _plan(site, lanes, space, there, tensor, at)
    if plan is None or (ctas is not None and (not (ctas == ctas[0]).all() or int(ctas[0]) >> memory.cluster)):
        return False
    ends = _locate_in_ctas(site, lanes, offsets, ctas)
    objects = locate_objects(site, lanes, "shared", bars)
    barriers = _locate_in_ctas(site, lanes, objects, ctas)
    landed = _tell_loads(site, sink, lanes, plan, np.array(ends), np.array(barriers), size, maps)
    sink.on_box(site, lanes, tensor, at, None)
    sink.on_fill(site, [end for part in ends for end in part.tolist()], size, tensor)
    sink.on_bring_boxes(site, lanes, plan.inside, plan.unit, ends, size)
    tells = np.stack(
        [act_on_mbarriers(site, lanes, lambda m, part=part: m.find_rows(part)) for part in barriers], axis=1
    )

    def land(positions: Array) -> None:
        data = plan.region.data.view(f"V{plan.unit}").take(plan.outside[positions])
        shared = memory.shared.data.view(f"V{plan.unit}")
        for end in ends:
            shared[(end[positions] // plan.unit)[:, None] + plan.inside] = data
        landed(positions)
        for part in barriers:
            rows = act_on_mbarriers(site, lanes, lambda m, part=part: m.find_rows(part[positions]))
            for row in _split_duplicates(rows, lanes.cta[positions], memory.cluster):
                act_on_mbarriers(site, lanes, lambda m, row=row: m.transfer(row, np.full(len(row), -size)))

    memory.effects.issue_each(BULK, lanes.index, lanes.shape.lanes, land, in_group=False, mbarrier_rows=tells)
    return True


def _tell_loads(
    site: Site, sink: Sink[Site], lanes: Lanes, plan: Copies, ends: Array, barriers: Array, size: int, maps: Array
) -> Callable[[Array], None]:  # fmt: skip
    """Report each lane's copy, with the bytes that it reads and writes and its mbarriers; return a function that
    reports completion by position."""
    shared, shape = site.memory.shared, lanes.shape
    together = sink.on_loads(site, lanes, plan.runs, ends.T, barriers.T, size, maps[0])
    if together is not None:
        return together
    landed: list[Callable[[], None]] = []
    for at, lane in enumerate(lanes.index.tolist()):
        source = plan.source(at)
        targets = [extents.make_bytes(shared, int(end), size) for end in ends[:, at]]
        signals = list(zip(targets, barriers[:, at].tolist(), strict=True))
        landed.append(sink.on_load(site, shape.select_range(lane, lane + 1), source, signals, maps[at]))

    def tell(positions: Array) -> None:
        for at in positions.tolist():
            landed[at]()

    return tell


def store(
    site: Site, lanes: Lanes, space: str, here: Array, tensor: TensorMap, at: Any, size: int, maps: Array
) -> bool:  # fmt: skip
    """Copy a box of every lane from shared memory; tell whether that was possible."""
    offsets, plan = _plan(site, lanes, space, here, tensor, at)
    if plan is None or not plan.region.writable:
        return False
    if plan.region.lent:
        plan.region.copy_data()
    sink = site.memory.sink or SILENT
    sink.on_box(site, lanes, tensor, at, None)
    if not sink.on_write_backs(site, lanes, offsets, size, plan.runs, maps[0]):
        seen = set[bytes]()
        for lane, begin in enumerate(offsets.tolist()):
            one = lanes.shape.select_range(int(lanes.index[lane]), int(lanes.index[lane]) + 1)
            held = extents.make_bytes(site.memory.shared, begin, size)
            sink.on_write_back(site, one, held, plan.source(lane), 0, seen, maps[lane])

    def land(positions: Array) -> None:
        shared = site.memory.shared.data.view(f"V{plan.unit}")
        inside = (offsets[positions] // plan.unit)[:, None] + plan.inside
        plan.region.data.view(f"V{plan.unit}")[plan.outside[positions]] = shared[inside]

    site.memory.effects.issue_each(BULK, lanes.index, lanes.shape.lanes, land)
    return True


def _plan(site: Site, some: Lanes, space: str, where: Array, tensor: TensorMap, at: Any) -> tuple[Array, Copies | None]:
    """Return the place of each lane's box in the batch's shared memory, and the copies; None if they differ."""
    memory = site.memory
    try:
        region, offsets = memory.resolve(site, space, some, where, 16, "w")
    except Mixed:
        return where, None
    if region is not memory.shared or len(at) != tensor.rank:
        return offsets, None
    stride = memory.shape.shared_stride
    places = offsets % stride + memory.shared.low
    first, pattern = int(places[0]), max(_ALIGNED, period(tensor.swizzle))
    if first % _ALIGNED or not (places % pattern == first % pattern).all():
        return offsets, None
    plan = plan_together(tensor, cast("tuple[Array, ...]", at), first)
    held = memory.space.find_region(tensor.address)
    if plan is None or held is None or (memory.shared.low | stride) % plan.unit or len(held.data) % plan.unit:
        return offsets, None
    low, high = int(plan.start.min()) + plan.low - held.low, int(plan.start.max()) + plan.high - held.low
    above = int(places.max()) + plan.reach - memory.shared.low - memory.shared.size
    if low < 0 or high > held.size or above > 0 or held.low % plan.unit:
        return offsets, None
    outside = ((plan.start - held.low) // plan.unit)[:, None] + plan.outside
    runs = Runs(plan.start[:, None] + plan.runs, plan.run, held.low + low, held.low + high)
    return offsets, Copies(held, plan.inside, outside, plan.unit, runs)


def _locate_in_ctas(site: Site, some: Lanes, offsets: Array, ctas: Array | None) -> list[Array]:
    """Return the offsets in every CTA of the clusters that a mask names, CTA by CTA."""
    if ctas is None:
        return [offsets]
    memory = site.memory
    stride, size = memory.shape.shared_stride, memory.cluster
    first = some.cta // size * size
    return [(first + rank) * stride + offsets % stride for rank in range(size) if int(ctas[0]) >> rank & 1]


def _split_duplicates(rows: Array, ctas: Array, cluster: int) -> list[Array]:
    """Split rows into parts without duplicates, so that each copy's bytes count separately."""
    if len(rows) == 1 or len(np.unique(rows)) == len(rows):
        return [rows]
    rank = ctas % cluster
    parts = [rows[rank == one] for one in np.unique(rank)]
    whole = all(len(np.unique(part)) == len(part) for part in parts)
    return parts if whole else [row[None] for row in rows]
