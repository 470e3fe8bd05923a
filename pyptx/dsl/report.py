"""Groups the findings about a traced kernel: the same finding about many registers of one Python line is one
finding."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Set
from dataclasses import replace

from pyptx.diagnostics import Diagnostic, PythonFrame, Severity

_REGISTER = re.compile(r"`(%[\w$]*?)(\d+)`")


def soften(findings: Iterable[Diagnostic], lenient_origins: Set[PythonFrame | None]) -> Iterator[Diagnostic]:
    """Return the findings with errors in spelling, operands or target at these places as warnings: there the user
    requested an instruction that the table does not have."""
    for finding in findings:
        softens = (
            finding.origin in lenient_origins
            and finding.severity is Severity.ERROR
            and _OF_THE_TABLE.match(finding.code)
        )
        yield replace(finding, severity=Severity.WARNING) if softens else finding


_OF_THE_TABLE = re.compile("PTX0[123]")


def group_findings(findings: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return the findings; those that differ only in register numbers on one line are merged."""
    groups: dict[tuple[object, ...], list[Diagnostic]] = {}
    for finding in findings:
        match = _REGISTER.search(finding.message)
        key: tuple[object, ...] = (len(groups),)
        if match is not None and finding.origin is not None:
            text = finding.message.replace(match[0], f"`{match[1]}`")
            key = (finding.code, finding.severity, finding.origin.file, finding.line, text, finding.help)
        groups.setdefault(key, []).append(finding)
    return [_merge(group) for group in groups.values()]


def _merge(group: list[Diagnostic]) -> Diagnostic:
    first, match = group[0], _REGISTER.search(group[0].message)
    names = list(dict.fromkeys(match[0] for finding in group for match in [_REGISTER.search(finding.message)] if match))
    if match is None or len(names) < 2:
        return first
    several = f"each of {names[0]} … {names[-1]} ({len(names)} registers)"
    return replace(first, message=first.message.replace(match[0], several, 1))
