"""Shared parts of the asynchronous engines: issuing lanes, their mbarriers, and shared memory per CTA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.rules import faults
from pyptx.sim.state.effects import STORES, TCGEN05
from pyptx.sim.state.mbarriers import MBarriers, Misuse
from pyptx.sim.state.memory import Mixed, Site


def select_lanes(lanes: Lanes, mask: Array | None, *values: Any) -> tuple[Lanes | None, list[Any]]:
    """Return the lanes of a mask, None if there are none, and the values in each of them; vectors stay tuples."""
    if mask is None:
        return lanes, [_each(value, lanes.n, None) for value in values]
    at = np.flatnonzero(mask)
    if not len(at):
        return None, [None for _ in values]
    return lanes.shape.select_index(lanes.index[at]), [_each(value, len(at), at) for value in values]


def _each(value: Any, count: int, at: Array | None) -> Any:
    if isinstance(value, tuple):
        return tuple(_each(item, count, at) for item in cast("tuple[Any, ...]", value))
    if isinstance(value, int):
        return np.full(count, value, np.uint64)
    if at is not None and value.ndim:
        return value[at]
    return value if value.shape == (count,) else np.broadcast_to(value, count)


def locate_objects(site: Site, lanes: Lanes, space: str, address: Array) -> Array:
    """Return the offsets of mbarrier objects in the batch's shared memory."""
    memory = site.memory
    try:
        region, offsets = memory.resolve(site, space, lanes, address, 8, "b")
    except Mixed:
        region, offsets = memory.empty_region, address
    if region is not memory.shared:
        text = f"`{site.instruction.full_opcode}` at {int(address[0]):#x}: expected an mbarrier in shared memory"
        raise faults.error(
            faults.WRONG_SPACE, site.origin, text, notes=(memory.describe_thread(lanes, 0, site.function),)
        )
    every = lanes.broadcast(offsets)
    memory.mbarriers.history[site, int(every[0])] = lanes, every
    return every


def act_on_mbarriers(site: Site, lanes: Lanes, action: Callable[[MBarriers], Any]) -> Any:
    """Run an action on mbarrier objects; raise misuse as an error at the instruction."""
    try:
        return action(site.memory.mbarriers)
    except Misuse as misuse:
        text = f"`{site.instruction.full_opcode}`: {misuse.why}"
        note = site.memory.describe_thread(lanes, min(misuse.at, lanes.n - 1), site.function)
        raise faults.error(faults.MBARRIER, site.origin, text, notes=(note,)) from None


def wrap_signal(inner: Callable[..., None], size: int) -> Callable[..., None]:
    """Return a store that also signals the arrival of its bytes to an mbarrier in the CTA of its target."""

    def run(
        site: Site, lanes: Lanes, mask: Any, space: str, address: Any, bar_space: str, bar: Any, outs: Any, *values: Any
    ) -> None:
        active, (where, bars, operands) = select_lanes(lanes, mask, address, bar, values)
        if active is None:
            return
        offsets = locate_objects(site, active, bar_space, bars)
        effects = site.memory.effects
        tells = None
        if not effects.eager:
            where, operands = np.array(where), copy_operands(operands)
            tells = act_on_mbarriers(site, active, lambda m: m.find_rows(offsets))[:, None]

        def land() -> None:
            inner(site, active, None, space, where, (), *operands)
            act_on_mbarriers(site, active, lambda m: m.transfer(m.find_rows(offsets), np.full(active.n, -size)))

        effects.issue(STORES, active.index, active.shape.lanes, land, in_group=False, mbarrier_rows=tells)

    return run


def schedule_effect(
    site: Site, lanes: Lanes, values: tuple[Any, ...], run: Callable[[Lanes, tuple[Any, ...]], None]
) -> None:
    """Schedule `run` on tensor memory with these operands of each lane. A trace runs it now."""
    memory = site.memory
    if memory.effects.lands_at_once(TCGEN05):
        run(lanes, values)
        return
    trace = memory.trace
    if trace is not None:
        whole, trace.is_deferred = trace.for_all_lanes, True
        run(lanes, values)
        if whole and not trace.for_all_lanes:
            return  # It comes again for each lane.
    kept: tuple[Any, ...] = copy_operands(values)
    tensor, frees = memory.tensor, memory.tensor.frees

    def land(positions: Array) -> None:
        tensor.assumes_allocated = tensor.frees > frees
        try:
            if len(positions) == lanes.n:
                run(lanes, kept)
            else:
                run(lanes.shape.select_index(lanes.index[positions]), _taken(kept, positions))
        finally:
            tensor.assumes_allocated = False

    memory.effects.issue_each(TCGEN05, lanes.index, lanes.shape.lanes, land, in_group=False)


def find_firsts(lanes: Lanes) -> Array:
    """Return the position of one lane of each warp."""
    return lanes.compute_once("firsts of warps", lambda: np.unique(lanes.shape.warp[lanes.sel], return_index=True)[1])


def spread_firsts(lanes: Lanes, values: Array) -> Array:
    """Return, for every lane, the value in the first lane of its warp."""

    def made() -> Array:
        _, first, which = np.unique(lanes.shape.warp[lanes.sel], return_index=True, return_inverse=True)
        return first[which]

    return values[lanes.compute_once("first lanes of warps", made)]


def find_active(lanes: Lanes, mask: Array | None) -> Array:
    """Return the lanes that execute an instruction."""
    return lanes.index if mask is None else lanes.index[np.broadcast_to(mask, lanes.n)]


def _taken(values: Any, positions: Array) -> Any:
    if isinstance(values, tuple):
        return tuple(_taken(item, positions) for item in cast("tuple[Any, ...]", values))
    return values[positions]


def copy_operands(values: Any) -> Any:
    """Return a copy of operands: registers may change before an effect lands."""
    if isinstance(values, tuple):
        return tuple(copy_operands(item) for item in cast("tuple[Any, ...]", values))
    return np.array(values)
