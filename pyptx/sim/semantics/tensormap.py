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
from pyptx.sim.state.memory import Site
from pyptx.sim.state.regions import Region

_HALF = 64


def _tensormap(match: Match, signature: Signature) -> Operation | None:
    if match.modifiers[0] == "cp_fenceproxy":
        return memory(_copy)
    field = match.chosen.get("field", match.modifiers[2])
    return memory(partial(_replace, field))


def _resolve_map(site: Site, one: Lanes, space: str, address: Any, kind: str) -> tuple[Region, int]:
    whole = np.array([address])
    region, offsets = site.memory.resolve(site, space, one, whole, _HALF, kind)
    site.memory.resolve(site, space, one, whole + whole.dtype.type(_HALF), _HALF, kind)
    return region, int(np.atleast_1d(offsets)[0])


def _replace(field: str, site: Site, group: Lanes, mask: Any, space: str, address: Any, outs: Any, *given: Any) -> None:
    active, (where, values) = select_lanes(group, mask, address, tuple(given))
    if active is None:
        return
    for at, one in bulk.split_lanes(active):
        region, begin = _resolve_map(site, one, space, where[at], "rw")
        held = region.data[begin : begin + tensormap.SIZE]
        ordinal, number = (int(values[0][at]) if len(values) == 2 else 0), int(values[-1][at])
        try:
            edited = tensormap.replace_field(held.tobytes(), field, number, ordinal)
        except ValueError as why:
            raise faults.error(faults.COPY, site.origin, f"`{site.instruction.full_opcode}`: {why}") from None
        held[...] = np.frombuffer(edited, np.uint8)


def _copy(
    site: Site, group: Lanes, mask: Any, to: str, target: Any, of: str, source: Any, outs: Any, *size: Any
) -> None:
    """Copy a map once for every warp."""
    active, (there, here) = select_lanes(group, mask, target, source)
    if active is None:
        return
    firsts = np.unique(active.shape.warp[active.sel], return_index=True)[1]
    for at in firsts:
        one = active.shape.select_index(active.index[at : at + 1])
        region, begin = _resolve_map(site, one, of, here[at], "r")
        other, end = _resolve_map(site, one, to, there[at], "w")
        other.data[end : end + tensormap.SIZE] = region.data[begin : begin + tensormap.SIZE]


def _clusterlaunchcontrol(match: Match, signature: Signature) -> Operation | None:
    if "try_cancel" in match.modifiers:
        return memory(_cancel_for_all if any("multicast" in m for m in match.modifiers) else wrap_signal(_cancel, 16))
    if "is_canceled" in match.modifiers:
        return value(_is_canceled)
    if "v4" in match.modifiers:
        return value(_extract_first_cta)
    return value(partial(_extract_coordinate, "xyz".index(match.modifiers[-3][-1])))


def _cancel(site: Site, group: Lanes, mask: Any, space: str, address: Any, outs: Any) -> None:
    """Cancel a cluster for every lane and write its first CTA, or zeros when all clusters have started."""
    low, high = np.zeros(group.n, np.uint64), np.zeros(group.n, np.uint64)
    for at in range(group.n):
        low[at], high[at] = _make_response(site)
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
    active, (where, bars) = select_lanes(group, mask, address, bar)
    if active is None:
        return
    memory = site.memory
    every = (1 << memory.cluster) - 1
    for at, one in bulk.split_lanes(active):
        region, offsets = memory.resolve(site, space, one, where[at : at + 1], 16, "w")
        ends = bulk.locate_in_ctas(site, one, int(offsets[0]), every)
        signals = np.array(
            bulk.locate_in_ctas(site, one, int(locate_objects(site, one, bar_space, bars[at : at + 1])[0]), every)
        )

        def land(region: Region = region, ends: list[int] = ends, one: Lanes = one, signals: Array = signals) -> None:
            halves = np.array(_make_response(site), np.uint64).view(np.uint8)
            for end in ends:
                region.data[end : end + 16] = halves
            act_on_mbarriers(site, one, lambda m: m.transfer(m.find_rows(signals), np.full(len(signals), -16)))

        memory.effects.issue("store", one.index, one.shape.lanes, land, in_group=False)


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
