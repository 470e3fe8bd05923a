"""Warns of elements of swizzled shared memory that a kernel accesses at linear addresses, although a tensor copy or a
matrix instruction uses the same memory as swizzled. A warning, because the program may intend it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pyptx.diagnostics import Diagnostic
from pyptx.dsl import rules
from pyptx.dsl.shared import SharedAlloc, get_memory
from pyptx.dsl.tensors import TensorSpec
from pyptx.dsl.trace import Trace
from pyptx.ir.base import Node
from pyptx.ir.nodes import Instruction, Statement
from pyptx.ir.operands import AddressOperand, BinaryOperand, ImmediateOperand, LabelOperand, RegisterOperand
from pyptx.ir.walk import parts_of, visit
from pyptx.isa.lookup import find_traits
from pyptx.isa.traits import Trait
from pyptx.specs import Layout

_Places = frozenset[tuple[str, int]]
"""The symbols, each with an offset in bytes, that a value is derived from."""
_NOWHERE: _Places = frozenset()


def find_linear_accesses(
    trace: Trace, statements: Iterable[Statement], tensors: Sequence[TensorSpec]
) -> list[Diagnostic]:
    """Return a warning for each swizzled allocation accessed both ways."""
    linear = get_memory(trace).linear
    if not linear:
        return []
    plain = {f"{tensor.name}_tma_desc" for tensor in tensors if tensor.layout in (Layout.ROW, Layout.COL)}
    users: dict[SharedAlloc, Instruction] = {}
    for user, places in _find_swizzled_uses(statements, plain):
        for owner in linear:
            if any(_is_inside(owner, *place) for place in places):
                users.setdefault(owner, user)
    return [
        rules.LINEAR.report(
            linear[owner],
            f"`{owner.name}[…]` accesses an element at its linear address, but "
            f"`{user.opcode}{''.join(user.modifiers[:2])}` takes `{owner.name}` with the {owner.swizzle} swizzle",
            help=f"use {owner.name}.swizzled(…) with load() or store(value)",
        )
        for owner, user in users.items()
    ]


def _is_inside(owner: SharedAlloc, symbol: str, offset: int) -> bool:
    return symbol == owner.name and owner.byte_offset <= offset < owner.byte_offset + owner.size


def _find_swizzled_uses(statements: Iterable[Statement], plain: set[str]) -> Iterator[tuple[Instruction, _Places]]:
    """Yield the instructions that access shared memory as swizzled, with the sources of their operands. `plain` are the
    tensor maps without a swizzle."""
    sources: dict[str, _Places] = {}
    for top in statements:
        for statement in visit(top):
            if not isinstance(statement, Instruction):
                continue
            places = _NOWHERE.union(*(_find_places(operand, sources) for operand in statement.operands))
            if _takes_tiles(statement):
                if not any(symbol in plain for symbol, _ in places):
                    yield statement, places
            elif statement.operands and isinstance(statement.operands[0], RegisterOperand) and not _is_load(statement):
                name = statement.operands[0].name
                sources[name] = sources.get(name, _NOWHERE) | places


def _takes_tiles(instruction: Instruction) -> bool:
    """Tell whether an instruction has a tensor map or matrix descriptor operand."""
    engine = find_traits(instruction.opcode, instruction.modifiers).get(Trait.ISSUES)
    return engine in ("wgmma", "tcgen05") or (engine == "bulk" and ".tensor" in instruction.modifiers)


def _is_load(instruction: Instruction) -> bool:
    return any(isinstance(operand, AddressOperand) for operand in instruction.operands)


def _find_places(operand: Node, sources: Mapping[str, _Places]) -> _Places:
    """Return the places that an operand's value is derived from."""
    places, base_ids = _NOWHERE, set[int]()
    for part in parts_of(operand):
        if isinstance(part, RegisterOperand):
            places |= sources.get(part.name, _NOWHERE)
        elif isinstance(part, AddressOperand):
            base_places = sources.get(part.base)
            places |= base_places if base_places is not None else {(part.base, int(part.offset or 0))}
        elif isinstance(part, BinaryOperand) and isinstance(part.left, LabelOperand):
            right = part.right.value if isinstance(part.right, ImmediateOperand) else 0
            places |= {(part.left.name, int(right) if part.operator == "+" else 0)}
            base_ids.add(id(part.left))
        elif isinstance(part, LabelOperand) and id(part) not in base_ids:
            places |= {(part.name, 0)}
    return places
