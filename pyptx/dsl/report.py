"""Groups the findings about a traced kernel: the same finding about many registers of one Python line is one
finding."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Set
from dataclasses import replace

from pyptx.diagnostics import Diagnostic, PythonFrame, Severity

_REGISTER = re.compile(r"`(%[\w$]*?)(\d+)`")


def lenient(found: Iterable[Diagnostic], unchecked: Set[PythonFrame | None]) -> Iterator[Diagnostic]:
    """Return the findings with errors in spelling, operands or target at these places as warnings: there the user
    requested an instruction that the table does not have."""
    for one in found:
        asked = one.origin in unchecked and one.severity is Severity.ERROR and _OF_THE_TABLE.match(one.code)
        yield replace(one, severity=Severity.WARNING) if asked else one


_OF_THE_TABLE = re.compile("PTX0[123]")


def grouped(found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return the findings; those that differ only in register numbers on one line are merged."""
    groups: dict[tuple[object, ...], list[Diagnostic]] = {}
    for one in found:
        named = _REGISTER.search(one.message)
        key: tuple[object, ...] = (len(groups),)
        if named is not None and one.origin is not None:
            text = one.message.replace(named[0], f"`{named[1]}`")
            key = (one.code, one.severity, one.origin.file, one.line, text, one.help)
        groups.setdefault(key, []).append(one)
    return [_merge(group) for group in groups.values()]


def _merge(group: list[Diagnostic]) -> Diagnostic:
    first, named = group[0], _REGISTER.search(group[0].message)
    names = list(dict.fromkeys(found[0] for one in group for found in [_REGISTER.search(one.message)] if found))
    if named is None or len(names) < 2:
        return first
    several = f"each of {names[0]} … {names[-1]} ({len(names)} registers)"
    return replace(first, message=first.message.replace(named[0], several, 1))
