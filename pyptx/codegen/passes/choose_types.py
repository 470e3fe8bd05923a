"""Assigns each register a variable and the type that most of its uses need.

Contract: fills `draft.variables`; emits and orders nothing. A type is only a view: whatever is chosen, an operator is
written only if the DSL emits the original instruction.
"""

from __future__ import annotations

from pyptx.check.body import Step
from pyptx.check.symbols import Symbol
from pyptx.codegen.analysis.usage import Register
from pyptx.codegen.sugar_draft import Draft, Variable
from pyptx.isa.model import Kind
from pyptx.types import PtxType, from_name

_STRONG = frozenset("add sub mul mad fma div rem min max neg abs shr setp set cvt bfe mul24 mad24 slct sad".split())
_KEEPS = {"and": 2, "or": 2, "xor": 2, "not": 1, "shl": 1, "selp": 2, "mov": 1}
"""Operations whose result has the type of their operands, with the number of these operands."""


def choose_types(draft: Draft) -> None:
    """Create the variables and let their uses vote, the last instruction first: a result's type determines its
    operands' types if the instruction does not."""
    for place in range(len(draft.usage.steps) - 1, -1, -1):
        step = draft.usage.steps[place]
        reads, writes = draft.usage.access[place]
        type_name = ""
        for register in writes:
            variable = get_variable(draft, register, step)
            type_name = type_name or decide(draft, variable).name
        for register in reads:
            get_variable(draft, register, step)
        if step.plan is not None:
            _vote(draft, step, type_name)
    for variable in draft.variables.values():
        variable.home = decide(draft, variable)


def get_variable(draft: Draft, register: Register, step: Step) -> Variable:
    """Return the variable of a register, created on first use."""
    variable = draft.variables.get(register)
    if variable is None:
        name = register[0]
        symbol = step.scope.find(name)
        kind = _find_declared(symbol)
        declared_type = kind or from_name("b32")
        variable = Variable(name, declared_type, declared_type, False)
        if symbol is not None:
            late = id(symbol.declaration) in draft.late
            variable.declaration, variable.inner = symbol.declaration, late or not _is_outermost(draft, name, symbol)
            plain = kind is not None and not symbol.vector and not variable.inner
            variable.fresh = plain and draft.usage.registers[register].fresh and id(symbol.declaration) in draft.own
        draft.variables[register] = variable
    return variable


def _find_declared(symbol: Symbol | None) -> PtxType | None:
    try:
        return from_name(symbol.type) if symbol is not None else None
    except ValueError:
        return None


def _is_outermost(draft: Draft, name: str, symbol: Symbol) -> bool:
    """Tell whether the function itself declares the register, not a nested block."""
    first = draft.usage.steps[0].scope
    while first.parent is not None and first.parent.parent is not None:
        first = first.parent
    return first.find(name) is symbol


def _vote(draft: Draft, step: Step, result_type: str) -> None:
    assert step.plan is not None
    opcode = step.instruction.opcode
    for index, (place, operand) in enumerate(zip(step.plan.signature, step.instruction.operands, strict=True)):
        name = getattr(operand, "name", None)
        if name is None or place.kind is Kind.ADDRESS or place.type is None or place.count:
            continue
        symbol = step.scope.find(name)
        variable = draft.variables.get((name, id(symbol)))
        if variable is None:
            continue
        kind = place.type
        variable.is_compared = variable.is_compared or (
            opcode == "setp" and step.instruction.modifiers[0] in (".eq", ".ne")
        )
        weight = 1.0 if opcode in _STRONG else 0.1
        if "w" in place.access:
            weight *= 0.5
        elif (
            index <= _KEEPS.get(opcode, 0)
            and result_type
            and from_name(result_type).bits == variable.declared_type.bits
        ):
            kind, weight = result_type, 0.5
        variable.votes[kind] = variable.votes.get(kind, 0.0) + weight


def decide(draft: Draft, variable: Variable) -> PtxType:
    """Return the type with the most votes that a register of this declaration can hold and for which `ptx.names` finds
    its name, class by class."""
    declared_type = variable.declared_type
    if variable.inner or (draft.get_element(variable) is None and not variable.fresh):
        return declared_type
    if declared_type.kind not in "bus" or declared_type.bits not in (16, 32, 64):
        return declared_type
    best, most_votes = declared_type, 0.0
    for name, count in variable.votes.items():
        kind = from_name(name)
        is_better = count > most_votes and kind.bits == declared_type.bits and kind.name in _READINGS
        if is_better and draft.bench.reaches(kind, declared_type):
            best, most_votes = kind, count
    # Untyped bits count as unsigned wherever the sign matters, but not in a test for equality.
    return declared_type if best.kind == "u" and declared_type.kind == "b" and not variable.is_compared else best


_READINGS = frozenset("b16 u16 s16 b32 u32 s32 b64 u64 s64 f16 bf16 f16x2 bf16x2 f32 f64".split())
"""The views of a register available as attributes: `x.s32`."""
