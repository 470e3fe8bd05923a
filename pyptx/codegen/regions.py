"""The bodies of a module as the transpiler sees them: statements, and between them the comments around inline
assembly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from pyptx.emitter.spacing import Place, kind_of, marks
from pyptx.ir.nodes import Statement
from pyptx.ir.walk import body_of

_WORD = "inline asm"
DEEPEST = 5
"""How many bodies may be open before blocks and inline assembly are written without `with`: Python allows 20."""


class Item(NamedTuple):
    """A statement, or where inline assembly begins (`mark` is "asm") or ends ("end"); what stands before it."""

    node: Statement | None
    mark: str
    before: str


def items(body: Sequence[Statement], closing: str = "", depth: int = 0) -> tuple[list[Item], str]:
    """Return the items of a body, and what is left of the gap before its closing brace. Marks that are not in pairs
    are plain comments, as are those outside functions or too deep."""
    gaps: list[str] = [_first(statement) for statement in body]
    gaps.append(closing)
    if not 1 <= depth <= DEEPEST or not any(_WORD in gap for gap in gaps):
        return [Item(node, "", gap) for node, gap in zip(body, gaps, strict=False)], closing
    pieces = [_pieces(gap) for gap in gaps]
    paired = _paired(pieces)
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


def _first(statement: Statement) -> str:
    layout: tuple[str, ...] | None = getattr(statement, "layout", None)
    return layout[0] if layout else ""


def _pieces(gap: str) -> list[str]:
    """Return text, mark, text, … of a gap."""
    if _WORD not in gap:
        return [gap]
    out: list[str] = []
    at = 0
    for found in marks.finditer(gap):
        out += [gap[at : found.start()], found[0]]
        at = found.end()
    return [*out, gap[at:]]


def _paired(pieces: list[list[str]]) -> list[bool]:
    """Tell of each mark whether it and its partner enclose something."""
    marked = [mark for parts in pieces for mark in parts[1::2]]
    out = [False] * len(marked)
    for at, (one, two) in enumerate(pairwise(marked)):
        if "begin" in one and "end" in two:
            out[at] = out[at + 1] = True
    return out


class Seen(NamedTuple):
    """An item where it stands. `mark` is "asm" or "end" for the comments, "}" for the brace that closes the node's
    body; `gaps` are those of the source, the first without what belongs to the items before."""

    node: Statement | None
    mark: str
    gaps: tuple[str, ...]


def walked(statements: Sequence[Statement], place: Place) -> Iterator[Seen]:
    """Yield every item of a text, those of bodies and their closing braces included, while `place` follows."""
    waiting: list[tuple[Iterator[Item], Statement, str, str]] = []
    current = iter(items(statements)[0])
    while True:
        for node, mark, before in current:
            if node is None:
                yield Seen(None, mark, (before,))
                (place.begin if mark == "asm" else place.end)()
                continue
            layout: tuple[str, ...] = node.layout  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
            yield Seen(node, "", layout if before is layout[0] else (before, *layout[1:]))
            inside = body_of(node)
            if inside is None:
                place.last = kind_of(node)
                continue
            first, last = getattr(node, "closing", None) or ("", "")
            place.open()
            inner, first = items(inside, first, place.depth)
            waiting.append((current, node, first, last))
            current = iter(inner)
            break
        else:
            if not waiting:
                return
            current, owner, first, last = waiting.pop()
            place.leave()
            yield Seen(owner, "}", (first, last))
            place.last = f"{kind_of(owner)}}}"
