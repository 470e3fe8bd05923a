"""Loops that poll memory: which instruction reads which location, and the value there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pyptx.check.body import Step
from pyptx.diagnostics import PtxError
from pyptx.ir import opcode_span
from pyptx.isa.traits import Trait
from pyptx.numbers import compute_type_bits
from pyptx.sim.base.events import Place
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.execution.operands import Operands, Unreadable
from pyptx.sim.program.blocks import BRANCH, TABLE, Block
from pyptx.sim.scheduling.reach import Reach, find_address
from pyptx.sim.scheduling.state import State
from pyptx.sim.state.memory import Mixed, Site
from pyptx.sim.state.regions import Region


@dataclass(frozen=True, slots=True)
class Poll:
    """Lanes that read a location repeatedly: the instruction, the name of the location, its value, and the symbols of
    its address. `key` is the address per lane; `pc` is where the lanes continue."""

    kind: str
    key: Array
    lanes: Lanes
    pc: int
    place: Place
    what: str
    value: str
    names: frozenset[str] | None


def find_polls(state: State, pc: int, lanes: Lanes) -> list[Poll]:
    """Return what parked lanes poll in the loop that begins at a block, by location."""
    reads = [(block, step) for block in find_loop(state, pc) for step in block.steps if _is_read(step)]
    for block, step in reads:
        target = find_address(step)
        assert target is not None
        try:
            space, addresses = _evaluate_address(state, block, step, lanes)
            names = Reach(state.program).find_symbols(target, step.scope)
            return [
                _make_poll(state, block, step, space, subset, int(address), names)
                for address in np.unique(addresses)[:8]
                for subset in [lanes.subset(addresses == address)]
                if subset is not None
            ]
        except (PtxError, Unreadable, Mixed):
            continue
    return []


def find_loop(state: State, pc: int) -> list[Block]:
    """Return the blocks of the largest loop that begins at a block."""
    own = state.blocks[pc].code
    ends = [
        b.pc for b in state.blocks if b.code is own and b.pc >= pc and b.ending in (BRANCH, TABLE) and pc in b.targets
    ]
    return state.blocks[pc : max(ends, default=pc) + 1]


def _is_read(step: Step) -> bool:
    return step.plan is not None and (Trait.TESTS in step.traits or Trait.LOADS in step.traits)


def _evaluate_address(state: State, block: Block, step: Step, lanes: Lanes) -> tuple[str, Array]:
    """Return the state space of an instruction's address and its value in every lane."""
    plan = step.plan
    assert plan is not None
    target = find_address(step)
    space = next(w.space for w, g in zip(plan.signature, step.instruction.operands, strict=True) if g is target)
    operands = Operands(state.program, block)
    assert target is not None
    memory_space, expression = operands.read_address(target, space, step)
    values = state.evaluate(operands, expression, lanes)
    return memory_space, np.broadcast_to(np.asarray(values), lanes.n).astype(np.uint64)


def _make_poll(
    state: State, block: Block, step: Step, space: str, lanes: Lanes, address: int, names: frozenset[str]
) -> Poll:
    memory, instruction = state.machine.memory, step.instruction
    size = 8 if Trait.TESTS in step.traits else _find_width(step)
    lane = state.shape.select_index(lanes.index[:1])
    site = Site(memory, step, block.code.function.name)
    region, offsets = memory.resolve(site, space, lane, np.array([address], np.uint64), size, "r")
    offset = int(np.broadcast_to(offsets, 1)[0])
    value = int.from_bytes(region.data[offset : offset + size].tobytes(), "little")
    place = Place(opcode_span(instruction), instruction.full_opcode)
    name = _name_location(state, region, offset)
    key: Any = np.full(lanes.n, offset if region is memory.shared else address)
    kind = "mbarrier" if Trait.TESTS in step.traits else "memory"
    return Poll(kind, key, lanes, block.pc, place, name, str(value), names)


def _find_width(step: Step) -> int:
    """Return the bytes of an element that an instruction loads."""
    assert step.plan is not None
    kind = step.plan.signature[0].type
    assert kind is not None
    return compute_type_bits(kind) // 8


def _name_location(state: State, region: Region, offset: int) -> str:
    memory = state.machine.memory
    if region is memory.shared:
        return state.machine.launch.shared_names.format_address(offset % state.shape.shared_stride + memory.shared_base)
    return f"`{region.name}`" + (f"+{offset}" if offset else "")
