"""Checks that a function's directives exist on the target and PTX version; the parser checks where they are allowed."""

from __future__ import annotations

from collections.abc import Iterator

from pyptx.check.spelling import NEWER_VERSION, OTHER_TARGET
from pyptx.diagnostics import Diagnostic
from pyptx.ir import Function, PragmaDirective
from pyptx.isa import directives as known
from pyptx.isa.targets import Target, Version


def pragmas(statement: PragmaDirective, where: Target, version: Version) -> Iterator[Diagnostic]:
    """Yield the known strings of a `.pragma` that this target and version do not support."""
    for text in (statement.value, *statement.more):
        found = known.pragma(text)
        if found is not None and not found.available.on(where, version):
            rule = OTHER_TARGET if found.available.first_version(where) is None else NEWER_VERSION
            yield rule.found(statement.origin, f'`.pragma "{found.name}"` needs {found.available}')


def directives(function: Function, where: Target, version: Version) -> Iterator[Diagnostic]:
    """Yield the findings of one function, declared or defined."""
    for given in function.directives:
        found = known.directive(f".{given.name}")
        if found is not None and not found.available.on(where, version):
            rule = OTHER_TARGET if found.available.first_version(where) is None else NEWER_VERSION
            yield rule.found(function.origin, f"`.{given.name}` needs {found.available}")
