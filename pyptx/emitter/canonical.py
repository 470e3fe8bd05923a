"""Prints a module in canonical form: one statement per line, spaced by a style, with every token and comment.

Keeps what the author put there on purpose: comments, single blank lines, and line breaks inside a statement.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pyptx.emitter.styles import DEFAULT, Style, compute_default_gaps
from pyptx.ir.base import tokens
from pyptx.ir.directives import Module
from pyptx.ir.nodes import Statement
from pyptx.ir.walk import body_of

# A preprocessor line (`# 1 "file"`) must start its line; a comment may start anywhere.
_KEPT = re.compile(r"//[^\n]*|/\*.*?\*/|(?<![^\n])[ \t]*#[^\n]*", re.DOTALL)


def formatted(module: Module, *, style: Style = DEFAULT) -> str:
    """Return the text of a module in canonical form; the operation is idempotent."""
    out: list[str] = []
    stack: list[tuple[Iterator[Statement], Statement]] = []
    current = iter(module.statements)
    while True:
        for statement in current:
            _write_statement(statement, out, style, len(stack))
            inside = body_of(statement)
            if inside is not None:
                stack.append((current, statement))
                current = iter(inside)
                break
        else:
            if not stack:
                break
            current, statement = stack.pop()
            _write_closing(statement, out, style, len(stack))
    _write_before("".join(module.layout or ()).replace("\r\n", "\n"), out, "", last=True)
    return "".join(out)


def _write_statement(node: Statement, out: list[str], style: Style, depth: int) -> None:
    """Write a statement's own tokens, with its comments in place."""
    words = tokens(node)
    if not words:
        return
    lead = style.indent * depth
    defaults: Sequence[str] = compute_default_gaps(node, words, style, depth)
    gaps: tuple[str, ...] | None = getattr(node, "layout", None)
    if gaps is None or len(gaps) != len(defaults):
        gaps = ("",) * len(defaults)
    gaps = tuple(gap.replace("\r\n", "\n") for gap in gaps)
    _write_before(gaps[0], out, lead)
    out.append(lead + words[0])
    for word, gap, default in zip(words[1:], gaps[1:-1], defaults[1:-1], strict=True):
        out += (_choose_gap(gap, default, lead + 2 * style.indent), word)
    _write_after(gaps[-1], out, lead)


def _write_closing(node: Statement, out: list[str], style: Style, depth: int) -> None:
    """Write the closing brace of a body."""
    gaps: tuple[str, ...] | None = getattr(node, "closing", None)
    lead = style.indent * depth
    before, after = (gap.replace("\r\n", "\n") for gap in gaps or ("", ""))
    _write_before(before, out, lead + style.indent, last=True)
    out.append(lead + "}")
    _write_after(after, out, lead)


def _write_before(gap: str, out: list[str], lead: str, *, last: bool = False) -> None:
    """Write the comments before a token, each on its own line, with at most one blank line where the text has some;
    none after an opening brace, and none before a closing one or the end (`last`)."""
    fresh = not out or (len(out) > 1 and out[-2].endswith("{"))
    # The first line break belongs to the previous statement; a second one makes a blank line.
    position, breaks = 0, 1
    for match in _KEPT.finditer(gap):
        if breaks + gap.count("\n", position, match.start()) > 1 and not fresh:
            out.append("\n")
        text = match[0].strip()
        out.append(f"{'' if text[0] == '#' else lead}{text}\n")
        position, fresh, breaks = match.end(), False, 0
    if breaks + gap.count("\n", position) > 1 and not fresh and not last:
        out.append("\n")


def _choose_gap(gap: str, default: str, lead: str) -> str:
    """Return the gap between two tokens: its comments and line break, else the style's gap."""
    comments = list(_KEPT.finditer(gap))
    if not comments:
        return default if "\n" in default or "\n" not in gap else f"\n{lead}"
    text, position = "", 0
    for match in comments:
        comment = match[0].strip()
        own_line = "\n" in gap[position : match.start()] or comment[0] == "#"
        text += f"\n{'' if comment[0] == '#' else lead}{comment}" if own_line else f" {comment}"
        position = match.end()
    if comments[-1][0].lstrip()[0:2] != "/*" or "\n" in gap[position:] or "\n" in default:
        return text + (default if "\n" in default else f"\n{lead}")
    return text + " "


def _write_after(gap: str, out: list[str], lead: str) -> None:
    """Write the comments that follow a token on its line, and end the line."""
    comments, position = "", 0
    for match in _KEPT.finditer(gap):
        if "\n" in gap[position : match.start()]:
            break
        comments += f"  {match[0].strip()}"
        position = match.end()
    out.append(f"{comments}\n")
    remainder = gap[position:].partition("\n")[2]
    if remainder:
        _write_before(remainder, out, lead, last=True)
