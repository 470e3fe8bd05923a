"""The bodies of a module for the transpiler: statements, and the comments that delimit inline assembly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from pyptx.emitter.spacing import kind_of, marks
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


def items(body: Sequence[Statement], closing: str = "", depth: int = 0) -> tuple[list[Item], str]:
    """Return the items of a body, and the rest of the gap before its closing brace. Unpaired marks are plain comments,
    as are those outside functions or nested too deep."""
    gaps: list[str] = [_get_first_gap(statement) for statement in body]
    gaps.append(closing)
    if not 1 <= depth <= DEEPEST or not any(_WORD in gap for gap in gaps):
        return [Item(node, "", gap) for node, gap in zip(body, gaps, strict=False)], closing
    pieces = [_split_at_marks(gap) for gap in gaps]
    paired = _pair_marks(pieces)
    out: list[Item] = []
    serial = 0
    for index, parts in enumerate(pieces):
        text = parts[0]
        for mark, after in zip(parts[1::2], parts[2::2], strict=True):
            if paired[serial]:
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


def gaps_of(statement: Statement, before: str) -> tuple[str, ...]:
    """Return the gaps of a parsed statement, with `before` as the first."""
    layout: tuple[str, ...] = getattr(statement, "layout", None) or (before,)
    return layout if before is layout[0] else (before, *layout[1:])


def _split_at_marks(gap: str) -> list[str]:
    """Return a gap split into text, mark, text, …."""
    if _WORD not in gap:
        return [gap]
    out: list[str] = []
    at = 0
    for match in marks.finditer(gap):
        out += [gap[at : match.start()], match[0]]
        at = match.end()
    return [*out, gap[at:]]


def _pair_marks(pieces: list[list[str]]) -> list[bool]:
    """Return, for each mark, whether it and its partner enclose something."""
    marked = [mark for parts in pieces for mark in parts[1::2]]
    out = [False] * len(marked)
    for at, (one, two) in enumerate(pairwise(marked)):
        if "begin" in one and "end" in two:
            out[at] = out[at + 1] = True
    return out


class Seen(NamedTuple):
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
        return self.mark if self.node is None else kind_of(self.node) + self.mark


def walked(statements: Sequence[Statement]) -> Iterator[Seen]:
    """Yield every item of a text, including those of bodies and their closing braces. Sections of debug data are
    omitted: they are written as text."""
    waiting: list[tuple[Iterator[Item], Statement, tuple[str, str], bool]] = []
    current = iter(items(statements)[0])
    asm, depth, last = False, 0, "{"
    while True:
        for node, mark, before in current:
            if node is None:
                yield Seen(None, mark, (before,), asm, depth, last)
                asm, last = mark == "asm", mark
                continue
            if isinstance(node, Section):
                last = f"{kind_of(node)}}}"
                continue
            yield Seen(node, "", gaps_of(node, before), asm, depth, last)
            inside = None if type(node) is Instruction else body_of(node)
            if inside is None:
                last = kind_of(node)
                continue
            closing = getattr(node, "closing", None) or ("", "")
            depth, last = depth + 1, "{"
            inner, rest = items(inside, closing[0], depth)
            waiting.append((current, node, (rest, closing[1]), asm))
            current = iter(inner)
            break
        else:
            if not waiting:
                return
            current, owner, closing, asm = waiting.pop()
            depth -= 1
            yield Seen(owner, "}", closing, asm, depth, last)
            last = f"{kind_of(owner)}}}"
