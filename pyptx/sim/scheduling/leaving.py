"""Lanes that leave a block by a branch in two directions, a call, a return, a branch table or exit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pyptx.diagnostics import Origin, format_count
from pyptx.ir import opcode_span
from pyptx.sim.base.formats import CLASSES
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.execution import builtins
from pyptx.sim.execution.calls import callee_name, split_call
from pyptx.sim.execution.codegen import DIVERGED
from pyptx.sim.program.blocks import CALL, EXIT, RET, TABLE, TRAP, WAIT, Block, Code
from pyptx.sim.program.variables import FUNCTION_BASE
from pyptx.sim.rules import faults
from pyptx.sim.scheduling.register_pool import return_registers
from pyptx.sim.scheduling.state import State
from pyptx.sim.scheduling.waiting import release, wait


def leave(state: State, block: Block, depth: int, lanes: Lanes, outcome: int) -> bool:
    """Move lanes that leave a block in two directions, or by a call, a barrier or exit. Return False and move none if
    their guard is false in every lane: all continue with the next block."""
    step = block.steps[-1]
    if outcome == DIVERGED:
        jumping, remaining = lanes.split(state.read_guard(step, block, lanes))
        if jumping is not None:
            _jump(state, block, depth, block.targets[0], jumping)
        if remaining is not None:
            state.push(depth, block.pc + 1, remaining)
        return True
    if step.instruction.predicate is not None:
        leaving, remaining = lanes.split(state.read_guard(step, block, lanes))
        if leaving is None:
            return False
        if remaining is not None:
            state.push(depth, block.pc + 1, remaining)
        if remaining is not None and block.ending == WAIT and state.sink is not None:
            state.sink.on_split(step, leaving, remaining)
        lanes = leaving
    _LEAVING[block.ending](state, block, depth, lanes)
    return True


def _jump(state: State, block: Block, depth: int, target: int, lanes: Lanes) -> None:
    if target <= block.pc and block.polls:
        state.park(depth, target, lanes)
    else:
        state.push(depth, target, lanes)


def _exit(state: State, block: Block, depth: int, lanes: Lanes) -> None:
    if state.sink is not None:
        state.sink.on_exit(block.steps[-1], lanes)
    state.alive[lanes.sel] = False
    state.exit_blocks[lanes.sel] = block.pc
    state.live -= lanes.n
    state.barriers.remove_lanes(lanes)
    state.clusters.live -= np.bincount(state.clusters.find_cluster(lanes), minlength=len(state.clusters.live))
    state.clusters.advance_phase()
    return_registers(state, lanes.sel)
    if state.live:
        release(state)


def _trap(state: State, block: Block, depth: int, lanes: Lanes) -> None:
    location = state.machine.memory.describe_thread(lanes, 0, block.code.function.name)
    raise faults.error(
        faults.TRAP, opcode_span(block.steps[-1].instruction), "the kernel executed `trap`", notes=(location,)
    )


def _branch_by_table(state: State, block: Block, depth: int, lanes: Lanes) -> None:
    step = block.steps[-1]
    index = state.read_value(step.instruction.operands[0], step, block, lanes)
    for entry in np.unique(index):
        subset = lanes.subset(index == entry)
        if int(entry) >= len(block.targets):
            text = f"index {int(entry)}, but the list has {format_count('label', len(block.targets))}"
            raise faults.error(faults.BAD_BRANCH, opcode_span(step.instruction), text)
        if subset is not None:
            _jump(state, block, depth, block.targets[int(entry)], subset)


def _call(state: State, block: Block, depth: int, lanes: Lanes) -> None:
    step = block.steps[-1]
    name = callee_name(step)
    if name is not None:
        code = state.program.by_name.get(name)
        _enter(state, code, name, block, depth, lanes)
        return
    address = state.read_value(split_call(step)[1], step, block, lanes)
    for target_address in np.unique(address):
        subset = lanes.subset(address == target_address)
        code = state.program.find_code(int(target_address))
        if code is None:
            text = f"{int(target_address):#x} is not the address of a function (functions start at {FUNCTION_BASE:#x})"
            raise faults.error(faults.BAD_CALL, opcode_span(step.instruction), text)
        if subset is not None:
            _enter(state, code, code.function.name, block, depth, subset)


def _enter(state: State, code: Code | None, name: str, block: Block, depth: int, lanes: Lanes) -> None:
    origin = opcode_span(block.steps[-1].instruction)
    if code is None:
        builtins.call(state.machine, name, block.code.frame.size, lanes, block.steps[-1])
        state.push(depth, block.pc + 1, lanes)
        return
    if depth >= len(state.returns):
        state.returns.append(np.zeros(state.shape.lanes, np.int64))
    state.returns[depth][lanes.sel] = block.pc + 1
    if block.code.recursive:
        _save(state, block.code, depth, lanes)
    state.machine.sp[lanes.sel] += block.code.frame.size
    top = int(state.machine.sp[lanes.sel].max()) + code.frame.size
    state.machine.memory.ensure_local(top, origin)
    if state.program.dynamic is not None:
        _keep_dynamic(state, depth, lanes, top, origin)
    state.push(depth + 1, code.entry, lanes)


def _keep_dynamic(state: State, depth: int, lanes: Lanes, top: int, origin: Origin | None) -> None:
    """Record how far the memory of `alloca` reaches before a call."""
    base = state.machine.dynamic_base
    if top > base:
        raise faults.error(
            faults.STACK, origin, f"calls nested {depth + 1} deep reach the memory of `alloca` at {base:#x}"
        )
    if depth >= len(state.dynamics):
        state.dynamics.append(np.zeros(state.shape.lanes, np.int64))
    state.dynamics[depth][lanes.sel] = state.machine.dynamic[lanes.sel]


def _save(state: State, code: Code, depth: int, lanes: Lanes, restores: bool = False) -> None:
    """Save the registers of a recursive function, or restore them."""
    save_area = state.saved.get((depth, code.number))
    rows = {
        letter: [r.index + n for r in code.rows.by_name.values() if r.letter == letter for n in range(r.count)]
        for letter in CLASSES
    }
    if save_area is None:
        save_area = state.saved[depth, code.number] = {
            letter: np.zeros((len(rows[letter]), state.shape.lanes), dtype) for letter, dtype in CLASSES.items()
        }
    for letter, indices in rows.items():
        matrix = state.machine.registers[letter]
        for position, row in enumerate(indices):
            if restores:
                matrix[row, lanes.sel] = save_area[letter][position, lanes.sel]
            else:
                save_area[letter][position, lanes.sel] = matrix[row, lanes.sel]


def _return(state: State, block: Block, depth: int, lanes: Lanes) -> None:
    if depth == 0:
        _exit(state, block, depth, lanes)
        return
    places = state.returns[depth - 1][lanes.sel]
    for pc in np.unique(places):
        subset = lanes.subset(places == pc)
        code = state.blocks[int(pc)].code
        if subset is not None:
            state.machine.sp[subset.sel] -= code.frame.size
            if state.program.dynamic is not None:
                state.machine.dynamic[subset.sel] = state.dynamics[depth - 1][subset.sel]
            if code.recursive:
                _save(state, code, depth - 1, subset, restores=True)
            state.push(depth - 1, int(pc), subset)


_LEAVING: dict[str, Callable[[State, Block, int, Lanes], None]] = {
    CALL: _call, RET: _return, EXIT: _exit, TRAP: _trap, TABLE: _branch_by_table, WAIT: wait,
}  # fmt: skip
