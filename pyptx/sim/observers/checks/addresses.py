"""Find which results of integer arithmetic become part of an address, and how they are widened on the way.

Walks backward from the addresses of a function. Instructions that select or mix bits on purpose (`shr`, `xor`, `and`
with a mask, `rem`) end the walk: a hash or a random number may wrap.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pyptx.check.body import Step
from pyptx.check.flow import Register, collect_accesses
from pyptx.ir import ImmediateOperand, LabelOperand, RegisterOperand, UnaryOperand, VectorOperand, evaluate
from pyptx.ir.operands import Operand
from pyptx.isa.model import Kind
from pyptx.isa.traits import Trait
from pyptx.sim.program.assignment import find_successors
from pyptx.sim.program.blocks import Block, Code, find_names, resolve_name

SIGNED, UNSIGNED, WHOLE = 1, 2, 4
"""How a value becomes part of an address: sign-extended, zero-extended, or unchanged."""
_ARITHMETIC = frozenset(("mov", "add", "mul", "mad", "selp", "min", "max"))
Uses = dict[Register, int]
_BOTH = frozenset(("add", "sub", "min", "max", "or"))
_FIRST = frozenset(("shl", "neg", "abs", "cvta", "mapa", "shfl"))


def find_uses(blocks: list[Block], code: Code) -> dict[int, int]:
    """Return how the result of each step of a function becomes part of addresses, by the step's identity; omit other
    steps."""
    own_blocks = [block for block in blocks if block.code is code]
    entering: list[Uses] = [{} for _ in own_blocks]
    uses: dict[int, int] = {}
    predecessors: list[set[int]] = [set() for _ in own_blocks]
    for number, block in enumerate(own_blocks):
        for successor in find_successors(block):
            predecessors[successor - code.entry].add(number)
    todo = list(range(len(own_blocks)))
    while todo:
        number = todo.pop()
        live: Uses = {}
        for successor in find_successors(own_blocks[number]):
            for register, kinds in entering[successor - code.entry].items():
                live[register] = live.get(register, 0) | kinds
        for step in reversed(own_blocks[number].steps):
            if step.plan is not None:
                _propagate_uses(step, live, uses)
        if live != entering[number]:
            entering[number] = live
            todo += [block_number for block_number in predecessors[number] if block_number not in todo]
    return uses


def _propagate_uses(step: Step, live: Uses, uses: dict[int, int]) -> None:
    """Propagate the uses of a step's results to its operands."""
    assert step.plan is not None
    writes = collect_accesses(step)[1]
    kinds = 0
    for register in writes:
        kinds |= live.get(register, 0)
        if step.instruction.predicate is None:
            live.pop(register, None)
    if kinds:
        uses[id(step)] = uses.get(id(step), 0) | kinds
        for operand, operand_kinds in _iterate_address_operands(step, kinds):
            _record_need(operand, step, operand_kinds, live)
    for signature_operand, source in zip(step.plan.signature, step.instruction.operands, strict=True):
        if signature_operand.kind is Kind.ADDRESS:
            _record_need(source, step, WHOLE, live)


def _record_need(operand: Operand, step: Step, kinds: int, live: Uses) -> None:
    for name in find_names(operand):
        register = find_register(name, step)
        if register is not None:
            live[register] = live.get(register, 0) | kinds


def find_register(name: str, step: Step) -> Register | None:
    """Return the register that a name means at a step; the key of another symbol, which equals that of no register."""
    symbol, base = resolve_name(name, step.scope)
    return None if symbol is None else (base, id(symbol))


def _iterate_address_operands(step: Step, kinds: int) -> Iterator[tuple[Operand, int]]:
    """Yield the operands that the result depends on, and how they are widened."""
    opcode, operands = step.instruction.opcode, step.instruction.operands
    words = [modifier[1:] for modifier in step.instruction.modifiers]
    if "cc" in words or opcode in ("addc", "subc", "madc"):
        return
    match opcode:
        case "mul" | "mad" if "wide" in words:
            extension = SIGNED if words[-1].startswith("s") else UNSIGNED
            yield from ((operand, extension) for operand in operands[1:3])
            yield from ((operand, kinds) for operand in operands[3:])
        case "mul" | "mad" if "lo" in words:
            yield from ((operand, kinds) for operand in operands[1:])
        case "selp":
            yield from ((operand, kinds) for operand in operands[1:3])
        case "mov":
            yield operands[1], WHOLE if isinstance(operands[1], VectorOperand) else kinds
        case "cvt":
            yield from ((operands[1], use) for use in _iterate_conversions(words, kinds))
        case "and" if is_negative(operands[2]):
            yield operands[1], kinds
        case _ if opcode in _BOTH:
            yield from ((operand, kinds) for operand in operands[1:])
        case _ if opcode in _FIRST:
            yield operands[1], kinds
        case _:
            pass


def _iterate_conversions(words: list[str], kinds: int) -> Iterator[int]:
    """Yield how the operand of an integer conversion is widened."""
    target, source = words[-2:]
    if target[0] in "us" and source[0] in "us":
        wider = int(target[1:]) > int(source[1:])
        yield kinds if not wider else SIGNED if source[0] == "s" else UNSIGNED


def is_negative(operand: Operand) -> bool:
    """Tell whether an operand is a constant with the sign bit of its 32 bits set."""
    value = operand.value if isinstance(operand, ImmediateOperand) else _evaluate(operand)
    return isinstance(value, int) and (value < 0 or bool(value >> 31))


def _evaluate(operand: Operand) -> int | float | None:
    if isinstance(operand, RegisterOperand | LabelOperand | VectorOperand):
        return None
    return evaluate(operand) if isinstance(operand, UnaryOperand) else None


def find_signed(blocks: list[Block], code: Code) -> frozenset[Register]:
    """Return the registers of a function that may hold negative numbers, whatever the type of their readers."""
    registers: set[Register] = set()
    for block in blocks:
        for step in block.steps if block.code is code else ():
            if step.plan is not None and _may_be_negative(step):
                registers.update(collect_accesses(step)[1])
    return frozenset(registers)


def _may_be_negative(step: Step) -> bool:
    opcode, words = step.instruction.opcode, [modifier[1:] for modifier in step.instruction.modifiers]
    kind = words[-2] if opcode == "cvt" else words[-1] if words else ""
    signed = re.fullmatch(r"s\d+", kind) is not None
    constant = opcode in _ARITHMETIC and any(is_negative(operand) for operand in step.instruction.operands[1:])
    return signed or opcode in ("sub", "neg") or constant


def find_read_registers(blocks: list[Block], code: Code) -> frozenset[Register]:
    """Return the registers of a function that some instruction reads."""
    steps = (step for block in blocks if block.code is code for step in block.steps if step.plan is not None)
    return frozenset(register for step in steps for register in collect_accesses(step)[0])


_LOGIC = frozenset(("bitwise", "pattern", "mask"))
_TAKES_PARTS = frozenset(("part", "pattern"))


def find_bits(blocks: list[Block], code: Code) -> frozenset[Register]:
    """Return the registers of a function that hold bits rather than numbers: logic wrote them, or other instructions
    read parts of them. Narrowing such a register selects a part."""
    registers: set[Register] = set()
    for block in blocks:
        for step in block.steps if block.code is code else ():
            if step.plan is not None and step.traits.get(Trait.COMPUTES) in _LOGIC:
                registers.update(collect_accesses(step)[1])
            if step.plan is not None and step.traits.get(Trait.COMPUTES) in _TAKES_PARTS:
                registers.update(collect_accesses(step)[0])
    return frozenset(registers)
