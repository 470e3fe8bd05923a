"""Adds comments that describe long blocks: TMA copies, matrix products, waits, memory accesses.

Contract: adds comments only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyptx.codegen.plan import Block, Step, flatten
from pyptx.ir.nodes import Instruction

SHORTEST = 6
"""Minimum number of instructions of a block that gets a comment."""

_SAYS = (
    ("TMA loads", "cp", (".tensor", ".mbarrier::complete_tx::bytes"), ()),
    ("TMA stores", "cp", (".tensor", ".bulk_group"), ()),
    ("bulk copies", "cp", (".bulk",), (".tensor",)),
    ("cp.async", "cp", (".shared",), (".bulk",)),
    ("waits for barriers", "mbarrier", (".try_wait",), ()),
    ("arrives at barriers", "mbarrier", (".arrive",), ()),
    ("sets up barriers", "mbarrier", (".init",), ()),
    ("wgmma", "wgmma", (".mma_async",), ()),
    ("mma", "mma", (".sync",), ()),
    ("tcgen05.mma", "tcgen05", (".mma",), ()),
    ("reads tensor memory", "tcgen05", (".ld",), ()),
    ("ldmatrix", "ldmatrix", (), ()),
    ("stmatrix", "stmatrix", (), ()),
    ("shuffles", "shfl", (), ()),
    ("atomics", "atom", (), ()),
    ("atomics", "red", (), (".async",)),
    ("reads global memory", "ld", (".global",), ()),
    ("writes global memory", "st", (".global",), ()),
)


def describe_blocks(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Return the steps with comments before long blocks, at the outermost level that adds information."""
    return tuple(_describe(steps, ""))


def _describe(steps: Sequence[Step], around: str) -> Iterator[Step]:
    for step in steps:
        if not isinstance(step, Block):
            yield step
            continue
        description = _describe_block(step)
        inside = tuple(_describe(step.body, description or around))
        new = description if description and description != around and step.opens else None
        yield step.replace(body=inside, comment=step.comment or new)


def _describe_block(step: Block) -> str:
    """Return a description of what a block's instructions do."""
    instructions = [item for item in flatten([step]) if isinstance(item, Instruction)]
    if len(instructions) < SHORTEST:
        return ""
    phrases: dict[str, None] = {}
    for instruction in instructions:
        for words, opcode, needs, lacks in _SAYS:
            if instruction.opcode == opcode and _fits(instruction.modifiers, needs, lacks):
                phrases[words] = None
    return ", ".join(phrases)


def _fits(modifiers: tuple[str, ...], needs: tuple[str, ...], lacks: tuple[str, ...]) -> bool:
    return all(word in modifiers for word in needs) and not any(word in modifiers for word in lacks)
