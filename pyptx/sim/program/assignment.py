"""Finds the registers that a function may read before writing them; only these are tracked at run time.

A guarded write does not count as a write. A call writes its results; `.reg` parameters are written at entry.
"""

from __future__ import annotations

from collections import deque

from pyptx.check.flow import Register, collect_accesses
from pyptx.sim.program.blocks import BRANCH, EXIT, RET, TABLE, TRAP, Block, Code
from pyptx.sim.program.vectors import list_register_names


def find_unproven_registers(blocks: list[Block], code: Code) -> frozenset[Register]:
    """Return the registers of a function that some path from its start reads before writing."""
    function_blocks = [block for block in blocks if block.code is code]
    first = code.entry
    effects = [_find_effects(block) for block in function_blocks]
    names = {name: bit for bit, name in enumerate(dict.fromkeys(n for reads, _ in effects for n in reads))}
    read_masks = [sum(1 << names[n] for n in reads) for reads, _ in effects]
    write_masks = [sum(1 << names[n] for n in writes if n in names) for _, writes in effects]
    parameters = {name for p in code.function.params if p.state_space.ptx == ".reg" for name in list_register_names(p)}
    all_registers = (1 << len(names)) - 1
    entry_masks = [all_registers] * len(function_blocks)
    is_reached = [False] * len(function_blocks)
    entry_masks[0], is_reached[0] = sum(1 << bit for (name, _), bit in names.items() if name in parameters), True
    worklist = deque([0])
    while worklist:
        position = worklist.popleft()
        exit_mask = entry_masks[position] | write_masks[position]
        for successor in find_successors(function_blocks[position]):
            common_mask = entry_masks[successor - first] & exit_mask
            if common_mask != entry_masks[successor - first] or not is_reached[successor - first]:
                entry_masks[successor - first], is_reached[successor - first] = common_mask, True
                worklist.append(successor - first)
    unproven_mask = 0
    for position, block in enumerate(function_blocks):
        if is_reached[position] and block.steps:
            unproven_mask |= read_masks[position] & ~entry_masks[position]
    return frozenset(name for name, bit in names.items() if unproven_mask >> bit & 1)


def _find_effects(block: Block) -> tuple[set[Register], set[Register]]:
    """Return the registers that a block reads before writing, and those that it certainly writes."""
    upward_reads, certain_writes = set[Register](), set[Register]()
    for step in block.steps:
        if step.plan is None:
            continue
        reads, writes = collect_accesses(step)
        upward_reads.update(name for name in reads if name not in certain_writes)
        if step.instruction.predicate is None:
            certain_writes.update(writes)
    return upward_reads, certain_writes


def find_successors(block: Block) -> tuple[int, ...]:
    """Return the blocks of the same function that lanes may enter next."""
    has_guard = bool(block.steps) and block.steps[-1].instruction.predicate is not None
    fall_through = (block.pc + 1,)
    if block.ending == BRANCH:
        return (*block.targets, *(fall_through if has_guard else ()))
    if block.ending == TABLE:
        return block.targets
    if block.ending in (RET, EXIT, TRAP):
        return fall_through if has_guard else ()
    return fall_through
