"""Which registers a function may read before it has written them: the only ones that have to be tracked at run time.

A guarded write proves nothing. A call writes its results; `.reg` parameters are written at the start.
"""

from __future__ import annotations

from collections import deque

from pyptx.check.flow import Register, collect_accesses
from pyptx.sim.program.blocks import BRANCH, EXIT, RET, TABLE, TRAP, Block, Code
from pyptx.sim.program.vectors import names_of


def unproven(blocks: list[Block], code: Code) -> frozenset[Register]:
    """Return the registers of a function of which some path from its start reads what it has not written."""
    own = [block for block in blocks if block.code is code]
    first = code.entry
    effects = [_effects(block) for block in own]
    names = {name: bit for bit, name in enumerate(dict.fromkeys(n for reads, _ in effects for n in reads))}
    exposed = [sum(1 << names[n] for n in reads) for reads, _ in effects]
    written = [sum(1 << names[n] for n in writes if n in names) for _, writes in effects]
    given = {name for p in code.function.params if p.state_space.ptx == ".reg" for name in names_of(p)}
    everything = (1 << len(names)) - 1
    entering = [everything] * len(own)
    reached = [False] * len(own)
    entering[0], reached[0] = sum(1 << bit for (name, _), bit in names.items() if name in given), True
    todo = deque([0])
    while todo:
        at = todo.popleft()
        leaving = entering[at] | written[at]
        for successor in successors(own[at]):
            merged = entering[successor - first] & leaving
            if merged != entering[successor - first] or not reached[successor - first]:
                entering[successor - first], reached[successor - first] = merged, True
                todo.append(successor - first)
    missing = 0
    for at, block in enumerate(own):
        if reached[at] and block.steps:
            missing |= exposed[at] & ~entering[at]
    return frozenset(name for name, bit in names.items() if missing >> bit & 1)


def _effects(block: Block) -> tuple[set[Register], set[Register]]:
    """Return what a block reads before it writes it, and what it surely writes."""
    exposed, written = set[Register](), set[Register]()
    for step in block.steps:
        if step.plan is None:
            continue
        reads, writes = collect_accesses(step)
        exposed.update(name for name in reads if name not in written)
        if step.instruction.predicate is None:
            written.update(writes)
    return exposed, written


def successors(block: Block) -> tuple[int, ...]:
    """Return the blocks that lanes may go to, within the function."""
    guarded = bool(block.steps) and block.steps[-1].instruction.predicate is not None
    after = (block.pc + 1,)
    if block.ending == BRANCH:
        return (*block.targets, *(after if guarded else ()))
    if block.ending == TABLE:
        return block.targets
    if block.ending in (RET, EXIT, TRAP):
        return after if guarded else ()
    return after
