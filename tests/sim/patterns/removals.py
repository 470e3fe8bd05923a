"""Removes or weakens the synchronization in any PTX, one statement at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_SYNC = re.compile(
    r"(?<![\w$%.@])(?:@!?%?[\w$]+\s+)?(?P<opcode>(?:bar|barrier|fence|membar|griddepcontrol|setmaxnreg|mbarrier"
    r"|cp\.async\.(?:bulk\.)?(?:commit_group|wait_group|wait_all|mbarrier)|wgmma\.(?:fence|commit_group|wait_group)"
    r"|tcgen05\.(?:fence|wait|commit|dealloc)|(?:atom|red|ld|st)\.(?:\w+\.)*?(?:acquire|release|acq_rel))"
    r"(?:::\w+|\.[\w:]+)*)(?![\w:$])(?P<operands>[^;{}]*);"
)
_WEAKER = (
    (r"^(?!.*\b(?:fence|barrier\.cluster\.wait))(.*?)\.(?:release|acquire|acq_rel)\b", r"\1.relaxed"),
    (r"^(?!.*fence\.(?:proxy|mbarrier))(.*?\.(?:release|acquire|acq_rel))\.(?:cluster|gpu|sys)\b", r"\1.cta"),
    (r"(wait_group(?:\.read|\.sync\.aligned)?\s+)0\b", r"\g<1>1"),
    (r"(wait_group(?:\.read|\.sync\.aligned)?\s+)1\b", r"\g<1>2"),
    (r"(bulk\.wait_group)(?=\s)", r"\1.read"),
)


@dataclass(frozen=True, slots=True)
class Change:
    """A kernel with one statement changed. `line` is its line; `change` is `remove` or the weaker statement."""

    line: int
    statement: str
    change: str
    text: str


def changes(text: str, *, weaker: bool = True) -> Iterator[Change]:
    """Yield the kernel with each of its synchronizing statements removed, and with each one weakened."""
    for match in _SYNC.finditer(_without_comments(text)):
        statement, line = " ".join(match[0].split()), text.count("\n", 0, match.start()) + 1
        yield Change(line, statement, "remove", _replace_statement(text, match, _remove_statement(match)))
        if not weaker:
            continue
        for pattern, substitute in _WEAKER:
            replacement = re.sub(pattern, substitute, match[0], count=1, flags=re.DOTALL)
            if replacement != match[0]:
                yield Change(
                    line, statement, " ".join(replacement.split()), _replace_statement(text, match, replacement)
                )


def _without_comments(text: str) -> str:
    return re.sub(r"//[^\n]*|/\*.*?\*/", lambda match: re.sub(r"[^\n]", " ", match[0]), text, flags=re.DOTALL)


def _replace_statement(text: str, match: re.Match[str], replacement: str) -> str:
    """Replace a statement by another; lines keep their numbers."""
    return (
        text[: match.start()]
        + replacement
        + "\n" * (match[0].count("\n") - replacement.count("\n"))
        + text[match.end() :]
    )


def _remove_statement(match: re.Match[str]) -> str:
    """Return the replacement for a removed statement; for a wait on an mbarrier, one that sets its predicate to
    true."""
    if not re.search(r"\.(try|test)_wait", match["opcode"]):
        return ""
    guard = match[0][: match.start("opcode") - match.start()]
    return f"{guard}setp.eq.u32 {match['operands'].split(',')[0].strip()}, 0, 0;"
