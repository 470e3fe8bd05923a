"""Writes arithmetic with operators, `a + b`, `x >> 3`, `i < n`, and the DSL's short forms.

Contract: yields candidates for an instruction, the most readable first. The caller takes the first one that the bench
verifies.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyptx.check.body import Step
from pyptx.codegen.plan import Attribute, Binary, Expr, Literal, Unary, build_path, call
from pyptx.codegen.sugar_operands import Operands, number, view_as
from pyptx.dsl.arithmetic import to_unsigned
from pyptx.dsl.registers import Reg
from pyptx.ir.operands import ImmediateOperand
from pyptx.types import PtxType, from_name

_BINARY = {
    "add": "+", "sub": "-", "mul": "*", "div": "//", "rem": "%", "and": "&", "or": "|", "xor": "^", "shl": "<<",
    "shr": ">>",
}  # fmt: skip
_COMPARED = {"eq": "==", "ne": "!=", "neu": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_BITS = frozenset("and or xor shl not".split())
_SIGNED = frozenset("div rem setp min max".split())
_MAD = build_path("ptx.mad")


def spell_with_operators(operands: Operands, step: Step) -> Iterator[Expr]:
    """Yield expressions for an instruction whose destination is a new register."""
    instruction = step.instruction
    if instruction.predicate is not None or len(instruction.operands) < 2:
        return
    opcode, modifiers = instruction.opcode, instruction.modifiers
    sources = instruction.operands[1:]
    kind = from_name(modifiers[-1]) if modifiers and modifiers[-1][1:] in _KNOWN else None
    if kind is None:
        return
    if len(sources) == 2 and opcode in _BINARY and modifiers[:-1] in ((), (".lo",), (".rn",)):
        symbol = "/" if modifiers[0] == ".rn" else _BINARY[opcode]
        yield from _build_pairs(operands, opcode, symbol, kind, sources)
    elif len(sources) == 2 and opcode == "setp" and len(modifiers) == 2 and modifiers[0][1:] in _COMPARED:
        yield from _build_pairs(operands, opcode, _COMPARED[modifiers[0][1:]], kind, sources)
    elif len(sources) == 2 and opcode in ("min", "max") and len(modifiers) == 1:
        for left, right in _build_sides(operands, opcode, kind, sources):
            if not isinstance(left, Literal):
                yield call(_build_method(left, opcode), right)
    elif len(sources) == 1 and opcode in ("neg", "not", "abs") and len(modifiers) == 1:
        source = _build_side(operands, sources[0], opcode, kind)
        if source is not None and not isinstance(source, Literal):
            yield call(build_path("abs"), source) if opcode == "abs" else Unary("-" if opcode == "neg" else "~", source)
    elif len(sources) == 3 and opcode in ("mad", "fma") and len(modifiers) == 2:
        yield from _build_mads(operands, opcode, modifiers, kind, sources)


_KNOWN = frozenset("pred b16 u16 s16 b32 u32 s32 b64 u64 s64 f16 bf16 f16x2 bf16x2 f32 f64".split())


def _build_method(value: Expr, name: str) -> Expr:
    return Attribute(value, name)


def _build_pairs(
    operands: Operands, opcode: str, symbol: str, kind: PtxType, sources: tuple[object, ...]
) -> Iterator[Expr]:
    for left, right in _build_sides(operands, opcode, kind, sources):
        if not (isinstance(left, Literal) and isinstance(right, Literal)):
            yield Binary(symbol, left, right)


def _build_sides(
    operands: Operands, opcode: str, kind: PtxType, sources: tuple[object, ...]
) -> Iterator[tuple[Expr, Expr]]:
    """Yield both sides: as typed, with the left one viewed as the instruction's type, and with both."""
    left = _build_side(operands, sources[0], opcode, kind)
    right = operands.build_expression(sources[1])  # pyright: ignore[reportArgumentType]
    if left is None or right is None:
        return
    right_view = _build_side(operands, sources[1], opcode, kind)
    if opcode in _SIGNED and right_view is not None:
        yield left, right_view
        return
    yield left, right
    if right_view is not None and right_view is not right:
        yield left, right_view


def _build_side(operands: Operands, operand: object, opcode: str, kind: PtxType) -> Expr | None:
    """Return an operand, viewed as the instruction's type if its own type would select another."""
    expr = operands.build_expression(operand)  # pyright: ignore[reportArgumentType]
    if expr is None or isinstance(operand, ImmediateOperand):
        return expr
    value = operands.draft.bench.look_up(expr)
    if not isinstance(value, Reg) or fits(value.dtype, opcode, kind):
        return expr
    return view_as(expr, kind)


def fits(have: PtxType, opcode: str, kind: PtxType) -> bool:
    """Tell whether an operator on a register of this type selects the instruction's type."""
    if have.kind == "pred" or kind.kind == "pred":
        return True
    if opcode == "neg" and kind.kind == "s":
        return have.bits == kind.bits and have.kind in "bus"
    if opcode in _BITS:
        return have.bits == kind.bits and have.kind in "bus"
    if opcode == "setp" and kind.kind == "b":
        return have is kind
    return to_unsigned(have) is kind or (kind.kind == "f" and have is kind)


def _build_mads(
    operands: Operands, opcode: str, modifiers: tuple[str, ...], kind: PtxType, sources: tuple[object, ...]
) -> Iterator[Expr]:
    first = _build_side(operands, sources[0], opcode, kind)
    factors = [operands.build_expression(source) for source in sources[1:]]  # pyright: ignore[reportArgumentType]
    if first is None or None in factors:
        return
    mode = None if modifiers[0] in (".lo", ".rn") else Literal(modifiers[0][1:])
    yield call(_MAD, first, *[part for part in factors if part is not None], mode=mode)


__all__ = ["fits", "number", "spell_with_operators"]
