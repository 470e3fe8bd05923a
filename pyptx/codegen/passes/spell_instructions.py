"""Writes each instruction in the most readable way that emits exactly it: as an operator, through a wrapper, or with
`ptx.inst`.

Contract: fills `draft.lines` in text order; the bench has verified that every line emits exactly its instruction with
the same registers. A register whose definition cannot be written this way remains a declared name. An instruction
without any such line, for example an illegal one, stays as the plain transpiler writes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyptx.check.body import Step
from pyptx.codegen.analysis.bench import DIFFERENT
from pyptx.codegen.passes.use_operators import spell_with_operators
from pyptx.codegen.passes.use_wrappers import spell_with_wrappers
from pyptx.codegen.plan import Attribute, Call, Expr, Item, Line, Name, Tuple
from pyptx.codegen.sugar_draft import Draft, Variable
from pyptx.codegen.sugar_operands import Operands, chain
from pyptx.codegen.sugar_site import Site
from pyptx.dsl.registers import PipeRef, Reg
from pyptx.ir.operands import Operand, PipeOperand, VectorOperand
from pyptx.types import PtxType

_WORTH = 0.9
"""Vote margin for a type to be used as a result's type from its definition on."""


def spell_instructions(draft: Draft) -> None:
    """Write every instruction that has a readable form."""
    for step, (reads, writes) in zip(draft.usage.steps, draft.usage.access, strict=True):
        variables = [draft.variables[register] for register in dict.fromkeys(writes)]
        if step.plan is None:
            for register in (*writes, *reads):
                keep(draft, draft.variables[register])
            continue
        fresh = bool(variables) and all(variable.fresh for variable in variables)
        line = _build_fresh_line(draft, step, variables) if fresh else None
        if line is None:
            for variable in variables:
                keep(draft, variable)
            line = _build_plain_line(draft, step)
        if line is not None:
            draft.lines[id(step.instruction)] = line


def keep(draft: Draft, variable: Variable) -> None:
    """Make a register a declared name that is used explicitly."""
    was_element = isinstance(variable.expr, Item) and variable.fresh
    variable.fresh = False
    if was_element:
        variable.expr = draft.get_element(variable) or variable.expr
        variable.identifier = ""
    if variable.identifier and variable.identifier not in draft.bench.bindings:
        draft.bench.bindings[variable.identifier] = draft.bench.view_register(variable.name, variable.home)


def _build_fresh_line(draft: Draft, step: Step, variables: list[Variable]) -> Line | None:
    site = Site(draft, step, fresh=True)
    for read in draft.usage.access[draft.usage.places[id(step.instruction)]][0]:
        _settle(draft, draft.variables[read])
    registers = [draft.bench.view_register(variable.name, variable.home) for variable in variables]
    for expr in _find_fresh_ways(site):
        value = draft.bench.try_expression(expr, registers, step.instruction)
        if value is DIFFERENT:
            continue
        binding = _bind(site.operands, site.actuals[0], expr, value)
        if binding is not None:
            return Line(binding[1], (step.instruction,), binding[0])
    return None


def _settle(draft: Draft, variable: Variable) -> None:
    """Assign a variable to a register that is read before it is written."""
    if variable.identifier and variable.identifier not in draft.bench.bindings:
        keep(draft, variable)


def _find_fresh_ways(site: Site) -> Iterator[Expr]:
    yield from spell_with_operators(site.operands, site.step)
    yield from spell_with_wrappers(site)
    target = site.build_new_types()
    sources = site.build_operands(1)
    if target is not None and None not in sources:
        plain_call = Call(
            chain(site.opcode, site.step.instruction.modifiers), (target, *[r for r in sources if r is not None])
        )
        yield Call(plain_call.function, plain_call.arguments, site.build_guard())


def _bind(operands: Operands, operand: Operand, expr: Expr, value: Any) -> tuple[Expr | None, Expr] | None:
    """Assign values to the variables; return the target, and the expression viewed as the type that most uses need."""
    bench, draft = operands.draft.bench, operands.draft
    targets = [operands.get_variable(getattr(item, "name", "")) for item in _list_elements(operand)]
    several: Any = value
    values: list[Any] = list(several) if isinstance(value, list | tuple | PipeRef) else [value]
    if isinstance(operand, PipeOperand) and isinstance(value, Reg):
        # A wrapper that returns one part of the pair; the other is `_`.
        targets = [target for target in targets if target is not None]
    if len(values) != len(targets) or not all(map(_holds, values, targets)):
        return None
    first = targets[0]
    if len(targets) == 1 and first is not None and not isinstance(operand, VectorOperand):
        register, votes = values[0], first.votes
        is_outvoted = votes.get(first.home.name, 0) > votes.get(register.dtype.name, 0) + _WORTH
        if is_outvoted and not are_alike(register.dtype, first.home):
            expr, register = Attribute(expr, first.home.name), register.view(first.home)
        bench.bindings[first.identifier] = register
        return (first.expr if draft.is_read(first) else None), expr
    if isinstance(operand, VectorOperand) and first is not None and isinstance(first.expr, Item):
        bench.bindings[first.identifier] = values
        return Name(first.identifier), expr
    names: list[Expr] = []
    for variable, register in zip(targets, values, strict=True):
        if variable is not None:
            bench.bindings[variable.identifier] = register
        names.append(variable.expr if variable is not None and draft.is_read(variable) else Name("_"))
    return Tuple(tuple(names)), expr


def _holds(register: Any, target: Variable | None) -> bool:
    return (register is None or isinstance(register, Reg)) and (
        target is None or (register is not None and register.name == target.name)
    )


def are_alike(first: PtxType, second: PtxType) -> bool:
    """Tell whether operators treat two types alike: untyped bits count as unsigned."""
    return first is second or (first.bits == second.bits and {first.kind, second.kind} == {"b", "u"})


def _list_elements(operand: Operand) -> list[Operand]:
    if isinstance(operand, VectorOperand):
        return list(operand.elements)
    return [operand.left, operand.right] if isinstance(operand, PipeOperand) else [operand]


def _build_plain_line(draft: Draft, step: Step) -> Line | None:
    site = Site(draft, step, fresh=False)
    for read in draft.usage.access[draft.usage.places[id(step.instruction)]][0]:
        _settle(draft, draft.variables[read])
    line = _build_changed_line(site)
    if line is not None:
        return line
    for expr in _find_plain_ways(site):
        if draft.bench.try_expression(expr, (), step.instruction) is not DIFFERENT:
            return Line(expr, (step.instruction,))
    return None


_IN_PLACE = {
    "add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^", "shl": "<<", "shr": ">>",
}  # fmt: skip


def _build_changed_line(site: Site) -> Line | None:
    """Return `x += y` if the destination is the first source."""
    operands, symbol = site.actuals, _IN_PLACE.get(site.opcode)
    if symbol is None or len(operands) != 3 or operands[0] != operands[1] or site.pred is not None:
        return None
    target, value = site.build_operand(0), site.build_operand(2)
    if not isinstance(target, Name | Item) or value is None:
        return None
    if not site.draft.bench.emits_in_place(target, symbol, value, site.step.instruction):
        return None
    return Line(value, (site.step.instruction,), target, None, symbol)


def _find_plain_ways(site: Site) -> Iterator[Expr]:
    yield from spell_with_wrappers(site)
    values = site.build_operands(0)
    if None not in values:
        yield Call(
            chain(site.opcode, site.step.instruction.modifiers), tuple([v for v in values if v is not None]),
            site.build_guard(),
        )  # fmt: skip
