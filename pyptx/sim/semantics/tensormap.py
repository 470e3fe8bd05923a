"""Manual: tensormap.replace, tensormap.cp_fenceproxy, clusterlaunchcontrol. A request to cancel a cluster gets the next
one that no batch has started."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pyptx import tensormap
from pyptx.isa.model import Match
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.engines import bulk
from pyptx.sim.engines.issuing import act_on_mbarriers, locate_objects, select_lanes, wrap_signal
from pyptx.sim.rules import faults
from pyptx.sim.semantics.access import store
from pyptx.sim.semantics.vocabulary import Builder, Operation, Signature, memory, value
from pyptx.sim.state.mbarriers import MBarriers
from pyptx.sim.state.memory import Site
from pyptx.sim.state.regions import Region

_HALF = 64


def _tensormap(match: Match, signature: Signature) -> Operation | None:
    if match.modifiers[0] == "cp_fenceproxy":
        return memory(_copy)
    field = match.chosen.get("field", match.modifiers[2])
    return memory(partial(_replace, field))


def _resolve_map(site: Site, lane: Lanes, space: str, address: Any, kind: str) -> tuple[Region, int]:
    start = np.array([address])
    region, offsets = site.memory.resolve(site, space, lane, start, _HALF, kind)
    site.memory.resolve(site, space, lane, start + start.dtype.type(_HALF), _HALF, kind)
    return region, int(np.atleast_1d(offsets)[0])


def _replace(
    field: str, site: Site, group: Lanes, mask: Any, space: str, address: Any, outs: Any, *operands: Any
) -> None:
    active, (addresses, values) = select_lanes(group, mask, address, tuple(operands))
    if active is None:
        return
    for position, lane in bulk.split_lanes(active):
        region, begin = _resolve_map(site, lane, space, addresses[position], "rw")
        map_bytes = region.data[begin : begin + tensormap.SIZE]
        ordinal, number = (int(values[0][position]) if len(values) == 2 else 0), int(values[-1][position])
        try:
            new_bytes = tensormap.replace_field(map_bytes.tobytes(), field, number, ordinal)
        except ValueError as why:
            raise faults.error(faults.COPY, site.origin, f"`{site.instruction.full_opcode}`: {why}") from None
        map_bytes[...] = np.frombuffer(new_bytes, np.uint8)


def _copy(
    site: Site,
    group: Lanes,
    mask: Any,
    target_space: str,
    target: Any,
    source_space: str,
    source: Any,
    outs: Any,
    *size: Any,
) -> None:
    """Copy a map once for every warp."""
    active, (target_addresses, source_addresses) = select_lanes(group, mask, target, source)
    if active is None:
        return
    firsts = np.unique(active.shape.warp[active.sel], return_index=True)[1]
    for position in firsts:
        lane = active.shape.select_index(active.index[position : position + 1])
        region, begin = _resolve_map(site, lane, source_space, source_addresses[position], "r")
        target_region, end = _resolve_map(site, lane, target_space, target_addresses[position], "w")
        target_region.data[end : end + tensormap.SIZE] = region.data[begin : begin + tensormap.SIZE]


def _clusterlaunchcontrol(match: Match, signature: Signature) -> Operation | None:
    if "try_cancel" in match.modifiers:
        return memory(_cancel_for_all if any("multicast" in m for m in match.modifiers) else wrap_signal(_cancel, 16))
    if "is_canceled" in match.modifiers:
        return value(_is_canceled)
    if "v4" in match.modifiers:
        return value(_extract_first_cta)
    return value(partial(_extract_coordinate, "xyz".index(match.modifiers[-3][-1])))


def _cancel(site: Site, group: Lanes, mask: Any, space: str, address: Any, outs: Any) -> None:
    """Cancel a cluster for every lane and write its first CTA, or zeros if all clusters have started."""
    low, high = np.zeros(group.n, np.uint64), np.zeros(group.n, np.uint64)
    for position in range(group.n):
        low[position], high[position] = _make_response(site)
    store(site, group, None, space, address, low.dtype, (low, high))


def _make_response(site: Site) -> tuple[int, int]:
    """Return the two halves of a response: whether a cluster was canceled, and the position of its first CTA."""
    first = site.memory.pending_clusters.cancel()
    if first is None:
        return 0, 0
    x, y, z = site.memory.pending_clusters.find_coordinates(first)
    return 1 | x << 32, y | z << 32


def _cancel_for_all(
    site: Site, group: Lanes, mask: Any, space: str, address: Any, bar_space: str, bar: Any, outs: Any
) -> None:
    """Cancel a cluster and send the response to every CTA of the executing cluster."""
    active, (addresses, bars) = select_lanes(group, mask, address, bar)
    if active is None:
        return
    memory = site.memory
    every = (1 << memory.cluster) - 1
    targets: list[tuple[Region, list[int], Lanes, Array]] = []
    for position, lane in bulk.split_lanes(active):
        region, offsets = memory.resolve(site, space, lane, addresses[position : position + 1], 16, "w")
        ends = bulk.locate_in_ctas(site, lane, int(offsets[0]), every)
        object_at = locate_objects(site, lane, bar_space, bars[position : position + 1])
        signals = np.array(bulk.locate_in_ctas(site, lane, int(object_at[0]), every))
        targets.append((region, ends, lane, signals))

    def land(positions: Array) -> None:
        for position in positions:
            region, ends, lane, signals = targets[int(position)]
            halves = np.array(_make_response(site), np.uint64).view(np.uint8)
            for end in ends:
                region.data[end : end + 16] = halves
            act_on_mbarriers(site, lane, partial(_transfer_response, signals))

    rows = act_on_mbarriers(site, active, lambda m: np.array([m.find_rows(signals) for *_, signals in targets]))
    memory.effects.issue_each("store", active.index, active.shape.lanes, land, mbarrier_rows=rows)


def _transfer_response(signals: Array, mbarriers: MBarriers) -> None:
    mbarriers.transfer(mbarriers.find_rows(signals), np.full(len(signals), -16))


def _is_canceled(answer: Any) -> Any:
    return (answer[0] & np.uint64(1)) != 0


def _extract_first_cta(answer: Any) -> tuple[Array, ...]:
    low, high = answer
    zeros = np.zeros(np.shape(low), np.uint32)
    parts = (low >> np.uint64(32), high & np.uint64(0xFFFFFFFF), high >> np.uint64(32))
    return (*(part.astype(np.uint32) for part in parts), zeros)


def _extract_coordinate(axis: int, answer: Any) -> Array:
    return _extract_first_cta(answer)[axis]


BUILDERS: dict[str, Builder] = {"tensormap": _tensormap, "clusterlaunchcontrol": _clusterlaunchcontrol}
