"""Checks that the comments marking what a helper emitted (`// BEGIN name` … `// END name`) nest."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from pyptx.diagnostics import Diagnostic, Rule, Severity
from pyptx.ir import Block, Function, Statement

_FRAME = """\
.version 8.5
.target sm_90a
.address_size 64
.visible .entry k()
{{
    // BEGIN wait(bar)
    bar.sync 0;
    {}
    ret;
}}
"""

UNMATCHED_SCOPE = Rule(
    "PTX0640",
    "unmatched scope comment",
    "Helpers mark the PTX they emit with `// BEGIN name(args)` and `// END name`. One without the other usually "
    "means that an edit removed too much or too little.",
    _FRAME.format(""),
    _FRAME.format("// END wait"),
    Severity.WARNING,
)

RULES = (UNMATCHED_SCOPE,)

_MARK = re.compile(r"//\s*(BEGIN|END)\s+([A-Za-z_$][\w.$]*)")


def check_scopes(function: Function) -> Iterator[Diagnostic]:
    """Yield the unmatched marks of one function."""
    open_marks: list[tuple[str, Statement]] = []
    for kind, name, statement in _find_marks(function):
        if kind == "BEGIN":
            open_marks.append((name, statement))
        elif open_marks and open_marks[-1][0] == name:
            open_marks.pop()
        else:
            yield UNMATCHED_SCOPE.report(statement.origin, f"`END {name}` does not close an open `BEGIN {name}`")
    for name, statement in open_marks:
        yield UNMATCHED_SCOPE.report(statement.origin, f"`BEGIN {name}` is never closed", help=f"add `// END {name}`")


def _find_marks(function: Function) -> Iterator[tuple[str, str, Statement]]:
    stack: list[tuple[Function | Block, Iterator[Statement]]] = [(function, iter(function.body))]
    while stack:
        owner, statements = stack[-1]
        for statement in statements:
            yield from _match_marks(getattr(statement, "layout", None) or (), statement)
            if isinstance(statement, Block):
                stack.append((statement, iter(statement.body)))
                break
        else:
            yield from _match_marks(owner.closing or (), owner)
            stack.pop()


def _match_marks(gaps: Iterable[str], statement: Statement) -> Iterator[tuple[str, str, Statement]]:
    for gap in gaps:
        if "//" in gap:
            for mark in _MARK.finditer(gap):
                yield mark[1], mark[2], statement
