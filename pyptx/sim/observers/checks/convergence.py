"""Warp-wide instructions: which lanes execute them together, which lanes their masks name, and which lanes they
read."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from pyptx.check.body import Step
from pyptx.isa.limits import REGISTERS_PER_THREAD, entry_registers
from pyptx.isa.traits import Trait
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.execution.machine import Batch
from pyptx.sim.hazards import Place
from pyptx.sim.observers.checks.accesses import split_modifiers
from pyptx.sim.observers.checks.session import Session, find_session, make_place
from pyptx.sim.program.blocks import Program
from pyptx.sim.semantics.data_movement import find_shuffle_sources
from pyptx.sim.state.meetings import add_met_lanes

_ALL = 0xFFFFFFFF
Check = Callable[..., None]


def make_event(step: Step, program: Program) -> Check | None:
    """Return the check of a warp-wide instruction, None for the old ones without a mask."""
    words, place = split_modifiers(step.instruction), make_place(step.instruction)
    if step.traits.get(Trait.SUSPENDS) == "registers":
        return partial(_check_setmaxnreg, place, "inc" in words, _count_entry_registers(program))
    if "sync" not in words:
        return None
    if Trait.CARRIES in step.traits:
        return partial(_check_shuffle, place, next(mode for mode in ("up", "down", "bfly", "idx") if mode in words))
    return partial(_check_elect if step.instruction.opcode == "elect" else _check_members, place)


def make_matrix_event(step: Step) -> Check | None:
    """Return the check of a load or store of `wmma`, whose lanes name one matrix."""
    return partial(_check_matrix, make_place(step.instruction))


def _check_matrix(
    place: Place, machine: Batch, lanes: Lanes, mask: Any, space: str, address: Any, *strides: Any
) -> None:
    checks, active = _mask_lanes(machine, lanes, mask)
    operands = [("address", address)] + [("stride", operand) for operand in strides if not isinstance(operand, tuple)]
    if active is None:
        return
    for name, values in operands:
        checks.engine.warps.check_uniform(checks.group_lanes(active), place, _select(values, lanes, active), name)


def _mask_lanes(machine: Batch, lanes: Lanes, mask: Any) -> tuple[Session, Lanes | None]:
    checks = find_session(machine)
    return checks, checks.select_active(lanes, mask)


def _is_whole(checks: Session, lanes: Lanes, masks: Any) -> bool:
    """Tell whether whole warps execute an instruction whose mask names all lanes, so that nothing can be wrong."""
    if masks.ndim or int(masks) & _ALL != _ALL:
        return False
    return checks.find_incomplete(checks.group_lanes(lanes)) is None


def _select(values: Any, lanes: Lanes, active: Lanes) -> Array:
    lane_values = np.broadcast_to(values, lanes.n).astype(np.int64)
    return lane_values if active is lanes else lane_values[np.isin(lanes.index, active.index)]


def _check_members(place: Place, machine: Batch, lanes: Lanes, mask: Any, *operands: Any) -> None:
    """Check the member mask, which is the last operand."""
    checks, active = _mask_lanes(machine, lanes, mask)
    masks = np.asarray(operands[-1])
    if active is not None and not _is_whole(checks, active, masks):
        among = checks.group_lanes(add_met_lanes(machine, active))
        checks.engine.warps.check_members(
            checks.group_lanes(active), place, _select(masks, lanes, active) & _ALL, among
        )


def _check_shuffle(place: Place, mode: str, machine: Batch, lanes: Lanes, mask: Any, *operands: Any) -> None:
    _, b, c, masks = (np.asarray(operand) for operand in operands)
    checks, active = _mask_lanes(machine, lanes, mask)
    if active is None or _is_whole(checks, active, masks):
        return
    group, member_masks, among = (
        checks.group_lanes(active),
        _select(masks, lanes, active) & _ALL,
        checks.group_lanes(add_met_lanes(machine, active)),
    )
    checks.engine.warps.check_members(group, place, member_masks, among)
    sources = find_shuffle_sources(mode, lanes, b, c)
    checks.engine.warps.check_sources(group, place, _select(sources, lanes, active), member_masks, among)


def _check_elect(place: Place, machine: Batch, lanes: Lanes, mask: Any, masks: Any) -> None:
    checks, active = _mask_lanes(machine, lanes, mask)
    masks = np.asarray(masks)
    if active is not None and not _is_whole(checks, active, masks):
        active_masks = _select(masks, lanes, active) & _ALL
        for member_mask in np.unique(active_masks).tolist():
            members = active.subset(active_masks == member_mask)
            assert members is not None
            among = checks.group_lanes(add_met_lanes(machine, members))
            checks.engine.warps.check_elect(checks.group_lanes(members), place, member_mask, among)


def _count_entry_registers(program: Program) -> int | None:
    """Return the registers per thread at entry, None if the compiler chooses them. Below the maximum of a thread,
    kernels that change their count start with what an SM has for each."""
    directives = {directive.name: directive.values for directive in program.entry.function.directives}
    count = entry_registers(directives)
    return count if "maxnreg" in directives or (count or REGISTERS_PER_THREAD) < REGISTERS_PER_THREAD else None


def _check_setmaxnreg(
    place: Place, increases: bool, entry: int | None, machine: Batch, lanes: Lanes, mask: Any, count: Any
) -> None:
    checks, active = _mask_lanes(machine, lanes, mask)
    if active is None:
        return
    width, height, depth = machine.launch.block
    threads = -(-width * height * depth // 32) * 32
    pool = None if entry is None else -(-entry // 8) * 8 * threads
    group = checks.group_lanes(active)
    checks.engine.warps.setmaxnreg(group, place, int(count), increases, entry, pool)
