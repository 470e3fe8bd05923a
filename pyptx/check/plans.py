"""The operand lists that an instruction allows, and the one that its operands match.

An instruction is legal if one operand list of one usable match fits; otherwise the list that matches furthest is
reported.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyptx.check.complaint import Complaint
from pyptx.check.fits import list_accepted_types
from pyptx.check.mismatches import complain_undeclared, is_known
from pyptx.check.operand_rules import OPERAND_COUNT
from pyptx.check.operands import find_misfit
from pyptx.check.spelling import explain_unavailable_count
from pyptx.check.symbols import Scope
from pyptx.diagnostics import format_count
from pyptx.ir import ImmediateOperand, Instruction, LabelOperand, RegisterOperand
from pyptx.ir.operands import Operand as Actual
from pyptx.isa.model import Kind, Match, Operand
from pyptx.types import from_name

Signature = tuple[Operand, ...]


ACCUMULATES = "scale_d"
"""The table's name for the operand that decides whether an accumulator is read or only written."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One operand list of a match. `accepts` holds the register types that each simple position accepts (None: look
    closer), `integers` whether it takes any integer, and `accumulates` the index of the operand that decides whether
    the accumulator is read."""

    match: Match
    signature: Signature
    accepts: tuple[frozenset[str] | None, ...]
    integers: tuple[bool, ...]
    accumulates: int | None


def build_plans(matches: tuple[Match, ...]) -> dict[int, list[Plan]]:
    """Return the operand lists of the matches, grouped by length."""
    by_count: dict[int, list[Plan]] = {}
    for match in matches:
        for signature in match.signatures:
            decides = [index for index, operand in enumerate(signature) if operand.name == ACCUMULATES]
            accepts = tuple(_find_accepted_types(operand) for operand in signature)
            integers = tuple(_takes_integers(operand) for operand in signature)
            runs = Plan(match, signature, accepts, integers, decides[0] if decides else None)
            by_count.setdefault(len(signature), []).append(runs)
    return by_count


def _find_accepted_types(operand: Operand) -> frozenset[str] | None:
    scalar = operand.kind in (Kind.VALUE, Kind.REGISTER, Kind.MOVABLE) and operand.count <= 1
    return (
        list_accepted_types(operand.type, operand.widenable) if scalar and operand.type and not operand.count else None
    )


def _takes_integers(operand: Operand) -> bool:
    number = operand.kind in (Kind.VALUE, Kind.MOVABLE) and operand.access == "r" and not operand.count
    return number and operand.bounds is None and operand.type is not None and from_name(operand.type).kind in "bus"


def match_operands(
    instruction: Instruction, by_count: dict[int, list[Plan]], scope: Scope
) -> tuple[Plan | None, Complaint | None]:
    """Return the operand list that matches the operands, or why none does."""
    best: tuple[int, Complaint] | None = None
    for plan in by_count.get(len(instruction.operands), ()):
        position, complaint = _find_first_misfit(plan, instruction.operands, scope)
        if complaint is None:
            return plan, None
        if best is None or position > best[0]:
            best = position, complaint
    return None, best[1] if best else _explain_count(instruction, by_count, scope)


def _find_first_misfit(plan: Plan, actual: tuple[Actual, ...], scope: Scope) -> tuple[int, Complaint | None]:
    cache = scope.cache
    for index, operand in enumerate(actual):
        accepts = plan.accepts[index]
        if isinstance(operand, RegisterOperand):
            symbol = cache.get(operand.name) or scope.find(operand.name)
            if accepts is not None and symbol is not None and symbol.plain in accepts:
                continue
        elif isinstance(operand, ImmediateOperand) and plan.integers[index] and _is_short_integer(operand):
            continue
        complaint = find_misfit(plan.signature[index], operand, scope)
        if complaint is not None:
            return index, Complaint(complaint.rule, complaint.message, complaint.help, operand=index)
    return len(actual), None


def _is_short_integer(actual: ImmediateOperand) -> bool:
    return len(actual.text) < _DIGITS_OF_64_BITS and isinstance(actual.value, int)


_DIGITS_OF_64_BITS = 18
"""Numbers shorter than this always fit in 64 bits."""


def _explain_count(instruction: Instruction, by_count: dict[int, list[Plan]], scope: Scope) -> Complaint:
    """Return which operands the form takes; an undeclared name among the actual ones is the likelier mistake."""
    for index, actual in enumerate(instruction.operands):
        if (
            isinstance(actual, RegisterOperand | LabelOperand)
            and actual.name != "_"
            and not is_known(actual.name, scope)
        ):
            return complain_undeclared(actual.name, scope, index)
    if scope.header is not None:
        words = tuple(word.lstrip(".") for word in instruction.modifiers)
        newer = explain_unavailable_count(instruction.opcode, words, len(instruction.operands), *scope.header)
        if newer is not None:
            return newer
    counts = sorted(by_count)
    shape = ", ".join(str(operand) for operand in by_count[counts[-1]][-1].signature)
    return Complaint(
        OPERAND_COUNT,
        f"`{instruction.full_opcode}` takes {format_count('operand', *counts)}, found {len(instruction.operands)}",
        f"the form is `{instruction.full_opcode} {shape}`" if shape else "remove the operands",
    )
