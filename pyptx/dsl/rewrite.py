"""Rewrites a finished trace: folds copies into the preceding instruction, and relocates symbols."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pyptx.ir.nodes import Block, Instruction, IntrinsicScope, Statement
from pyptx.ir.operands import (
    AddressOperand,
    BinaryOperand,
    ImmediateOperand,
    LabelOperand,
    NegatedOperand,
    Operand,
    ParenthesizedOperand,
    PipeOperand,
    RegisterOperand,
    VectorOperand,
    number_value,
)
from pyptx.isa import lookup


def fold_copies(statements: list[Statement], copies: dict[int, str]) -> list[Statement]:
    """Let the instruction before a copy write the copy's destination if nothing else reads the value in between.

    `copies` maps the identity of a `mov` to the register it reads.
    """
    if not copies:
        return statements
    counts = dict.fromkeys(copies.values(), 0)
    for instruction in iterate_instructions(statements):
        for name in iterate_names(instruction):
            if name in counts:
                counts[name] += 1
    return _fold(statements, {key: name for key, name in copies.items() if counts[name] == 2})


def _fold(statements: Sequence[Statement], copies: dict[int, str]) -> list[Statement]:
    out: list[Statement] = []
    for statement in statements:
        if isinstance(statement, Block | IntrinsicScope):
            out.append(statement.replace(body=tuple(_fold(statement.body, copies))))
            continue
        name = copies.get(id(statement))
        if name is not None and out and isinstance(statement, Instruction):
            writer = _redirect_write(out[-1], name, statement.operands[0])
            if writer is not None:
                out[-1] = writer
                continue
        out.append(statement)
    return out


def _redirect_write(statement: Statement, name: str, destination: Operand) -> Statement | None:
    """Return the statement with another destination, or None if it does not simply define that register last."""
    if isinstance(statement, IntrinsicScope) and statement.body:
        last = _redirect_write(statement.body[-1], name, destination)
        return None if last is None else statement.replace(body=(*statement.body[:-1], last))
    if not isinstance(statement, Instruction) or statement.predicate is not None:
        return None
    if sum(register == name for register in iterate_names(statement)) != 1:
        return None
    for index, operand in enumerate(statement.operands):
        if _writes(statement, index) and (operand == RegisterOperand(name) or isinstance(operand, VectorOperand)):
            new = replace_register(operand, name, destination)
            if new is not operand:
                operands = (*statement.operands[:index], new, *statement.operands[index + 1 :])
                return statement.replace(operands=operands)
    return None


def _writes(instruction: Instruction, index: int) -> bool:
    """Tell whether every interpretation of the instruction writes this operand without reading it."""
    matches = lookup.find_matches(instruction.opcode, tuple(word[1:] for word in instruction.modifiers))
    count = len(instruction.operands)
    signatures = [signature for match in matches for signature in match.signatures if len(signature) == count]
    return bool(signatures) and all(signature[index].access == "w" for signature in signatures)


def replace_register(operand: Operand, name: str, to: Operand) -> Operand:
    """Return a register or vector with one register replaced."""
    if isinstance(operand, VectorOperand):
        elements = tuple(replace_register(element, name, to) for element in operand.elements)
        return (
            operand if all(a is b for a, b in zip(elements, operand.elements, strict=True)) else VectorOperand(elements)
        )
    return to if operand == RegisterOperand(name) else operand


def iterate_instructions(statements: Sequence[Statement]) -> Iterator[Instruction]:
    """Yield every instruction, including those of nested bodies."""
    stack = [iter(statements)]
    while stack:
        for statement in stack[-1]:
            if isinstance(statement, Instruction):
                yield statement
            elif isinstance(statement, Block | IntrinsicScope):
                stack.append(iter(statement.body))
                break
        else:
            stack.pop()


def iterate_names(instruction: Instruction) -> Iterator[str]:
    """Yield the names of registers in an instruction, once per occurrence."""
    if instruction.predicate is not None:
        yield instruction.predicate.register
    stack = list(instruction.operands)
    while stack:
        operand = stack.pop()
        if isinstance(operand, RegisterOperand):
            yield operand.base
        elif isinstance(operand, AddressOperand):
            yield operand.base
            stack += operand.rest
        elif isinstance(operand, VectorOperand | ParenthesizedOperand):
            stack += operand.elements
        elif isinstance(operand, PipeOperand | BinaryOperand):
            stack += (operand.left, operand.right)
        elif isinstance(operand, NegatedOperand):
            stack.append(operand.operand)


def relocate_symbols(statements: Sequence[Statement], offsets: dict[str, int], symbol: str) -> list[Statement]:
    """Return the statements with every name in `offsets` replaced by `symbol` plus its offset."""

    def relocate_operand(operand: Operand) -> Operand:
        return _relocate(operand, offsets, symbol)

    return [_map_operands(statement, relocate_operand) for statement in statements]


def _map_operands(statement: Statement, change: Callable[[Operand], Operand]) -> Statement:
    if isinstance(statement, Instruction):
        operands = tuple([change(operand) for operand in statement.operands])
        is_same = all(new is old for new, old in zip(operands, statement.operands, strict=True))
        return statement if is_same else statement.replace(operands=operands)
    if isinstance(statement, Block | IntrinsicScope):
        return statement.replace(body=tuple([_map_operands(inner, change) for inner in statement.body]))
    return statement


def _relocate(operand: Operand, offsets: dict[str, int], symbol: str) -> Operand:
    if isinstance(operand, RegisterOperand | ImmediateOperand):
        return operand
    if isinstance(operand, LabelOperand) and operand.name in offsets:
        return _add_offset(symbol, offsets[operand.name])
    if isinstance(operand, AddressOperand):
        coordinates = tuple([_relocate(part, offsets, symbol) for part in operand.rest])
        if operand.base not in offsets:
            is_same = all(new is old for new, old in zip(coordinates, operand.rest, strict=True))
            return operand if is_same else operand.replace(rest=coordinates)
        offset = offsets[operand.base] + (int(number_value(operand.offset)) if operand.offset else 0)
        return AddressOperand(symbol, str(offset) if offset else None, coordinates, operand.offset_expression)
    if isinstance(operand, BinaryOperand):
        left, right = operand.left, operand.right
        if isinstance(left, LabelOperand) and left.name in offsets and isinstance(right, ImmediateOperand):
            step = int(right.value) if operand.operator == "+" else -int(right.value)
            return _add_offset(symbol, offsets[left.name] + step)
        return BinaryOperand(operand.operator, _relocate(left, offsets, symbol), _relocate(right, offsets, symbol))
    if isinstance(operand, VectorOperand | ParenthesizedOperand):
        elements = tuple([_relocate(element, offsets, symbol) for element in operand.elements])
        is_same = all(new is old for new, old in zip(elements, operand.elements, strict=True))
        return operand if is_same else type(operand)(elements)
    return operand


def _add_offset(symbol: str, offset: int) -> Operand:
    if not offset:
        return LabelOperand(symbol)
    return BinaryOperand("+" if offset > 0 else "-", LabelOperand(symbol), ImmediateOperand(str(abs(offset))))
