"""Warp-wide instructions: who executes them together, whom their masks name, and whom lanes read from."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from pyptx.check.body import Step
from pyptx.isa.traits import Trait
from pyptx.sim.checks.accesses import words_of
from pyptx.sim.checks.session import Checks, place_of
from pyptx.sim.formats import Array
from pyptx.sim.hazards import Place
from pyptx.sim.lanes import Lanes
from pyptx.sim.meetings import present
from pyptx.sim.program import Program
from pyptx.sim.semantics.data_movement import shuffle_sources

if TYPE_CHECKING:
    from pyptx.sim.machine import Batch

_ALL = 0xFFFFFFFF
_REGISTERS, _MOST = 65536, 255
"""Registers of an SM, and of a thread; below that, kernels that change their count begin with all they may have."""
Told = Callable[..., None]


def told(step: Step, program: Program) -> Told | None:
    """Return what tells of a warp-wide instruction, None for the old ones without a mask."""
    words, place = words_of(step.instruction), place_of(step.instruction)
    if step.traits.get(Trait.SUSPENDS) == "registers":
        return partial(_setmaxnreg, place, "inc" in words, _entry_registers(program))
    if "sync" not in words:
        return None
    if Trait.CARRIES in step.traits:
        return partial(_shuffle, place, next(mode for mode in ("up", "down", "bfly", "idx") if mode in words))
    return partial(_elect if step.instruction.opcode == "elect" else _members, place)


def matrix(step: Step) -> Told | None:
    """Return what tells of a load or store of `wmma`, whose lanes name one matrix."""
    return partial(_matrix, place_of(step.instruction))


def _matrix(place: Place, machine: Batch, lanes: Lanes, mask: Any, space: str, address: Any, *given: Any) -> None:
    checks, some = _some(machine, lanes, mask)
    operands = [("address", address)] + [("stride", one) for one in given if not isinstance(one, tuple)]
    if some is None:
        return
    for name, values in operands:
        checks.engine.warps.alike(checks.group(some), place, _chosen(values, lanes, some), name)


def _some(machine: Batch, lanes: Lanes, mask: Any) -> tuple[Checks, Lanes | None]:
    checks = machine.checks
    assert checks is not None
    return checks, checks.masked(lanes, mask)


def _whole(checks: Checks, lanes: Lanes, masks: Any) -> bool:
    """Say whether whole warps execute an instruction whose mask names all lanes: then nothing can be wrong."""
    if masks.ndim or int(masks) & _ALL != _ALL:
        return False
    return checks.incomplete(checks.group(lanes)) is None


def _chosen(values: Any, lanes: Lanes, some: Lanes) -> Array:
    whole = np.broadcast_to(values, lanes.n).astype(np.int64)
    return whole if some is lanes else whole[np.isin(lanes.index, some.index)]


def _members(place: Place, machine: Batch, lanes: Lanes, mask: Any, *operands: Any) -> None:
    """The member mask is the last operand."""
    checks, some = _some(machine, lanes, mask)
    masks = np.asarray(operands[-1])
    if some is not None and not _whole(checks, some, masks):
        among = checks.group(present(machine, some))
        checks.engine.warps.members(checks.group(some), place, _chosen(masks, lanes, some) & _ALL, among)


def _shuffle(place: Place, mode: str, machine: Batch, lanes: Lanes, mask: Any, *operands: Any) -> None:
    _, b, c, masks = (np.asarray(operand) for operand in operands)
    checks, some = _some(machine, lanes, mask)
    if some is None or _whole(checks, some, masks):
        return
    group, named, among = checks.group(some), _chosen(masks, lanes, some) & _ALL, checks.group(present(machine, some))
    checks.engine.warps.members(group, place, named, among)
    sources = shuffle_sources(mode, lanes, b, c)
    checks.engine.warps.sources(group, place, _chosen(sources, lanes, some), named, among)


def _elect(place: Place, machine: Batch, lanes: Lanes, mask: Any, masks: Any) -> None:
    checks, some = _some(machine, lanes, mask)
    masks = np.asarray(masks)
    if some is not None and not _whole(checks, some, masks):
        each = _chosen(masks, lanes, some) & _ALL
        for named in np.unique(each).tolist():
            chosen = some.subset(each == named)
            assert chosen is not None
            among = checks.group(present(machine, chosen))
            checks.engine.warps.elect(checks.group(chosen), place, named, among)


def _entry_registers(program: Program) -> int | None:
    """Return the registers per thread at entry, None where directives leave it to the compiler."""
    given = {directive.name: directive.values for directive in program.entry.function.directives}
    if "maxnreg" in given:
        return int(given["maxnreg"][0])
    block = given.get("reqntid", given.get("maxntid"))
    if block is None or "minnctapersm" not in given:
        return None
    threads = -(-prod(int(size) for size in block) // 32) * 32 * int(given["minnctapersm"][0])
    most = _REGISTERS // threads // 8 * 8
    return most if most < _MOST else None


def _setmaxnreg(
    place: Place, increases: bool, entry: int | None, machine: Batch, lanes: Lanes, mask: Any, count: Any
) -> None:
    checks, some = _some(machine, lanes, mask)
    if some is None:
        return
    width, height, depth = machine.launch.block
    threads = -(-width * height * depth // 32) * 32
    pool = None if entry is None else -(-entry // 8) * 8 * threads
    group = checks.group(some)
    checks.aligned(some, place)
    checks.engine.warps.setmaxnreg(group, place, int(count), increases, entry, pool)
