"""Checks that a function's directives exist on the target and PTX version; the parser checks where they are allowed."""

from __future__ import annotations

from collections.abc import Iterator

from pyptx.check.spelling import NEWER_VERSION, OTHER_TARGET
from pyptx.diagnostics import Diagnostic
from pyptx.ir import Function, PragmaDirective
from pyptx.isa import directives as known
from pyptx.isa.targets import Target, Version


def check_pragmas(statement: PragmaDirective, target: Target, version: Version) -> Iterator[Diagnostic]:
    """Yield the known strings of a `.pragma` that this target and version do not support."""
    for text in (statement.value, *statement.more):
        entry = known.find_pragma(text)
        if entry is not None and not entry.available.on(target, version):
            rule = OTHER_TARGET if entry.available.find_first_version(target) is None else NEWER_VERSION
            yield rule.report(statement.origin, f'`.pragma "{entry.name}"` needs {entry.available}')


def check_directives(function: Function, target: Target, version: Version) -> Iterator[Diagnostic]:
    """Yield the findings of one function, declared or defined."""
    for directive in function.directives:
        entry = known.find_directive(f".{directive.name}")
        if entry is not None and not entry.available.on(target, version):
            rule = OTHER_TARGET if entry.available.find_first_version(target) is None else NEWER_VERSION
            yield rule.report(function.origin, f"`.{directive.name}` needs {entry.available}")
