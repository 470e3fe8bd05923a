"""Shared parts of the asynchronous engines: issuing lanes, their mbarriers, and shared memory per CTA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from pyptx.isa.traits import Trait
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.rules import faults
from pyptx.sim.state.effects import STORES, TCGEN05
from pyptx.sim.state.mbarriers import MBarriers, Misuse
from pyptx.sim.state.memory import Mixed, Site
from pyptx.sim.state.sink import Sink
from pyptx.sim.state.tracing import Trace


def select_lanes(lanes: Lanes, mask: Array | None, *values: Any) -> tuple[Lanes | None, list[Any]]:
    """Return the lanes of a mask, None if there are none, and the values in each of them; vectors remain tuples."""
    if mask is None:
        return lanes, [_select_values(value, lanes.n, None) for value in values]
    positions = np.flatnonzero(mask)
    if not len(positions):
        return None, [None for _ in values]
    return lanes.shape.select_index(lanes.index[positions]), [
        _select_values(value, len(positions), positions) for value in values
    ]


def _select_values(value: Any, count: int, positions: Array | None) -> Any:
    if isinstance(value, tuple):
        return tuple(_select_values(item, count, positions) for item in cast("tuple[Any, ...]", value))
    if isinstance(value, int):
        return np.full(count, value, np.uint64)
    if positions is not None and value.ndim:
        return value[positions]
    return value if value.shape == (count,) else np.broadcast_to(value, count)


def locate_objects(site: Site, lanes: Lanes, space: str, address: Array) -> Array:
    """Return the offsets of mbarrier objects in the batch's shared memory. Without a state space, ptxas uses the low
    half of the address, so shared addresses work like generic ones."""
    memory = site.memory
    if not space and not (address >> 32).any():
        space = "shared"
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


def find_signaled(site: Site, objects: Array, offsets: Array) -> Array:
    """Return the offsets of the mbarriers that a multicast copy signals, from those of the mbarrier that it names and
    of its counterparts in the destination CTAs. With `.cta_group::2`, each signal goes to the destination or to its
    peer: to the CTA whose rank has the parity of the named mbarrier's CTA."""
    if ".cta_group::2" not in site.instruction.modifiers:
        return offsets
    stride = site.memory.shape.shared_stride
    return offsets + ((objects // stride & 1) - (offsets // stride & 1)) * stride


def act_on_mbarriers(site: Site, lanes: Lanes, action: Callable[[MBarriers], Any]) -> Any:
    """Run an action on mbarrier objects; raise misuse as an error at the instruction."""
    try:
        return action(site.memory.mbarriers)
    except Misuse as misuse:
        text = f"`{site.instruction.full_opcode}`: {misuse.why}"
        note = site.memory.describe_thread(lanes, min(misuse.lane, lanes.n - 1), site.function)
        raise faults.error(faults.MBARRIER, site.origin, text, notes=(note,)) from None


def wrap_signal(inner: Callable[..., None], size: int) -> Callable[..., None]:
    """Return a store that also signals the arrival of its bytes to an mbarrier in the CTA of its target."""

    def run(
        site: Site, lanes: Lanes, mask: Any, space: str, address: Any, bar_space: str, bar: Any, outs: Any, *values: Any
    ) -> None:
        active, (addresses, bars, operands) = select_lanes(lanes, mask, address, bar, values)
        if active is None:
            return
        offsets = locate_objects(site, active, bar_space, bars)
        effects = site.memory.effects
        barrier_rows = None
        if not effects.eager:
            addresses, operands = np.array(addresses), copy_operands(operands)
            barrier_rows = act_on_mbarriers(site, active, lambda m: m.find_rows(offsets))[:, None]

        def land() -> None:
            inner(site, active, None, space, addresses, (), *operands)
            act_on_mbarriers(site, active, lambda m: m.transfer(m.find_rows(offsets), np.full(active.n, -size)))

        effects.issue(STORES, active.index, active.shape.lanes, land, in_group=False, mbarrier_rows=barrier_rows)

    return run


Run = Callable[[Lanes, tuple[Any, ...]], None]
"""Runs an operation on tensor memory with the operands of each lane."""


def issue_operation(site: Site, lanes: Lanes, values: tuple[Any, ...], run: Run) -> None:
    """Issue an operation on tensor memory with these operands of each lane. If a listener traces, it hears what each
    lane's operation accesses, or once what equal products of all lanes access."""
    sink = site.memory.sink
    if sink is None or not sink.traces:
        _schedule(site, lanes, values, run, None)
        return
    if (
        lanes.n > 1
        and Trait.MULTIPLIES in site.step.traits
        and _issue_traced(sink, site, lanes, values, run, Trace(for_all_lanes=True))
    ):
        return
    for position, lane in enumerate(lanes.index.tolist()):
        operands = _take(values, [position])
        _issue_traced(sink, site, lanes.shape.select_range(lane, lane + 1), operands, run, Trace())


def _issue_traced(sink: Sink[Site], site: Site, lanes: Lanes, values: tuple[Any, ...], run: Run, trace: Trace) -> bool:
    """Issue an operation and report what it accesses; return False if its lanes must run it one by one."""
    is_whole, memory = trace.for_all_lanes, site.memory
    memory.trace = trace
    try:
        _schedule(site, lanes, values, run, trace)
    finally:
        memory.trace = None
    if is_whole and not trace.for_all_lanes:
        return False
    sink.on_tensor_operation(site, lanes, trace)
    return True


def _schedule(site: Site, lanes: Lanes, values: tuple[Any, ...], run: Run, trace: Trace | None) -> None:
    """Schedule `run`. A trace runs it now."""
    memory = site.memory
    if memory.effects.lands_at_once(TCGEN05):
        run(lanes, values)
        return
    if trace is not None:
        is_whole, trace.is_deferred = trace.for_all_lanes, True
        run(lanes, values)
        if is_whole and not trace.for_all_lanes:
            return  # Each lane runs it again.
    operand_copies: tuple[Any, ...] = copy_operands(values)
    tensor, frees = memory.tensor, memory.tensor.frees

    def land(positions: Array) -> None:
        tensor.assumes_allocated = tensor.frees > frees
        try:
            if len(positions) == lanes.n:
                run(lanes, operand_copies)
            else:
                run(lanes.shape.select_index(lanes.index[positions]), _take(operand_copies, positions))
        finally:
            tensor.assumes_allocated = False

    memory.effects.issue_each(TCGEN05, lanes.index, lanes.shape.lanes, land)


def find_firsts(lanes: Lanes) -> Array:
    """Return the position of one lane of each warp."""
    return lanes.compute_once("firsts of warps", lambda: np.unique(lanes.shape.warp[lanes.sel], return_index=True)[1])


def spread_firsts(lanes: Lanes, values: Array) -> Array:
    """Return, for every lane, the value in the first lane of its warp."""

    def find_positions() -> Array:
        _, first, warp_index = np.unique(lanes.shape.warp[lanes.sel], return_index=True, return_inverse=True)
        return first[warp_index]

    return values[lanes.compute_once("first lanes of warps", find_positions)]


def find_active(lanes: Lanes, mask: Array | None) -> Array:
    """Return the lanes that execute an instruction."""
    return lanes.index if mask is None else lanes.index[np.broadcast_to(mask, lanes.n)]


def _take(values: Any, positions: Any) -> Any:
    if isinstance(values, tuple):
        return tuple(_take(item, positions) for item in cast("tuple[Any, ...]", values))
    return values[positions]


def copy_operands(values: Any) -> Any:
    """Return a copy of operands: registers may change before an effect lands."""
    if isinstance(values, tuple):
        return tuple(copy_operands(item) for item in cast("tuple[Any, ...]", values))
    return np.array(values)
