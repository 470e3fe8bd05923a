"""Checks that `.alias` gives a declared name to a function that this module defines."""

from __future__ import annotations

from collections.abc import Iterator

from pyptx.check.redeclarations import Counts, find_signature_difference, format_param, is_noreturn
from pyptx.diagnostics import Diagnostic, Rule
from pyptx.ir import AliasDirective, Function, LinkingDirective, Module, Statement, word_span

_FRAME = """\
.version 8.0
.target sm_80
.address_size 64
.visible .func g(.param .b32 a) {{ ret; }}
{}
.alias f, g;
.visible .entry k() {{ ret; }}
"""

ALIAS = Rule(
    "PTX0415",
    "alias of a function that cannot have one",
    "`.alias f, g` gives the function `g` a second name. Both are declared before it, with equal parameters and "
    "results: `f` without a body, and `g` with one in this module, neither `.weak` nor `.extern`.",
    _FRAME.format(".visible .func f(.param .b64 a);"),
    _FRAME.format(".visible .func f(.param .b32 a);"),
)

RULES = (ALIAS,)
_OUTSIDE = (LinkingDirective.EXTERN, LinkingDirective.WEAK)


def check_aliases(module: Module) -> Iterator[Diagnostic]:
    """Yield the mistakes of the module's aliases."""
    statements = module.directives
    if not any(isinstance(statement, AliasDirective) for statement in statements):
        return
    defined = {statement.name for statement in statements if isinstance(statement, Function) and statement.definition}
    declared: dict[str, Statement] = {}
    for statement in statements:
        if isinstance(statement, Function):
            if not isinstance(declared.get(statement.name), AliasDirective):
                declared[statement.name] = statement
        elif isinstance(statement, AliasDirective):
            fault = _find_fault(statement, declared, defined)
            if fault is not None:
                name, why, remedy = fault
                yield ALIAS.report(word_span(statement, name), why, help=remedy)
            declared[statement.name] = statement


def _find_fault(
    alias: AliasDirective, declared: dict[str, Statement], defined: set[str]
) -> tuple[str, str, str | None] | None:
    """Return the name that is wrong, why, and a remedy."""
    name, target = alias.name, alias.aliasee
    new, old = declared.get(name), declared.get(target)
    if isinstance(new, AliasDirective):
        return name, f"`{name}` already has an alias, of `{new.aliasee}`", "declare another name for this alias"
    if not isinstance(new, Function):
        return name, f"`{name}` must be declared as a function before its alias", "write its prototype before `.alias`"
    if new.is_entry or new.definition:
        kind = "an entry" if new.is_entry else "a function with a body"
        return (
            name,
            f"`{name}` is {kind}, and an alias needs a prototype",
            "declare the alias as a `.func` without a body",
        )
    if isinstance(old, AliasDirective):
        return target, f"`{target}` is itself an alias", f"name the function that it stands for, `{old.aliasee}`"
    if not isinstance(old, Function):
        return target, f"`{target}` must be declared as a function before its alias", "move `.alias` after the function"
    if old.is_entry or old.linking in _OUTSIDE:
        kind = "an entry" if old.is_entry else f"`{old.linking.ptx}`" if old.linking else ""
        return target, f"`{target}` is {kind}, so it cannot have an alias", None
    if target not in defined:
        return target, f"`{target}` has no body in this module", "define it in the module that declares its alias"
    difference = _describe_difference(new, old)
    return (name, difference, "declare the alias like the function") if difference else None


def _describe_difference(new: Function, old: Function) -> str | None:
    names = f"`{new.name}` cannot stand for `{old.name}`"
    if is_noreturn(new) is not is_noreturn(old):
        return f"{names}: only one of them is `.noreturn`"
    difference = find_signature_difference(old, new)
    if isinstance(difference, Counts):
        return f"{names}, which has {difference.describe_first()}; the alias has {difference.second}"
    if difference is not None:
        noun, first, second = difference
        return f"{names}, whose {noun} `{first.name}` is {format_param(first)}; the alias has {format_param(second)}"
    return None
