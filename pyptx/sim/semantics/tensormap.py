"""Manual: tensormap.replace, tensormap.cp_fenceproxy, clusterlaunchcontrol. Every CTA of a grid runs here, so a request
to cancel one is always refused, as it may be on hardware."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pyptx import tensormap
from pyptx.isa.model import Match
from pyptx.sim import bulk, rules
from pyptx.sim.access import store
from pyptx.sim.engines import chosen, signalling
from pyptx.sim.formats import Array
from pyptx.sim.lanes import Lanes
from pyptx.sim.memory import Region, Site
from pyptx.sim.semantics.vocabulary import Builder, Operation, Signature, memory, value

_HALF = 64


def _tensormap(match: Match, signature: Signature) -> Operation | None:
    if match.modifiers[0] == "cp_fenceproxy":
        return memory(_copy)
    field = match.chosen.get("field", match.modifiers[2])
    return memory(partial(_replace, field))


def _where(site: Site, one: Lanes, space: str, address: Any, kind: str) -> tuple[Region, int]:
    whole = np.array([address])
    region, offsets = site.memory.resolve(site, space, one, whole, _HALF, kind)
    site.memory.resolve(site, space, one, whole + whole.dtype.type(_HALF), _HALF, kind)
    return region, int(np.atleast_1d(offsets)[0])


def _replace(field: str, site: Site, group: Lanes, mask: Any, space: str, address: Any, outs: Any, *given: Any) -> None:
    some, (where, values) = chosen(group, mask, address, tuple(given))
    if some is None:
        return
    for at, one in bulk.one_by_one(some):
        region, begin = _where(site, one, space, where[at], "rw")
        held = region.data[begin : begin + tensormap.SIZE]
        ordinal, number = (int(values[0][at]) if len(values) == 2 else 0), int(values[-1][at])
        try:
            made = tensormap.replace_field(held.tobytes(), field, number, ordinal)
        except ValueError as why:
            raise rules.error(rules.COPY, site.origin, f"`{site.instruction.full_opcode}`: {why}") from None
        held[...] = np.frombuffer(made, np.uint8)


def _copy(
    site: Site, group: Lanes, mask: Any, to: str, target: Any, of: str, source: Any, outs: Any, *size: Any
) -> None:
    """Copy a map once for every warp."""
    some, (there, here) = chosen(group, mask, target, source)
    if some is None:
        return
    firsts = np.unique(some.shape.warp[some.sel], return_index=True)[1]
    for at in firsts:
        one = some.shape.of(some.index[at : at + 1])
        region, begin = _where(site, one, of, here[at], "r")
        other, end = _where(site, one, to, there[at], "w")
        other.data[end : end + tensormap.SIZE] = region.data[begin : begin + tensormap.SIZE]


def _clusterlaunchcontrol(match: Match, signature: Signature) -> Operation | None:
    if "try_cancel" in match.modifiers:
        return memory(signalling(_refuse, 16)) if not any("multicast" in m for m in match.modifiers) else None
    if "is_canceled" in match.modifiers:
        return value(_canceled)
    return value(_first_cta) if "v4" in match.modifiers else value(_coordinate)


def _refuse(site: Site, group: Lanes, mask: Any, space: str, address: Any, outs: Any) -> None:
    zeros = np.zeros(group.n, np.uint64)
    store(site, group, None, space, address, zeros.dtype, (zeros, zeros))


def _canceled(answer: Any) -> Any:
    return answer[0] != 0


def _first_cta(answer: Any) -> tuple[Array, ...]:
    zeros = np.zeros(np.shape(answer[0]), np.uint32)
    return zeros, zeros, zeros, zeros


def _coordinate(answer: Any) -> Array:
    return _first_cta(answer)[0]


BUILDERS: dict[str, Builder] = {"tensormap": _tensormap, "clusterlaunchcontrol": _clusterlaunchcontrol}
