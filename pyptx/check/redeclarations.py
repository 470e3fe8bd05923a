"""Compares a second declaration of a function or variable with the first."""

from __future__ import annotations

from typing import NamedTuple

from pyptx.diagnostics import Rule
from pyptx.ir import Declarator, Function, LinkingDirective, Param, VarDecl

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

DIFFERENT = Rule(
    "PTX0410",
    "redeclared differently",
    "A prototype and its definition must agree in linking, parameters, results and `.noreturn`; an `.extern` "
    "variable and its definition in type and size. All declarations of a variable but one must be `.extern`, and the "
    "definition of an `.extern` variable needs its own linking directive.",
    _FRAME.format(".func f(.param .b32 a);\n.func f(.param .b64 a) { ret; }"),
    _FRAME.format(".func f(.param .b64 a);\n.func f(.param .b64 a) { ret; }"),
)
EXTERN_VALUE = Rule(
    "PTX0411",
    "external variable with an initial value",
    "An `.extern` variable is defined and initialized in another module.",
    _FRAME.format(".extern .global .u32 g = 1;"),
    _FRAME.format(".visible .global .u32 g = 1;"),
)

EXTERN_BODY = Rule(
    "PTX0414",
    "external function with a body",
    "An `.extern` function is defined in another module. Use `.visible` to export a function defined in this module.",
    _FRAME.format(".extern .func f() { ret; }"),
    _FRAME.format(".visible .func f() { ret; }"),
)

RULES = (DIFFERENT, EXTERN_VALUE, EXTERN_BODY)


class Counts(NamedTuple):
    """The numbers of parameters or results, `noun`, of two functions."""

    noun: str
    first: int
    second: int

    def describe_first(self) -> str:
        """Return the first number with its noun."""
        return f"{self.first} {self.noun}{'s' if self.first != 1 else ''}"


def describe_function_difference(before: Function, now: Function) -> str | None:
    """Return a description of how a function differs from its earlier prototype, or None."""
    if before.is_entry is not now.is_entry:
        return f"it was declared as {'an entry' if before.is_entry else 'a function'}"
    inherits_linking = now.linking is None and before.linking is not LinkingDirective.EXTERN
    if before.linking is not now.linking and not inherits_linking:
        return f"it was declared {_format_linking(before.linking)}, and now {_format_linking(now.linking)}"
    if now.definition and now.linking is LinkingDirective.EXTERN:
        return "it is `.extern`, so its definition must be in another module"
    if is_noreturn(before) is not is_noreturn(now):
        return "only one of the declarations is `.noreturn`"
    difference = find_signature_difference(before, now)
    if isinstance(difference, Counts):
        return f"it was declared with {difference.describe_first()}, and now with {difference.second}"
    if difference is not None:
        noun, first, second = difference
        return f"the {noun} `{second.name}` was declared {format_param(first)}, and now {format_param(second)}"
    return None


def find_signature_difference(first: Function, second: Function) -> Counts | tuple[str, Param, Param] | None:
    """Return the first difference between the parameters and results of functions: their numbers, or one of each with
    the noun for it."""
    pairs = (
        ("parameter", first.params, second.params),
        ("result", first.return_params or (), second.return_params or ()),
    )
    for noun, ours, theirs in pairs:
        if len(ours) != len(theirs):
            return Counts(noun, len(ours), len(theirs))
        for param, other in zip(ours, theirs, strict=True):
            if _compute_shape(param) != _compute_shape(other):
                return noun, param, other
    return None


def _format_linking(linking: LinkingDirective | None) -> str:
    return f"`{linking.ptx}`" if linking else "without a linking directive"


def is_noreturn(function: Function) -> bool:
    """Tell whether a function is declared `.noreturn`."""
    return any(directive.name == "noreturn" for directive in function.directives)


def _compute_shape(param: Param) -> tuple[object, ...]:
    size = None if param.array_size is None else int(param.array_size)
    alignment = param.alignment or param.trailing_alignment or param.type.bits // 8 * (param.vector or 1)
    if param.state_space.ptx == ".reg":
        alignment = None
    return param.state_space, param.type, param.vector, size, alignment


def format_param(param: Param) -> str:
    """Return how a parameter is declared, without its name."""
    alignment = param.alignment or param.trailing_alignment
    size = "" if param.array_size is None else f"[{int(param.array_size) or ''}]"
    vector = f".v{param.vector} " if param.vector else ""
    align = f".align {int(alignment)} " if alignment else ""
    return f"`{param.state_space.ptx} {align}{vector}{param.type.ptx}{size}`"


def describe_variable_difference(before: VarDecl, now: VarDecl, name: str) -> str | None:
    """Return a description of how a variable differs from its earlier declaration, or None."""
    extern = LinkingDirective.EXTERN
    if before.linking is extern and now.linking is None:
        return "it was declared `.extern`; the definition needs a linking directive such as `.visible`"
    if (before.type, before.vector) != (now.type, now.vector):
        return f"it was declared `{_format_type(before)}`, and now `{_format_type(now)}`"
    first, second = _find_sizes(before, name), _find_sizes(now, name)
    if len(first) != len(second) or any(a and b and a != b for a, b in zip(first, second, strict=True)):
        return f"it was declared with size {_format_dimensions(first)}, and now {_format_dimensions(second)}"
    return None


def is_second_definition(before: VarDecl, now: VarDecl) -> bool:
    """Tell whether neither declaration is `.extern`."""
    return LinkingDirective.EXTERN not in (before.linking, now.linking)


def has_extern_value(statement: VarDecl, item: Declarator) -> bool:
    """Tell whether a variable is `.extern` but has an initial value."""
    return statement.linking is LinkingDirective.EXTERN and item.initializer is not None


def _format_type(declaration: VarDecl) -> str:
    return f".v{declaration.vector} {declaration.type.ptx}" if declaration.vector else declaration.type.ptx


def _find_sizes(declaration: VarDecl, name: str) -> tuple[int, ...]:
    item = next(item for item in declaration.declarators if item.name == name)
    return () if item.array_size is None else (int(item.array_size), *map(int, item.dims))


def _format_dimensions(sizes: tuple[int, ...]) -> str:
    return "".join(f"[{size or ''}]" for size in sizes) or "of one element"
