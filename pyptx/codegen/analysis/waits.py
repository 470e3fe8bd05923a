"""Recognizes wait loops on memory barriers, in the forms that compilers emit."""

from __future__ import annotations

from dataclasses import dataclass

from pyptx.codegen.plan import Emitted, End
from pyptx.ir.directives import LocDirective
from pyptx.ir.nodes import Block, Instruction, Label, RegDecl, Statement
from pyptx.ir.operands import LabelOperand, Operand, RegisterOperand


@dataclass(frozen=True, slots=True)
class Wait:
    """A wait loop in its own block: its names, its instruction, and all that it emits."""

    pred: str
    label: str
    end_label: str | None
    uni: bool
    test: Instruction
    block: Block
    """The block, without its `.loc`."""
    emits: tuple[Emitted, ...]


def match_wait(block: Block) -> Wait | None:
    """Return the wait loop that a block consists of, or None."""
    body = [statement for statement in block.body if not isinstance(statement, LocDirective)]
    if len(body) not in (4, 6) or not isinstance(body[0], RegDecl) or not isinstance(body[1], Label):
        return None
    pred, label, test = body[0].name, body[1].name, body[2]
    if len(body[0].declarators) != 1 or body[0].count is not None or body[0].vector or body[0].type.ptx != ".pred":
        return None
    if not isinstance(test, Instruction) or not is_test(test) or _get_name(test.operands[0]) != pred:
        return None
    bare = block.replace(body=tuple(body))
    emits = (block, *body, End(block))
    if len(body) == 4:
        uni = _match_branch(body[3], label, pred, True)
        return None if uni is None else Wait(pred, label, None, uni, test, bare, emits)
    if not isinstance(body[5], Label):
        return None
    end_label = body[5].name
    ways = {_match_branch(body[3], end_label, pred, False), _match_branch(body[4], label, None, False)}
    uni = ways.pop() if len(ways) == 1 else None
    return None if uni is None else Wait(pred, label, end_label, uni, test, bare, emits)


def is_test(instruction: Instruction) -> bool:
    """Tell whether an instruction unconditionally tests the phase of a barrier."""
    is_wait = instruction.opcode == "mbarrier" and instruction.modifiers[:1] in ((".try_wait",), (".test_wait",))
    return is_wait and instruction.predicate is None and len(instruction.operands) in (3, 4)


def _match_branch(statement: Statement, target: str, pred: str | None, is_negated: bool) -> bool | None:
    """Return whether a branch to a label under this guard is uniform; None for anything else."""
    if not isinstance(statement, Instruction) or statement.opcode != "bra" or len(statement.operands) != 1:
        return None
    guard = statement.predicate
    guard_key = (None, False) if guard is None else (guard.register, guard.negated)
    operand = statement.operands[0]
    if guard_key != (pred, is_negated) or not isinstance(operand, LabelOperand) or operand.name != target:
        return None
    return None if statement.modifiers not in ((), (".uni",)) else bool(statement.modifiers)


def _get_name(operand: Operand) -> str | None:
    return operand.name if isinstance(operand, LabelOperand | RegisterOperand) else None
