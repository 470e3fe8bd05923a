"""Tensor copies that many lanes issue alike, as one copy: what most kernels do, once per CTA.

Only where nobody looks at single copies, as recorded and counted runs do. Listeners are told of each copy.
What does not go together is left to `bulk`, which also says what is wrong with a copy.
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
from pyptx.sim.engines.copies.boxes import together
from pyptx.sim.engines.issuing import objects, told
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


def possible(site: Site) -> bool:
    """Say whether copies may land together."""
    sink = site.memory.sink
    return (sink is None or not sink.detailed) and site.memory.effects.landed is None


def load(
    site: Site, some: Lanes, space: str, there: Array, tensor: TensorMap, bars: Array, at: Any, ctas: Array | None,
    size: int, maps: Array,
) -> bool:  # fmt: skip
    """Copy a box for every lane and tell the barriers; say whether that was possible."""
    memory, sink = site.memory, site.memory.sink or SILENT
    offsets, made = _planned(site, some, space, there, tensor, at)
    if made is None or (ctas is not None and (not (ctas == ctas[0]).all() or int(ctas[0]) >> memory.cluster)):
        return False
    ends = _everywhere(site, some, offsets, ctas)
    found = objects(site, some, "shared", bars)
    barriers = _everywhere(site, some, found, ctas)
    landed = _tell_loads(site, sink, some, made, np.array(ends), np.array(barriers), size, maps)
    sink.on_box(site, some, tensor, at, None)
    sink.on_fill(site, [end for part in ends for end in part.tolist()], size, tensor)
    sink.on_bring_boxes(site, some, made.inside, made.unit, ends, size)
    tells = np.stack([told(site, some, lambda m, part=part: m.rows(part)) for part in barriers], axis=1)

    def land(those: Array) -> None:
        data = made.region.data.view(f"V{made.unit}").take(made.outside[those])
        shared = memory.shared.data.view(f"V{made.unit}")
        for end in ends:
            shared[(end[those] // made.unit)[:, None] + made.inside] = data
        landed(those)
        for part in barriers:
            rows = told(site, some, lambda m, part=part: m.rows(part[those]))
            for row in _apart(rows, some.cta[those], memory.cluster):
                told(site, some, lambda m, row=row: m.transfer(row, np.full(len(row), -size)))

    memory.effects.issue_each(BULK, some.index, some.shape.lanes, land, grouped=False, tells=tells)
    return True


def _tell_loads(
    site: Site, sink: Sink[Site], some: Lanes, made: Copies, ends: Array, barriers: Array, size: int, maps: Array
) -> Callable[[Array], None]:  # fmt: skip
    """Tell of each lane's copy, of the bytes that it reads and those that it writes, with their barriers; return what
    tells that copies have landed, by position."""
    shared, shape = site.memory.shared, some.shape
    together = sink.on_loads(site, some, made.runs, ends.T, barriers.T, size, maps[0])
    if together is not None:
        return together
    landed: list[Callable[[], None]] = []
    for at, lane in enumerate(some.index.tolist()):
        source = made.source(at)
        targets = [extents.region_bytes(shared, int(end), size) for end in ends[:, at]]
        signals = list(zip(targets, barriers[:, at].tolist(), strict=True))
        landed.append(sink.on_load(site, shape.range(lane, lane + 1), source, signals, maps[at]))

    def tell(those: Array) -> None:
        for at in those.tolist():
            landed[at]()

    return tell


def store(
    site: Site, some: Lanes, space: str, here: Array, tensor: TensorMap, at: Any, size: int, maps: Array
) -> bool:  # fmt: skip
    """Copy a box of every lane from shared memory; say whether that was possible."""
    offsets, made = _planned(site, some, space, here, tensor, at)
    if made is None or not made.region.writable:
        return False
    if made.region.lent:
        made.region.own()
    sink = site.memory.sink or SILENT
    sink.on_box(site, some, tensor, at, None)
    if not sink.on_write_backs(site, some, offsets, size, made.runs, maps[0]):
        seen = set[bytes]()
        for lane, begin in enumerate(offsets.tolist()):
            one = some.shape.range(int(some.index[lane]), int(some.index[lane]) + 1)
            held = extents.region_bytes(site.memory.shared, begin, size)
            sink.on_write_back(site, one, held, made.source(lane), 0, seen, maps[lane])

    def land(those: Array) -> None:
        shared = site.memory.shared.data.view(f"V{made.unit}")
        inside = (offsets[those] // made.unit)[:, None] + made.inside
        made.region.data.view(f"V{made.unit}")[made.outside[those]] = shared[inside]

    site.memory.effects.issue_each(BULK, some.index, some.shape.lanes, land)
    return True


def _planned(
    site: Site, some: Lanes, space: str, where: Array, tensor: TensorMap, at: Any
) -> tuple[Array, Copies | None]:
    """Return where each lane's box lies in the batch's shared memory, and the copies; None where they are not alike."""
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
    plan = together(tensor, cast("tuple[Array, ...]", at), first)
    held = memory.space.region_at(tensor.address)
    if plan is None or held is None or (memory.shared.low | stride) % plan.unit or len(held.data) % plan.unit:
        return offsets, None
    low, high = int(plan.start.min()) + plan.low - held.low, int(plan.start.max()) + plan.high - held.low
    above = int(places.max()) + plan.reach - memory.shared.low - memory.shared.size
    if low < 0 or high > held.size or above > 0 or held.low % plan.unit:
        return offsets, None
    outside = ((plan.start - held.low) // plan.unit)[:, None] + plan.outside
    runs = Runs(plan.start[:, None] + plan.runs, plan.run, held.low + low, held.low + high)
    return offsets, Copies(held, plan.inside, outside, plan.unit, runs)


def _everywhere(site: Site, some: Lanes, offsets: Array, ctas: Array | None) -> list[Array]:
    """Return the offsets in every CTA of the clusters that a mask names, all lanes' in one CTA after the other's."""
    if ctas is None:
        return [offsets]
    memory = site.memory
    stride, size = memory.shape.shared_stride, memory.cluster
    first = some.cta // size * size
    return [(first + rank) * stride + offsets % stride for rank in range(size) if int(ctas[0]) >> rank & 1]


def _apart(rows: Array, ctas: Array, cluster: int) -> list[Array]:
    """Return rows in parts that name none twice, so that each copy's bytes count by themselves."""
    if len(rows) == 1 or len(np.unique(rows)) == len(rows):
        return [rows]
    rank = ctas % cluster
    parts = [rows[rank == one] for one in np.unique(rank)]
    whole = all(len(np.unique(part)) == len(part) for part in parts)
    return parts if whole else [row[None] for row in rows]
