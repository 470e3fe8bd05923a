"""Checks initial values of variables: where they are allowed, how they nest, how many there are, and their type."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pyptx.diagnostics import Rule, format_count
from pyptx.ir import (
    BinaryOperand,
    Declarator,
    GenericOperand,
    ImmediateOperand,
    LabelOperand,
    MaskOperand,
    VarDecl,
    VectorOperand,
    evaluate,
    fault,
)
from pyptx.ir.nodes import has_braces
from pyptx.ir.operands import Operand, number_value

_FRAME = """\
.version 8.5
.target sm_90a
.address_size 64
{}
.visible .entry k()
{{
    ret;
}}
"""

INITIAL_VALUE = Rule(
    "PTX0412",
    "initial value does not fit the variable",
    "A `.global` or `.const` variable takes at most as many initial values as it has elements, with braces nested "
    "like its dimensions. `.f32` and `.f64` take floating-point numbers; integer types take integers and the "
    "addresses of names declared earlier.",
    _FRAME.format(".global .u32 g[2] = {1, 2, 3};"),
    _FRAME.format(".global .u32 g[3] = {1, 2, 3};"),
)

RULES = (INITIAL_VALUE,)

_OPAQUE = frozenset((".texref", ".samplerref", ".surfref"))
Values = tuple[str | Operand, ...]


def find_misfit(statement: VarDecl, item: Declarator, is_declared: Callable[[str], bool]) -> str | None:
    """Return why a variable cannot have its initial value; `is_declared` tells whether a name is declared."""
    if item.initializer is None or statement.type.ptx in _OPAQUE:
        return None
    if statement.state_space.ptx not in (".global", ".const"):
        return f"`{item.name}` is in {statement.state_space.ptx}; only .global and .const variables have initial values"
    if statement.type.ptx in (".f16", ".f16x2", ".bf16", ".bf16x2"):
        return f"`{item.name}` is {statement.type.ptx}, which cannot have an initial value; declare it as .b16 or .b32"
    sizes = [] if item.array_size is None else [int(item.array_size), *map(int, item.dims)]
    sizes += [statement.vector] if statement.vector else []
    if bool(sizes) is not has_braces(item):
        braces = "in" if sizes else "without"
        return (
            f"`{item.name}` has {format_count('dimension', len(sizes))}, so its value must be written {braces} braces"
        )
    stack: list[tuple[Values, int]] = [(item.initializer, 0)]
    while stack:
        values, level = stack.pop()
        problem = _check_count(statement, item, sizes, level, len(values)) if sizes else None
        for value in values if problem is None else ():
            if isinstance(value, VectorOperand) is (level + 1 >= len(sizes)):
                problem = f"the braces of `{item.name}` must be nested like its {len(sizes)} dimensions"
            elif isinstance(value, VectorOperand):
                stack.append((value.elements, level + 1))
            else:
                problem = _check_value(value, statement, item, is_declared)
            if problem is not None:
                break
        if problem is not None:
            return problem
    return None


def _check_count(statement: VarDecl, item: Declarator, sizes: list[int], level: int, count: int) -> str | None:
    size = sizes[level]
    if statement.vector and level + 1 == len(sizes):
        return None if count == size else f"a vector of {size} in `{item.name}` has {format_count('value', count)}"
    return (
        f"`{item.name}` has {format_count('element', size)} here, but {format_count('value', count)}"
        if size and count > size
        else None
    )


def _check_value(
    value: str | Operand, statement: VarDecl, item: Declarator, is_declared: Callable[[str], bool]
) -> str | None:
    constant = ImmediateOperand(value) if isinstance(value, str) else value
    wrong = fault(constant.operand if isinstance(constant, MaskOperand) else constant)
    if wrong is not None:
        return f"{wrong}, in the value of `{item.name}`"
    missing_name = next((name for name in _find_names(value) if not is_declared(name)), None)
    if missing_name is not None:
        return f"`{missing_name}` in the value of `{item.name}` must be declared before it"
    if any(_find_names(value)):
        return None
    number = number_value(value) if isinstance(value, str) else _evaluate(value)
    if number is None:
        return f"a constant expression in the value of `{item.name}` cannot be evaluated"
    kind = statement.type.ptx[1]
    if (kind == "f" and isinstance(number, int)) or (kind in "us" and isinstance(number, float)):
        numbers = "floating-point numbers, such as 1.0" if kind == "f" else "integers"
        return f"`{item.name}` is {statement.type.ptx}, which takes {numbers}"
    return None


def _evaluate(value: Operand) -> int | float | None:
    return evaluate(value.operand if isinstance(value, MaskOperand) else value)


def _find_names(value: str | Operand) -> Iterator[str]:
    """Yield the name that a value refers to, if any."""
    if isinstance(value, MaskOperand):
        value = value.operand
    if isinstance(value, BinaryOperand):
        value = value.left
    if isinstance(value, LabelOperand):
        yield value.name
    elif isinstance(value, GenericOperand):
        yield value.symbol
    elif isinstance(value, str) and value[0] not in "-.0123456789":
        yield value
