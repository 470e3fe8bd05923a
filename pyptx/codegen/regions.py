"""The bodies of a module for the transpiler: statements, and the comments that delimit inline assembly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from pyptx.emitter.spacing import get_kind, marks
from pyptx.ir.directives import Section
from pyptx.ir.nodes import Instruction, Statement
from pyptx.ir.walk import body_of

_WORD = "inline asm"
DEEPEST = 5
"""Maximum nesting before blocks and inline assembly are written without `with`: Python allows 20 levels."""


class Item(NamedTuple):
    """A statement, or the start ("asm") or end ("end") of inline assembly in `mark`; with the gap before it."""

    node: Statement | None
    mark: str
    before: str


def split_into_items(body: Sequence[Statement], closing: str = "", depth: int = 0) -> tuple[list[Item], str]:
    """Return the items of a body, and the rest of the gap before its closing brace. Unpaired marks are plain comments,
    as are those outside functions or nested too deep."""
    gaps: list[str] = [_get_first_gap(statement) for statement in body]
    gaps.append(closing)
    if not 1 <= depth <= DEEPEST or not any(_WORD in gap for gap in gaps):
        return [Item(node, "", gap) for node, gap in zip(body, gaps, strict=False)], closing
    pieces = [_split_at_marks(gap) for gap in gaps]
    has_partner = _pair_marks(pieces)
    out: list[Item] = []
    serial = 0
    for index, parts in enumerate(pieces):
        text = parts[0]
        for mark, after in zip(parts[1::2], parts[2::2], strict=True):
            if has_partner[serial]:
                out.append(Item(None, "asm" if "begin" in mark else "end", text))
                text = after
            else:
                text += mark + after
            serial += 1
        if index < len(body):
            out.append(Item(body[index], "", text))
        else:
            closing = text
    return out, closing


def _get_first_gap(statement: Statement) -> str:
    layout: tuple[str, ...] | None = getattr(statement, "layout", None)
    return layout[0] if layout else ""


def list_gaps(statement: Statement, before: str) -> tuple[str, ...]:
    """Return the gaps of a parsed statement, with `before` as the first."""
    layout: tuple[str, ...] = getattr(statement, "layout", None) or (before,)
    return layout if before is layout[0] else (before, *layout[1:])


def _split_at_marks(gap: str) -> list[str]:
    """Return a gap split into text, mark, text, …."""
    if _WORD not in gap:
        return [gap]
    out: list[str] = []
    position = 0
    for match in marks.finditer(gap):
        out += [gap[position : match.start()], match[0]]
        position = match.end()
    return [*out, gap[position:]]


def _pair_marks(pieces: list[list[str]]) -> list[bool]:
    """Return, for each mark, whether it and its partner enclose something."""
    marks = [mark for parts in pieces for mark in parts[1::2]]
    out = [False] * len(marks)
    for index, (first, second) in enumerate(pairwise(marks)):
        if "begin" in first and "end" in second:
            out[index] = out[index + 1] = True
    return out


class Visit(NamedTuple):
    """An item with its position. `mark` is "asm" or "end" for the comments, "}" for the closing brace of the node's
    body; `gaps` are those of the source, the first without the text that belongs to earlier items."""

    node: Statement | None
    mark: str
    gaps: tuple[str, ...]
    asm: bool
    depth: int
    last: str

    @property
    def kind(self) -> str:
        """The key that `Style.before` uses for it."""
        return self.mark if self.node is None else get_kind(self.node) + self.mark


def walk_items(statements: Sequence[Statement]) -> Iterator[Visit]:
    """Yield every item of a text, including those of bodies and their closing braces. Sections of debug data are
    omitted: they are written as text."""
    stack: list[tuple[Iterator[Item], Statement, tuple[str, str], bool]] = []
    current = iter(split_into_items(statements)[0])
    asm, depth, last = False, 0, "{"
    while True:
        for node, mark, before in current:
            if node is None:
                yield Visit(None, mark, (before,), asm, depth, last)
                asm, last = mark == "asm", mark
                continue
            if isinstance(node, Section):
                last = f"{get_kind(node)}}}"
                continue
            yield Visit(node, "", list_gaps(node, before), asm, depth, last)
            inside = None if type(node) is Instruction else body_of(node)
            if inside is None:
                last = get_kind(node)
                continue
            closing = getattr(node, "closing", None) or ("", "")
            depth, last = depth + 1, "{"
            inner, gap = split_into_items(inside, closing[0], depth)
            stack.append((current, node, (gap, closing[1]), asm))
            current = iter(inner)
            break
        else:
            if not stack:
                return
            current, owner, closing, asm = stack.pop()
            depth -= 1
            yield Visit(owner, "}", closing, asm, depth, last)
            last = f"{get_kind(owner)}}}"
