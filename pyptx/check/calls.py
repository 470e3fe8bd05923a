"""Checks calls: the callee must be a function, and arguments and results must match its parameters."""

from __future__ import annotations

from collections.abc import Iterator

from pyptx.check.body import Body, Step
from pyptx.check.fits import list_accepted_types
from pyptx.check.symbols import Kind, Symbol
from pyptx.diagnostics import Diagnostic, Rule
from pyptx.ir import (
    CallPrototype,
    Function,
    ImmediateOperand,
    LabelOperand,
    Param,
    ParenthesizedOperand,
    RegisterOperand,
    opcode_span,
)
from pyptx.ir.operands import Operand
from pyptx.isa.traits import Trait

_FRAME = """\
.version 8.5
.target sm_90a
.address_size 64
.func (.reg .b32 sum) add(.reg .b32 a, .reg .b32 b) {{ add.s32 sum, a, b; ret; }}
.visible .entry other() {{ ret; }}
.visible .entry k()
{{
    .reg .b32 %r<4>;
    .reg .b64 %rd<2>;
    {}
    ret;
}}
"""

ARGUMENT_COUNT = Rule(
    "PTX0405",
    "wrong number of arguments",
    "A call must pass as many arguments, and receive as many results, as the function or its prototype declares.",
    _FRAME.format("call (%r0), add, (%r1);"),
    _FRAME.format("call (%r0), add, (%r1, %r2);"),
)
ARGUMENT_TYPE = Rule(
    "PTX0406",
    "argument type does not match",
    "An argument register must have the size and kind of the function's parameter.",
    _FRAME.format("call (%r0), add, (%r1, %rd1);"),
    _FRAME.format("call (%r0), add, (%r1, %r2);"),
)
CALLS_KERNEL = Rule(
    "PTX0407",
    "kernel called as a function",
    "Only a `.func` can be called; a kernel (`.entry`) is launched.",
    _FRAME.format("call other;"),
    _FRAME.format("call (%r0), add, (1, 2);"),
)

NO_PROTOTYPE = Rule(
    "PTX0409",
    "indirect call without a prototype",
    "The last operand of a call through a register is the label of a `.callprototype` or `.calltargets` list.",
    _FRAME.format("mov.u64 %rd0, add;\ncall (%r0), %rd0, (%r1, %r2);"),
    _FRAME.format(
        "mov.u64 %rd0, add;\nP: .callprototype (.reg .b32 _) _ (.reg .b32 _, .reg .b32 _);\n"
        "call (%r0), %rd0, (%r1, %r2), P;"
    ),
)

RULES = (ARGUMENT_COUNT, ARGUMENT_TYPE, CALLS_KERNEL, NO_PROTOTYPE)


def check_calls(body: Body) -> Iterator[Diagnostic]:
    """Yield the findings of one function's calls."""
    for step in body.steps:
        if Trait.CALLS in step.traits:
            yield from _check_call(step)


def _check_call(step: Step) -> Iterator[Diagnostic]:
    operands = list(step.instruction.operands)
    results = _take_list(operands)
    callee = operands.pop(0) if operands else None
    arguments = _take_list(operands)
    if not operands and _is_register(callee, step):
        yield NO_PROTOTYPE.report(
            opcode_span(step.instruction),
            "an indirect call needs a prototype",
            help="add `P: .callprototype …;` before the call and `, P` as its last operand",
        )
    declaration = _find_declaration(callee, step)
    if operands and isinstance(operands[0], LabelOperand):
        declaration = _find_declaration(operands[0], step) or declaration
    if isinstance(declaration, Function) and declaration.is_entry:
        yield CALLS_KERNEL.report(
            opcode_span(step.instruction), f"`{declaration.name}` is a kernel; only a .func can be called"
        )
    elif declaration is not None:
        yield from _check_passed_operands(step, results, declaration.return_params or (), "result")
        yield from _check_passed_operands(step, arguments, declaration.params, "argument")


def _is_register(callee: Operand | None, step: Step) -> bool:
    symbol = step.scope.find(callee.name) if isinstance(callee, LabelOperand | RegisterOperand) else None
    return symbol is not None and symbol.kind is Kind.REGISTER


def _take_list(operands: list[Operand]) -> ParenthesizedOperand | None:
    """Pop a leading parenthesized list."""
    first = operands[0] if operands else None
    if isinstance(first, ParenthesizedOperand):
        operands.pop(0)
        return first
    return None


def _find_declaration(callee: object, step: Step) -> Function | CallPrototype | None:
    symbol = step.scope.find(callee.name) if isinstance(callee, LabelOperand | RegisterOperand) else None
    declaration = symbol.declaration if symbol is not None and symbol.kind in (Kind.FUNCTION, Kind.PROTOTYPE) else None
    return declaration if isinstance(declaration, Function | CallPrototype) else None


def _check_passed_operands(
    step: Step, actual: ParenthesizedOperand | None, formal: tuple[Param, ...], noun: str
) -> Iterator[Diagnostic]:
    elements = actual.elements if actual else ()
    variadic = any(param.name == "..." for param in formal)
    if len(elements) != len(formal) and not variadic:
        yield ARGUMENT_COUNT.report(
            opcode_span(step.instruction),
            f"the function has {len(formal)} {noun}{'' if len(formal) == 1 else 's'}, but the call passes "
            f"{len(elements)}",
        )
        return
    for element, param in zip(elements, formal, strict=False):
        if isinstance(element, RegisterOperand | LabelOperand):
            symbol = step.scope.find(element.name)
            if symbol is not None and not _fits(symbol, param):
                yield ARGUMENT_TYPE.report(
                    opcode_span(step.instruction),
                    f"{noun} `{element.name}` is .{symbol.type}, but parameter `{param.name}` is {param.type.ptx}",
                )
        elif not isinstance(element, ImmediateOperand):
            return


def _fits(symbol: Symbol, param: Param) -> bool:
    """Compare a register with the type of its parameter. `.param` variables, including arrays, match by layout, which
    is left to ptxas."""
    if symbol.kind is not Kind.REGISTER or param.array_size is not None or symbol.vector or param.vector:
        return True
    return symbol.type in list_accepted_types(param.type.ptx[1:])
